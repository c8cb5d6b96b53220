"""Two methods by turns: where either of them would take long, the pair does not."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import DWD, MarginClassifier
from proxmargin.loop.minimize import minimize
from proxmargin.loop.outcome import Status
from proxmargin.loop.stopping import Stop
from proxmargin.losses import DistanceWeighted, Logistic
from proxmargin.penalties import Ball
from proxmargin.solvers.papers.accelerated import FastProximalGradientStar
from proxmargin.solvers.papers.proximal_gradient import ProximalGradient
from proxmargin.solvers.wrappers.turns import FIRST_TURN, SECOND_TURN, Turns
from tests.cases import ridge_problem


def even_classes(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(2).normal(size=(n, p))
    return X, np.where(np.arange(n) % 2 == 0, 1, -1)


@pytest.mark.parametrize(
    ("loss", "p"), [(DistanceWeighted(1.0), 1.5), (Logistic(), 1.5), (DistanceWeighted(1.0), 3.0)]
)
def test_small_problems_in_balls_that_are_not_euclidean_are_quick(loss, p: float) -> None:
    X, y = even_classes(16, 7)
    model = MarginClassifier(loss, Ball(p, 300.0), max_iter=4000).fit(X, y)
    assert model.certificate_.converged
    assert np.linalg.norm(model.coef_[0], p) <= 300.0 * (1 + 1e-12)


def test_the_first_method_goes_on_after_the_turn_of_the_second() -> None:
    X = np.random.default_rng(0).normal(size=(5, 20))
    model = DWD(norm=20, max_iter=3000, solver="b-pgh-fapg-star")
    model.fit(X, np.array([1, -1, 1, -1, 1]))
    assert model.certificate_.solver == "b-pgh-fapg-star"
    assert model.certificate_.converged
    assert model.certificate_.n_iter > FIRST_TURN + SECOND_TURN


def test_other_penalties_are_refused(rng) -> None:
    assert Turns().objection(ridge_problem(rng)) == "it needs coefficients in a ball"


class Tired(ProximalGradient):
    """Has nothing left to do after its first step."""

    def step(self, problem, state):
        return super().step(problem, state).but(finished=True)


@pytest.mark.parametrize("second", [FastProximalGradientStar, Tired])
def test_a_method_that_has_nothing_left_to_do_hands_over_while_there_is_another(second) -> None:
    X, y = even_classes(16, 7)
    (problem,) = (
        MarginClassifier(DistanceWeighted(1.0), Ball(3.0, 3.0))._assemble(X, y, None).problems
    )
    solution = minimize(problem, Turns(Tired(), second()), stop=Stop(tol=1e-6, max_iter=400))
    tired = second is Tired
    assert solution.status is (Status.STALLED if tired else Status.CONVERGED)
    assert not tired or solution.certificate.n_iter <= 3
