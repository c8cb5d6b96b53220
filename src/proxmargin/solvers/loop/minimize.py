"""The only loop: step, check, report, stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.data.datasets import DataLostError
from proxmargin.functions.projections import NotFiniteError
from proxmargin.optimality.certificates.certificate import Certificate, Gap
from proxmargin.optimality.certificates.certify import certify as certify_problem
from proxmargin.optimality.certificates.certify import gap_to_zero
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import quiet_threads
from proxmargin.solvers.loop.report import Phase, Report, RunCheckpoint, Solution, Status
from proxmargin.solvers.loop.run import Certify, Run
from proxmargin.solvers.loop.solver import (
    RULES,
    AnySolver,
    GapState,
    State,
    Stop,
    UnsuitableSolverError,
)


def minimize(
    problem: Problem,
    solver: AnySolver,
    *,
    stop: Stop | None = None,
    callbacks: Sequence[Callable[[Report], object]] = (),
    start: Point | State | None = None,
    because: str = "",
    certify: Certify = certify_problem,
    known: Gap | None = None,
    resume: Callable[[Stop], RunCheckpoint] | None = None,
) -> Solution:
    """Run ``solver`` on ``problem`` until ``stop``; certify the result whatever happened, an
    interruption (Ctrl-C) too, with `Status.INTERRUPTED`.

    Callbacks are called with a `Report` after each certificate. It starts from a point (default:
    zero), or resumes from a state; or ``resume`` returns the `RunCheckpoint` of an earlier run with
    the same other arguments, for the `Stop` of runs inside the solver's steps, from which this run
    continues bit for bit. ``because``, the reason for this solver, is kept in the certificate.

    ``certify(problem, point, scores=..., dual=..., tol=...)`` computes gaps; kernel models, with a
    coefficient a sample, have another one than the default. ``known`` is a certificate of another
    point, whose lower bound is used here too.

    Raises UnsuitableSolverError: the solver cannot take the problem (`Solver.objection`), or does
    not stop by the rule of ``stop``.
    """
    stop, own = stop or Stop(), certify is certify_problem
    require_suitable(solver, problem, stop)
    run = Run(problem, solver, stop.started(clock(), callbacks), certify, known)
    # checks detect overflow and NaN, so warnings are not needed
    silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
    with interrupts, quiet_threads(solver.product_bytes(problem)), silent:
        status, state = _loop(run, start, resume)
        best, status = (run.claimed, status) if run.claimed else run.concluded(status, start)
        stated = best
        # the dual point zero may prove more, as losses and penalties are >= 0; runs go on without
        # it, as its gap falls with the objective alone
        above = best.dual < 0.0 <= best.primal and not problem.loss.is_homogeneous
        if above and own and status is not Status.DATA_LOST:
            stated = gap_to_zero(problem, best)
    converged = bool(stated.relative_gap <= stop.tol)
    # a signal may have come during the last step; what it ends is what would come next
    done = converged and status is Status.INTERRUPTED
    certificate = Certificate(
        primal=stated.primal,
        dual=stated.dual,
        gap=stated.gap,
        relative_gap=stated.relative_gap,
        kkt_residual=best.kkt_residual,
        converged=converged,
        stop_reason=(Status.CONVERGED if done else status).value,
        n_iter=state.n_iter,
        n_passes=run.limits.passes,
        seconds=run.limits.seconds,
        solver=solver.name,
        because=because,
    )
    return Solution(best.point, best, status, certificate, state)


def _loop(
    run: Run, start: Point | State | None, resume: Callable[[Stop], RunCheckpoint] | None
) -> tuple[Status, Any]:
    problem, solver, status = run.problem, run.solver, None
    reporter = run.reporter
    within = run.stop if reporter is None else reporter.within
    if resume is not None:
        here = resume(within)
        state, status = here.state, run.resumed(here)
    elif isinstance(start, State):
        state = start
    else:
        first = problem.origin() if start is None else problem.projected(start)
        state = solver.init(problem, first, within)
        begun = solver.point(problem, state).coef
        run.began_elsewhere = begun is not first.coef and not np.array_equal(begun, first.coef)
        del first  # frees its coefficients
    del start
    try:
        while True:
            if isinstance(state, GapState) and state.final:  # a gap of the problem itself
                known = run.nearest
                if known is None or state.relative_gap <= known.relative_gap:
                    run.nearest = state
            if (state.claims or state.finished) and run.is_proved(state):
                return Status.CONVERGED, state
            if run.needs_certificate(state, status):
                state, status = run.certified(state, status)
            elif reporter is not None and reporter.is_asked_for(state):
                reporter.report_early(state)
            if status is not None:
                return status, state
            if interrupts.pending:
                raise KeyboardInterrupt
            state = solver.step(problem, state)
            status = run.ended(state)
    except DataLostError:
        if run.incumbent.best is None:  # nothing has been certified
            raise
        return Status.DATA_LOST, state
    except NotFiniteError:
        return Status.CONVERGED if run.phase is Phase.POLISHING else Status.DIVERGED, state
    except Exception:
        of_a_callback = reporter is not None and reporter.is_calling
        if run.phase is Phase.POLISHING and not of_a_callback:  # it has converged
            return Status.CONVERGED, state
        raise
    except KeyboardInterrupt:
        if run.last_check != state.n_iter:
            run.check(state)
        return Status.INTERRUPTED, state


def require_suitable(solver: AnySolver, problem: Problem, stop: Stop) -> None:
    """Raise UnsuitableSolverError as `minimize` does."""
    objection = solver.objection(problem)
    if objection:
        raise UnsuitableSolverError(f"solver {solver.name!r} cannot take this problem: {objection}")
    if stop.rule is not None and not solver.stops_by(stop.rule.name):
        able = ", ".join(map(repr, ["gap", *filter(solver.stops_by, RULES)]))
        raise UnsuitableSolverError(
            f"solver {solver.name!r} does not stop by {stop.rule.name!r}, only by {able}"
        )
