"""Data as Newton steps read them: the same products and parts as those of their design."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import as_design
from proxmargin.data.designs.views import centred
from proxmargin.solvers.augmented import hinge_system as module
from proxmargin.solvers.augmented.hinge_system import few_by_rows, newton_rows

KINDS = {
    "by columns": np.asfortranarray,
    "by rows": np.ascontiguousarray,
    "single": lambda X: np.asfortranarray(X, dtype=np.float32),
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
}


@pytest.fixture
def data(rng):
    return np.round(rng.standard_normal((12, 7)) + 0.5, 3) * (rng.random((12, 7)) < 0.6)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@pytest.mark.parametrize("moved", [False, True], ids=["as it is", "centred"])
def test_products_and_parts_are_those_of_the_data(kind, moved, data, rng):
    design = as_design(kind(data))
    if moved:
        design, data = centred(design, np.full(12, 1 / 12)), data - data.mean(axis=0)
    part = newton_rows(design)
    coef, dual = rng.standard_normal(7), rng.standard_normal(12)
    np.testing.assert_allclose(part.scores(coef), data @ coef, atol=1e-6)
    np.testing.assert_allclose(part.adjoint(dual), data.T @ dual, atol=1e-6)
    assert part.largest >= np.abs(data).max() - 1e-6
    rows, columns = np.array([0, 3, 11]), np.array([6, 1])
    picked = part.part(rows, columns).scores(np.eye(2))
    np.testing.assert_allclose(picked, data[np.ix_(rows, columns)], atol=1e-6)


def test_small_parts_are_copied_and_large_ones_are_not(data, monkeypatch):
    part, every = newton_rows(as_design(sp.csr_matrix(data))), np.arange(7)
    assert few_by_rows(part.part(every, every)) is not None
    monkeypatch.setattr(module, "GATHERED_WORK", 7**3 - 1)
    assert few_by_rows(part.part(every, every)) is None


def test_a_design_is_prepared_once(data):
    design = as_design(sp.csr_matrix(data))
    assert newton_rows(design) is newton_rows(design)
