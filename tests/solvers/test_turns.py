"""Two methods by turns: where either of them would take long, the pair does not."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import DWD, MarginClassifier
from proxmargin.losses import DistanceWeighted, Logistic
from proxmargin.minimize import minimize
from proxmargin.outcome import Status
from proxmargin.penalties import Ball
from proxmargin.solvers.turns import FIRST_TURN, SECOND_TURN, Turns
from proxmargin.stopping import Stop
from tests.cases import ridge_problem


def even_classes(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(2).normal(size=(n, p))
    return X, np.where(np.arange(n) % 2 == 0, 1, -1)


@pytest.mark.parametrize("loss", [DistanceWeighted(1.0), Logistic()])
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_small_problems_in_balls_that_are_not_euclidean_are_quick(loss, p: float) -> None:
    X, y = even_classes(16, 7)
    model = MarginClassifier(loss, Ball(p, 300.0), max_iter=4000).fit(X, y)
    assert model.certificate_.converged
    assert np.linalg.norm(model.coef_[0], p) <= 300.0 * (1 + 1e-12)


def test_the_first_method_goes_on_after_the_turn_of_the_second() -> None:
    X = np.random.default_rng(0).normal(size=(5, 20))
    model = DWD(norm=20, max_iter=3000).fit(X, np.array([1, -1, 1, -1, 1]))
    assert model.certificate_.solver == "b-pgh-fapg-star"
    assert model.certificate_.converged
    assert model.certificate_.n_iter > FIRST_TURN + SECOND_TURN


def test_other_penalties_are_refused(rng) -> None:
    assert Turns().objection(ridge_problem(rng)) == "it needs coefficients in a ball"


def test_a_turn_that_has_nothing_left_to_do_hands_over(rng) -> None:
    X, y = even_classes(16, 7)
    estimator = MarginClassifier(DistanceWeighted(1.0), Ball(3.0, 300.0))
    (problem,) = estimator._assemble(X, y, None).problems
    solution = minimize(problem, Turns(), stop=Stop(tol=0.0, max_iter=1000))
    assert solution.certificate.relative_gap < 1e-6
    assert solution.status in (Status.ITERATION_LIMIT, Status.STALLED)
