"""MM-FDA and MM-MPM: optima of an interior point, every kappa, odd data, large data."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

from proxmargin import MarginFDA, MarginMPM
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.minimax import MinimaxFisher, MinimaxProbability
from proxmargin.losses import SquaredHinge
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import ElasticNet, Pinned, Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.minimax import newton
from proxmargin.solvers.minimax.ellipsoids import spectrum
from proxmargin.solvers.minimax.newton import MinimaxNewton
from tests.oracles.models import TIGHT
from tests.shared_data import load_instance, needs_data, reference_instances
from tests.solvers.ridge.test_ridge_newton import cancer, margin_sum, two_classes

LOSS = {"fisher": MinimaxFisher, "probability": MinimaxProbability}
SOLVER = MinimaxNewton()
KIND = {"mmfda": "fisher", "mmmpm": "probability"}
both = pytest.mark.parametrize("model", LOSS)


def problem_of(
    model: str,
    X: Any,
    y: np.ndarray,
    kappa: float,
    weights: np.ndarray | None = None,
    penalty: Any = Ridge(1.0),  # noqa: B008
    intercept: Any = Ridge(0.0),  # noqa: B008
) -> Problem:
    weights = np.ones(y.size) if weights is None else np.asarray(weights, float)
    loss = LOSS[model](y[:, None], weights / weights.sum(), kappa, float(weights.sum()))
    return Problem(loss, penalty, as_design(X), intercept)


def solved(model: str, *args: Any, tol: float = 1e-9, **options: Any) -> Solution:
    return minimize(problem_of(model, *args, **options), SOLVER, stop=Stop(tol=tol))


def spreads(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """Difference of the class means, and the factors Z_o with ``S_o = Z_o' Z_o``."""
    means, factors = [], []
    for sign in (1.0, -1.0):
        one = (y == sign) & (weights > 0)
        shares = weights[one] / weights[one].sum()
        means.append(shares @ X[one])
        factors.append(np.sqrt(shares)[:, None] * (X[one] - means[-1]))
    return means[0] - means[1], factors


def margin(model: str, X: Any, y: np.ndarray, kappa: float, weights: Any, w: Any) -> float:
    """``(w'd - kappa spread(w)) / |w|``."""
    apart, factors = spreads(X, y, weights)
    blocks = [np.vstack(factors)] if model == "fisher" else factors
    spread = sum(np.linalg.norm(Z @ w) for Z in blocks)
    return float((apart @ w - kappa * spread) / np.linalg.norm(w))


def optimum(model: str, X: np.ndarray, y: np.ndarray, kappa: float, weights: np.ndarray) -> float:
    """``min -w'd + kappa spread(w) + |w|^2 / 2``, at the best multiple of Clarabel's w."""
    apart, factors = spreads(X, y, weights)
    w = cp.Variable(X.shape[1])
    blocks = [np.vstack(factors)] if model == "fisher" else factors
    spread = sum(cp.norm(Z @ w) for Z in blocks)
    program = cp.Problem(cp.Minimize(-apart @ w + kappa * spread + cp.sum_squares(w) / 2))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, **TIGHT)
    return -0.5 * max(margin(model, X, y, kappa, weights, w.value), 0.0) ** 2


@both
@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
def test_breast_cancer_is_solved_like_an_interior_point_does(model: str, kappa: float) -> None:
    X, y = cancer()
    found = solved(model, X, y, kappa).certificate
    best = optimum(model, X, y, kappa, np.ones(y.size))
    assert found.converged
    assert found.dual <= best
    assert found.primal <= best + 1e-8 * abs(best)


