"""The ranges of nu and kappa, against interior-point solutions of what defines them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.designs import DenseDesign, SparseDesign, standardized
from proxmargin.limits import admissible
from proxmargin.limits.admissible import (
    kappa_max,
    largest_kappa,
    largest_nu,
    nu_range,
    smallest_nu,
)
from proxmargin.limits.reduced_hulls import meeting_nu

MODELS = ("fda", "mpm")
SHAPES = {"tall": (40, 4), "square": (30, 20), "wide, of low rank": (30, 50)}


def sample(shape: str, rng: np.random.Generator, shift: float = 0.4):
    """Overlapping classes, some weights zero; wide data lie in a space of 12 dimensions."""
    n, p = SHAPES[shape]
    y = np.where(np.arange(n) % 3 == 0, 1, -1)
    X = rng.standard_normal((n, p)) * np.exp(rng.standard_normal(p)) + shift * y[:, None] + 2
    if p > n:
        X = X[:, :12] @ rng.standard_normal((12, p))
    return X, y, rng.integers(0, 4, n).astype(float)


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
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
def test_with_products_only_the_largest_kappa_is_the_same(shape, model, rng, monkeypatch) -> None:
    X, y, s = sample(shape, rng)
    direct = kappa_max(X, y, model, s)
    monkeypatch.setattr(admissible, "MAX_DIRECT", 0)
    monkeypatch.setattr(admissible, "LSMR_STEPS", 500)
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
    monkeypatch.setattr(admissible, "MAX_DIRECT", 0)
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
    monkeypatch.setattr(admissible, "meeting_nu", lambda *data: None)
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


@pytest.mark.parametrize("function", [nu_range, lambda X, y, s=None: kappa_max(X, y, "mpm", s)])
def test_weights_are_repeated_rows(function, rng) -> None:
    X, y, s = sample("tall", rng, shift=0.05)
    rows = np.repeat(np.arange(40), s.astype(int))
    assert function(X, y, s) == pytest.approx(function(X[rows], y[rows]), rel=1e-6)


def test_bad_input_gets_one_clear_sentence(rng) -> None:
    X, y = rng.standard_normal((9, 2)), np.arange(9) % 3
    for function in (nu_range, lambda X, y: kappa_max(X, y, "fda")):
        with pytest.raises(ValueError, match="3 classes: nu and kappa are parameters of binary"):
            function(X, y)
        with pytest.raises(ValueError, match="at least 2 classes"):
            function(X, np.zeros(9))
        with pytest.raises(ValueError, match="NaN"):
            function(np.where(np.eye(9, 2) > 0, np.nan, X), y % 2)
    with pytest.raises(ValueError, match="model must be one of 'fda', 'mpm'"):
        kappa_max(X, y % 2, "qda")
