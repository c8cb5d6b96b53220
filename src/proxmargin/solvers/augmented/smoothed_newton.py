"""Semismooth Newton steps on a smoothed problem: the inner loop of methods of multipliers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import ARMIJO_FRACTION
from proxmargin.solvers.shared.line_search import END_SLOPE_FRACTION, LINE_SEARCH_STEPS

NEWTON_STEPS = 60  # limit for one smoothed problem
RETREAT = 4.0  # divisor of the penalty parameter after a line search that failed


class Valued(Protocol):
    """A point of a smoothed problem, with a bound on the rounding of the decrease of its value."""

    @property
    def value(self) -> float: ...
    @property
    def rounding(self) -> float: ...


class Measured(Protocol):
    """Derivatives at a point, with the residual of its optimality conditions.

    ``least`` is the part of the residual that is rounding.
    """

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
    """Newton steps until the residual is at most ``target``, or the line search fails.

    Then a residual of ``excess`` targets counts as solved. No step begins that would end after the
    ``deadline`` if it took as long as the previous one.
    """
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

    Parameters
    ----------
    along : callable
        Maps a length to the point there, which may be projected.
    first : float
        The decrease that the slope at ``here`` predicts for a full step without projection: lengths
        whose share of it is below rounding are not tried.
    fall : callable
        The decrease that the slope at ``here`` predicts for a point and its length.
    ahead : callable
        The change that the slopes at a point predict for another step of the same length.
    noise : float
        Rounding of the arguments of the objective, which its own leaves out: slopes alone decide on
        smaller changes.
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
