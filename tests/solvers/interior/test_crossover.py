"""The exact end of the interior point method: conditions of optimality, support sets, hard data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC, NuSVC

import proxmargin
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.margins.hinge import Hinge
from proxmargin.functions.losses.margins.margin import MarginLoss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.tail_mean import TailMean
from proxmargin.functions.penalties.base import Penalty
from proxmargin.losses import HuberizedHinge, SquaredHinge
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Pinned, Ridge
from proxmargin.solvers.interior import interior_point
from proxmargin.solvers.interior.active_set import Face, cross_over
from proxmargin.solvers.interior.box_program import program_of
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop

INTERCEPTS: dict[str, Penalty] = {"free": Ridge(0.0), "ridge": Ridge(0.1), "pinned": Pinned()}
LOSSES: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "huberized": HuberizedHinge(0.5),
    "squared": SquaredHinge(),
}


def two_classes(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.4 * y[:, None] + 0.3, y


def c_svm(
    X: Any,
    y: np.ndarray,
    C: float = 1.0,
    phi: MarginLoss | None = None,
    intercept: Penalty | None = None,
    weights: np.ndarray | None = None,
) -> Problem:
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    loss = MarginSum(phi or Hinge(), y[:, None], (weights / total)[:, None], total)
    return Problem(loss, Ridge(1.0 / (C * total)), as_design(X), intercept or Ridge())


def nu_svm(X: Any, y: np.ndarray, nu: float, weights: np.ndarray | None = None) -> Problem:
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    return Problem(TailMean(y, weights / total, nu, total), Ridge(1.0), as_design(X), Ridge())


def solved(problem: Problem, tol: float = 1e-6) -> Solution:
    return minimize(problem, InteriorPoint(), stop=Stop(tol=tol))


def assert_hinge_conditions_hold(problem: Problem, solution: Solution) -> None:
    """``l2 w = X'(y a)``; margin > 1 where a = 0, < 1 at the cap, = 1 between, all to 1e-10."""
    loss, point = problem.loss, solution.point
    a = -loss.signs[:, 0] * solution.gap.dual_point[:, 0]
    caps = loss.weights[:, 0]
    pulled = problem.design.adjoint(-solution.gap.dual_point)
    size = float(np.abs(point.coef).max())
    np.testing.assert_allclose(point.coef, pulled / problem.penalty.l2, atol=1e-10 * size)
    margins = loss.signs[:, 0] * (problem.design.scores(point.coef) + point.intercept)[:, 0]
    low, high = a == 0, a >= caps * (1.0 - 1e-14)
    live = caps > 0
    assert np.all(margins[live & low] >= 1.0 - 1e-10)
    assert np.all(margins[live & high] <= 1.0 + 1e-10)
    np.testing.assert_allclose(margins[live & ~low & ~high], 1.0, atol=1e-10)


# -- exactness --------------------------------------------------------------------------------


def unexplained(solution: Solution) -> float:
    """The relative gap without what it allows for rounding."""
    gap = solution.gap
    return (gap.gap - gap.rounding) / abs(gap.primal)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(80, 4), (40, 40), (20, 60)], ids=str)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_loose_tolerance_gives_the_conditions_of_optimality(
    C: float, shape, intercept: str, rng
) -> None:
    X, y = two_classes(rng, *shape)
    problem = c_svm(X, y, C, intercept=INTERCEPTS[intercept])
    solution = solved(problem)
    assert unexplained(solution) <= 1e-11
    assert_hinge_conditions_hold(problem, solution)


