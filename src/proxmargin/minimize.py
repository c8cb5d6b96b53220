"""The only loop: step, check, report, stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from time import perf_counter
from typing import Any

import numpy as np

from proxmargin.certificate import Certificate, Gap, certify
from proxmargin.compiled.clock import clock
from proxmargin.incumbent import Certify, Incumbent
from proxmargin.interrupts import interrupts
from proxmargin.outcome import Solution, Status
from proxmargin.problem import Point, Problem
from proxmargin.projections import NotFiniteError
from proxmargin.solver import PricedState, Solver, State, UnsuitableSolverError
from proxmargin.stopping import Stop
from proxmargin.threads import quiet_threads

__all__ = ["Certify", "Report", "Waypoint", "minimize"]

# a solver stalls when its best gap has not fallen by a factor over half of its iterations
STALL_FACTOR = 0.99  # that counts as progress
STALL_ITERATIONS = 10_000  # at least


@dataclass(frozen=True, eq=False)
class Waypoint:
    """The state of a run before a certificate, from which it resumes bit for bit.

    Attributes
    ----------
    state : State
    nearest : PricedState, optional
        The state with the least gap of its own.
    best, highest : Gap, optional
        The best point, and the highest lower bound.
    believed : bool
        The best point was certified with scores that the solver updates.
    began_elsewhere : bool
        The solver did not start at the given point.
    last_progress, last_check, last_told : int
        Iterations.
    settled, polished : int
        Iterations in a row that met the relative change rule; polishing steps.
    phase : Phase
    seconds, passes : float
        Spent so far.
    """

    state: State
    nearest: PricedState | None
    best: Gap | None
    highest: Gap | None
    believed: bool
    began_elsewhere: bool
    last_progress: int
    last_check: int
    last_told: int
    settled: int
    polished: int
    phase: Phase
    seconds: float
    passes: float


@dataclass(frozen=True, eq=False)
class Report:
    """The argument of callbacks, after each certificate.

    Attributes
    ----------
    n_iter : int
    n_passes, seconds : float
    gap : Gap
    state : State
    solver : str
    tol : float
    waypoint : Waypoint
        The state of the run before this certificate, for `minimize` to resume from.
    inner : bool
        The report is of a run within a step of the main run.
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


class Phase(Enum):
    """What a run does; it ends with a `Status`.

    ========== ================================================ ============================
    phase      event                                            next
    ========== ================================================ ============================
    searching  a certificate meets ``tol``                      polishing
    searching  a certificate shows one of `ENDS_OF_SEARCH`      ended, with the status there
    searching  the relative change rule is met                  ended: SETTLED
    searching  the limit of iterations or of time is reached    ended, after a certificate
    searching  the solver raises `NotFiniteError`               ended: DIVERGED
    polishing  a step is left, and the solver can take it       polishing
    polishing  no step is left, or a step raises                ended: CONVERGED
    any        Ctrl-C, or an interruption within a step         ended: INTERRUPTED
    ========== ================================================ ============================
    """

    SEARCHING = "searching"
    POLISHING = "polishing"


