"""The iterative support vector machines, their inner solver, and alternating directions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import ElasticNetSVC
from proxmargin.data.designs import as_design
from proxmargin.losses import Hinge, MarginSum
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import ElasticNet, Penalty, Pinned, Ridge
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import PrimalResidual, Stop
from proxmargin.solvers.papers.iterated_svm import (
    AlternatingDirections,
    Isvm1,
    Isvm2,
    Isvm3,
    _minimised_on_box,
)

INTERCEPTS: dict[str, Penalty] = {"free": Ridge(0.0), "ridge": Ridge(0.1), "none": Pinned()}
SOLVERS = {"isvm1": Isvm1, "isvm2": Isvm2, "isvm3": Isvm3, "admm": AlternatingDirections}
every_solver = pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS.keys())


def two_classes(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.4 * y[:, None] * (np.arange(p) < 5) + 0.3, y


def drsvm(X: Any, y: np.ndarray, l1: float, l2: float, **parts: Any) -> Problem:
    weights = parts.get("weights", np.ones(y.size))
    total = float(weights.sum())
    loss = MarginSum(Hinge(), y[:, None], (weights / total)[:, None], total)
    return Problem(loss, ElasticNet(l1, l2), as_design(X), parts.get("intercept", Ridge()))


def best(problem: Problem) -> float:
    """The optimal value, by Newton's method (which has an oracle of its own)."""
    return minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-11)).gap.primal


def solved(problem: Problem, solver: Any, tol: float, **options: Any) -> Solution:
    solution = minimize(problem, solver, stop=Stop(tol=tol), **options)
    assert solution.certificate.converged, str(solution.certificate)
    return solution


# -- the inner solver -------------------------------------------------------------------------


@pytest.mark.parametrize("free", [True, False], ids=["hyperplane", "box"])
@pytest.mark.parametrize("rank", [3, 20])
def test_steps_on_a_box_reach_the_least_value(free: bool, rank: int, rng) -> None:
    n = 15
    root = rng.standard_normal((n, rank))
    kernel, y = root @ root.T, np.where(np.arange(n) % 4 == 0, 1.0, -1.0)
    caps, linear, scale = rng.uniform(0, 1, n) * (np.arange(n) % 5 != 2), rng.normal(size=n), 0.7
    given = scale * kernel, y, caps, linear
    dual, slope = _minimised_on_box(*given, np.zeros(n), free, 1e-12)
    a = cp.Variable(n)
    form = scale / 2 * cp.sum_squares(root.T @ cp.multiply(y, a)) + linear @ a
    limits = [a >= 0, a <= caps] + ([y @ a == 0] if free else [])
    value = cp.Problem(cp.Minimize(form), limits).solve(
        solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    found = scale / 2 * np.sum((root.T @ (y * dual)) ** 2) + linear @ dual
    assert found == pytest.approx(value, abs=1e-9)
    assert (dual >= 0).all()
    assert (dual <= caps).all()
    if free:
        assert abs(y @ dual) <= 1e-12
    np.testing.assert_allclose(slope, scale * y * (kernel @ (y * dual)) + linear, atol=1e-10)
    # from there on there is nothing to do
    np.testing.assert_array_equal(_minimised_on_box(*given, dual, free, 1e-9)[0], dual)


# -- single iterations ------------------------------------------------------------------------


def test_an_iteration_of_isvm2_is_that_of_the_paper(rng) -> None:
    X, y = two_classes(rng, 20, 30)
    problem, l1, l2, rho = drsvm(X, y, 0.1, 0.2), 0.1, 0.2, 50 / 20
    solver = Isvm2()
    state = replace(solver.init(problem, problem.origin(), Stop()), exactness=1e-12)
    for _ in range(3):
        u, mu = state.sparse, state.multipliers
        w, b = cp.Variable(30), cp.Variable()
        value = cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) / 20 + l2 / 2 * cp.sum_squares(w)
        value += mu @ w + rho / 2 * cp.sum_squares(w - u)
        tight = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}
        cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", **tight)
        state = solver.step(problem, state)
        np.testing.assert_allclose(state.smooth, w.value, atol=1e-6)
        # u minimises l1 |u|_1 + rho/2 |u - (w + mu/rho)|^2
        at = state.smooth + mu / rho
        zero = state.sparse == 0
        assert (np.abs(at[zero]) <= l1 / rho + 1e-12).all()
        shrunk = at - l1 / rho * np.sign(at)
        np.testing.assert_allclose(state.sparse[~zero], shrunk[~zero], atol=1e-12)
        update = mu + rho * (state.smooth - state.sparse)
        np.testing.assert_allclose(state.multipliers, update, atol=1e-14)


