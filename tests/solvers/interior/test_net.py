"""The interior point method in units of the features: an independent optimum, and units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from proxmargin import L2SVC, ElasticNetSVC, HuberizedSVC, SquaredHingeSVC
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.losses import Hinge, HuberizedHinge, SquaredHinge
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import ElasticNet, Pinned, Ridge, WeightedElasticNet
from proxmargin.solvers.choice.names import choose, solve
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from tests.cases import hinge_problem, tail_problem
from tests.oracles.models import TIGHT

every_intercept = pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Pinned()])


def problem_of(
    X: Any, y: np.ndarray, phi: Any = None, penalty: Any = None, intercept: Any = None
) -> Problem:
    weights = np.full((y.size, 1), 1.0 / y.size)
    loss = MarginSum(phi or Hinge(), y[:, None], weights, float(y.size))
    return Problem(loss, penalty or ElasticNet(0.02, 0.01), as_design(X), intercept or Ridge())


def two_classes(rng: np.random.Generator, n: int = 30, p: int = 8) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)


def net_optimum(problem: Problem, X: np.ndarray, y: np.ndarray) -> float:
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    penalty, intercept = problem.penalty, problem.intercept
    loss = cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / y.size
    net = penalty.net(X.shape[1])
    norms = cp.norm1(cp.multiply(net.l1, w)) + cp.sum_squares(cp.multiply(np.sqrt(net.l2 / 2), w))
    low, high = np.flatnonzero(np.isfinite(net.lower)), np.flatnonzero(np.isfinite(net.upper))
    within = [w[low] >= net.lower[low], w[high] <= net.upper[high]]
    pinned = isinstance(intercept, Pinned)
    ridge = 0.0 if pinned else intercept.l2 / 2 * cp.square(b)
    program = cp.Problem(
        cp.Minimize(loss + norms + ridge), [*within, *([b == 0] if pinned else [])]
    )
    return float(program.solve(solver=cp.CLARABEL, **TIGHT))


@every_intercept
@pytest.mark.parametrize("penalty", [ElasticNet(0.02, 0.01), Ridge(0.05)])
def test_the_optimum_is_that_of_another_solver(rng, penalty, intercept) -> None:
    X, y = two_classes(rng)
    problem = problem_of(X, y, penalty=penalty, intercept=intercept)
    solution = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-9))
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(net_optimum(problem, X, y), rel=1e-8)


@every_intercept
@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_factors_and_bounds_of_each_feature_are_kept(rng, l1: float, intercept) -> None:
    X, y = two_classes(rng)
    lower = np.array([-0.1, -np.inf, 0.0, -1e-6, -2.0, 0.0, -np.inf, -0.1])
    upper = np.array([0.1, 0.0, np.inf, 1e3, np.inf, 0.0, 0.05, 0.1])
    factors = np.linspace(0.3, 3.0, X.shape[1])
    penalty = WeightedElasticNet(ElasticNet(l1, 0.01), factors, lower, upper)
    problem = problem_of(X, y, penalty=penalty, intercept=intercept)
    solution = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-9))
    coef = solution.point.coef[:, 0]
    assert solution.certificate.converged
    assert np.all((lower <= coef) & (coef <= upper))
    assert solution.certificate.primal == pytest.approx(net_optimum(problem, X, y), rel=1e-8)


@every_intercept
@pytest.mark.parametrize("penalty", [ElasticNet(0.02, 0.01), Ridge(0.05)])
def test_of_wide_data_too_it_is_that_of_another_solver(rng, penalty, intercept) -> None:
    X, y = two_classes(rng, n=12, p=20)
    lower = np.where(np.arange(20) % 3, -np.inf, -0.01)
    factors = np.linspace(0.3, 3.0, 20)
    weighted = WeightedElasticNet(ElasticNet(penalty.l1, penalty.l2), factors, lower, -lower)
    for one in (penalty, weighted):
        problem = problem_of(X, y, penalty=one, intercept=intercept)
        solution = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-9))
        assert solution.certificate.converged
        assert solution.certificate.primal == pytest.approx(net_optimum(problem, X, y), rel=1e-8)


@every_intercept
@pytest.mark.parametrize("phi", [HuberizedHinge(1.0), SquaredHinge()])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [1e-3, 1e-8])
def test_weak_penalties_of_wide_data_are_certified(rng, alpha, l1_ratio, phi, intercept) -> None:
    X, y = two_classes(rng, n=15, p=40)
    penalty = ElasticNet.from_mixture(alpha, l1_ratio)
    problem = problem_of(X, y, phi, penalty, intercept)
    assert minimize(problem, InteriorPoint()).certificate.converged


@pytest.mark.parametrize("model", [HuberizedSVC, SquaredHingeSVC, ElasticNetSVC])
@pytest.mark.parametrize(("alpha", "decades"), [(1e-12, 0), (1e-3, 14), (1e-6, 8)])
def test_single_fits_certify_weak_penalties_as_paths_do(rng, model, alpha, decades) -> None:
    X, y = two_classes(rng, n=15, p=40)
    factors = 10.0 ** rng.uniform(-decades / 2, decades / 2, 40)
    fitted = model(alpha=alpha, penalty_factor=factors).fit(X, y)
    assert fitted.certificate_.converged


def test_bounds_take_few_steps() -> None:
    """First-order methods take thousands of steps here."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((57, 12))
    y = np.sign(X @ rng.standard_normal(12) + rng.standard_normal(57))
    model = ElasticNetSVC(alpha=2e-4, l1_ratio=0.9, bounds=(-0.5, 0.5)).fit(X, y)
    assert model.certificate_.converged
    assert model.n_iter_ <= 30


