"""Budgets by cutting planes of the dual function, against an interior-point solver."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.data.designs import DenseDesign
from proxmargin.losses import LevelSet, Multinomial, PairwiseSquaredHinge
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import ElasticNet, SumToZero
from proxmargin.solvers.choice.names import ByTheRules, suitable
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from proxmargin.solvers.wrappers import CuttingPlanes, Relay
from tests.cases import BUDGET_SOLVERS, multiclass_problem
from tests.solvers.papers.test_primal_dual import FREE, PENALTIES, data, hinge, optimum


def within(loss, budget: float, penalty, price: float = 1e3) -> Problem:
    return Problem(LevelSet(loss, budget, price), penalty, DenseDesign(data()[0]), FREE)


def smooth(kind) -> Multinomial | PairwiseSquaredHinge:
    _, codes, weights = data()
    margin = {"margin": 1.0} if kind is Multinomial else {}
    return kind(codes, weights / weights.sum(), 3, float(weights.sum()), **margin)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elastic net", "group linf"])
@pytest.mark.parametrize("budget", [0.9, 0.7])
def test_the_hinge_within_a_budget_reaches_the_optimum(penalty: str, budget: float) -> None:
    best = optimum(penalty, 0.0, budget)
    problem = within(hinge(), budget, PENALTIES[penalty])
    solution = minimize(problem, CuttingPlanes(ByTheRules()))
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(best, rel=2e-6)
    assert solution.certificate.dual <= best * (1 + 1e-6)
    scores = problem.design.scores(solution.point.coef) + solution.point.intercept
    assert problem.loss.excess(scores) <= 1e-12
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [Multinomial, PairwiseSquaredHinge])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_budget_that_a_solution_used_gives_it_back(kind, penalty: str) -> None:
    inner = smooth(kind)
    alone = Problem(inner, PENALTIES[penalty].times(0.05), DenseDesign(data()[0]), FREE)
    found = minimize(alone, Relay(), stop=Stop(tol=1e-10))
    scores = alone.design.scores(found.point.coef) + found.point.intercept
    budget = inner.value(scores)
    solution = minimize(within(inner, budget, PENALTIES[penalty]), CuttingPlanes(ByTheRules()))
    expected = PENALTIES[penalty].value(found.point.coef)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-5)


def test_a_budget_that_the_null_model_meets_costs_nothing() -> None:
    problem = within(hinge(), 1.0, PENALTIES["l2"])
    solution = minimize(problem, CuttingPlanes(ByTheRules()), start=null_point(problem))
    assert solution.certificate.primal == 0.0
    assert solution.certificate.n_iter == 0
    assert solution.certificate.converged


def test_at_a_price_below_the_multiplier_the_penalty_is_what_it_says() -> None:
    # then the budget is overdrawn: the solution is that of the loss at the price
    problem = within(hinge(), 0.2, PENALTIES["l2"], price=2.0)
    solution = minimize(problem, CuttingPlanes(ByTheRules()), stop=Stop(tol=1e-7))
    best = optimum("l2", 2.0, None) - 2.0 * 0.2
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(best, rel=1e-6)
    scores = problem.design.scores(solution.point.coef) + solution.point.intercept
    assert problem.loss.excess(scores) > 0.1


def test_coefficients_that_sum_to_zero_keep_doing_so(rng) -> None:
    joint = multiclass_problem(rng)
    null = null_point(joint)
    scores = np.tile(null.intercept, (joint.design.n_samples, 1))
    budget = 0.7 * joint.loss.value(scores)
    problem = Problem(
        LevelSet(joint.loss, budget, 1e3), SumToZero(ElasticNet(0.5, 0.5)), joint.design,
        joint.intercept,
    )  # fmt: skip
    solution = minimize(problem, CuttingPlanes(ByTheRules()))
    assert solution.certificate.converged
    np.testing.assert_allclose(solution.point.coef.sum(axis=1), 0.0, atol=1e-12)
    assert "cutting-planes" in suitable(problem)


def test_binary_losses_have_budgets_too(rng) -> None:
    make, problem_of = BUDGET_SOLVERS["cutting-planes"]
    problem = problem_of(rng)
    solution = minimize(problem, make(), stop=Stop(tol=1e-8))
    assert solution.certificate.converged
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-10)
    scores = problem.design.scores(solution.point.coef) + solution.point.intercept
    assert problem.loss.excess(scores) == pytest.approx(0.0, abs=1e-4 * problem.loss.budget)


def test_limits_and_starts_are_respected() -> None:
    problem = within(hinge(), 0.7, PENALTIES["l2"])
    short = minimize(problem, CuttingPlanes(ByTheRules()), stop=Stop(max_iter=30))
    assert not short.certificate.converged
    best = optimum("l2", 0.0, 0.7)
    assert short.certificate.dual <= best * (1 + 1e-9) <= short.certificate.primal * (1 + 2e-9)
    start = Point(np.ones((4, 3)), np.zeros(3))
    minimize(problem, CuttingPlanes(ByTheRules()), start=start, stop=Stop(max_iter=30))
    np.testing.assert_array_equal(start.coef, np.ones((4, 3)))


def test_other_losses_are_refused_in_a_sentence(rng) -> None:
    with pytest.raises(UnsuitableSolverError, match="within a budget"):
        minimize(multiclass_problem(rng), CuttingPlanes(ByTheRules()))
