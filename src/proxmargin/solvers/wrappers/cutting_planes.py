"""A budget for the loss by its multiplier: cutting planes of the concave dual function.

For the multiplier lambda of the constraint ``L(XW + b) <= budget``,

    phi(lambda) = min_{W, b}  G(W) + lambda (L(XW + b) - budget)

is concave, and the solution at lambda gives a supporting line with slope ``L - budget``. The
maximum lies between the last rising and the first falling line, below their intersection; the value
there is that of the convex combination of the two solutions that meets the budget. Where L jumps at
the optimal multiplier no solution for any multiplier meets the budget, and that combination is
optimal (as for the linear programs of Chierchia et al. 2015, section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import TINY
from proxmargin.functions.losses.base import Array
from proxmargin.functions.losses.level_set import LevelSet
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import GAP_REDUCTION, Solver, State, at_least_one
from proxmargin.solvers.loop.stopping import Stop

Inner = Callable[[Problem, Stop, Point], Solution]
"""Solves a problem without a budget, within limits and from a warm start."""

# multipliers
FIRST_MULTIPLIER = 3e-3  # over the price of the exact penalty
MULTIPLIER_GROWTH = 10.0  # factor until a solution meets the budget
SECANT_MARGIN = 0.02  # least distance of a secant to the ends, over the width of the bracket
# relative tolerance of the problem at one multiplier
TOL_FRACTION = 0.1  # over the larger of the current gap and the tolerance of the whole problem
LOOSEST_TOL = 1e-2  # the first solutions are only to bracket the multiplier
TIGHTEST_TOL = 1e-13  # about the smallest that certificates can prove in float64


class Cut(NamedTuple):
    """The line ``penalty + lambda (loss - budget)`` above phi, from the solution at one lambda."""

    multiplier: float
    penalty: float
    excess: float
    point: Point

    def value(self, multiplier: float) -> float:
        return self.penalty + multiplier * self.excess


@dataclass(frozen=True, eq=False, kw_only=True)
class CuttingPlanesState(State):
    """The two lines that bracket the maximum, and the best dual point."""

    over: Cut  # line of a solution above the budget, which rises
    under: Cut | None = None  # line of a solution within the budget, which falls
    # (n_samples, n_outputs), optional; the dual point with the highest value so far
    proof: Array | None = None
    lower: float = 0.0  # that value
    wanted: float = LOOSEST_TOL  # the relative tolerance of the next problem at one multiplier
    # steps, and steps since the last progress
    turn: int = 0
    idle: int = 0
    open: float = np.inf  # smallest difference of the bounds so far
    stop: Stop


@dataclass(frozen=True)
class CuttingPlanes(Solver[CuttingPlanesState]):
    """Solve problems without a budget, at multipliers that converge to that of the budget.

    Parameters
    ----------
    inner : callable
        ``inner(problem, stop, start)`` solves a problem without a budget.
    max_stalled : int >= 1
        Inner problems without a smaller difference of the bounds, after which the method ends.
    """

    inner: Inner
    max_stalled: int = 8

    name: ClassVar[str] = "cutting-planes"
    needs: ClassVar[Trait] = Trait.BUDGET
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 1_000_000

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        if missing:
            return missing
        if problem.fits_intercept and not problem.intercept.is_shift_invariant:
            return "it needs an intercept without penalty, or none"
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> CuttingPlanesState:
        null = null_point(problem)
        cut = _cut(problem, 0.0, null)
        return CuttingPlanesState(
            over=cut,
            under=cut if cut.excess <= 0 else None,
            finished=cut.excess <= 0,
            stop=stop,
        )

    def step(self, problem: Problem, state: CuttingPlanesState) -> CuttingPlanesState:
        loss = problem.level_set
        multiplier = self._next(state, loss.price)
        solution = self.inner(*_without_budget(problem, multiplier, state))
        # the gradient of the loss does not depend on the multiplier, so that it is a dual warm
        # start
        point = solution.point._replace(dual=solution.gap.dual_point)
        cut = _cut(problem, multiplier, point)
        state = _with_dual_point(problem, multiplier, solution, state)
        state = replace(
            state,
            n_iter=state.n_iter + max(solution.certificate.n_iter, 1),
            turn=state.turn + 1,
            interrupted=solution.status is Status.INTERRUPTED,
        )
        state = replace(state, over=cut) if cut.excess > 0 else replace(state, under=cut)
        state = _with_next_tolerance(state, loss)
        return replace(state, finished=state.idle > self.max_stalled)

    def point(self, problem: Problem, state: CuttingPlanesState) -> Point:
        """The convex combination that meets the budget; until there is one, the point above it."""
        over, under = state.over, state.under
        if under is None:
            return Point(*over.point[:2])
        share = over.excess / (over.excess - under.excess) if over.excess > 0 else 1.0
        share = share if under.penalty > over.penalty else 1.0
        pairs = zip(over.point[:2], under.point[:2], strict=True)
        return Point(*(a + share * (b - a) for a, b in pairs))

    def dual(self, problem: Problem, state: CuttingPlanesState) -> Array | None:
        return state.proof

    def _next(self, state: CuttingPlanesState, price: float) -> float:
        """The intersection of the two lines, or in every second step the secant of their slopes."""
        over, under = state.over, state.under
        if under is None:
            return min(max(FIRST_MULTIPLIER * price, MULTIPLIER_GROWTH * over.multiplier), price)
        low, high = over.multiplier, under.multiplier
        crossing = _crossing(over, under)
        if (state.turn % 2 and low < high) or crossing == 0:
            margin = SECANT_MARGIN * (high - low)
            secant = low + (high - low) * over.excess / (over.excess - under.excess)
            return float(np.clip(secant, low + margin, high - margin))
        return crossing


def _cut(problem: Problem, multiplier: float, point: Point) -> Cut:
    scores = problem.design.scores(point.coef) + point.intercept
    excess = problem.level_set.excess(scores)
    return Cut(multiplier, problem.penalty.value(point.coef), excess, point)


def _without_budget(
    problem: Problem, multiplier: float, state: CuttingPlanesState
) -> tuple[Problem, Stop, Point]:
    """The problem at a multiplier, its limits, and the solution at the nearest multiplier."""
    free = replace(
        problem, loss=problem.level_set.loss, penalty=problem.penalty.times(1.0 / multiplier)
    )
    near = state.over
    if state.under is not None and multiplier > 0.5 * (near.multiplier + state.under.multiplier):
        near = state.under
    left = None if state.stop.max_iter is None else max(state.stop.max_iter - state.n_iter, 1)
    stop = replace(state.stop, tol=state.wanted, max_iter=left, rule=None, callbacks=())
    return free, stop, near.point


def _with_dual_point(
    problem: Problem, multiplier: float, solution: Solution, state: CuttingPlanesState
) -> CuttingPlanesState:
    """The state with the dual point of a solution, if that has the highest value so far."""
    value = multiplier * (solution.gap.dual - problem.level_set.budget)
    if state.proof is not None and value <= state.lower:
        return state
    return replace(state, proof=multiplier * solution.gap.dual_point, lower=value)


def _crossing(over: Cut, under: Cut) -> float:
    """The multiplier at which the two lines meet.

    Zero if the solution within the budget also has the smaller penalty.
    """
    return max(under.penalty - over.penalty, 0.0) / (over.excess - under.excess)


def _with_next_tolerance(state: CuttingPlanesState, loss: LevelSet) -> CuttingPlanesState:
    """The state with the next inner tolerance, and the count of steps without progress.

    The upper bound is the value at the intersection, or that of the only line at the price.
    Progress ends when the inner problems cannot be solved more accurately.
    """
    over, under = state.over, state.under
    if under is None and over.multiplier < loss.price:
        return state
    at = loss.price if under is None else _crossing(over, under)
    upper = over.value(at) if under is None or at > 0 else under.penalty
    still_open = max(upper - state.lower, 0.0)
    idle = 0 if still_open <= GAP_REDUCTION * state.open else state.idle + 1
    size = max(abs(upper) + at * loss.budget, TINY)
    wanted = TOL_FRACTION ** (1 + idle) * max(still_open, state.stop.tol * abs(upper)) / size
    return replace(
        state,
        wanted=float(np.clip(wanted, TIGHTEST_TOL, LOOSEST_TOL)),
        idle=idle,
        open=min(still_open, state.open),
    )
