"""Newton's method with Hessians of a subsample: optima of other solvers, samples that mislead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as Reference

from proxmargin.designs import as_design, standardized
from proxmargin.loop.minimize import minimize
from proxmargin.loop.outcome import Solution
from proxmargin.loop.stopping import Stop
from proxmargin.losses import Logistic, MarginSum, Shifted, SquaredHinge
from proxmargin.penalties import ElasticNet, Pinned, Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.names import choose
from proxmargin.solvers.smooth.ridge_newton import RidgeNewton
from proxmargin.solvers.smooth.sampled_newton import SampledNewton
from proxmargin.solvers.smooth.sampled_objective import SampledObjective, stratified
from tests.oracles.models import binary_optimum

ROWS = 3000
FEATURES = 6
INTERCEPTS = {"free": Ridge(0.0), "ridge": Ridge(0.3), "none": Pinned()}


def problem_of(
    X: Any,
    y: np.ndarray,
    l2: float = 1e-3,
    *,
    intercept: Any = INTERCEPTS["free"],
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
) -> Problem:
    weights = np.ones(y.size) if weights is None else weights
    total = float(weights.sum())
    loss: Any = MarginSum(Logistic(), y[:, None], (weights / total)[:, None], total)
    if offset is not None:
        loss = Shifted(loss, offset[:, None])
    return Problem(loss, Ridge(l2), as_design(X), intercept)


def solved(problem: Problem, tol: float = 1e-10, start: Point | None = None) -> Solution:
    return minimize(problem, SampledNewton(), stop=Stop(tol=tol), start=start)


def drawn(rng: np.random.Generator, n: int = ROWS, p: int = FEATURES) -> Any:
    X = rng.standard_normal((n, p)) * 2.0 ** np.arange(p) + 3.0
    y = np.where((X - 3.0) @ (0.5 / 2.0 ** np.arange(p)) + rng.logistic(size=n) > 0.5, 1.0, -1.0)
    return X, y


def assert_same_optimum(found: Solution, problem: Problem) -> None:
    known = minimize(problem, RidgeNewton(), stop=Stop(tol=1e-12))
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(known.certificate.primal, rel=1e-9)
    np.testing.assert_allclose(found.point.coef, known.point.coef, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize(
    "kind",
    [np.asarray, np.asfortranarray, np.float32, sp.csr_matrix, sp.csc_matrix],
    ids=["rows", "columns", "float32", "csr", "csc"],
)
def test_every_kind_of_data_gets_the_optimum_of_newtons_method(kind, intercept, rng) -> None:
    X, y = drawn(rng)
    X[rng.random(X.shape) < 0.3] = 0.0
    weights = rng.integers(0, 4, y.size).astype(float)
    problem = problem_of(kind(X), y, intercept=INTERCEPTS[intercept], weights=weights)
    assert_same_optimum(solved(problem), problem)


def test_an_interior_point_method_finds_the_same_optimum(rng) -> None:
    X, y = drawn(rng, 800, 4)
    best = binary_optimum(X, y, loss="logistic", alpha=1e-3, l1_ratio=0.0)
    found = solved(problem_of(X, y))
    assert found.certificate.primal == pytest.approx(best.value, rel=1e-8)


def test_newton_cholesky_of_scikit_learn_finds_the_same_optimum(rng) -> None:
    X, y = drawn(rng)
    known = Reference(C=1.0, solver="newton-cholesky", tol=1e-12).fit(X, y)
    found = solved(problem_of(X, y, 1.0 / y.size), 1e-11)
    np.testing.assert_allclose(found.point.coef[:, 0], known.coef_[0], rtol=1e-5)
    np.testing.assert_allclose(found.point.intercept, known.intercept_, rtol=1e-5)


def test_offsets_and_standardised_features_are_part_of_the_scores(rng) -> None:
    X, y = drawn(rng)
    problem = problem_of(X, y, offset=rng.standard_normal(y.size))
    assert_same_optimum(solved(problem), problem)
    design = standardized(as_design(X), problem.loss.shares)
    scaled = Problem(problem.loss, problem.penalty, design, problem.intercept)
    assert_same_optimum(solved(scaled), scaled)


def test_features_that_a_subsample_misses_are_found_by_all_samples(rng) -> None:
    X, y = drawn(rng)
    rare = np.zeros((y.size, 8))
    for j in range(8):
        rare[rng.choice(y.size, 5, replace=False), j] = 30.0
    problem = problem_of(np.hstack([X, rare]), y, 1e-4)
    assert_same_optimum(solved(problem), problem)


@pytest.mark.parametrize("strength", [1e-4, 1.0, 1e6])
def test_separable_data_are_solved_at_any_strength(strength, rng) -> None:
    X, y = drawn(rng)
    X[:, 0] += 40.0 * y
    assert solved(problem_of(X, y, 1.0 / (strength * y.size)), 1e-8).certificate.converged


def test_a_class_of_few_samples_is_in_every_subsample(rng) -> None:
    X, y = drawn(rng)
    y[:] = -1.0
    y[::500] = 1.0
    problem = problem_of(X, y)
    index = stratified(problem, 20)
    assert (y[index] > 0).any()
    assert index.size <= y.size // 20 + 2
    assert_same_optimum(solved(problem), problem)


def test_classes_that_alternate_do_not_mislead_it(rng) -> None:
    X, y = drawn(rng)
    order = np.argsort(y)
    X[0::2], X[1::2] = X[order[: y.size // 2]], X[order[y.size // 2 :]]
    y[0::2], y[1::2] = y[order[: y.size // 2]].copy(), y[order[y.size // 2 :]].copy()
    problem = problem_of(X, y)
    assert_same_optimum(solved(problem), problem)


def test_a_start_is_used_in_place_of_a_subsample(rng) -> None:
    problem = problem_of(*drawn(rng))
    first = solved(problem)
    again = solved(problem, 1e-8, first.point)
    assert again.certificate.n_iter <= 1


def test_derivatives_are_those_of_the_objective(rng) -> None:
    X, y = drawn(rng, 200, 3)
    problem = problem_of(X, y, intercept=Ridge(0.2), offset=rng.standard_normal(y.size))
    objective, coef = SampledObjective.of(problem), 0.1 * rng.standard_normal(3)
    at, step = objective.at(coef, 0.3), 1e-6
    assert at.value == pytest.approx(problem.value(Point(coef[:, None], np.array([0.3]))))
    for j in range(4):
        move = np.eye(4)[j] * step
        ends = [objective.at(coef + s * move[:3], 0.3 + s * move[3]) for s in (-1.0, 1.0)]
        slope = (ends[1].value - ends[0].value) / (2.0 * step)
        assert at.slope[j] == pytest.approx(slope, rel=1e-6, abs=1e-9)
        curved = (ends[1].slope - ends[0].slope) / (2.0 * step)
        solved_back = objective.metric(at.bend).solve(curved)
        np.testing.assert_allclose(solved_back, np.eye(4)[j], atol=1e-6)


def test_it_takes_logistic_losses_with_a_ridge_on_many_samples(rng) -> None:
    X, y = drawn(rng)
    problem = problem_of(X, y)
    assert SampledNewton().objection(problem) is None
    assert choose(problem).name == "sampled-newton"
    few = problem_of(X[:300], y[:300])
    assert "100 samples a feature" in str(SampledNewton().objection(few))
    lasso = Problem(problem.loss, ElasticNet(0.01), problem.design, problem.intercept)
    assert "ridge" in str(SampledNewton().objection(lasso))
    flat = MarginSum(SquaredHinge(), y[:, None], np.full((y.size, 1), 1.0 / y.size))
    kinked = Problem(flat, problem.penalty, problem.design, problem.intercept)
    assert "strictly convex" in str(SampledNewton().objection(kinked))
