"""The only loop: step, check, report, stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import threadpoolctl
from threadpoolctl import ThreadpoolController

from proxmargin.certificate import Certificate, Gap, certify
from proxmargin.compiled.clock import clock
from proxmargin.interrupts import interrupts
from proxmargin.outcome import Solution, Status
from proxmargin.problem import Point, Problem
from proxmargin.projections import NotFiniteError
from proxmargin.solver import PricedState, Solver, State, UnsuitableSolverError
from proxmargin.stopping import Stop

__all__ = ["Certify", "Report", "Waypoint", "minimize"]

Certify = Callable[..., Gap]
"""From a problem, a point, and by name its scores and a dual point where they are known, and the
relative gap that is to be proved."""

# a solver that has not cut its best gap by this factor over half of its iterations (and no fewer
# than STALL_ITERATIONS) is at the limits of floating point, or of its patience
STALL_FACTOR = 0.99
STALL_ITERATIONS = 10_000
# products with less data than this are faster on one thread than the threads' wake-up costs
ONE_THREAD_BYTES = 32_000_000


@dataclass(frozen=True, eq=False)
class Waypoint:
    """Where a run stands before a certificate: from here it goes on as if it had never stopped.

    Attributes
    ----------
    state : State
    nearest : PricedState, optional
        The state with the least gap of its own.
    best, highest : Gap, optional
        The best point, and the highest lower bound.
    believed : bool
        The best point was certified with scores that the solver believed in.
    elsewhere : bool
        The solver did not begin where it was told to.
    last_progress, last_check, last_told : int
        Iterations.
    settled, polished : int
        Iterations in a row that met the relative change rule; polishing steps.
    met : bool
        The tolerance was met.
    seconds, passes : float
        Spent so far.
    """

    state: State
    nearest: PricedState | None
    best: Gap | None
    highest: Gap | None
    believed: bool
    elsewhere: bool
    last_progress: int
    last_check: int
    last_told: int
    settled: int
    polished: int
    met: bool
    seconds: float
    passes: float


@dataclass(frozen=True, eq=False)
class Report:
    """What callbacks are told after each certificate.

    Attributes
    ----------
    n_iter : int
    n_passes, seconds : float
    gap : Gap
    state : State
    solver : str
    tol : float
    waypoint : Waypoint
        What `minimize` resumes from, before this certificate.
    inner : bool
        Of a run within a step of the one that was asked for.
    """

    n_iter: int
    n_passes: float
    seconds: float
    gap: Gap
    state: State
    solver: str
    tol: float
    waypoint: Waypoint
    inner: bool = False


@dataclass(frozen=True)
class _OfInnerRun:
    """Tells a callback of a run within a step."""

    callback: Callable[[Report], object]

    def __call__(self, report: Report) -> object:
        return self.callback(replace(report, inner=True))


class _Run:
    """The bookkeeping of one minimisation: clock, passes, best point and bound, stall counter."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver[Any],
        stop: Stop,
        certify: Certify,
        known: Gap | None,
    ) -> None:
        self.problem, self.solver, self.stop, self.certify = problem, solver, stop, certify
        self.within = replace(stop, callbacks=tuple(map(_OfInnerRun, stop.callbacks)))
        self.started = perf_counter()
        self.first_pass = problem.design.ledger.passes
        self.limit = solver.max_iter if stop.max_iter is None else stop.max_iter
        self.best: Gap | None = None
        self.known = self.highest = known
        self.elsewhere = self.believed = False
        self.last_progress = 0
        self.last_check = self.last_told = -1
        self.nearest: PricedState | None = None
        self.settled = 0
        self.met = False
        self.polished = 0
        self.most_polishing = solver.polishing_of(problem) if stop.polish else 0

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    @property
    def passes(self) -> float:
        return self.problem.design.ledger.passes - self.first_pass

    def waypoint(self, state: State) -> Waypoint:
        """Where the run stands."""
        noted = {name: getattr(self, name) for name in _NOTED}
        return Waypoint(state, seconds=self.seconds, passes=self.passes, **noted)

    def resumed(self, here: Waypoint) -> Status | None:
        """Stand there again; the status that the last iteration had brought about."""
        for name in _NOTED:
            setattr(self, name, getattr(here, name))
        self.started -= here.seconds
        self.first_pass -= here.passes
        return self._settled_status()

    def check(self, state: State) -> Gap:
        """Certify the current point; remember the best one and the highest lower bound."""
        point = self.solver.point(self.problem, state)
        scores = self.solver.scores(self.problem, state)
        dual = self.solver.dual(self.problem, state)
        gap = self.certify(self.problem, point, scores=scores, dual=dual, tol=self.stop.tol)
        believed = scores is not None and self.certify is certify
        if believed and gap.relative_gap <= self.stop.tol:
            gap, believed = certify(self.problem, point, dual=dual, tol=self.stop.tol), False
        if np.isfinite(gap.dual) and (self.highest is None or gap.dual >= self.highest.dual):
            self.highest = gap
        gap = _tightened(gap, self.highest)
        if self.best is not None:
            self.best = _tightened(self.best, self.highest)
        if _is_better(gap, self.best):
            if self.best is None or not gap.gap >= STALL_FACTOR * self.best.gap:
                self.last_progress = state.n_iter
            self.best, self.believed = gap, believed
        return gap

    def glimpse(self, state: State) -> Gap:
        """A certificate that callbacks are told of, and that nothing else depends on."""
        point, solver = self.solver.point(self.problem, state), self.solver
        scores, dual = solver.scores(self.problem, state), solver.dual(self.problem, state)
        return _tightened(self.certify(self.problem, point, scores=scores, dual=dual), self.highest)

    def tell(self, state: State, gap: Gap, here: Waypoint) -> None:
        for callback in self.stop.callbacks:
            callback(self.report(state, gap, here))

    def confirm(self) -> None:
        """Certify the best point once more, where its scores were what the solver believed.

        That proves nothing: they may have drifted from the coefficients.
        """
        if self.best is not None and self.believed:
            best = self.best
            gap = certify(self.problem, best.point, dual=best.dual_point, tol=self.stop.tol)
            self.best, self.believed = _tightened(gap, self.known), False
            self.highest = self.best if np.isfinite(self.best.dual) else self.known

    def compare(self, start: Point | None) -> None:
        """Fall back on the start where that is better: a run that fails has made nothing worse.

        Solvers need not begin where they are told to.
        """
        if not self.elsewhere and self.best is not None and self.best.is_finite:
            return
        first = self.problem.origin() if start is None else self.problem.projected(start)
        scores = None
        if not first.coef.any():
            scores = np.tile(first.intercept, (self.problem.design.n_samples, 1))
        gap = self.certify(self.problem, first, scores=scores, tol=self.stop.tol)
        gap = _tightened(gap, self.highest)
        if _is_better(gap, self.best):
            self.best, self.believed = gap, False

    def verdict(self, state: State, gap: Gap) -> Status | None:
        """The status that ends the run after a check, or None to go on.

        Once the tolerance was met nothing but a few polishing steps can follow; the best point
        is known whatever comes of them.
        """
        self.met |= self.stop.change is None and gap.relative_gap <= self.stop.tol
        if self.met:
            return None if self._polishes(state, gap) else Status.CONVERGED
        if not np.isfinite(gap.primal):
            return Status.DIVERGED
        if self.stop.change is None and gap.is_rounding(self.stop.tol):
            return Status.ROUNDED
        idle = state.n_iter - self.last_progress
        if state.finished or idle > max(STALL_ITERATIONS, state.n_iter // 2):
            return Status.STALLED
        return Status.ITERATION_LIMIT if state.n_iter >= self.limit else None

    def _polishes(self, state: State, gap: Gap) -> bool:
        """Whether one more polishing step is to follow; counts it.

        A start that meets the tolerance is left as it is.
        """
        ended = state.n_iter == 0 or state.exact or state.finished or not np.isfinite(gap.primal)
        late = state.n_iter >= self.limit or clock() >= self.stop.deadline
        if ended or late or self.polished >= self.most_polishing:
            return False
        self.polished += 1
        return True

    def limits(self, state: State) -> Status | None:
        """The status that ends the run after any iteration, or None to go on."""
        if state.interrupted:
            return Status.INTERRUPTED
        change = self.stop.change
        if change is not None:
            met = change.met(state.objective_change, state.point_change)
            self.settled = self.settled + 1 if met else 0
            if self._settled_status():
                return Status.SETTLED
        if state.n_iter >= self.limit:
            return Status.ITERATION_LIMIT
        if clock() >= self.stop.deadline:
            return Status.TIME_LIMIT
        return None

    def _settled_status(self) -> Status | None:
        change = self.stop.change
        return Status.SETTLED if change is not None and self.settled >= change.times else None

    def report(self, state: State, gap: Gap, here: Waypoint) -> Report:
        name, tol = self.solver.name, self.stop.tol
        return Report(state.n_iter, self.passes, self.seconds, gap, state, name, tol, here)


# what of a run its waypoints hold, besides the state and what was spent
_NOTED = tuple(
    field.name for field in fields(Waypoint) if field.name not in ("state", "seconds", "passes")
)


def minimize(
    problem: Problem,
    solver: Solver[Any],
    *,
    stop: Stop | None = None,
    callbacks: Sequence[Callable[[Report], object]] = (),
    start: Point | State | None = None,
    because: str = "",
    certify: Certify = certify,
    known: Gap | None = None,
    resume: Callable[[Stop], Waypoint] | None = None,
) -> Solution:
    """Run ``solver`` on ``problem`` until ``stop``; certify the result whatever happened.

    Parameters
    ----------
    problem : Problem
    solver : Solver
        Must accept the problem (`Solver.objection`).
    stop : Stop, optional
    callbacks : sequence of callables
        Called with a `Report` after each certificate.
    start : Point or State, optional
        A point to start from (default: zero), or a state to resume from.
    because : str
        Why this solver; kept in the certificate.
    certify : callable
        ``certify(problem, point, scores=..., dual=..., tol=...)``, what proves how good a point
        is: that of `proxmargin.certificate`, or another where coefficients are not those of
        features.
    known : Gap, optional
        A certificate of another point, whose lower bound holds here too.
    resume : callable, optional
        Gives the `Waypoint` of an earlier run with the same other arguments to go on from, bit for
        bit as that one would have; its argument is the stop for runs within the solver's steps.

    Returns
    -------
    Solution
        After an interruption (Ctrl-C) too, with `Status.INTERRUPTED`.

    Raises
    ------
    UnsuitableSolverError
        The solver cannot take the problem.
    """
    stop = stop or Stop()
    _require_suitable(solver, problem)
    run = _Run(problem, solver, stop.started(clock(), callbacks), certify, known)
    # what leaves the range of floating-point numbers is for the checks to see, not for warnings
    silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with interrupts, _quiet_threads(problem.design.nbytes), silent:
        status, state = _loop(run, start, resume)
        run.confirm()
        if status not in (Status.CONVERGED, Status.SETTLED) and not isinstance(start, State):
            run.compare(start)
        if interrupts.pending:
            status = Status.INTERRUPTED
        best = run.best
        assert best is not None
        if status is Status.STALLED and stop.change is None and best.relative_gap <= stop.tol:
            status = Status.CONVERGED
    certificate = Certificate(
        primal=best.primal,
        dual=best.dual,
        gap=best.gap,
        relative_gap=best.relative_gap,
        kkt_residual=best.kkt_residual,
        converged=bool(best.relative_gap <= stop.tol),
        stop_reason=status.value,
        n_iter=state.n_iter,
        n_passes=run.passes,
        seconds=run.seconds,
        solver=solver.name,
        because=because,
    )
    return Solution(best.point, best, status, certificate, state)


def _loop(
    run: _Run, start: Point | State | None, resume: Callable[[Stop], Waypoint] | None
) -> tuple[Status, Any]:
    problem, solver = run.problem, run.solver
    state, status = _beginning(run, start) if resume is None else _resumption(run, resume)
    del start  # one set of coefficients less to keep
    try:
        while True:
            run.nearest = _nearer(run.nearest, state)
            late = status is not None or state.finished or state.n_iter >= run.limit
            told = max(run.last_check, run.last_told)
            due = state.n_iter - max(told, 0) >= solver.check_every or told < 0
            if run.met or state.claims or late or (due and not solver.prices):
                here = run.waypoint(state)
                if late and run.nearest is not None and run.nearest is not state:
                    run.check(run.nearest)  # what did not do for a claim may do for the tolerance
                gap = run.check(state)
                run.last_check = state.n_iter
                run.tell(state, gap, here)
                del here  # and the gaps that were the best until now
                if status is not Status.TIME_LIMIT:  # what it would make ready takes time
                    state = solver.observe(problem, state, gap)
                status = run.verdict(state, run.best or gap if late else gap) or status
                status = Status.INTERRUPTED if state.interrupted else status
            elif due and run.stop.callbacks:
                run.tell(state, run.glimpse(state), run.waypoint(state))
                run.last_told = state.n_iter
            if status is not None:
                return status, state
            if interrupts.pending:
                raise KeyboardInterrupt
            state = solver.step(problem, state)
            status = run.limits(state)
    except NotFiniteError:
        return Status.CONVERGED if run.met else Status.DIVERGED, state
    except Exception:
        if run.met:  # in polishing what is good enough already
            return Status.CONVERGED, state
        raise
    except KeyboardInterrupt:
        if run.last_check != state.n_iter:
            run.check(state)
        return Status.INTERRUPTED, state


def _beginning(run: _Run, start: Point | State | None) -> tuple[Any, Status | None]:
    """The first state: the start, or what the solver makes of it."""
    if isinstance(start, State):
        return start, None
    problem, solver = run.problem, run.solver
    first = problem.origin() if start is None else problem.projected(start)
    state = solver.init(problem, first, run.within)
    run.elsewhere = not np.array_equal(solver.point(problem, state).coef, first.coef)
    return state, None


def _resumption(run: _Run, resume: Callable[[Stop], Waypoint]) -> tuple[Any, Status | None]:
    here = resume(run.within)
    return here.state, run.resumed(here)


def _nearer(nearest: PricedState | None, state: State) -> PricedState | None:
    """The state with the least gap of those that know one of the problem itself."""
    if not (isinstance(state, PricedState) and state.final):
        return nearest
    return state if nearest is None or state.relative_gap <= nearest.relative_gap else nearest


def _is_better(gap: Gap, best: Gap | None) -> bool:
    """Whether a gap is less than the best one; one of a point with finite numbers always is."""
    if best is None or not best.is_finite:
        return best is None or gap.is_finite
    return gap.is_finite and gap.gap < best.gap


def _tightened(gap: Gap, highest: Gap | None) -> Gap:
    """The gap against the highest lower bound seen so far, with room for rounding."""
    if highest is None:
        return gap
    rounding = gap.rounding + 4 * float(np.finfo(float).eps) * abs(gap.primal)
    against = max(gap.primal - highest.dual, 0.0) + rounding
    if against >= gap.gap:
        return gap
    return replace(gap, gap=against, dual_point=highest.dual_point)


def _require_suitable(solver: Solver[Any], problem: Problem) -> None:
    objection = solver.objection(problem)
    if objection:
        raise UnsuitableSolverError(f"solver {solver.name!r} cannot take this problem: {objection}")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _is_quiet() -> bool:
    """Whether BLAS has one thread anyway, which is asked faster than set."""
    return all(each.num_threads == 1 for each in _blas())


@cache
def _blas() -> list[Any]:
    return list(_controller().select(user_api="blas").lib_controllers)


class _QuietThreads:
    """One BLAS thread while any fit with little data runs; counted, because limits are global."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._limiter: Any = None

    @staticmethod
    def _hand_over() -> None:
        """Of recent versions of threadpoolctl only one thread can set what OpenBLAS uses."""
        controller = getattr(threadpoolctl, "OpenBLASController", None)
        clear = getattr(controller, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)

    @contextmanager
    def __call__(self, nbytes: int) -> Iterator[None]:
        with self._lock:
            needless = nbytes >= ONE_THREAD_BYTES or (self._running == 0 and _is_quiet())
            if not needless:
                if self._running == 0:
                    self._hand_over()
                    self._limiter = _controller().limit(limits=1, user_api="blas")
                self._running += 1
        if needless:
            yield
            return
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:  # this thread need not be the one that began
                    self._hand_over()
                    self._limiter.restore_original_limits()
                    self._hand_over()


_quiet_threads = _QuietThreads()
