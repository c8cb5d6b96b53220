"""What a problem knows of itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from proxmargin.functions.traits import Trait
from proxmargin.losses import LevelSet
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Ball, ElasticNet, Penalty, Pinned, Ridge
from tests.cases import tail_problem

LENGTHENED = [Ridge(0.7), ElasticNet(0.01, 0.5), Ball(2.0, 1.5), Ball(4.0, 0.3), Ball(1.5, 200.0)]


def homogeneous(penalty: Penalty, intercept: Penalty, rng: np.random.Generator) -> Problem:
    made = tail_problem(rng)
    return Problem(made.loss, penalty, made.design, intercept)


@pytest.mark.parametrize("penalty", LENGTHENED, ids=repr)
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Ridge(100.0), Pinned()], ids=repr)
def test_no_other_multiple_of_a_model_is_better_than_the_best(penalty, intercept, rng) -> None:
    problem = homogeneous(penalty, intercept, rng)
    b = np.zeros(1) if isinstance(intercept, Pinned) else np.array([0.4])
    direction = Point(np.array([[1.0, 0.7, 1.2, 0.0, -0.1, 0.0]]).T, b)
    for sign in (1.0, -1.0):
        point = Point(sign * direction.coef, sign * b)
        slope = problem.loss.value(problem.design.scores(point.coef) + point.intercept)
        best = problem.best_multiple(point, slope)
        assert (best > 0) == (slope + getattr(penalty, "l1", 0.0) * np.abs(point.coef).sum() < 0)
        values = [
            problem.value(Point(t * point.coef, t * point.intercept))
            for t in (best, 0.0, 0.99 * best, 1.01 * best, 0.1, 10.0)
        ]
        assert min(values) == values[0]


def test_balls_and_budgets_are_asked_for_by_their_traits(rng) -> None:
    made = tail_problem(rng)
    ball = replace(made, penalty=Ball(2.0, 1.5))
    assert Trait.BALL in ball.traits
    assert ball.ball is ball.penalty
    limited = replace(made, penalty=Ridge(), loss=LevelSet(made.loss, 0.1, 2.0))
    assert Trait.BUDGET in limited.traits
    assert limited.level_set is limited.loss
    assert (Trait.BALL | Trait.BUDGET) & limited.traits == Trait.BUDGET
    with pytest.raises(TypeError, match="no ball"):
        _ = limited.ball
    with pytest.raises(TypeError, match="no budget"):
        _ = ball.level_set


def test_what_is_negligible_follows_the_units_of_the_data(rng) -> None:
    for penalty, power in [(Ridge(0.7), 2), (ElasticNet(5.0, 0.7), 2), (Ball(3.0, 1.5), 1)]:
        problem = homogeneous(penalty, Ridge(), rng)
        problem_of_tens = homogeneous(penalty, Ridge(), np.random.default_rng(0))
        problem_of_tens.design.matrix[:] = 10.0 * problem.design.matrix
        expected = 10.0**power * problem.negligible
        assert problem_of_tens.negligible == pytest.approx(expected)
