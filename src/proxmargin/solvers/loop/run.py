"""The bookkeeping of a run: limits, reports, the best point, when to certify, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from time import perf_counter
from typing import Any
from weakref import proxy

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.certificates.rounding_terms import is_dual_rounding
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.interrupts import interrupts
from proxmargin.solvers.loop.report import (
    Changed,
    Phase,
    Report,
    RunCheckpoint,
    Status,
    interval_of,
)
from proxmargin.solvers.loop.solver import SHARP_FRACTION, AnySolver, GapState, State, Stop

# ratio of gaps far below the tolerance above which a polishing step has gained nothing but rounding
POLISHED_FACTOR = 0.5
# a solver stalls if its best gap has not made progress in the last half of its iterations, nor the
# solver by what it measures itself (`State.moved_at`)
STALL_FACTOR = 0.99  # ratio of gaps that counts as progress
STALL_ITERATIONS = 10_000  # fewest iterations without progress
# fewer where rounding, which no step reduces, is within two orders of magnitude of the gap
ROUNDED_SHARE = 0.02  # of the gap
ROUNDED_ITERATIONS = 1_000
# earlier if the gap is explained by the rounding of the dual point to float64
IDLE_ITERATIONS = 100
DUAL_ROUNDINGS = 8.0  # gap over the cost of that rounding, below which steps improve it by chance
RESERVED = 2.0  # time kept for the last certificate, over the latest one: sums may be compensated
# multiply-adds in the time of the bookkeeping around a product with small data: some 50 us
PRODUCT_WORK = 5e4
OUT_OF_TIME = (Status.TIME_LIMIT, Status.WORK_LIMIT)


class Limits:
    """Iterations, time and work that a run may take, and has taken."""

    def __init__(self, problem: Problem, solver: AnySolver, stop: Stop) -> None:
        design = problem.design
        self.stop, self.counter = stop, design.counter
        self.iterations = stop.iterations(solver.max_iter)
        self.product = design.n_samples * design.n_features * problem.loss.n_outputs
        self.checking = 0.0  # seconds that the latest certificate took
        self.started, self.first_pass = perf_counter(), self.counter.passes
        self.begun = stop.effort.taken - self.own_work

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    @property
    def passes(self) -> float:
        return self.counter.passes - self.first_pass

    @property
    def own_work(self) -> float:
        """Multiply-adds of this thread with the data, those of other runs included."""
        return self.counter.passes * self.product + self.counter.products * PRODUCT_WORK

    @contextmanager
    def counting(self, work: float) -> Iterator[None]:
        """Count so much work for what is done within, whatever that takes."""
        before = self.own_work
        yield
        self.begun += work - (self.own_work - before)

    def resume(self, here: RunCheckpoint) -> None:
        """Count what was spent until a checkpoint."""
        self.started -= here.seconds
        self.first_pass -= here.passes
        self.stop.effort.taken = here.work
        self.begun = here.work - self.own_work

    def out_of_time(self) -> Status | None:
        """The limit that leaves no more than the certificate that ends the run, if any."""
        stop, effort = self.stop, self.stop.effort
        if stop.deadline < math.inf and stop.is_late(RESERVED * self.checking):
            return Status.TIME_LIMIT
        # runs inside a step add to it too
        effort.taken = max(effort.taken, self.begun + self.own_work)
        return Status.WORK_LIMIT if effort.taken >= stop.most_work else None


class Reporter:
    """Calls the callbacks of a run."""

    def __init__(self, run: Run) -> None:
        self.run: Run = proxy(run)  # no cycle, which would keep the states of runs that ended
        self.callbacks = run.stop.callbacks
        self.intervals = list(map(interval_of, self.callbacks))
        self.is_calling = False  # an error that a callback raises is the caller's

    @property
    def within(self) -> Stop:
        """The limits of runs inside a step, which tell callbacks that they are."""
        inner = tuple(Changed(callback, {"inner": True}) for callback in self.callbacks)
        return replace(self.run.stop, callbacks=inner)

    def is_asked_for(self, state: State) -> bool:
        """Whether a callback gets a report although the run needs no certificate."""
        asked = [interval for interval in self.intervals if interval is not None]
        return self.run.is_due(state) or any(state.n_iter % interval == 0 for interval in asked)

    def report(self, state: State, gap: Gap, here: RunCheckpoint, regular: bool = True) -> None:
        """Call the callbacks; those that ask for no interval if the report is ``regular``."""
        limits, solver = self.run.limits, self.run.solver
        tol, numbers = self.run.stop.tol, solver.measures(state)
        self.is_calling = True
        with limits.counting(0.0):
            for callback, interval in zip(self.callbacks, self.intervals, strict=True):
                if interval is not None or regular:
                    spent = state.n_iter, limits.passes, limits.seconds
                    callback(Report(*spent, gap, state, solver.name, tol, here, numbers))
        self.is_calling = False

    def report_early(self, state: State) -> None:
        """Report a certificate that does not change the run, nor count in its work."""
        run = self.run
        regular = run.is_due(state)
        with run.limits.counting(0.0):
            gap = run.incumbent.preview(state)
        self.report(state, gap, run.checkpoint(state), regular)
        if regular:
            run.last_told = state.n_iter


class Run:
    """One minimisation: its limits, reports, phase, incumbent and stall counter."""

    def __init__(
        self,
        problem: Problem,
        solver: AnySolver,
        stop: Stop,
        certify: Certify,
        known: Gap | None,
    ) -> None:
        self.problem, self.solver, self.stop = problem, solver, stop
        self.limits = Limits(problem, solver, stop)
        self.reporter = Reporter(self) if stop.callbacks else None
        self.incumbent = Incumbent(problem, solver, stop.tol, certify, known)
        self.claimed: Gap | None = None  # the gap of a claim that ended the run
        self.phase = Phase.SEARCHING
        self.began_elsewhere = False
        self.last_progress = 0
        self.last_check = self.last_told = -1
        self.nearest: GapState | None = None
        self.settled = 0  # iterations in a row that met the rule of `Stop`
        self.polished = 0

    def checkpoint(self, state: State) -> RunCheckpoint:
        """The state of the run, for a checkpoint."""
        noted = {name: getattr(self, name) for name in _NOTED}
        noted |= {name: getattr(self.incumbent, name) for name in _OF_THE_INCUMBENT}
        limits, work = self.limits, self.stop.effort.taken
        return RunCheckpoint(
            state, seconds=limits.seconds, passes=limits.passes, work=work, **noted
        )

    def resumed(self, here: RunCheckpoint) -> Status | None:
        """Restore a checkpoint; returns RULE_MET if it had met the rule of `Stop`, else None."""
        for name in _NOTED:
            setattr(self, name, getattr(here, name))
        for name in _OF_THE_INCUMBENT:
            setattr(self.incumbent, name, getattr(here, name))
        self.limits.resume(here)
        return self._rule_status()

    def is_proved(self, state: State) -> bool:
        """Whether a first claim to be a solution is proved, where nothing else hangs on the end of
        the run: no report, rule, polishing step or earlier bound."""
        solver, stop, certifies = self.solver, self.stop, self.incumbent.certify
        others = self.reporter or stop.rule or solver.polishing or self.incumbent.known
        if others or self.last_check >= 0 or state.interrupted or not solver.computes_gap:
            return False
        exact = solver.exact_scores or certifies is not certify
        scores = solver.scores(self.problem, state) if exact else None
        point, dual = solver.point(self.problem, state), solver.dual(self.problem, state)
        gap = certifies(self.problem, point, scores=scores, dual=dual, tol=stop.tol)
        if gap.relative_gap <= stop.tol and not interrupts.pending:
            self.claimed = gap
        return self.claimed is not None

    # -- when to certify

    def is_due(self, state: State) -> bool:
        told = max(self.last_check, self.last_told)
        return told < 0 or state.n_iter - max(told, 0) >= self.solver.check_every

    def needs_certificate(self, state: State, status: Status | None) -> bool:
        """Whether the run itself needs a certificate now; reports aside."""
        if self.phase is Phase.POLISHING or state.claims or self._ends(state, status):
            return True
        return not self.solver.computes_gap and self.is_due(state)

    def _ends(self, state: State, status: Status | None) -> bool:
        """Whether the run ends after this certificate."""
        return status is not None or state.finished or state.n_iter >= self.limits.iterations

    def certified(self, state: State, status: Status | None) -> tuple[Any, Status | None]:
        """The state after a certificate, and the status that ends the run, if one does."""
        here = None if self.reporter is None else self.checkpoint(state)
        ends = self._ends(state, status)
        if ends and self.nearest is not None and self.nearest is not state:
            self.check(self.nearest)  # may meet the run's tolerance, looser than the solver's
        gap = self.check(state)
        self.last_check = state.n_iter
        if self.reporter is not None and here is not None:
            self.reporter.report(state, gap, here)
        del here  # frees the gaps that were the best until now
        if status not in OUT_OF_TIME:  # `observe` may take time to prepare the next step
            state = self.solver.observe(self.problem, state, gap)
        status = self.verdict(state, self.incumbent.best or gap if ends else gap) or status
        return state, Status.INTERRUPTED if state.interrupted else status

    def check(self, state: State) -> Gap:
        began = clock()
        with self.limits.counting(3 * PRODUCT_WORK):  # whatever it can reuse of reports before
            gap = self.incumbent.check(state)
        self.limits.checking = clock() - began
        if not self.incumbent.fall >= STALL_FACTOR:
            self.last_progress = state.n_iter
        return gap

    # -- transitions

    def verdict(self, state: State, gap: Gap) -> Status | None:
        """The status that ends the run after a certificate, or None to continue (`Phase`)."""
        if self.stop.rule is None and gap.relative_gap <= self.stop.tol:
            best = self.incumbent.best
            # unless this point has no margin although a better one has
            if best is None or gap.is_negative or not best.is_negative:
                self.phase = Phase.POLISHING
        if self.phase is Phase.POLISHING:
            return None if self._polishes(state, gap) else Status.CONVERGED
        return self._end_of_search(state, gap)

    def _end_of_search(self, state: State, gap: Gap) -> Status | None:
        if not math.isfinite(gap.primal):
            return Status.DIVERGED
        if self.stop.rule is None:
            if gap.is_rounding(self.stop.tol):
                return Status.ROUNDED
            # the gap has stopped falling and is explained by rounding of the dual point
            idle = state.n_iter - self.last_progress >= IDLE_ITERATIONS or state.finished
            best = self.incumbent.best or gap
            if idle and is_dual_rounding(self.problem, best, self.stop.tol, DUAL_ROUNDINGS):
                return Status.UNBALANCED
        if self.is_stalled(state):
            return Status.STALLED
        if state.n_iter >= self.limits.iterations:
            return Status.ITERATION_LIMIT
        return self.limits.out_of_time() if state.n_iter > 0 else None  # one iteration at least

    def is_stalled(self, state: State) -> bool:
        idle = state.n_iter - max(self.last_progress, state.moved_at)
        best = self.incumbent.best
        rounded = best is not None and best.rounding >= ROUNDED_SHARE * best.gap
        patience = ROUNDED_ITERATIONS if rounded else max(STALL_ITERATIONS, state.n_iter // 2)
        return state.finished or (self.stop.rule is None and idle > patience)

    def _polishes(self, state: State, gap: Gap) -> bool:
        """Whether to take one more polishing step, which is counted; a start is not polished."""
        most = self.solver.polishing_of(self.problem) if self.stop.polish else 0
        if self.polished >= most or state.n_iter == 0 or state.exact or self._ends(state, None):
            return False
        sharp = gap.relative_gap <= SHARP_FRACTION * self.stop.tol
        settled = sharp and self.polished > 0 and not self.incumbent.fall < POLISHED_FACTOR
        if settled or not math.isfinite(gap.primal) or self.limits.out_of_time() is not None:
            return False
        self.polished += 1
        return True

    def ended(self, state: State) -> Status | None:
        """The status that ends the run after any iteration, or None to go on."""
        if state.interrupted:
            return Status.INTERRUPTED
        rule = self.stop.rule
        if rule is not None:
            self.settled = self.settled + 1 if rule.met(state) else 0
            if self._rule_status():
                return Status.RULE_MET
        if state.n_iter >= self.limits.iterations:
            return Status.ITERATION_LIMIT
        return self.limits.out_of_time()

    def _rule_status(self) -> Status | None:
        rule = self.stop.rule
        return Status.RULE_MET if rule is not None and self.settled >= rule.times else None

    def concluded(self, status: Status, start: Point | State | None) -> tuple[Gap, Status]:
        """The best point and the status of the run. A run that failed returns nothing worse than
        its start, even if the solver began elsewhere."""
        incumbent = self.incumbent
        if status is Status.DATA_LOST and incumbent.best is not None:
            return incumbent.best, status  # certified when the data were there
        if incumbent.uses_updated_scores:
            incumbent.confirm()
        failed = status not in (Status.CONVERGED, Status.RULE_MET)
        nothing = incumbent.best is None or not incumbent.best.is_finite
        if failed and not isinstance(start, State) and (self.began_elsewhere or nothing):
            incumbent.consider(start)
        elif failed and self.problem.loss.largest_offset > 0:
            incumbent.consider(None)  # the offset may fit the data alone, so that zero is best
        best = incumbent.best
        assert best is not None
        if interrupts.pending or status is Status.INTERRUPTED:
            return best, Status.INTERRUPTED
        if self.stop.rule is None:  # `confirm` and `consider` may have changed the gap
            met = best.relative_gap <= self.stop.tol
            unmet = Status.STALLED if status is Status.CONVERGED else status
            status = Status.CONVERGED if met else unmet
        return best, status


# fields of a checkpoint that are attributes of the incumbent; and those of the run
_OF_THE_INCUMBENT = ("best", "highest", "uses_updated_scores")
_NOTED = tuple(
    field.name
    for field in fields(RunCheckpoint)
    if field.name not in ("state", "seconds", "passes", "work", *_OF_THE_INCUMBENT)
)


Certify = Callable[..., Gap]
"""``certify(problem, point, scores=..., dual=..., tol=...)``; scores and dual may be None."""

TIE = 0.01  # relative difference of two gaps below which both may consist of rounding bounds
RESIDUAL_RATIO = 1e-5  # ratio of KKT residuals below which they decide between such gaps


class Incumbent:
    """The best point so far, against the highest lower bound so far. ``uses_updated_scores``: the
    best point was certified with scores that the solver updates, which may have drifted from the
    coefficients; `confirm` recomputes them. ``fall`` is the best gap over the one before, at the
    last `check`; 1 if the point was not better."""

    def __init__(
        self, problem: Problem, solver: AnySolver, tol: float, certify: Certify, known: Gap | None
    ) -> None:
        self.problem, self.solver, self.tol, self.certify = problem, solver, tol, certify
        self.known = self.highest = known
        self.best: Gap | None = None
        self.uses_updated_scores = False
        self.fall = 1.0

    def check(self, state: State) -> Gap:
        """Certify the point of a state, and keep it if it is the best."""
        problem, solver = self.problem, self.solver
        point, scores = solver.point(problem, state), solver.scores(problem, state)
        dual = solver.dual(problem, state)
        gap = self.certify(problem, point, scores=scores, dual=dual, tol=self.tol)
        updated = scores is not None and not self.solver.exact_scores
        uses_updated_scores = updated and self.certify is certify
        if uses_updated_scores and gap.relative_gap <= self.tol:
            gap, uses_updated_scores = certify(self.problem, point, dual=dual, tol=self.tol), False
        if math.isfinite(gap.dual) and (self.highest is None or gap.dual >= self.highest.dual):
            self.highest = gap
        gap = tightened(gap, self.highest)
        if self.best is not None:
            self.best = tightened(self.best, self.highest)
        self._keep(gap, uses_updated_scores)
        return gap

    def preview(self, state: State) -> Gap:
        """A certificate for callbacks only; it does not change the incumbent."""
        problem, solver = self.problem, self.solver
        parts = {"scores": solver.scores(problem, state), "dual": solver.dual(problem, state)}
        gap = self.certify(problem, solver.point(problem, state), **parts)
        return tightened(gap, self.highest)

    def confirm(self) -> None:
        """Certify the best point with recomputed scores, as the solver's were used."""
        best = self.best
        assert best is not None
        # if it is zero, as without a penalty, no feature would violate its condition
        dual = best.dual_point if best.dual_point.any() else None
        gap = certify(self.problem, best.point, dual=dual, tol=self.tol)
        self.best, self.uses_updated_scores = tightened(gap, self.known), False
        self.highest = self.best if math.isfinite(self.best.dual) else self.known

    def consider(self, start: Point | None) -> None:
        """Keep the start (zero by default) if it is better than all later points."""
        first = self.problem.origin() if start is None else self.problem.projected(start)
        scores = None
        if not first.coef.any():
            scores = np.tile(first.intercept, (self.problem.design.n_samples, 1))
        gap = self.certify(self.problem, first, scores=scores, tol=self.tol)
        self._keep(tightened(gap, self.highest), uses_updated_scores=False)

    def _keep(self, gap: Gap, uses_updated_scores: bool) -> None:
        self.fall = 1.0
        if is_better(gap, self.best):
            if self.best is None:
                self.fall = 0.0
            elif self.best.gap > 0:  # both are zero otherwise, and residuals decide between points
                self.fall = gap.gap / self.best.gap
            self.best, self.uses_updated_scores = gap, uses_updated_scores


