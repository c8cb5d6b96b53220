"""Views of some samples: the design of a copy of them, whatever the other samples hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from proxmargin.data.designs import Design, RowView, as_design

INDEX = np.array([0, 2, 3, 7, 8])
STORED = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
}
every_storage = pytest.mark.parametrize("storage", STORED)


def pair(storage: str, giant: float = 1e30) -> tuple[RowView, Design, np.ndarray]:
    """A view, the design of a copy, and the matrix; all other samples hold giants."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10, 6)) * (rng.random((10, 6)) < 0.7)
    X = X.astype(np.float32).astype(float)
    poisoned = X.copy()
    poisoned[np.setdiff1d(np.arange(10), INDEX)] = giant
    make: Any = STORED[storage]
    return RowView(as_design(make(poisoned)), INDEX), as_design(make(X[INDEX])), X[INDEX]


@every_storage
def test_a_view_is_the_design_of_a_copy_of_its_rows(storage: str) -> None:
    view, copy, X = pair(storage)
    rng = np.random.default_rng(4)
    coef, dual = rng.standard_normal((6, 2)), rng.standard_normal((5, 2))
    weights, centre, of_features = rng.random(5), rng.standard_normal(6), rng.random(6)
    answers = [
        lambda d: d.scores(coef),
        lambda d: d.adjoint(dual),
        lambda d: d.row_squares(of_features, centre),
        lambda d: d.column_squares(weights, centre),
        lambda d: d.gram(weights, centre),
        lambda d: d.inner_products(of_features),
        lambda d: d.precise_scores(coef, dual[0]).values,
        lambda d: d.precise_adjoint(dual).values,
        lambda d: d.rows(np.array([1, 4])).scores(coef),
        lambda d: d.columns(np.array([0, 5])).adjoint(dual),
        lambda d: d.part(np.array([4, 1]), np.array([0, 2, 5])).scores(coef[:3]),
        lambda d: d.part(np.array([4, 1]), np.arange(6)).scores(coef),
        lambda d: d.dense_columns(np.array([1, 2, 3])),
        lambda d: d.spread(weights / weights.sum()),
    ]
    for answer in answers:
        np.testing.assert_allclose(answer(view), answer(copy), rtol=1e-12, atol=1e-12)
    assert view.n_samples == 5
    assert view.is_dense == copy.is_dense
    assert (view.compressed is None) == (copy.compressed is None)
    assert np.all(view.column_bounds() >= np.abs(X).max(axis=0))
    assert np.all(view.column_norms() >= np.linalg.norm(X, axis=0))
    np.testing.assert_allclose(view.column_norms(), np.linalg.norm(X, axis=0), rtol=1e-11)


@every_storage
def test_the_other_rows_do_not_change_a_bit(storage: str) -> None:
    (one, _, _), (other, _, _) = pair(storage, 1e30), pair(storage, -7.0)
    rng = np.random.default_rng(5)
    dual, weights, centre = rng.standard_normal((5, 1)), rng.random(5), rng.standard_normal(6)
    for answer in (
        lambda d: d.adjoint(dual),
        lambda d: d.column_squares(weights, centre),
        lambda d: d.gram(weights, centre),
        lambda d: d.precise_adjoint(dual).values,
        lambda d: d.column_bounds(),
    ):
        np.testing.assert_array_equal(answer(one), answer(other))


def test_a_view_charges_a_count_of_its_own() -> None:
    view, _, _ = pair("C")
    view.adjoint(np.ones((5, 1)))
    view.columns(np.array([0, 1, 2])).adjoint(np.ones((5, 1)))
    assert view.counter.passes == pytest.approx(1.0 + view.columns(np.array([0, 1, 2])).share)