@pytest.mark.parametrize("shape", [(20, 7), (9, 30)], ids=str)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_an_iteration_of_admm_minimises_the_augmented_lagrangian(shape, intercept, rng) -> None:
    X, y = two_classes(rng, *shape)
    n = y.size
    problem = drsvm(X, y, 0.1, 0.2, intercept=INTERCEPTS[intercept])
    solver = AlternatingDirections(rho_margin=3.0, rho_coef=20.0)
    state = solver.init(problem, problem.origin(), Stop())
    for _ in range(4):
        c, v, u, eta = state.dual, state.multipliers, state.sparse, state.missing
        state = solver.step(problem, state)
        # the new multipliers give w and the missing margins away
        w = state.sparse + (state.multipliers - v) / (20 / n)
        z = y * (1 - (state.dual - c) / (3 / n) - state.missing)
        mean = X.mean(axis=0) if intercept == "free" else np.zeros(X.shape[1])
        np.testing.assert_allclose(z, (X - mean) @ w + state.intercept, atol=1e-9)
        pull = c + 3 / n * (1 - y * z - eta)
        slope = 0.2 * w - (X - mean).T @ (y * pull) + v + 20 / n * (w - u)
        np.testing.assert_allclose(slope, 0.0, atol=1e-10)
        if intercept != "none":
            lean = problem.intercept.l2 * state.intercept - y @ pull
            assert abs(lean) <= 1e-10
        # the multipliers of the copied margins are in the box by the prox of the hinge
        assert (state.dual >= 0).all()
        assert (state.dual <= 1 / n).all()
        np.testing.assert_allclose(state.dual[state.missing > 1e-9], 1 / n, rtol=1e-12)
        np.testing.assert_allclose(state.dual[state.missing < -1e-9], 0.0, atol=1e-12)


# -- optima -----------------------------------------------------------------------------------


@every_solver
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(40, 6), (30, 80)], ids=str)
def test_it_reaches_the_optimum(make, intercept, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    weights = rng.integers(0, 3, y.size).astype(float)
    problem = drsvm(X, y, 0.05, 0.1, intercept=INTERCEPTS[intercept], weights=weights)
    found = solved(problem, make(), 1e-6)
    assert found.gap.primal == pytest.approx(best(problem), rel=1.1e-6)


@pytest.mark.slow
@every_solver
def test_pure_l1_is_certified_truthfully(make, rng) -> None:
    problem = drsvm(*two_classes(rng, 40, 60), 0.05, 0.0)
    found = minimize(problem, make(), stop=Stop(tol=1e-6, max_iter=3000))
    value = best(problem)
    assert found.gap.dual <= value * (1 + 1e-10)
    assert found.gap.primal >= value * (1 - 1e-10)
    assert found.certificate.relative_gap < 0.01


@every_solver
def test_a_start_at_the_solution_is_the_solution(make, rng) -> None:
    problem = drsvm(*two_classes(rng, 40, 60), 0.05, 0.1)
    good = minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-10)).point
    again = minimize(problem, make(), stop=Stop(tol=1e-6), start=good)
    assert again.certificate.n_iter == 0
    # a step from there stays there
    solver = make()
    state = solver.step(problem, solver.init(problem, good, Stop()))
    assert problem.value(solver.point(problem, state)) == pytest.approx(best(problem), rel=1e-3)