@pytest.mark.sampled(3)
@pytest.mark.parametrize("phi", [Hinge(), HuberizedHinge(0.5), SquaredHinge()])
@pytest.mark.parametrize("power", [-3, 4, 8])
def test_units_of_the_features_change_neither_path_nor_model(rng, phi, power: int) -> None:
    X, y = two_classes(rng)
    units = 2.0 ** (power * rng.integers(-3, 4, X.shape[1]))
    ridge = Ridge(1e-300)  # nothing in any of these units

    def run(scale: np.ndarray) -> Any:
        return minimize(problem_of(X * scale, y, phi, ridge), InteriorPoint(), stop=Stop(1e-8))

    plain, scaled = run(np.ones(X.shape[1])), run(units)
    assert scaled.certificate.n_iter == plain.certificate.n_iter
    np.testing.assert_allclose(
        scaled.point.coef * units[:, None], plain.point.coef, rtol=1e-4, atol=1e-5
    )


def test_coefficients_of_no_use_are_zero(rng) -> None:
    X, y = two_classes(rng)
    problem = problem_of(X, y, penalty=ElasticNet(0.1, 0.01))
    found = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-9))
    other = solve(problem, choose(problem), stop=Stop(tol=1e-9))
    assert choose(problem).name == "multiplier-newton"
    zero = other.point.coef == 0.0
    assert 0 < zero.sum() < zero.size
    np.testing.assert_array_equal(found.point.coef == 0.0, zero)


def test_samples_without_weight_do_not_count(rng) -> None:
    X, y = two_classes(rng)
    problem = problem_of(X, y)
    weights = np.where(np.arange(y.size) < 20, 1.0 / 20, 0.0)[:, None]
    some = replace(problem, loss=MarginSum(Hinge(), y[:, None], weights, 20.0))
    few = problem_of(X[:20], y[:20])
    with_them = minimize(some, InteriorPoint(), stop=Stop(tol=1e-9))
    without = minimize(few, InteriorPoint(), stop=Stop(tol=1e-9))
    assert with_them.certificate.primal == pytest.approx(without.certificate.primal, rel=1e-8)


def test_constant_features_get_no_coefficients(rng) -> None:
    X, y = two_classes(rng)
    problem = problem_of(np.hstack([X, np.full((y.size, 1), 7.0)]), y)
    solution = minimize(problem, InteriorPoint(), stop=Stop(tol=1e-8))
    assert solution.certificate.converged
    assert solution.point.coef[-1, 0] == 0.0


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e4, 1e8, 1e12])
def test_a_net_is_certified_in_any_units(scale: float) -> None:
    for seed in range(8):
        X = np.random.default_rng(seed).standard_normal((30, 8)) * scale
        model = ElasticNetSVC(alpha=0.01, l1_ratio=0.5).fit(X, np.arange(30) % 2)
        assert model.certificate_.converged
        assert model.n_iter_ < 300


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_no_dual_point_of_double_precision_proves_is_said(rng) -> None:
    X = rng.standard_normal((30, 8)) * 1e12
    model = L2SVC(C=1e5).fit(X, np.arange(30) % 2)
    assert not model.certificate_.converged
    assert model.certificate_.stop_reason == Status.UNBALANCED.value
    assert model.certificate_.solver in {"interior-point", "ridge-newton"}
    assert model.n_iter_ < 300


@pytest.mark.parametrize("phi", [HuberizedHinge(0.5), SquaredHinge()])
def test_smooth_losses_with_a_net_are_for_newtons_method_first(rng, phi) -> None:
    X, y = two_classes(rng)
    assert choose(problem_of(X, y, phi)).name == "newton"


def test_it_says_what_it_needs(rng) -> None:
    solver = InteriorPoint()
    for problem in (hinge_problem(rng), tail_problem(rng)):
        without_ridge = solver.objection(replace(problem, penalty=ElasticNet(0.1)))
        assert "it needs a ridge penalty, coefficients in a ball or" in str(without_ridge)
    assert solver.objection(problem_of(*two_classes(rng))) is None
