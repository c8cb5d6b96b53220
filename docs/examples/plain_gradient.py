"""A solver of one's own: proximal gradient steps with a constant step length, in one file.

The loss is smooth, so that its gradient changes by at most L |u - v| between two points u and v;
with steps of 1 / L the objective falls in every iteration (Beck and Teboulle 2009). The loop,
the certificate, limits, callbacks and Ctrl-C come from the library. Run this file to fit a model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from proxmargin.functions.traits import Trait
from proxmargin.optimality.composite import PrimalForm
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.loop.solver import Solver, State, Stop


@dataclass(frozen=True, eq=False)
class GradientState(State):
    """The point, its scores, and the step length; old states stay valid."""

    coef: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    intercept: np.ndarray = field(default_factory=lambda: np.empty(0))
    scores: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    length: float = 0.0


@dataclass(frozen=True)
class PlainGradient(Solver[GradientState]):
    """``u <- prox(u - f'(u) / L, 1 / L)`` in coefficients and intercept."""

    relaxation: float = 1.0  # factor on 1 / L; below 2 the objective still falls

    name: ClassVar[str] = "plain-gradient"
    needs: ClassVar[Trait] = Trait.SMOOTH

    def init(self, problem: Problem, start: Point, stop: Stop) -> GradientState:
        length = self.relaxation / PrimalForm(problem).curvature_bound()
        scores = problem.design.scores(start.coef) + start.intercept
        return GradientState(
            coef=start.coef, intercept=start.intercept, scores=scores, length=length
        )

    def step(self, problem: Problem, state: GradientState) -> GradientState:
        _, dual = problem.loss.value_and_gradient(state.scores)
        slope = problem.design.adjoint(dual)
        coef = problem.penalty.prox(state.coef - state.length * slope, state.length)
        row = (state.intercept - state.length * dual.sum(axis=0))[None, :]
        intercept = problem.intercept.prox(row, state.length)[0]
        scores = problem.design.scores(coef) + intercept
        return state.but(n_iter=state.n_iter + 1, coef=coef, intercept=intercept, scores=scores)

    def point(self, problem: Problem, state: GradientState) -> Point:
        return Point(state.coef, state.intercept)

    def scores(self, problem: Problem, state: GradientState) -> np.ndarray:
        return state.scores


if __name__ == "__main__":
    from sklearn.datasets import load_breast_cancer

    from proxmargin import HuberizedSVC

    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(alpha=0.05, standardize=True, solver=PlainGradient()).fit(X, y)
    print(model.certificate_)