@pytest.mark.sampled(3)
@both
@pytest.mark.parametrize("kappa", [0.1, 0.4, 1.0, 4.0])
@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (20, 1)], ids=["narrow", "wide", "single"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("intercept", [Ridge(0.0), Pinned()], ids=["free", "none"])
def test_small_weighted_data_are_solved_at_every_kappa(
    model, kappa, shape, kind, intercept, rng
) -> None:
    X, y = two_classes(rng, *shape)
    X[rng.random(shape) < 0.4] = 0.0
    weights = rng.integers(0, 4, y.size).astype(float)
    found = solved(model, kind(X), y, kappa, weights, intercept=intercept, tol=1e-8)
    best = optimum(model, X, y, kappa, weights)
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(best, rel=1e-7, abs=1e-8)


@both
def test_the_strength_of_the_ridge_only_sets_the_length(model: str) -> None:
    X, y = cancer()
    one = solved(model, X, y, 0.5).point.coef
    strong = solved(model, X, y, 0.5, penalty=Ridge(100.0)).point.coef
    np.testing.assert_allclose(100.0 * strong, one, rtol=1e-4)


@both
@pytest.mark.parametrize("kappa", [3.0, 30.0, 1e4])
def test_a_kappa_without_margin_ends_at_zero_with_a_proof(model: str, kappa: float) -> None:
    X, y = cancer()
    found = solved(model, X, y, kappa)
    assert found.certificate.converged
    assert not found.point.coef.any()
    assert found.certificate.n_iter <= 30


@both
@pytest.mark.parametrize("kappa", [0.0, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("wide", [False, True])
def test_odd_data_end_with_a_certificate(model, kappa, wide, rng) -> None:
    n, p = (8, 20) if wide else (20, 3)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    lonely = np.where(np.arange(n) == 0, 1.0, -1.0)
    constant = np.hstack([X[:, 1:], np.full((n, 1), 7.0)])
    pair = (X[:2], np.array([1.0, -1.0]))
    doubled = (np.repeat(X, 2, axis=0), np.repeat(y, 2))
    for data, labels in [(np.ones((n, p)), y), (X, lonely), (constant, y), pair, doubled]:
        assert solved(model, data, labels, kappa, tol=1e-6).certificate.converged


@both
def test_units_of_the_features_do_not_matter_much(model, rng) -> None:
    X, y = two_classes(rng, 80, 6)
    X = X * 10.0 ** np.arange(-3, 3) + 1e3
    assert solved(model, X, y, 0.2, tol=1e-6).certificate.converged


@both
def test_covariances_of_a_larger_side_are_left_to_first_order_steps(
    model, rng, monkeypatch
) -> None:
    X, y = two_classes(rng, 200, 60)
    monkeypatch.setattr(newton, "LARGEST_SIDE", 59)
    problem = problem_of(model, X, y, 0.3)
    assert "at most 59" in str(SOLVER.objection(problem))
    assert choose(problem).name == "fapg-star"


@both
def test_other_losses_and_penalties_are_refused(model: str) -> None:
    X, y = cancer()
    fine = problem_of(model, X, y, 0.3)
    assert SOLVER.objection(fine) is None
    assert SOLVER.objection(problem_of(model, X, y, 0.3, penalty=ElasticNet(0.1, 0.1)))
    hinge = margin_sum(SquaredHinge(), y)
    assert SOLVER.objection(replace(fine, loss=hinge))


@needs_data("reference/instances.py", "reference/optima.json")
@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(i, id=f"{i['kind']}, {i['data']}, {i['params']}")
        for i in reference_instances("mmfda", "mmmpm")
    ],
)
def test_the_reference_optima_are_reached(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    weights = np.ones(y.size) if weights is None else weights
    model, kappa = KIND[instance["kind"]], instance["params"]["kappa"]
    found = solved(model, X, y.astype(float), kappa, weights, tol=1e-6)
    value = -margin(model, X, y, kappa, weights, found.point.coef[:, 0])
    assert found.certificate.converged
    assert abs(value - instance["optimum"]) <= (1e-6 + 1e-8) * abs(instance["optimum"])


def with_a_huge_feature(
    n: int, p: int, factor: float, column: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, and one feature in units of its own."""
    y = np.arange(n) % 5 < 2
    X = rng.standard_normal((n, p)) + 0.3 * (2.0 * y[:, None] - 1.0)
    X[:, column] *= factor
    return X, y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [MarginFDA, MarginMPM])
@pytest.mark.parametrize("shape", [(60, 5), (300, 20), (40, 100)], ids=str)
@pytest.mark.parametrize("kappa", ["0.1max", "0.5max", "0.9max"])
@pytest.mark.parametrize("factor", [1e4, 1e6])
@pytest.mark.parametrize("column", [0, 3])
def test_homogeneous_models_with_one_huge_feature(make, shape, kappa, factor, column, rng) -> None:
    X, y = with_a_huge_feature(*shape, factor, column, rng)
    model = make(kappa=kappa, tol=1e-8).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal < 0
    assert "went on" not in model.certificate_.because
    # its coefficient is small as its unit is large: a unit ten times as large changes nothing else
    X[:, column] *= 10.0
    again = make(kappa=kappa, tol=1e-8).fit(X, y)
    rest = np.arange(X.shape[1]) != column
    if kappa != "0.1max":
        np.testing.assert_allclose(
            again.coef_[0, rest],
            model.coef_[0, rest],
            rtol=1e-2,
            atol=1e-3 * abs(model.coef_).max(),
        )


@pytest.mark.parametrize("make", [MarginFDA, MarginMPM])
@pytest.mark.parametrize("kappa", ["0.3max", "0.9max"])
def test_real_data_with_one_huge_feature(make, kappa) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X.copy()
    X[:, 0] *= 1e6
    assert make(kappa=kappa).fit(X, y).certificate_.converged


def test_a_spectrum_keeps_the_digits_of_small_eigenvalues(rng) -> None:
    units = 10.0 ** np.arange(-6, 6, 2.0)
    Z = rng.standard_normal((50, 6))
    exact = np.linalg.svd(Z * units, compute_uv=False) ** 2
    S = (Z * units).T @ (Z * units)
    values, vectors = spectrum(S.copy(), np.diag(S))
    # the singular values of a matrix of several units are themselves known to 1e-16 of the largest
    near = 1e-9 + 1e-14 * np.sqrt(exact[0] / exact)
    assert (np.abs(np.sort(values)[::-1] / exact - 1.0) <= near).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-14)
    np.testing.assert_allclose((vectors * values) @ vectors.T, S, rtol=1e-10, atol=1e-12)
    # a feature without variance inside the classes
    S[2], S[:, 2] = 0.0, 0.0
    S[2, 2] = 1e-17
    values, vectors = spectrum(S, np.ones(6))
    assert np.count_nonzero(values) == 5
    assert np.abs(vectors[2, values == 0]) == pytest.approx(1.0)
