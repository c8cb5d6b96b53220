"""The range of nu, against interior-point solutions of what defines it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import DenseDesign, SparseDesign, standardized
from proxmargin.models.limits import nu
from proxmargin.models.limits.nu import largest_nu, meeting_nu, nu_range, smallest_nu
from tests.models.limits.overlapping import sample


def hulls(X, y, s) -> float:
    """The largest nu with a common point of the reduced hulls, by an interior-point solver."""
    s = s / s.sum()
    a = cp.Variable(y.size)
    limits = [a >= 0, a <= s, y @ a == 0, ((X - X.mean(axis=0)) * y[:, None]).T @ a == 0]
    return float(cp.Problem(cp.Maximize(cp.sum(a)), limits).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("shape", ["tall", "wide, of low rank"])
def test_the_smallest_nu_is_where_the_reduced_hulls_meet(shape: str, rng) -> None:
    X, y, s = sample(shape, rng, shift=0.05)
    if shape != "tall":
        X = X[:, :3] @ rng.standard_normal((3, 50))
    exact = hulls(X, y, s)
    assert exact > 1e-3
    for data in (X, sp.csr_matrix(X), sp.csc_matrix(X)):
        low, high = nu_range(data, y, s)
        assert low == pytest.approx(exact, abs=1e-5)
        assert high == pytest.approx(largest_nu(y, s))
    design = standardized(DenseDesign(X), s / s.sum())
    assert smallest_nu(design, y.astype(float), s / s.sum()) == pytest.approx(exact, abs=1e-5)


def test_the_least_hinge_loss_of_many_samples_is_the_smallest_nu(rng, monkeypatch) -> None:
    X = rng.standard_normal((1500, 40))
    y = np.where(X[:, 0] + 3.0 * rng.standard_normal(1500) > 0.5, 1.0, -1.0)
    weights = rng.integers(0, 4, 1500).astype(float)
    design, shares = DenseDesign(X), weights / weights.sum()
    found = meeting_nu(design, y, shares)
    assert found is not None
    monkeypatch.setattr(nu, "meeting_nu", lambda *data: None)
    assert found == pytest.approx(smallest_nu(design, y, shares), abs=1e-8)
    sparse = SparseDesign(sp.csr_matrix(X))
    assert meeting_nu(sparse, y, shares) == pytest.approx(found, abs=1e-8)


def test_separable_classes_have_a_margin_for_every_nu(rng) -> None:
    X, y = rng.standard_normal((20, 40)), np.arange(20) % 2
    assert nu_range(X, y) == (0.0, 1.0)
    assert nu_range(sp.csr_matrix(X), y) == (0.0, 1.0)
    # too far apart in size for least squares to separate
    x = np.array([1.0, 2.0, 1e4, -1.0, -2.0, -3.0])[:, None]
    assert nu_range(x, [1, 1, 1, 0, 0, 0]) == (0.0, 1.0)


def test_equal_classes_have_no_margin_for_any_nu(rng) -> None:
    X = rng.standard_normal((10, 2))
    low, high = nu_range(np.vstack([X, X]), np.repeat([0, 1], 10))
    assert low == pytest.approx(high, abs=1e-7)