@every_solver
def test_sparse_data_take_the_same_steps(make, rng) -> None:
    X, y = two_classes(rng, 30, 50)
    X *= rng.random(X.shape) < 0.3
    dense, sparse = (
        minimize(drsvm(data, y, 0.02, 0.1), make(), stop=Stop(tol=0.0, max_iter=20))
        for data in (X, sp.csr_matrix(X))
    )
    # up to the accuracy of the inner problem, as rounding decides between pairs of equal gain
    np.testing.assert_allclose(sparse.point.coef, dense.point.coef, atol=1e-5)


# -- what the paper's settings do -------------------------------------------------------------


def test_isvm3_as_printed_pulls_together_what_is_not_optimal_yet(rng) -> None:
    problem = drsvm(*two_classes(rng, 50, 200), 0.05, 0.01)
    rule = Stop(rule=PrimalResidual(1e-4))
    printed = minimize(problem, Isvm3(largest=np.inf), stop=rule)
    assert printed.status is Status.RULE_MET
    assert printed.gap.primal > best(problem) * (1 + 1e-3)
    assert printed.gap.dual <= best(problem)
    # and going on does not help, where a bound on the price does
    on = minimize(problem, Isvm3(largest=np.inf), stop=Stop(tol=1e-3, max_iter=400))
    assert on.certificate.relative_gap > 1e-3
    assert solved(problem, Isvm3(), 1e-4).certificate.n_iter > 0


def test_isvm1_solves_the_inner_problem_before_it_changes_multipliers(rng) -> None:
    problem, solver = drsvm(*two_classes(rng, 30, 60), 0.05, 0.1), Isvm1()
    state = solver.init(problem, problem.origin(), Stop())
    kept = changed = 0
    for _ in range(60):
        after = solver.step(problem, state)
        if np.array_equal(after.multipliers, state.multipliers):
            kept += 1
            assert after.rho == state.rho
        else:
            changed += 1
            assert after.rho == min(1.2 * state.rho, 250.0)
            turn = np.linalg.norm(after.sparse - state.sparse)
            assert turn <= 1e-3 * np.linalg.norm(after.sparse)
        state = after
    assert kept > changed > 0


def test_too_many_samples_are_refused_in_a_sentence(rng) -> None:
    problem = drsvm(*two_classes(rng, 11, 3), 0.1, 0.1)
    assert "at most, and there are 11" in str(Isvm2(max_samples=10).objection(problem))
    assert Isvm2(max_samples=11).objection(problem) is None
    assert AlternatingDirections().objection(problem) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Isvm2(rho=0.0), "rho must be a number > 0"),
        (lambda: Isvm3(growth=0.9), "growth must be a number >= 1"),
        (lambda: Isvm3(largest=5.0), "largest must be at least rho"),
        (lambda: Isvm1(settled=0.0), "settled must be a number > 0"),
        (lambda: AlternatingDirections(rho_coef=-1.0), "rho_coef must be a number > 0"),
    ],
)
def test_settings_are_checked(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", SOLVERS)
def test_estimators_take_them_by_name(name, rng) -> None:
    X, y = two_classes(rng, 40, 30)
    model = ElasticNetSVC(0.1, solver=name, tol=1e-5).fit(X, y)
    assert model.certificate_.solver == name
    assert model.certificate_.converged
    expected = ElasticNetSVC(0.1, tol=1e-9).fit(X, y).certificate_.primal
    assert model.certificate_.primal == pytest.approx(expected, rel=1.1e-5)


def test_a_point_without_multipliers_starts_them_from_its_margins(rng) -> None:
    problem = drsvm(*two_classes(rng, 40, 60), 0.05, 0.1)
    good = minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-9)).point
    warm = solved(problem, Isvm2(), 1e-6, start=Point(good.coef, good.intercept))
    assert warm.gap.primal == pytest.approx(best(problem), rel=1.1e-6)


def test_a_price_without_a_bound_ends_while_it_is_a_number(rng) -> None:
    problem = drsvm(*two_classes(rng, 30, 6), 0.01, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = minimize(problem, Isvm3(largest=np.inf), stop=Stop(tol=1e-9))
    assert found.status is Status.STALLED
    assert np.isfinite(found.point.coef).all()
    assert found.certificate.dual <= best(problem) <= found.certificate.primal
