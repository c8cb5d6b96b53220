"""Newton's method with Hessians that serve several steps, for many samples of few features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.l1.chord_engine import ENTRIES_PER_SAMPLE, ChordEngine
from proxmargin.solvers.l1.newton import WORK_PER_CALL
from proxmargin.solvers.loop.solver import CLAIM_FRACTION, GapState, Solver, Stop, at_least_one

LEAST_STEPS = 5  # Newton steps in one of the solver: fewer do not show whether they converge


@dataclass(frozen=True, eq=False, kw_only=True)
class ChordState(GapState):
    coef: Array  # (n_features,)
    intercept: float
    objective: float = np.inf  # of the last step of the solver, if that met its tolerance
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class ChordNewton(Solver[ChordState]):
    """The Newton steps of paths (`proxmargin.compiled.paths`) at a single strength.

    A step with an old Hessian (a chord step) costs a product with the columns of the model and two
    triangular solves, all of it compiled; the Hessian, of the features that may be in the model, is
    formed anew where such steps converge slowly. The model starts from all features whose slope at
    zero coefficients exceeds half of their strength: with many features these can be far too many.

    An iteration is a Newton step; a step of the solver takes several.

    Parameters
    ----------
    max_features, samples_per_feature : int >= 1
        Largest number of features, and least number of samples per feature: for other shapes a
        working set is faster.
    """

    max_features: int = 1000
    samples_per_feature: int = 20

    name: ClassVar[str] = "chord-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 100

    def __post_init__(self) -> None:
        at_least_one(self, "max_features", "samples_per_feature")

    def objection(self, problem: Problem) -> str | None:
        n, p = problem.design.n_samples, problem.design.n_features
        if p > self.max_features or n < self.samples_per_feature * p:
            return (
                f"it needs at most {self.max_features} features and at least "
                f"{self.samples_per_feature} samples a feature, and there are {n} samples of {p} "
                "features"
            )
        missing = super().objection(problem)
        if missing is None and not ChordEngine.takes(problem):
            return (
                "it needs an l1 penalty of every feature that is not free, an intercept without a "
                "penalty, and data in memory in double precision, or few enough to be copied"
            )
        return missing

    def init(self, problem: Problem, start: Point, stop: Stop) -> ChordState:
        return ChordState(
            coef=start.coef[:, 0].copy(),
            intercept=float(start.intercept[0]),
            tol=CLAIM_FRACTION * stop.tol,
            stop=stop,
        )

    def step(self, problem: Problem, state: ChordState) -> ChordState:
        """Newton steps until the gap meets the tolerance, or the solver's step takes too long."""
        # to a smaller gap the kernels would step on without end
        engine, net = ChordEngine(problem, max(state.tol, SUM_ROUNDING)), problem.net
        strengths = np.array([[net.l1.max()], [net.l2.max()]])
        if state.coef.any():
            engine.go_on_from(self.point(problem, state), float(strengths[0, 0]))
        design = problem.design
        read = design.stored.base.nbytes // 8 + ENTRIES_PER_SAMPLE * design.n_samples
        most = max(WORK_PER_CALL // read, LEAST_STEPS)
        scalars, left = engine.progress.scalars, state.stop.iterations(self.max_iter) - state.n_iter
        scalars["last_step"] = scalars["steps"] + int(min(most, left))
        found, solved, unfinished = engine.advanced(engine.blank(*strengths), 0)
        steps, passes = engine.effort
        design.counter.add(float(passes))
        at, objective = engine.point, float(found.objectives[0])
        coef, intercept = at.coef[:, 0], float(at.intercept[0])
        change = float(np.linalg.norm(coef - state.coef))
        gap = float(found.gaps[0]) / max(objective, problem.negligible) if solved else np.inf
        return state.but(
            n_iter=state.n_iter + int(steps),
            coef=coef,
            intercept=intercept,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
            objective=objective if solved else np.inf,
            objective_change=(state.objective - objective) / (1.0 + objective),
            relative_gap=gap,
            finished=not (solved or unfinished),
        ).claimed(final=True)

    def point(self, problem: Problem, state: ChordState) -> Point:
        return Point(state.coef[:, None], np.array([state.intercept]))
