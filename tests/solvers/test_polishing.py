"""The steps after the tolerance was met: they gain digits, cost what they say, and never lose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from proxmargin import DWD, L2SVC, HuberizedSVC, LogisticRegression, SquaredHingeSVC
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.minimax import MinimaxProbability
from proxmargin.losses import Logistic
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Ball, Ridge
from proxmargin.solvers.callbacks import History
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Report, Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.minimax.newton import MinimaxNewton
from proxmargin.solvers.ridge.newton import BallNewton


def in_a_ball(rng: np.random.Generator) -> Problem:
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    loss = MarginSum(Logistic(), y[:, None], np.full((60, 1), 1.0 / 60), 60.0)
    return Problem(loss, Ball(2.0, 1.0), DenseDesign(X), Ridge())


def minimax(rng: np.random.Generator) -> Problem:
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1.0, -1.0)
    loss = MinimaxProbability(y, np.full(60, 1.0 / 60), 0.2, 60.0)
    return Problem(loss, Ridge(1.0), DenseDesign(X), Ridge())


@dataclass(frozen=True)
class SpoiledBall(BallNewton):
    """One of its steps leads far away."""

    spoiled: int = 0

    def step(self, problem: Problem, state: Any) -> Any:
        after = super().step(problem, state)
        if after.n_iter != self.spoiled:
            return after
        return after.but(inner=-after.inner, at=after.at._replace(scores=-after.at.scores))


CASES = {"ball": (in_a_ball, BallNewton()), "minimax": (minimax, MinimaxNewton())}
LOOSE = Stop(tol=1e-4)
PLAIN = replace(LOOSE, polish=False)


@pytest.mark.parametrize("name", CASES)
def test_one_step_more_squares_the_error(name: str, rng) -> None:
    make, solver = CASES[name]
    problem = make(rng)
    exact = minimize(problem, solver, stop=Stop(tol=1e-14)).point.coef
    before = minimize(problem, solver, stop=PLAIN)
    after = minimize(problem, solver, stop=LOOSE)
    assert after.status is Status.CONVERGED
    assert after.certificate.n_iter == before.certificate.n_iter + 1
    error = float(np.abs(before.point.coef - exact).max())
    assert np.abs(after.point.coef - exact).max() <= max(1e-3 * error, 1e-12)


@pytest.mark.parametrize("model", [L2SVC, LogisticRegression, HuberizedSVC, SquaredHingeSVC, DWD])
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-6, 1e-9])
def test_callbacks_do_not_change_the_model(model: Any, tol: float) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    strength = "C" if hasattr(model(), "C") else "alpha" if hasattr(model(), "alpha") else "nu"
    for value in (1e-3, 0.1, 1.0):
        plain = model(tol=tol, standardize=True, **{strength: value}).fit(X, y)
        told = clone(plain).set_params(callbacks=[History()]).fit(X, y)
        assert told.certificate_.n_iter == plain.certificate_.n_iter
        np.testing.assert_array_equal(told.coef_, plain.coef_)


@dataclass(frozen=True)
class Shy(BallNewton):
    """Claims nothing, and gives up after some steps far from where it had been."""

    def step(self, problem: Problem, state: Any) -> Any:
        after = super().step(problem, state).but(claims=False)
        if after.n_iter < 8:
            return after
        away = after.but(inner=0.5 * after.inner, relative_gap=1.0, finished=True)
        return away.but(at=after.at._replace(scores=0.5 * after.at.scores))


def test_the_nearest_point_is_certified_when_a_solver_gives_up(rng) -> None:
    problem = in_a_ball(rng)
    solution = minimize(problem, Shy(), stop=LOOSE)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.relative_gap <= 1e-4


def test_a_step_for_the_worse_is_not_reported(rng) -> None:
    problem = in_a_ball(rng)
    steps = minimize(problem, BallNewton(), stop=PLAIN).certificate.n_iter
    reports: list[Report] = []
    solution = minimize(
        problem, SpoiledBall(spoiled=steps + 1), stop=LOOSE, callbacks=[reports.append]
    )
    assert solution.status is Status.CONVERGED
    assert solution.certificate.relative_gap <= 1e-4
    assert any(r.n_iter == steps + 1 and r.gap.relative_gap > 1e-2 for r in reports)


@pytest.mark.parametrize("stop", [LOOSE, PLAIN], ids=["polishing", "plain"])
def test_limits_hold_while_polishing(stop: Stop, rng) -> None:
    problem = in_a_ball(rng)
    steps = minimize(problem, BallNewton(), stop=PLAIN).certificate.n_iter
    solution = minimize(problem, BallNewton(), stop=replace(stop, max_iter=steps))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.n_iter == steps
