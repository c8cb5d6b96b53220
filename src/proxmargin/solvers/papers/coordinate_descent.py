"""GCD: generalised coordinate descent of Yang and Zou (2013)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from proxmargin.compiled.solvers import sweeps
from proxmargin.loop.solver import Solver, State
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = ["CoordinateDescent", "SweepState"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepState(State):
    """The state of coordinate descent."""

    coef: Array  # (n_features,)
    intercept: float = 0.0
    scores: Array  # (n_samples,): Scores including the offset
    major: Array  # (n_features,): Curvature majorants ``M_j = smoothness * sum_i weights_i x_ij^2``
    objective: float = np.inf  # F of the point


@dataclass(frozen=True)
class CoordinateDescent(Solver[SweepState]):
    """Sweeps of ``w_j <- soft(M_j w_j - f'_j, l1) / (M_j + l2)`` and the same for the intercept.

    ``M_j`` majorises the curvature along coordinate j, so that every step decreases the objective.
    The scores are updated after every step; a sweep reads every column once or twice. Columns of
    C-ordered data are strided and slow to read: a `WorkingSet` copies those in use to Fortran
    order.
    """

    name: ClassVar[str] = "gcd"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    reads_columns: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        if not problem.design.has_columns:
            return "it reads single columns, which are dense in standardised sparse data"
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> SweepState:
        loss = problem.margins
        bare = (problem.design.scores(start.coef) + start.intercept)[:, 0]
        squares = problem.design.column_squares(
            loss.weights[:, 0], np.zeros(problem.design.n_features)
        )
        return SweepState(
            coef=start.coef[:, 0].copy(),
            intercept=float(start.intercept[0]),
            scores=bare + problem.offset,
            major=loss.phi.smoothness * squares,
            objective=_objective(problem, bare + problem.offset, start),
        )

    def step(self, problem: Problem, state: SweepState) -> SweepState:
        loss = problem.margins
        coef, scores = state.coef.copy(), state.scores.copy()
        data = problem.design.sweep_data()
        sweep: Any = sweeps.sweep_dense if data[0].ndim == 2 else sweeps.sweep_sparse
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        sweep(loss.phi.scalars, *data, signs, weights, coef, scores, state.major, problem.net)
        problem.design.counter.add(2.0 * problem.design.share)
        intercept = self._moved_intercept(problem, scores, state.intercept)
        scores += intercept - state.intercept
        moved = np.hypot(np.linalg.norm(coef - state.coef), intercept - state.intercept)
        size = np.hypot(np.linalg.norm(state.coef), state.intercept)
        here = Point(coef[:, None], np.array([intercept]))
        objective = _objective(problem, scores, here)
        return replace(
            state,
            n_iter=state.n_iter + 1,
            coef=coef,
            intercept=intercept,
            scores=scores,
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=float(moved / (1.0 + size)),
            finished=bool(moved == 0.0),
        )

    def point(self, problem: Problem, state: SweepState) -> Point:
        return Point(state.coef[:, None], np.array([state.intercept]))

    def scores(self, problem: Problem, state: SweepState) -> Array | None:
        # subtracting the offset would add rounding
        return None if problem.offset.any() else state.scores[:, None]

    def measures(self, state: SweepState) -> Mapping[str, float]:
        return {"objective": state.objective}

    def _moved_intercept(self, problem: Problem, scores: Array, intercept: float) -> float:
        """The intercept after its majorised step; its column is all ones."""
        loss = problem.margins
        _, dual = loss.value_and_gradient(scores[:, None])
        step = 1.0 / loss.phi.smoothness
        trial = np.array([[intercept - step * float(dual.sum())]])
        return float(problem.intercept.prox(trial, step)[0, 0])


def _objective(problem: Problem, scores: Array, point: Point) -> float:
    penalties = problem.penalty.value(point.coef) + problem.intercept.value(point.intercept[None])
    return problem.margins.value(scores[:, None]) + penalties
