"""The Newton method for the hinge: its systems, its smooth problems, its optima."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer

from proxmargin.data.designs import as_design
from proxmargin.losses import Hinge, HuberizedHinge, MarginSum
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import ElasticNet, Penalty, Pinned, Ridge, SumToZero
from proxmargin.solvers.augmented import hinge_system as systems
from proxmargin.solvers.augmented.binary import HingePoint, SmoothedHinge
from proxmargin.solvers.augmented.hinge_system import (
    HessianTerms,
    MatrixFree,
    OverFeatures,
    OverSamples,
    hinge_system,
)
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.augmented.multipliers import minimise
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import Stop
from tests.cases import multiclass_problem

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
INTERCEPTS: dict[str, Penalty] = {"free": Ridge(0.0), "ridge": Ridge(0.1), "none": Pinned()}


def drsvm(
    X: Any,
    y: np.ndarray,
    l1: float,
    l2: float,
    *,
    intercept: Penalty | None = None,
    weights: np.ndarray | None = None,
) -> Problem:
    """(2) of Liu et al. (2013), weighted."""
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    loss = MarginSum(Hinge(), y[:, None], (weights / total)[:, None], total)
    return Problem(loss, ElasticNet(l1, l2), as_design(X), intercept or Ridge())


def solved(problem: Problem, tol: float = 1e-9, **options: Any) -> Solution:
    """The solution, with what must always hold: a gap that is one, and the tolerance met."""
    solution = minimize(problem, MultiplierNewton(), stop=Stop(tol=tol), **options)
    assert solution.certificate.converged, str(solution.certificate)
    assert solution.gap.primal == pytest.approx(problem.value(solution.point), rel=1e-11)
    return solution


def two_classes(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.4 * y[:, None] * (np.arange(p) < 5) + 0.3, y


@pytest.fixture(scope="module")
def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    X, target = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(target == 1, 1.0, -1.0)


# -- systems ----------------------------------------------------------------------------------

SHAPES = {"tall": (30, 7), "wide": (8, 25), "one sample": (1, 4), "one feature": (6, 1)}
STANDARDISED = {"dense": np.asarray, "sparse": sp.csr_matrix}


def curved(rng: np.random.Generator, shape: tuple[int, int], kind: Any, own: float | None):
    n, p = shape
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.7)
    return X, HessianTerms(as_design(kind(X)), rng.uniform(0.1, 2, n), rng.uniform(0.1, 2, p), own)


@pytest.mark.pairwise
@pytest.mark.parametrize("form", [OverFeatures, OverSamples, MatrixFree])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("kind", STANDARDISED.values(), ids=STANDARDISED.keys())
@pytest.mark.parametrize("own", [None, 1e-6, 0.7], ids=["no intercept", "free", "ridge"])
@pytest.mark.parametrize("part", [False, True], ids=["all features", "some features"])
def test_every_form_of_the_system_solves_the_system(form, shape, kind, own, part, rng, monkeypatch):
    monkeypatch.setattr(systems, "CG_TOLERANCE", 1e-13)
    X, system = curved(rng, shape, kind, own)
    keep = np.flatnonzero(np.arange(shape[1]) % 2 == 0) if part else np.arange(shape[1])
    slope, intercept_slope = (
        rng.standard_normal(keep.size),
        0.0 if own is None else float(rng.normal()),
    )
    coef, shift = form(system).step(keep, slope, intercept_slope)
    # the system written out: the residual catches a wrong sign of the border
    whole = np.column_stack([X[:, keep], np.ones(shape[0])])
    matrix = whole.T @ (system.curvature[:, None] * whole)
    matrix += np.diag(np.append(system.diagonal[keep], own or 0.0))
    right = -np.append(slope, intercept_slope)
    if own is None:
        matrix, right = matrix[:-1, :-1], right[:-1]
        assert shift == 0.0
    found = coef if own is None else np.append(coef, shift)
    np.testing.assert_allclose(matrix @ found, right, atol=1e-9 * np.abs(right).max())


@pytest.mark.parametrize("own", [None, 0.3])
def test_what_a_step_adds_to_the_slopes_is_the_matrix_times_the_step(own, rng):
    X, system = curved(rng, (9, 5), np.asarray, own)
    move, intercept_step = rng.standard_normal(5), 0.0 if own is None else 0.8
    product, intercept_product = OverFeatures(system).product(move, intercept_step)
    bent = system.curvature * (X @ move + intercept_step)
    np.testing.assert_allclose(product, X.T @ bent + system.diagonal * move)
    assert intercept_product == pytest.approx(
        0.0 if own is None else bent.sum() + own * intercept_step
    )


def test_the_form_is_that_of_least_work(rng, monkeypatch):
    for shape, form in {(30, 7): OverFeatures, (8, 25): OverSamples}.items():
        assert type(hinge_system(curved(rng, shape, np.asarray, None)[1])) is form
    monkeypatch.setattr(systems, "MAX_SIDE", 5)
    assert type(hinge_system(curved(rng, (8, 25), np.asarray, None)[1])) is MatrixFree


def test_no_matrix_is_formed_that_is_larger_than_sparse_data(rng, monkeypatch):
    monkeypatch.setattr(systems, "SMALL_MATRIX", 10)
    forms = {np.asarray: OverFeatures, sp.csr_matrix: MatrixFree}
    for kind, form in forms.items():
        assert type(hinge_system(curved(rng, (20, 20), kind, None)[1])) is form


# -- smooth problems --------------------------------------------------------------------------


def smoothed(rng: np.random.Generator, n: int = 14, p: int = 6, l1: float = 0.02) -> SmoothedHinge:
    X, y = two_classes(rng, n, p)
    upper = rng.uniform(0.5, 1.5, n) / n * (np.arange(n) % 5 != 3)
    centre = rng.standard_normal(p), 0.2, rng.uniform(0, 1, n) * upper
    net = ElasticNet(l1, 0.01).net(p)
    sides = as_design(X), y, upper, 0.8 * upper, 0.3 * rng.standard_normal(n)
    return SmoothedHinge(*sides, net, l1, *centre, 0.05, 0.1, 1e-3)


def test_slopes_are_those_of_the_value(rng):
    part = smoothed(rng, l1=0.0)
    coef, step = rng.standard_normal(6), 1e-6
    slopes = part.slopes(part.at(coef, 0.3))
    for j in range(6):
        ahead, behind = (part.at(coef + s * step * np.eye(6)[j], 0.3) for s in (1, -1))
        slope = (ahead.value - behind.value) / (2 * step)
        assert slopes.coef[j] == pytest.approx(slope, rel=1e-6, abs=1e-9)
    intercept_slope = (part.at(coef, 0.3 + step).value - part.at(coef, 0.3 - step).value) / (
        2 * step
    )
    assert slopes.intercept == pytest.approx(intercept_slope, rel=1e-6, abs=1e-9)


def test_the_smoothing_is_below_the_hinge_and_touches_it_at_its_multipliers(rng):
    part = smoothed(rng)
    for _ in range(20):
        here = part.at(rng.standard_normal(6), float(rng.normal()))
        terms = part.net.l1 @ np.abs(here.coef) + 0.5 * part.net.l2 @ here.coef**2
        move, intercept_step = here.coef - part.coef, here.intercept - part.intercept
        terms += (
            0.5 * part.proximal * move @ move
            + 0.5 * (part.intercept_proximal or 0.0) * intercept_step**2
        )
        terms += 0.5 * part.ridge * here.intercept**2
        missing = 1.0 - part.signs * (here.scores + part.offset)
        hinge = part.upper @ np.maximum(missing, 0.0)
        assert here.value - terms <= hinge + 1e-12
        # with these multipliers as the centre there is nothing to smooth
        exact = replace(part, coef=here.coef, intercept=0.0, multipliers=here.dual)
        assert exact.at(here.coef, here.intercept).value >= here.dual @ missing
        assert (here.dual >= 0).all()
        assert (here.dual <= part.upper).all()


def reference(part: SmoothedHinge) -> float:
    """The least value of a smooth problem, from a solver of quadratic programs in the dual."""
    X = part.design.scores(np.eye(part.design.n_features))
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    live = part.upper > 0
    X, y, widths = X[live], part.signs[live], part.widths[live]
    # the box of the maximisers by its multipliers
    missing = 1 - cp.multiply(y, X @ w + b + part.offset[live])
    below, above = cp.Variable(live.sum()), cp.Variable(live.sum())
    centre, upper = part.multipliers[live], part.upper[live]
    inner = missing + below - above
    value = cp.sum(cp.multiply(centre, inner) + cp.multiply(widths / 2, cp.square(inner)))
    value += upper @ above
    value += part.net.l1 @ cp.abs(w) + part.net.l2 @ cp.square(w) / 2
    value += part.proximal / 2 * cp.sum_squares(w - part.coef)
    value += part.ridge / 2 * cp.square(b)
    value += (part.intercept_proximal or 0.0) / 2 * cp.square(b - part.intercept)
    problem = cp.Problem(cp.Minimize(value), [below >= 0, above >= 0])
    return float(problem.solve(solver="CLARABEL", **TIGHT))


@pytest.mark.parametrize("l1", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("shape", [(14, 6), (10, 30)], ids=str)
def test_a_smooth_problem_is_solved_from_anywhere(l1, shape, rng):
    part = smoothed(rng, *shape, l1=l1)
    start: HingePoint = part.at(3 * rng.standard_normal(shape[1]), 1.0)
    found, _, end = minimise(part, start, 1e-12, 100, np.inf)
    assert end.solved
    assert found.value == pytest.approx(reference(part), rel=1e-8, abs=1e-10)
    slopes = part.slopes(found)
    away = found.coef != 0
    np.testing.assert_allclose(slopes.coef[away], -l1 * np.sign(found.coef[away]), atol=1e-10)
    assert (np.abs(slopes.coef[~away]) <= l1 + 1e-10).all()
    assert abs(slopes.intercept) <= 1e-10


# -- optima -----------------------------------------------------------------------------------


def optimum(problem: Problem, X: Any) -> float:
    """The optimal value from an interior-point solver for cones."""
    loss, penalty = problem.loss, problem.penalty
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    value = loss.weights[:, 0] @ cp.pos(1 - cp.multiply(loss.signs[:, 0], X @ w + b))
    value += penalty.l1 * cp.norm1(w) + penalty.l2 / 2 * cp.sum_squares(w)
    value += problem.intercept.l2 / 2 * cp.square(b)
    fixed = [b == 0] if isinstance(problem.intercept, Pinned) else []
    return float(cp.Problem(cp.Minimize(value), fixed).solve(solver="CLARABEL", **TIGHT))


@pytest.mark.parametrize("alpha", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("l1_ratio", [0.1, 0.9])
def test_the_optimum_on_breast_cancer_is_that_of_a_conic_solver(alpha, l1_ratio, breast_cancer):
    X, y = breast_cancer
    problem = drsvm(X, y, alpha * l1_ratio, alpha * (1 - l1_ratio))
    value = optimum(problem, X)
    assert solved(problem, 1e-6).gap.primal == pytest.approx(value, rel=1.1e-6)
    assert solved(problem, 1e-10).gap.primal == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(60, 4), (30, 30), (20, 90)], ids=str)
@pytest.mark.parametrize("penalty", [(0.02, 0.05), (0.05, 0.0), (0.0, 0.1)], ids=str)
def test_it_reaches_the_optimum_of_any_shape_penalty_and_intercept(intercept, shape, penalty, rng):
    X, y = two_classes(rng, *shape)
    weights = rng.integers(0, 4, y.size).astype(float)
    problem = drsvm(X, y, *penalty, intercept=INTERCEPTS[intercept], weights=weights)
    assert solved(problem).gap.primal == pytest.approx(optimum(problem, X), rel=1e-8)


@pytest.mark.parametrize("l1", [0.1, 0.02, 1e-3])
@pytest.mark.parametrize("shape", [(80, 10), (25, 60)], ids=str)
def test_without_a_ridge_it_is_a_linear_program(l1, shape, rng):
    X, y = two_classes(rng, *shape)
    n, p = shape
    cost = np.concatenate([np.full(2 * p, l1), [0.0], np.full(n, 1 / n)])
    rows = -y[:, None] * np.column_stack([X, -X, np.ones(n)])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    program = linprog(cost, np.column_stack([rows, -np.eye(n)]), -np.ones(n), bounds=bounds)
    found = solved(drsvm(X, y, l1, 0.0))
    assert found.gap.primal == pytest.approx(program.fun, rel=1e-8)
    # a vertex: as many samples on the kink as features away from zero, and the intercept
    t = y * (X @ found.point.coef[:, 0] + found.point.intercept)
    assert np.count_nonzero(np.abs(t - 1) < 1e-6) >= np.count_nonzero(found.point.coef) + 1


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("shape", [(60, 20), (30, 400)], ids=str)
def test_sparse_data_give_the_dense_result(kind, shape, rng):
    X, y = two_classes(rng, *shape)
    X *= rng.random(shape) < 0.3
    dense, sparse = (solved(drsvm(data, y, 0.01, 0.05), 1e-11) for data in (X, kind(X)))
    assert sparse.gap.primal == pytest.approx(dense.gap.primal, rel=1e-10)
    np.testing.assert_allclose(sparse.point.coef, dense.point.coef, atol=1e-5)


def test_single_precision_is_certified_in_double(rng):
    X, y = two_classes(rng, 40, 12)
    X = X.astype(np.float32)
    single, double = (solved(drsvm(data, y, 0.02, 0.02)) for data in (X, X.astype(float)))
    assert single.gap.primal == pytest.approx(double.gap.primal, rel=1e-8)


@pytest.mark.parametrize("largest", [10, 3000], ids=["by products", "factorised"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("shape", [(60, 80), (80, 12)], ids=str)
def test_systems_too_large_to_be_copied(largest, kind, shape, rng, monkeypatch):
    monkeypatch.setattr(systems, "GATHERED_WORK", 0)
    monkeypatch.setattr(systems, "MAX_SIDE", largest)
    X, y = two_classes(rng, *shape)
    problem = drsvm(kind(X), y, 0.01, 0.05)
    assert solved(problem, 1e-8).gap.primal == pytest.approx(optimum(problem, X), rel=2e-8)


# -- hard data --------------------------------------------------------------------------------


@pytest.mark.parametrize("l1", [1e-2, 1e-6])
@pytest.mark.parametrize("l2", [0.0, 1e-3])
def test_classes_that_can_be_separated(l1, l2, rng):
    X, y = two_classes(rng, 40, 100)
    X += y[:, None]
    found = solved(drsvm(X, y, l1, l2), 1e-7)
    assert (y * (X @ found.point.coef[:, 0] + found.point.intercept) > 0).all()


def test_a_sample_of_each_class(rng):
    X = rng.standard_normal((2, 50))
    problem = drsvm(X, np.array([1.0, -1.0]), 0.1, 0.1)
    assert solved(problem).gap.primal == pytest.approx(optimum(problem, X), rel=1e-8)


def test_one_class_only_needs_no_coefficients(rng):
    found = solved(drsvm(rng.standard_normal((9, 4)), np.ones(9), 0.01, 0.01))
    assert found.gap.primal == 0.0
    assert not found.point.coef.any()


def test_one_feature_two_samples():
    found = solved(drsvm(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), 0.25, 0.5), 1e-10)
    # 1 - w + w/4 + w^2/4 falls until the margins are one
    assert found.point.coef[0, 0] == pytest.approx(1.0, abs=1e-8)
    assert found.gap.primal == pytest.approx(0.5)


def test_repeated_rows_and_repeated_constant_and_zero_features(rng):
    X, y = two_classes(rng, 20, 6)
    X[:, 3], X[:, 4] = 2.0, 0.0
    X = np.column_stack([X, X[:, :2]])
    X, y = np.vstack([X, X, X]), np.concatenate([y, y, y])
    problem = drsvm(X, y, 0.02, 0.0)
    found = solved(problem)
    assert found.gap.primal == pytest.approx(optimum(problem, X), rel=1e-8)
    assert found.point.coef[3, 0] == 0.0
    assert found.point.coef[4, 0] == 0.0


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_features_of_any_unit(scale, rng):
    X, y = two_classes(rng, 60, 8)
    X = X * scale ** rng.uniform(-1, 1, 8)
    problem = drsvm(X, y, 0.01, 0.001)
    assert solved(problem, 1e-7).gap.primal == pytest.approx(optimum(problem, X), rel=1e-6)


def test_features_in_twelve_orders_of_units():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 20)), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    X[:, :3] += 0.5 * y[:, None]
    solution = solved(drsvm(X * np.logspace(-6, 6, 20), y, 0.025, 0.025), tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert solution.point.coef.any()


def test_means_far_larger_than_the_spread(breast_cancer):
    X, y = breast_cancer
    near, far = (solved(drsvm(data, y, 0.02, 0.01), 1e-8) for data in (X, X + 1e4))
    assert far.gap.primal == pytest.approx(near.gap.primal, rel=3e-8)


def test_contradicting_labels(rng):
    X = rng.standard_normal((12, 3))
    X, y = np.vstack([X, X]), np.repeat([1.0, -1.0], 12)
    found = solved(drsvm(X, y, 1e-3, 1e-3))
    assert found.gap.primal == pytest.approx(1.0)
    assert not found.point.coef.any()


@pytest.mark.parametrize("penalty", [(1e3, 0.0), (1e3, 1e3), (0.0, 1e6)], ids=str)
def test_strong_penalties_leave_next_to_nothing(penalty, rng):
    X, y = two_classes(rng, 30, 6)
    found = solved(drsvm(X, y, *penalty), 1e-8)
    assert np.abs(found.point.coef).max() <= 1e-5
    assert found.gap.primal == pytest.approx(2 * (y > 0).mean(), rel=1e-5)


def test_no_penalty_at_all_ends_with_a_truthful_status(rng):
    X, y = two_classes(rng, 40, 3)
    solution = minimize(drsvm(X, y, 0.0, 0.0), MultiplierNewton(), stop=Stop(tol=1e-9))
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.gap.primal == pytest.approx(optimum(drsvm(X, y, 0.0, 0.0), X), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 12),
    p=st.integers(1, 14),
    seed=st.integers(0, 10**6),
    l1=st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    l2=st.sampled_from([0.0, 1e-3, 1.0]),
    levels=st.integers(1, 3),
)
def test_small_data_with_ties_are_solved_or_known_not_to_be(n, p, seed, l1, l2, levels):
    rng = np.random.default_rng(seed)
    X = rng.integers(-levels, levels + 1, (n, p)).astype(float)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    problem = drsvm(X, y, l1, l2, weights=rng.integers(0, 3, n) + (np.arange(n) == 0.0))
    solution = minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-8))
    if l1 + l2 > 0:
        assert solution.certificate.converged, str(solution.certificate)
    value = optimum(problem, X)
    assert solution.gap.dual <= value + 1e-8
    assert solution.gap.primal >= value - 1e-8


# -- starts and limits ------------------------------------------------------------------------


def test_weights_are_repeated_rows(rng):
    X, y = two_classes(rng, 30, 40)
    times = rng.integers(0, 4, y.size)
    weighted = solved(drsvm(X, y, 0.02, 0.05, weights=times.astype(float)), 1e-11)
    repeated = solved(drsvm(np.repeat(X, times, axis=0), np.repeat(y, times), 0.02, 0.05), 1e-11)
    assert weighted.gap.primal == pytest.approx(repeated.gap.primal, rel=1e-10)
    np.testing.assert_allclose(weighted.point.coef, repeated.point.coef, atol=1e-5)


def test_starts_near_the_solution_take_fewer_steps(rng):
    X, y = two_classes(rng, 60, 300)
    cold = solved(drsvm(X, y, 0.045, 0.01), 1e-6)
    near = solved(drsvm(X, y, 0.05, 0.01), 1e-6).point
    assert near.dual is not None
    with_multipliers = solved(drsvm(X, y, 0.045, 0.01), 1e-6, start=near)
    without = solved(drsvm(X, y, 0.045, 0.01), 1e-6, start=near._replace(dual=None))
    assert with_multipliers.certificate.n_iter < 0.8 * cold.certificate.n_iter
    for other in (with_multipliers, without):
        assert other.gap.primal == pytest.approx(cold.gap.primal, rel=2e-6)


def test_an_optimal_start_is_recognised(rng):
    problem = drsvm(*two_classes(rng, 60, 30), 0.02, 0.01)
    again = minimize(
        problem, MultiplierNewton(), stop=Stop(tol=1e-8), start=solved(problem, 1e-9).point
    )
    assert again.certificate.converged
    assert again.certificate.n_iter == 0


@pytest.mark.parametrize("most", [0, 1, 7])
def test_limits_are_kept_and_what_was_found_is_certified(most, rng):
    problem = drsvm(*two_classes(rng, 60, 300), 0.01, 0.01)
    solution = minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-9, max_iter=most))
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.certificate.n_iter == most
    assert solution.gap.dual <= solved(problem).gap.primal <= solution.gap.primal


def test_other_problems_are_refused_in_a_sentence(rng):
    X, y = two_classes(rng, 20, 3)
    other = drsvm(X, y, 0.1, 0.1)
    smooth = MarginSum(HuberizedHinge(), y[:, None], np.full((20, 1), 0.05), 20.0)
    solver = MultiplierNewton()
    assert "hinge" in solver.objection(Problem(smooth, other.penalty, other.design, Ridge()))
    several = multiclass_problem(rng, Hinge())
    assert "binary" in solver.objection(several)
    ranked = Problem(other.loss, SumToZero(ElasticNet(0.1)), other.design, Ridge())
    assert "elastic net" in solver.objection(ranked)


def test_auto_takes_it_where_the_penalty_has_an_l1_part(rng):
    X, y = two_classes(rng, 20, 3)
    assert choose(drsvm(X, y, 0.1, 0.1)).name == "multiplier-newton"
    assert choose(drsvm(X, y, 0.1, 0.0)).name == "multiplier-newton"
    assert choose(drsvm(X, y, 0.0, 0.1)).name == "interior-point"


def test_a_point_may_come_without_multipliers():
    assert Point(np.zeros((2, 1)), np.zeros(1)).dual is None