@pytest.mark.parametrize("phi", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("shape", [(80, 4), (20, 60)], ids=str)
def test_every_loss_ends_with_a_gap_of_rounding(phi: str, intercept: str, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    solution = solved(c_svm(X, y, 1.0, LOSSES[phi], INTERCEPTS[intercept]))
    assert unexplained(solution) <= 1e-11


@pytest.mark.parametrize("nu", [0.2, 0.5])
@pytest.mark.parametrize("shape", [(80, 4), (30, 60)], ids=str)
def test_the_tail_mean_ends_with_a_gap_of_rounding_and_exact_zeros(nu: float, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    solution = solved(nu_svm(X + y[:, None], y, nu))
    assert solution.certificate.relative_gap <= 1e-11
    assert np.any(solution.gap.dual_point == 0)


@pytest.mark.parametrize("C", [0.1, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_support_vectors_are_those_of_scikit_learn(C: float, kernel: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = proxmargin.SVC(C=C, kernel=kernel, gamma=0.05, solver="interior-point").fit(X, y)
    theirs = SVC(C=C, kernel=kernel, gamma=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    # theirs have margins that are one up to 3e-6 only at C = 1: their kernel values are float32
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=3e-5)


@pytest.mark.parametrize("nu", [0.1, 0.3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_support_vectors_of_nu_svc_are_those_of_scikit_learn(nu: float, kernel: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = proxmargin.NuSVC(nu=nu, kernel=kernel, gamma=0.05, solver="interior-point").fit(X, y)
    theirs = NuSVC(nu=nu, kernel=kernel, gamma=0.05, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, np.sort(theirs.support_))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


# -- hard data --------------------------------------------------------------------------------


def test_repeated_rows_give_the_coefficients_of_weighted_ones(rng) -> None:
    X, y = two_classes(rng, 60, 5)
    counts = rng.integers(0, 5, y.size)
    for make in (c_svm, lambda X, y, **k: nu_svm(X, y, 0.4, **k)):
        weighted = solved(make(X, y, weights=counts.astype(float)))
        repeated = solved(make(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
        for solution in (weighted, repeated):
            assert solution.certificate.relative_gap <= 1e-11
        np.testing.assert_allclose(weighted.point.coef, repeated.point.coef, rtol=0, atol=1e-9)


def test_more_samples_at_the_kink_than_features_are_solved_exactly(rng) -> None:
    corners = np.array([[i, j] for i in range(4) for j in range(4)], float)
    X = np.repeat(corners, 6, axis=0)
    y = np.where(X.sum(axis=1) + rng.normal(0, 1.0, len(X)) > 3.0, 1.0, -1.0)
    problem = c_svm(X, y, 1.0)
    solution = solved(problem)
    assert unexplained(solution) <= 1e-11
    assert_hinge_conditions_hold(problem, solution)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix])
def test_sparse_data_are_solved_exactly(kind, rng) -> None:
    X, y = two_classes(rng, 80, 8)
    problem = c_svm(kind(np.where(rng.random(X.shape) < 0.4, X, 0.0)), y)
    assert_hinge_conditions_hold(problem, solved(problem))


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(60, 3), (30, 40)], ids=str)
def test_it_is_never_worse_than_without(C: float, shape, rng, monkeypatch) -> None:
    X, y = two_classes(rng, *shape)
    with_it = solved(c_svm(X, y, C), 1e-8)
    monkeypatch.setattr(interior_point, "CROSSOVER_GAP", 0.0)
    without = solved(c_svm(X, y, C), 1e-8)
    assert with_it.certificate.converged
    assert with_it.certificate.n_iter <= without.certificate.n_iter
    # allowances for rounding may differ: they bound what nobody can see
    gap, other = (one.gap.gap - one.gap.rounding for one in (with_it, without))
    assert gap <= other * (1 + 1e-6) + 1e-14 * abs(without.gap.primal)


def test_a_tolerance_met_early_is_not_crossed_from(rng) -> None:
    solution = solved(c_svm(*two_classes(rng, 60, 5)), 0.5)
    assert solution.certificate.converged


# -- the faces themselves ---------------------------------------------------------------------


def face_of(problem: Problem, solution: Solution) -> Face:
    program = program_of(problem)
    a = -program.signs * solution.gap.dual_point[:, 0] / program.dual_unit
    sides = np.full(a.size, 0, np.int8)
    sides[a == 0] = -1
    sides[a >= program.upper * (1 - 1e-14)] = 1
    dual = np.clip(a, 0.01 * program.upper, 0.99 * program.upper)
    return Face(sides, dual, np.zeros(program.pull.size))


def test_a_few_wrong_sides_are_corrected(rng) -> None:
    problem = c_svm(*two_classes(rng, 200, 5), phi=HuberizedHinge(0.5))
    program, face = program_of(problem), face_of(problem, solved(problem))
    right, _ = cross_over(program, face, 1)
    assert right is not None
    sides = face.partition.copy()
    inside, room = np.flatnonzero(sides == 0), program.upper - right.dual
    sides[inside[np.argsort(room[inside])[:2]]] = 1
    sides[inside[np.argsort(right.dual[inside])[:2]]] = -1
    found, rounds = cross_over(program, face._replace(partition=sides), 8)
    assert found is not None
    assert rounds > 1
    np.testing.assert_allclose(found.coef, right.coef, atol=1e-10)


def test_a_hopeless_face_is_given_up(rng) -> None:
    problem = c_svm(*two_classes(rng, 200, 5))
    program, face = program_of(problem), face_of(problem, solved(problem))
    for side in (-1, 0, 1):
        partition = np.full_like(face.partition, side)
        assert cross_over(program, face._replace(partition=partition), 8)[0] is None