class _Run:
    """The bookkeeping of one minimisation: clock, passes, phase, incumbent, stall counter."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver[Any],
        stop: Stop,
        certify: Certify,
        known: Gap | None,
    ) -> None:
        self.problem, self.solver, self.stop = problem, solver, stop
        self.within = replace(stop, callbacks=tuple(map(_OfInnerRun, stop.callbacks)))
        self.started = perf_counter()
        self.first_pass = problem.design.ledger.passes
        self.limit = solver.max_iter if stop.max_iter is None else stop.max_iter
        self.incumbent = Incumbent(problem, solver, stop.tol, certify, known)
        self.phase = Phase.SEARCHING
        self.began_elsewhere = False
        self.last_progress = 0
        self.last_check = self.last_told = -1
        self.nearest: PricedState | None = None
        self.settled = 0
        self.telling = False
        self.polished = 0
        self.most_polishing = solver.polishing_of(problem) if stop.polish else 0

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    @property
    def passes(self) -> float:
        return self.problem.design.ledger.passes - self.first_pass

    # -- reports and checkpoints

    def waypoint(self, state: State) -> Waypoint:
        """The state of the run, for a checkpoint."""
        noted = {name: getattr(self, name) for name in _NOTED}
        noted |= {name: getattr(self.incumbent, name) for name in _OF_THE_INCUMBENT}
        return Waypoint(state, seconds=self.seconds, passes=self.passes, **noted)

    def resumed(self, here: Waypoint) -> Status | None:
        """Restore a waypoint; the status that its last iteration ended with, if any."""
        for name in _NOTED:
            setattr(self, name, getattr(here, name))
        for name in _OF_THE_INCUMBENT:
            setattr(self.incumbent, name, getattr(here, name))
        self.started -= here.seconds
        self.first_pass -= here.passes
        return self._settled_status()

    def tell(self, state: State, gap: Gap, here: Waypoint) -> None:
        name, tol = self.solver.name, self.stop.tol
        self.telling = True  # what a callback raises is not for the loop to handle
        for callback in self.stop.callbacks:
            callback(Report(state.n_iter, self.passes, self.seconds, gap, state, name, tol, here))
        self.telling = False

    # -- when to certify

    def is_late(self, state: State, status: Status | None) -> bool:
        """Whether this certificate is the last one."""
        return status is not None or state.finished or state.n_iter >= self.limit

    def is_due(self, state: State) -> bool:
        told = max(self.last_check, self.last_told)
        return told < 0 or state.n_iter - max(told, 0) >= self.solver.check_every

    def needs_certificate(self, state: State, status: Status | None) -> bool:
        """Whether the run depends on a certificate now, beyond reports."""
        if self.phase is Phase.POLISHING or state.claims or self.is_late(state, status):
            return True
        return self.is_due(state) and not self.solver.prices

    def certified(self, state: State, status: Status | None) -> tuple[Any, Status | None]:
        """The state after a certificate, and the status that ends the run, if one does."""
        here, late = self.waypoint(state), self.is_late(state, status)
        if late and self.nearest is not None and self.nearest is not state:
            self.check(self.nearest)  # its gap may meet the run's tolerance, if not the solver's
        gap = self.check(state)
        self.last_check = state.n_iter
        self.tell(state, gap, here)
        del here  # and the gaps that were the best until now
        if status is not Status.TIME_LIMIT:  # `observe` may prepare the next step, which takes time
            state = self.solver.observe(self.problem, state, gap)
        status = self.verdict(state, self.incumbent.best or gap if late else gap) or status
        return state, Status.INTERRUPTED if state.interrupted else status

    def glimpsed(self, state: State) -> None:
        """Report a certificate that the run does not depend on."""
        self.tell(state, self.incumbent.glimpse(state), self.waypoint(state))
        self.last_told = state.n_iter

    def check(self, state: State) -> Gap:
        gap = self.incumbent.check(state)
        if not self.incumbent.fall >= STALL_FACTOR:
            self.last_progress = state.n_iter
        return gap

    # -- transitions

    def verdict(self, state: State, gap: Gap) -> Status | None:
        """The status that ends the run after a certificate, or None to go on (`Phase`)."""
        if self.stop.change is None and gap.relative_gap <= self.stop.tol:
            self.phase = Phase.POLISHING
        if self.phase is Phase.POLISHING:
            return None if self._polishes(state, gap) else Status.CONVERGED
        return next((end for end, holds in ENDS_OF_SEARCH.items() if holds(self, state, gap)), None)

    def is_stalled(self, state: State) -> bool:
        idle = state.n_iter - self.last_progress
        return state.finished or idle > max(STALL_ITERATIONS, state.n_iter // 2)

    def _polishes(self, state: State, gap: Gap) -> bool:
        """Whether one more polishing step is to follow; counts it. A start is not polished."""
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

    def concluded(self, status: Status, start: Point | State | None) -> tuple[Gap, Status]:
        """The best point and the status of the run.

        A run that failed returns nothing worse than the start, which the solver may not have used.
        """
        incumbent = self.incumbent
        incumbent.confirm()
        failed = status not in (Status.CONVERGED, Status.SETTLED)
        nothing = incumbent.best is None or not incumbent.best.is_finite
        if failed and not isinstance(start, State) and (self.began_elsewhere or nothing):
            incumbent.consider(start)
        best = incumbent.best
        assert best is not None
        if interrupts.pending:
            return best, Status.INTERRUPTED
        met = self.stop.change is None and best.relative_gap <= self.stop.tol
        return best, Status.CONVERGED if status is Status.STALLED and met else status


# the first that a certificate shows ends the search
ENDS_OF_SEARCH: Mapping[Status, Callable[[_Run, State, Gap], bool]] = {
    Status.DIVERGED: lambda run, state, gap: not np.isfinite(gap.primal),
    Status.ROUNDED: lambda run, state, gap: (
        run.stop.change is None and gap.is_rounding(run.stop.tol)
    ),
    Status.STALLED: lambda run, state, gap: run.is_stalled(state),
    Status.ITERATION_LIMIT: lambda run, state, gap: state.n_iter >= run.limit,
}


# fields of a waypoint that are attributes of the incumbent, and of the run
_OF_THE_INCUMBENT = ("best", "highest", "believed")
_NOTED = tuple(
    field.name
    for field in fields(Waypoint)
    if field.name not in ("state", "seconds", "passes", *_OF_THE_INCUMBENT)
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
        The reason for this solver, kept in the certificate.
    certify : callable
        ``certify(problem, point, scores=..., dual=..., tol=...)``, which computes gaps: that of
        `proxmargin.certificate`, or another where coefficients are not those of features.
    known : Gap, optional
        A certificate of another point, whose lower bound is used here too.
    resume : callable, optional
        Returns the `Waypoint` of an earlier run with the same other arguments, from which this run
        continues bit for bit; its argument is the stop of runs within the solver's steps.

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
    # overflow and NaN are detected by checks, not by warnings
    silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with interrupts, quiet_threads(problem.design.nbytes), silent:
        status, state = _loop(run, start, resume)
        best, status = run.concluded(status, start)
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
            if run.needs_certificate(state, status):
                state, status = run.certified(state, status)
            elif run.stop.callbacks and run.is_due(state):
                run.glimpsed(state)
            if status is not None:
                return status, state
            if interrupts.pending:
                raise KeyboardInterrupt
            state = solver.step(problem, state)
            status = run.limits(state)
    except NotFiniteError:
        return Status.CONVERGED if run.phase is Phase.POLISHING else Status.DIVERGED, state
    except Exception:
        if run.phase is Phase.POLISHING and not run.telling:  # the incumbent has converged
            return Status.CONVERGED, state
        raise
    except KeyboardInterrupt:
        if run.last_check != state.n_iter:
            run.check(state)
        return Status.INTERRUPTED, state


def _beginning(run: _Run, start: Point | State | None) -> tuple[Any, Status | None]:
    """The first state: the start, if it is one, or the solver's at that point."""
    if isinstance(start, State):
        return start, None
    problem, solver = run.problem, run.solver
    first = problem.origin() if start is None else problem.projected(start)
    state = solver.init(problem, first, run.within)
    run.began_elsewhere = not np.array_equal(solver.point(problem, state).coef, first.coef)
    return state, None


def _resumption(run: _Run, resume: Callable[[Stop], Waypoint]) -> tuple[Any, Status | None]:
    here = resume(run.within)
    return here.state, run.resumed(here)


def _nearer(nearest: PricedState | None, state: State) -> PricedState | None:
    """The state with the least gap of its own, for the problem itself."""
    if not (isinstance(state, PricedState) and state.final):
        return nearest
    return state if nearest is None or state.relative_gap <= nearest.relative_gap else nearest


def _require_suitable(solver: Solver[Any], problem: Problem) -> None:
    objection = solver.objection(problem)
    if objection:
        raise UnsuitableSolverError(f"solver {solver.name!r} cannot take this problem: {objection}")
