"""The largest kappa, against interior-point solutions of what defines it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from proxmargin.data.designs import DenseDesign, SparseDesign, standardized
from proxmargin.models.limits import kappa
from proxmargin.models.limits.kappa import kappa_max, largest_kappa
from tests.models.limits.overlapping import SHAPES, sample

MODELS = ("fda", "mpm")


def halves(X, y, s):
    """The mean difference, and the deviations of each class."""
    means, spreads = [], []
    for label in (1, -1):
        w = s[y == label] / s[y == label].sum()
        means.append(w @ X[y == label])
        spreads.append(((X[y == label] - means[-1]) * np.sqrt(w)[:, None]).T)
    return means[0] - means[1], *spreads


def touching(X, y, s, model: str) -> float:
    """The least kappa at which the ellipsoids have a common point."""
    D, up, down = halves(X, y, s)
    scale = np.linalg.norm(np.hstack([up, down]), axis=1)
    D, up, down = D / scale, up / scale[:, None], down / scale[:, None]
    if D.size > y.size:  # an orthonormal basis of where everything lies
        basis = np.linalg.svd(np.hstack([up, down]), full_matrices=False)
        basis = basis[0][:, basis[1] > 1e-10 * basis[1][0]]
        D, up, down = basis.T @ D, basis.T @ up, basis.T @ down
    g, h = cp.Variable(up.shape[1]), cp.Variable(down.shape[1])
    sizes = cp.norm(cp.hstack([g, h])) if model == "fda" else cp.maximum(cp.norm(g), cp.norm(h))
    problem = cp.Problem(cp.Minimize(sizes), [up @ g + down @ h == D])
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_the_largest_kappa_is_where_the_ellipsoids_touch(shape: str, model: str, rng) -> None:
    X, y, s = sample(shape, rng)
    exact = touching(X, y, s, model)
    assert kappa_max(X, y, model, s) == pytest.approx(exact, rel=1e-6)
    assert kappa_max(sp.csr_matrix(X), y, model, s) == pytest.approx(exact, rel=1e-6)
    # centre and units of the features do not matter
    design = standardized(SparseDesign(sp.csc_matrix(X)), s / s.sum())
    found = largest_kappa(design, y.astype(float), s / s.sum(), model)
    assert found.value == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_with_products_only_the_largest_kappa_is_the_same(shape, model, rng, monkeypatch) -> None:
    X, y, s = sample(shape, rng)
    direct = kappa_max(X, y, model, s)
    monkeypatch.setattr(kappa, "MAX_SIDE", 0)
    monkeypatch.setattr(kappa, "LSMR_STEPS", 500)
    assert kappa_max(sp.csr_matrix(X), y, model, s) == pytest.approx(direct, rel=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_both_dense_ways_agree(model: str, rng) -> None:
    X, y, s = sample("tall", rng)
    wide = np.hstack([X, X @ rng.standard_normal((4, 60))])
    assert kappa_max(wide, y, model, s) == pytest.approx(kappa_max(X, y, model, s), rel=1e-8)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(10, 30), (30, 10)])
def test_ellipsoids_that_never_meet_have_no_largest_kappa(model, shape, rng, monkeypatch) -> None:
    n, p = shape
    X, y = rng.standard_normal((n, p)), np.arange(n) % 2
    X[:, 0] = y  # tells the classes apart, without any spread
    assert kappa_max(X, y, model) == np.inf
    monkeypatch.setattr(kappa, "MAX_SIDE", 0)
    assert kappa_max(X, y, model) == np.inf


@pytest.mark.parametrize("model", MODELS)
def test_equal_means_touch_at_once(model: str) -> None:
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    assert kappa_max(X, [0, 0, 1, 1], model) == 0


def test_the_classes_halves_bound_one_another(rng) -> None:
    for _ in range(20):
        X, y, s = sample("tall", rng)
        fda, mpm = (kappa_max(X, y, model, s) for model in MODELS)
        assert mpm * (1 - 1e-12) <= fda <= np.sqrt(2) * mpm * (1 + 1e-12)


def test_a_class_of_one_sample_has_no_ellipsoid(rng) -> None:
    X = rng.standard_normal((20, 3))
    y = np.arange(20) == 0
    assert kappa_max(X, y, "mpm") == pytest.approx(kappa_max(X, y, "fda"), rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("steps", [4, 20, 60])
def test_what_is_known_at_a_limit_encloses_the_largest_kappa(model, steps, rng, monkeypatch):
    X = rng.standard_normal((300, 60)) * 10.0 ** rng.uniform(-2, 2, 60)
    X = X @ rng.standard_normal((60, 60))
    y = np.where(rng.random(300) < 0.3, 1.0, -1.0)
    shares, exact = np.full(300, 1 / 300), kappa_max(X, y, model)
    monkeypatch.setattr(kappa, "MAX_SIDE", 0)
    monkeypatch.setattr(kappa, "LSMR_STEPS", steps)
    found = largest_kappa(DenseDesign(X), y, shares, model)
    assert found.lower <= exact * (1 + 1e-9)
    assert found.upper >= exact * (1 - 1e-9)
    assert not found.is_known
    assert found.value == found.lower


def test_a_largest_kappa_that_is_not_settled_is_told(rng, monkeypatch) -> None:
    X, y = rng.standard_normal((60, 20)), np.arange(60) % 2
    X = X @ np.diag(10.0 ** np.linspace(-3, 3, 20)) @ rng.standard_normal((20, 20))
    monkeypatch.setattr(kappa, "MAX_SIDE", 0)
    monkeypatch.setattr(kappa, "LSMR_STEPS", 5)
    with pytest.warns(ConvergenceWarning, match="kappa_max is at least"):
        kappa_max(X, y, "fda")
