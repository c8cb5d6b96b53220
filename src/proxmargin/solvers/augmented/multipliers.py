"""The parts of the augmented Lagrangian method for hinges: its state, and what a hinge supplies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.base import Array
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import Remembers
from proxmargin.solvers.augmented.smoothed_newton import NEWTON_STEPS, RETREAT, End
from proxmargin.solvers.loop.solver import GAP_REDUCTION, State
from proxmargin.solvers.loop.stopping import Stop

FIRST_SHARPNESS = 0.2  # far from the solution
ORTHANT_CORRECTIONS = 5  # active sets tried in a step, each without the features that changed sign
MIN_PROXIMAL = 1e-6  # proximal curvature: of the coefficients over the penalty, of the intercept
MIN_RESIDUAL = 1e-13  # some 500 ulp
OUTSIDE_VIOLATION = 0.1  # over l1, above which the same problem is solved on more features


class Centre(NamedTuple):
    """Coefficients, intercept and multipliers, around which a smoothed problem is built."""

    coef: Array  # (n_features, n_outputs)
    intercept: Array  # (n_outputs,)
    multipliers: Array  # (n_samples, n_outputs)


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiplierState(State):
    """The state of the augmented Lagrangian method, with its own estimate of the gap."""

    # the solution of the last smoothed problem, and the point around which that was built, in the
    # coordinates of the `HingeModel`
    at: Centre
    centre: Centre
    scores: Array  # (n_samples, n_outputs); scores of ``at``
    # (n_features,); violations of the optimality conditions at zero by the multipliers
    violations: Array
    members: NDArray[np.intp]  # features of the working set, sorted
    # penalty parameter of the augmented Lagrangian, the inverse width of the smoothing
    sharpness: float
    sharpest: float  # its upper bound, lowered if rounding ended a line search
    # curvature of the proximal term of the coefficients, relative to the penalty; one at first
    proximal: float = 1.0
    residual: float  # relative residual to which the next smoothed problem is solved
    solved: bool = False  # whether the last smoothed problem was solved to its residual
    steps: int = 0  # newton steps for it
    best: float = np.inf  # smallest relative gap so far
    idle: int = 0  # steps at the largest sharpness since then
    stop: Stop = field(default_factory=Stop)

    @property
    def newton_steps(self) -> int:
        if self.stop.max_iter is None:
            return NEWTON_STEPS
        return min(NEWTON_STEPS, self.stop.max_iter - self.n_iter)

    def is_complete(self, outside: Array, level: float) -> bool:
        """Whether the smoothed problem is solved for all features, so that the next one is due."""
        return self.solved and float(outside.max(initial=0.0)) <= OUTSIDE_VIOLATION * level

    def sharpened(self, growth: float, reduction: float) -> Self:
        """The state for the next smoothed problem: sharper, with a smaller residual."""
        return self.but(
            centre=self.at,
            sharpness=min(growth * self.sharpness, self.sharpest),
            proximal=max(self.proximal / growth, MIN_PROXIMAL),
            residual=max(reduction * self.residual, MIN_RESIDUAL),
        )

    def after(self, end: End, least: float) -> Self:
        """The state after Newton's method; less sharp if rounding ended it."""
        failed = end.stuck and not end.solved
        sharpness = self.sharpness / RETREAT if failed else self.sharpness
        return self.but(
            n_iter=self.n_iter + max(end.steps, 1),
            objective_change=np.inf,
            sharpness=sharpness,
            sharpest=sharpness if failed else self.sharpest,
            solved=end.solved,
            steps=end.steps,
            finished=failed and sharpness < least,
        )

    def judged(self, relative_gap: float, max_stalled: int) -> Self:
        """The state with its gap; finished after ``max_stalled`` steps without progress."""
        better = relative_gap < GAP_REDUCTION * self.best
        idle = 0 if better or self.sharpness < self.sharpest else self.idle + 1
        return self.but(
            best=min(self.best, relative_gap),
            idle=idle,
            finished=self.finished or idle >= max_stalled,
            claims=relative_gap <= self.stop.tol,
        )


class HingeModel(Remembers, ABC):
    """A hinge with an elastic net, in the coordinates of its Newton systems."""

    problem: Problem
    design: Design  # the data in these coordinates
    # moves of a multiplier, over its upper bound, per unit of margin deficit. Beyond the second the
    # rounding of scores dominates the multipliers
    least_sharpness: float
    max_sharpness: float
    # the relative residual of the first smoothed problem, and its factor from one to the next
    first_residual: ClassVar[float]
    residual_reduction: ClassVar[float]
    # least and largest factor on the sharpness from one smoothed problem to the next
    growths: ClassVar[tuple[float, float]]

    @abstractmethod
    def start(self, start: Point) -> tuple[Centre, Array, float]:
        """The first point, its scores and the sharpness of the first smoothed problem."""

    @abstractmethod
    def solved(self, state: MultiplierState) -> tuple[Centre, Array, Array | None, End]:
        """The solution of the next smoothed problem, with the coefficients of the working set only,
        its scores, and `slopes` of the multipliers for the working set, if known.
        """

    @abstractmethod
    def point(self, at: Centre) -> Point:
        """The point in the coordinates of the problem."""

    @abstractmethod
    def dual(self, multipliers: Array) -> Array:
        """The dual point of the loss, (n_samples, n_outputs)."""

    @abstractmethod
    def loss(self, scores: Array) -> float:
        """The loss at some scores."""

    @abstractmethod
    def dual_value(self, multipliers: Array) -> float:
        """Minus the conjugate of the loss at the dual point."""