def is_better(gap: Gap, best: Gap | None) -> bool:
    """Whether a gap replaces the best one; it does if it is the first one of a finite point.

    Gaps within 1 % of each other may consist of the bound on rounding, and are compared without it.
    Within an ulp of the objective the KKT residual decides, if it differs by orders of magnitude:
    an error e of the coefficients changes the residual by O(e), but the gap only by O(e^2).
    """
    if best is None or not best.is_finite:
        return best is None or gap.is_finite
    if not gap.is_finite or abs(gap.gap - best.gap) > TIE * best.gap:
        return gap.is_finite and gap.gap < best.gap
    fall = (best.gap - best.rounding) - (gap.gap - gap.rounding)
    if abs(fall) <= np.spacing(abs(gap.primal)):
        if gap.kkt_residual < RESIDUAL_RATIO * best.kkt_residual:
            return True
        if best.kkt_residual < RESIDUAL_RATIO * gap.kkt_residual:
            return False
    return fall > 0.0


def tightened(gap: Gap, highest: Gap | None) -> Gap:
    """The gap to the highest lower bound so far, if that is smaller; rounding included."""
    if highest is None:
        return gap
    rounding = gap.rounding + SUM_ROUNDING * abs(gap.primal)
    against = max(gap.primal - highest.dual, 0.0) + rounding
    if against >= gap.gap:
        return gap
    return replace(gap, gap=against, dual_point=highest.dual_point)
