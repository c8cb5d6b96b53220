"""The state of methods of multipliers for hinges, what a hinge supplies, and their inner loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import ARMIJO_FRACTION
from proxmargin.data.designs.base import Design
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import Remembers
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import GAP_REDUCTION, State, Stop
from proxmargin.solvers.shared.numerical import END_SLOPE_FRACTION, LINE_SEARCH_STEPS

NEWTON_STEPS = 60  # limit for one smoothed problem
RETREAT = 4.0  # divisor of the penalty parameter after a line search that failed


class Valued(Protocol):
    """A point of a smoothed problem, with a bound on the rounding of the decrease of its value."""

    @property
    def value(self) -> float: ...
    @property
    def rounding(self) -> float: ...


class Measured(Protocol):
    """Derivatives at a point, with the residual of its optimality conditions. ``least`` is the part
    of the residual that is rounding."""

    @property
    def residual(self) -> float: ...
    @property
    def least(self) -> float: ...


P = TypeVar("P", bound=Valued)
S = TypeVar("S", bound=Measured)


class SmoothProblem(Protocol[P, S]):
    """The interface of a smoothed problem."""

    def slopes(self, here: P) -> S:
        """Derivatives at a point."""

    def newton_step(self, here: P, slopes: S, deadline: float) -> tuple[P, S] | None:
        """A Newton step by `line_search`; None if that fails."""


class End(NamedTuple):
    """How the iteration ended; ``stuck`` if a line search failed."""

    steps: int
    solved: bool
    stuck: bool


def minimise(
    problem: SmoothProblem[P, S],
    here: P,
    target: float,
    limit: int,
    deadline: float,
    excess: float = 1.0,
) -> tuple[P, S, End]:
    """Newton steps until the residual is at most ``target``, or the line search fails. Then a
    residual of ``excess`` targets counts as solved. No step begins that would end after the
    ``deadline`` if it took as long as the previous one."""
    steps, slopes, ended, took = 0, problem.slopes(here), clock(), 0.0
    while True:
        if slopes.residual <= max(target, slopes.least):
            return here, slopes, End(steps, solved=True, stuck=False)
        if steps >= limit or ended + took >= deadline:  # the next step would end too late
            return here, slopes, End(steps, solved=False, stuck=False)
        stepped = problem.newton_step(here, slopes, deadline)
        began, ended = ended, clock()
        steps, took = steps + 1, ended - began
        if stepped is None:
            solved = slopes.residual <= excess * target
            return here, slopes, End(steps, solved, stuck=True)
        here, slopes = stepped


def line_search(
    here: P,
    along: Callable[[float], P],
    slopes: Callable[[P], S],
    first: float,
    fall: Callable[[P, float], float],
    ahead: Callable[[P, S, float], float],
    noise: float = 0.0,
) -> tuple[P, S] | None:
    """The first step length, halved from one, with sufficient decrease; None if there is none.

    Near the solution the decrease of the objective is below rounding. Then the slope at the end of
    the step decides, which by convexity bounds the objective: the approximate Wolfe condition of
    Hager and Zhang (2005).

    ``along`` maps a length to the point there, which may be projected. By the slope at ``here``,
    the decrease is ``first`` for a full step without projection (lengths whose share of it is below
    rounding are not tried), and ``fall`` for a point and its length; ``ahead`` is the change that
    the slopes at a point predict for another step of the same length. Slopes alone decide on
    changes below ``noise``, the rounding of the arguments of the objective, which its own leaves
    out.
    """
    slack, length = max(here.rounding, noise), 1.0
    for _ in range(LINE_SEARCH_STEPS):  # with few samples curved, a step can be far too long
        there = along(length)
        drop = fall(there, length)
        if drop > slack and there.value <= here.value - ARMIJO_FRACTION * drop:
            return there, slopes(there)
        if drop > 0.0 and there.value <= here.value + slack:
            end = slopes(there)
            if ahead(there, end, length) <= END_SLOPE_FRACTION * drop:
                return there, end
        if length * first <= here.rounding:
            return None
        length *= 0.5
    return None


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

    def measured(self, relative_gap: float, max_stalled: int) -> Self:
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
