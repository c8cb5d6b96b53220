"""Data in chunks: what a pass computes, and which products need none."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from proxmargin.data.designs.base import Design, SweepPoint
from tests.cases import DESIGNS, as_seen, small_matrix

CHUNKED = [name for name in DESIGNS if "chunks" in name]
every_design = pytest.mark.parametrize("name", DESIGNS)


def derivatives(scores: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = 1.0 / (1.0 + np.exp(signs * scores))
    return -signs * share, share * (1.0 - share)


@every_design
def test_a_sweep_is_the_gradient_and_the_hessian_of_the_matrix(name: str, rng) -> None:
    matrix = small_matrix(rng)
    design, X = DESIGNS[name](matrix), as_seen(name, matrix)
    coef, signs, centre = rng.standard_normal(6), rng.choice([-1.0, 1.0], 14), rng.random(6)
    wanted = np.array([0, 3, 5])
    found = design.sweep(SweepPoint(coef, 0.3, derivatives, (signs,), centre, wanted))
    dual, bend = derivatives(X @ coef + 0.3, signs)
    moved = (X - centre)[:, wanted]
    close = {"rtol": 1e-9, "atol": 1e-9}
    if "float32" in name:
        close = {"rtol": 1e-6, "atol": 1e-6}
    np.testing.assert_allclose(found.scores, X @ coef + 0.3, **close)
    np.testing.assert_allclose(found.dual, dual, **close)
    sides = np.column_stack([np.maximum(dual, 0), np.minimum(dual, 0), bend])
    np.testing.assert_allclose(found.pulled, X.T @ sides, **close)
    np.testing.assert_allclose(found.sums, sides.sum(axis=0), **close)
    np.testing.assert_allclose(found.gram, moved.T @ (bend[:, None] * moved), **close)


@pytest.mark.parametrize("name", CHUNKED)
def test_a_sweep_is_one_pass_and_its_dual_point_needs_no_other(name: str, rng) -> None:
    design = DESIGNS[name](small_matrix(rng))
    signs = rng.choice([-1.0, 1.0], 14)
    before = design.counter.passes
    found = design.sweep(
        SweepPoint(rng.random(6), 0.0, derivatives, (signs,), np.zeros(6), np.arange(6))
    )
    assert design.counter.passes - before == 1.0
    dual = found.dual * np.where(found.dual > 0, 0.7, 1.0 / 3.0)
    pulled = design.adjoint(dual[:, None])
    assert design.counter.passes - before == 1.0
    other = dual.copy()
    other[4] *= 1.0 + 1e-12
    changed = design.adjoint(other[:, None])
    assert design.counter.passes - before == 2.0
    np.testing.assert_allclose(pulled, changed, rtol=1e-9, atol=1e-12)
    error = design.adjoint_error(np.abs(dual).sum(keepdims=True))
    precise = design.precise_adjoint(dual[:, None])
    assert np.all(np.abs(pulled - precise.values) <= error + precise.error)


def test_rounding_of_chunked_products_is_within_its_bound(rng) -> None:
    matrix = rng.standard_normal((600, 3)) * 10.0 ** rng.integers(-6, 7, (600, 3))
    dual = rng.standard_normal((600, 1))
    exact = (matrix.astype(np.longdouble).T @ dual.astype(np.longdouble)).astype(float)
    for rows in (1, 7, 1000):
        design = CHUNKS(matrix, rows)
        sizes = np.abs(dual).sum(axis=0)
        assert np.all(np.abs(design.adjoint(dual) - exact) <= design.adjoint_error(sizes))
        values, error, _ = design.precise_adjoint(dual)
        assert np.all(np.abs(values - exact) <= error + 1e-16 * np.abs(exact))
    whole = CHUNKS(matrix, 1000)
    assert np.all(CHUNKS(matrix, 25).adjoint_error(sizes) < whole.adjoint_error(sizes))


def CHUNKS(matrix: np.ndarray, rows: int):
    from tests.cases.designs import _chunked

    return _chunked(matrix, rows)


def test_moments_of_chunks_do_not_suffer_from_large_means(rng) -> None:
    matrix = 1e6 + rng.standard_normal((200, 2))
    design, weights = CHUNKS(matrix, 9), rng.random(200)
    weights /= weights.sum()
    for shares in (weights, np.full(200, 1 / 200)):
        mean, variance = design.mean_and_variance(shares)
        np.testing.assert_allclose(mean, shares @ matrix, rtol=1e-14)
        np.testing.assert_allclose(variance, shares @ (matrix - mean) ** 2, rtol=1e-8)


def test_the_default_sweep_is_that_of_one_block(rng) -> None:
    matrix = rng.standard_normal((20, 3))
    at = SweepPoint(rng.random(3), 0.1, partial(derivatives), (np.ones(20),), np.zeros(3), None)
    chunked, whole = CHUNKS(matrix, 1000).sweep(at), Design.sweep(CHUNKS(matrix, 1000), at)
    np.testing.assert_array_equal(chunked.scores, whole.scores)
    assert chunked.gram is None
