"""Solvers that call another one on an easier problem: a relay, and cutting planes.

A relay switches from one method to another. Cutting planes take a budget for the loss by the
multiplier lambda of ``L(XW + b) <= budget``,

    phi(lambda) = min_{W, b}  G(W) + lambda (L(XW + b) - budget),

which is concave, and the solution at lambda gives a supporting line with slope ``L - budget``. The
maximum lies between the last rising and the first falling line, below their intersection; the value
there is that of the convex combination of the two solutions that meets the budget. Where L jumps at
the optimal multiplier no solution for any multiplier meets the budget, and that combination is
optimal (as for the linear programs of Chierchia et al. 2015, section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import EPS, TINY
from proxmargin.functions.losses.shifted import LevelSet
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.ssnal import SemismoothNewton
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import (
    GAP_REDUCTION,
    AnySolver,
    Solver,
    State,
    Stop,
    at_least_one,
    check_numbers,
    check_solvers,
)
from proxmargin.solvers.papers.accelerated import FastProximalGradient
from proxmargin.solvers.shared.numerical import BLAS_SPEEDUP, LARGEST_SIDE, SMALL_SIDE

CLOSE_NEWTON_STEPS = 25  # expected of the second method from a start close to the solution
NEWTON_OVERHEAD = 5.0  # cost of a Newton step besides its system, in first-order iterations
RETRY_GAP = 0.3  # gap over that at which the second method failed, below which it is retried


@dataclass(frozen=True, eq=False)
class Leg(State):
    inner: State = field(default_factory=State)  # state of the method that runs
    leg: int = 0  # number of switches: the first method runs at even numbers
    base: int = 0  # iterations up to the last switch
    # (n_certificates, 2); iterations and relative gaps of the first method since the last switch to
    # it
    seen: Array = field(default_factory=lambda: np.empty((0, 2)))
    handed: float = np.inf  # the relative gap at the last switch to the second method
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class Relay(Solver[Leg]):
    """Accelerated steps, then Newton steps on the dual, warm-started.

    After each certificate the remaining iterations of the first method are extrapolated from its
    recent linear rate, and the work of the second is estimated from the active coefficients. The
    solver switches when the second promises to converge first. If the second stalls, the first
    continues from its point until a retry is due.

    Parameters
    ----------
    first, second : Solver
    near : float
        Relative gap up to which a start counts as close to the solution.
    far_steps : float
        Newton steps expected from other starts; infinite: the second method waits for a close one.
    """

    # fast backtracking: the first constant is small, and a trial costs a product
    first: AnySolver = field(default_factory=lambda: FastProximalGradient(growth=2.0))
    second: AnySolver = field(default_factory=SemismoothNewton)
    near: float = 2e-2
    far_steps: float = 60

    name: ClassVar[str] = "fapg-ssnal"
    check_every: ClassVar[int] = 1
    polishing: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_solvers(self, "first", "second")
        check_numbers(self, "near", above=0)
        check_numbers(self, "far_steps", above=0, below=None)

    def polishing_of(self, problem: Problem) -> int:
        """Steps of the second method, if its systems are small."""
        return self.polishing if _dual_size(problem) <= SMALL_SIDE else 0

    def stops_by(self, rule: str) -> bool:
        return self.first.stops_by(rule) and self.second.stops_by(rule)

    def objection(self, problem: Problem) -> str | None:
        return self.first.objection(problem) or self.second.objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Leg:
        if _dual_size(problem) <= SMALL_SIDE:
            return Leg(inner=self.second.init(problem, start, stop), leg=1, stop=stop)
        return Leg(inner=self.first.init(problem, start, stop), stop=stop)

    def step(self, problem: Problem, state: Leg) -> Leg:
        solver, inner = self._runner(state), state.inner
        if inner.finished and solver is self.second:
            point = self.point(problem, state)._replace(dual=self.dual(problem, state))
            return self._switched(problem, replace(state, seen=np.empty((0, 2))), point)
        end = inner.n_iter + solver.check_every
        if state.stop.max_iter is not None:
            end = min(end, state.stop.max_iter - state.base)
        while inner.n_iter < end and not (inner.finished or inner.interrupted):
            inner = solver.step(problem, inner)
            if state.stop.is_over:
                break
        return self._around(state, inner)

    def observe(self, problem: Problem, state: Leg, gap: Gap) -> Leg:
        state = self._around(state, self._runner(state).observe(problem, state.inner, gap))
        if self._runner(state) is self.second:
            return state
        if state.leg and np.isinf(state.handed):  # the second method ran first and failed
            state = replace(state, handed=gap.relative_gap)
        seen = np.vstack([state.seen, [[state.n_iter, gap.relative_gap]]])
        state = replace(state, seen=seen)
        steps = CLOSE_NEWTON_STEPS if gap.relative_gap <= self.near else self.far_steps
        work = steps * _newton_step_work(problem, gap)
        again = gap.relative_gap > RETRY_GAP * state.handed
        # at least as much work before: bounds the cost of a wrong guess
        if again or state.n_iter <= work or self._remaining_iterations(state) <= work:
            return state
        state = replace(state, handed=gap.relative_gap)
        handed = self._switched(problem, state, gap.point._replace(dual=gap.dual_point))
        return self._around(handed, self.second.observe(problem, handed.inner, gap))

    def point(self, problem: Problem, state: Leg) -> Point:
        return self._runner(state).point(problem, state.inner)

    def scores(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).scores(problem, state.inner)

    def dual(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).dual(problem, state.inner)

    def _runner(self, state: Leg) -> AnySolver:
        return self.second if state.leg % 2 else self.first

    def _switched(self, problem: Problem, state: Leg, point: Point) -> Leg:
        """The state after switching to the other method at ``point``."""
        left = state.stop.max_iter
        stop = state.stop if left is None else replace(state.stop, max_iter=left - state.n_iter)
        after = replace(state, leg=state.leg + 1, base=state.n_iter)
        handed = replace(after, inner=self._runner(after).init(problem, point, stop))
        return self._around(handed, handed.inner)

    def _around(self, state: Leg, inner: State) -> Leg:
        return replace(
            state,
            inner=inner,
            n_iter=state.base + inner.n_iter,
            objective_change=inner.objective_change,
            point_change=inner.point_change,
            finished=inner.finished and self._runner(state) is self.first,
            exact=inner.exact,
            interrupted=inner.interrupted,
        )

    def _remaining_iterations(self, state: Leg) -> float:
        """Iterations that the first method still needs at its rate over the latest half of gaps."""
        earlier = state.seen[(len(state.seen) - 1) // 2]
        now = state.seen[-1]
        gained = np.log10(earlier[1] / max(now[1], TINY))
        missing = np.log10(max(now[1] / max(state.stop.tol, EPS), 1.0))
        if missing == 0:
            return 0.0
        return float(missing * (now[0] - earlier[0]) / gained) if gained > 0 else np.inf


def _dual_size(problem: Problem) -> int:
    return int(np.count_nonzero(problem.loss.dual_support))


def _newton_step_work(problem: Problem, gap: Gap) -> float:
    """Work of a Newton step, in iterations of the first method; infinite if too large."""
    design, live = problem.design, gap.point.coef != 0
    n, p, outputs = design.n_samples, design.n_features, problem.loss.n_outputs
    ranks = live.sum(axis=0).astype(float)
    rows = float(np.count_nonzero(live.any(axis=1)))
    size = float(_dual_size(problem))
    if min(rows, size) > LARGEST_SIDE:
        return np.inf
    by_samples = 2.0 * outputs * n**2 * rows + size**3 / 3.0
    by_features = float((2.0 * n * ranks**2 + 3.0 * ranks**3).sum()) + rows**3
    iteration = 4.0 * max(n * p * design.density, 1.0) * outputs  # empty data have no entries
    return NEWTON_OVERHEAD + min(by_samples, by_features) / (BLAS_SPEEDUP * iteration)


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
    """The multiplier at which the two lines meet. Zero if the solution within the budget also has
    the smaller penalty."""
    return max(under.penalty - over.penalty, 0.0) / (over.excess - under.excess)


def _with_next_tolerance(state: CuttingPlanesState, loss: LevelSet) -> CuttingPlanesState:
    """The state with the next inner tolerance, and the count of steps without progress. The upper
    bound is the value at the intersection, or that of the only line at the price. Progress ends
    when the inner problems cannot be solved more accurately."""
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
