"""The interior point method in one call, for few samples of few features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.compiled.solvers.box_program import box_minimum
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.box_program import box_objection, box_of, has_ridge
from proxmargin.solvers.loop.solver import Solver, State, Stop

MOST_WORK = 1_000_000  # multiply-adds of one of its systems: some tenth of a millisecond
TOLERANCE = 1e-12  # relative gap: few iterations lead there from the tolerance of a fit


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallBoxState(State):
    at: Point
    dual: Array  # (n_samples, 1)
    most: int  # iterations, at most


@dataclass(frozen=True)
class SmallInteriorPoint(Solver[SmallBoxState]):
    """`InteriorPoint` for a ridge, as far as rounding allows, without a look at what it costs.

    One step is a whole minimisation in compiled code; its iterations are counted.
    """

    name: ClassVar[str] = "interior-point"
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 100

    def objection(self, problem: Problem) -> str | None:
        if is_small(problem):
            return None
        few = "it needs few samples of few features, dense and in memory, with positive weights"
        return box_objection(problem) or few

    def init(self, problem: Problem, start: Point, stop: Stop) -> SmallBoxState:
        dual = np.zeros((problem.design.n_samples, 1))
        return SmallBoxState(at=start, dual=dual, most=stop.iterations(self.max_iter))

    def step(self, problem: Problem, state: SmallBoxState) -> SmallBoxState:
        design, box, intercept = problem.design, box_of(problem), problem.intercept
        coef, shift, a, _, steps = box_minimum(
            design.sweep_data(),
            problem.loss.shares,
            (box.signs, box.upper, box.curvature, box.target, float(box.pull)),
            (problem.fits_intercept, float(intercept.l2)),
            float(problem.penalty.l2),
            TOLERANCE,
            state.most,
        )
        design.counter.add(design.share * steps)
        return state.but(
            n_iter=state.n_iter + max(steps, 1),
            at=Point(coef[:, None], np.array([shift])),
            dual=-(box.signs * a)[:, None],
            finished=True,
        )

    def point(self, problem: Problem, state: SmallBoxState) -> Point:
        return state.at

    def dual(self, problem: Problem, state: SmallBoxState) -> Array:
        return state.dual


@kept
def is_small(problem: Problem) -> bool:
    """Whether this is a `BoxProgram` of so few dense entries that to solve it takes no time."""
    design, box = problem.design, problem.loss.box
    n, p = design.n_samples, design.n_features
    if n * (p + 2) ** 2 > MOST_WORK or p > n or box is None or isinstance(design, KernelDesign):
        return False
    dense = design.is_dense and design.has_columns and not design.passes_only
    return dense and has_ridge(problem) and float(box.upper.min(initial=np.inf)) > 0.0
