"""The first solver that a table of rules finds; where it gives up, the next one goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proxmargin.certificate import Gap, certify
from proxmargin.compiled.clock import clock
from proxmargin.minimize import Certify, Report, minimize
from proxmargin.outcome import Solution, Status
from proxmargin.pace import affordable
from proxmargin.problem import Point, Problem
from proxmargin.solver import Solver, State, UnsuitableSolverError
from proxmargin.solvers.rules import Rule
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["Choice", "Table", "solve"]

# a gap of so many times the rounding in it is the least that any solver can prove
LEAST_GAP = 4.0
# relative slope at which the conditions of optimality hold up to rounding
STATIONARY = 1e-13
# objective, relative to that of zero coefficients, that is zero in effect
ALL_BUT_ZERO = 1e-8


@dataclass(frozen=True)
class Table:
    """Rules, and the makers of the solvers that they name."""

    rules: tuple[Rule, ...]
    solvers: Mapping[str, Callable[..., Solver[Any]]]

    def choice(self, problem: Problem, deadline: float = np.inf) -> Choice:
        """The first rule that matches and whose solver takes the problem.

        Of solvers whose steps are short beside the time that is left until the ``deadline``, on
        the clock of `proxmargin.compiled.clock`, if there is one.

        Raises
        ------
        UnsuitableSolverError
            No solver takes the problem; the message says what the last one asked for lacks.
        """
        found = self.first(problem, deadline)
        if isinstance(found, str):
            found = self.first(problem)
        if isinstance(found, Choice):
            return found
        raise UnsuitableSolverError(f"no solver takes this problem: {found}")

    def first(self, problem: Problem, deadline: float = np.inf) -> Choice | str:
        """The choice by the first rule that fits, or why the solver of the last one does not."""
        objection = "there are no rules"
        for k, rule in enumerate(self.rules):
            if not rule.holds(problem):
                continue
            solver = self.solvers[rule.use]()
            refusal = solver.objection(problem)
            if refusal is None and not affordable(solver.work(problem), deadline):
                refusal = "a step of it would take longer than there is time"
            if refusal is None:
                others = tuple(other for other in self.rules[k + 1 :] if other.use != rule.use)
                return Choice(solver, rule.use, rule.because, replace(self, rules=others))
            objection = refusal
        return objection


@dataclass(frozen=True)
class Choice:
    """A solver and the reason for it; and the table to ask should it give up, if any."""

    solver: Solver[Any]
    name: str
    because: str
    others: Table | None = None

    def following(self, problem: Problem, deadline: float = np.inf) -> Choice | None:
        """What the next rule says whose solver takes the problem, with short steps."""
        found = self.others.first(problem, deadline) if self.others else None
        return found if isinstance(found, Choice) else None


def solve(
    problem: Problem,
    choice: Choice,
    *,
    stop: Stop,
    callbacks: Sequence[Callable[[Report], object]] = (),
    start: Point | State | None = None,
    certify: Certify = certify,
    minimize: Callable[..., Solution] = minimize,
) -> Solution:
    """`minimize` with the chosen solver; where it gives up, the next one that is of use goes on.

    It starts from the best point so far and has what is left of the limits. Iterations, passes
    and seconds add up, ``because`` tells the story, and the better of the results is returned.
    """
    stop = stop.started(clock(), ())

    def run(choice: Choice, stop: Stop, start: Any, told: Any, known: Gap | None) -> Solution:
        return minimize(
            problem,
            choice.solver,
            stop=stop,
            callbacks=told,
            start=start,
            because=choice.because,
            certify=certify,
            known=known,
        )

    solution = run(choice, stop, start, callbacks, None)
    while _gave_up(solution, stop):
        if _is_unprovable(problem, solution.gap):
            return _ended(solution, Status.UNPROVED)
        following = choice.following(problem, stop.deadline)
        if following is None:
            break
        best, done = solution.gap, solution.certificate
        left = None if stop.max_iter is None else max(stop.max_iter - done.n_iter, 0)
        told = [_told_of_both(callback, solution) for callback in callbacks]
        begin = best.point if np.isfinite(best.gap) else start
        try:
            further = run(following, replace(stop, max_iter=left), begin, told, best)
        except (ArithmeticError, MemoryError, ValueError) as error:  # what is found is kept
            return _noted(solution, f"{following.name!r} was to go on, and failed: {error}")
        solution, choice = _joined(solution, further), following
    return solution


def _gave_up(solution: Solution, stop: Stop) -> bool:
    """Whether a solver had no more progress to make where another one might.

    Or no more patience: a limit of its own is none of the caller's.
    """
    ended = solution.status in (Status.STALLED, Status.DIVERGED)
    ended |= solution.status is Status.ITERATION_LIMIT and stop.max_iter is None
    return ended and not solution.certificate.converged and not _is_rounding(solution.gap)


def _is_unprovable(problem: Problem, gap: Gap) -> bool:
    """Whether a smooth loss without a penalty is stationary but for rounding.

    Only slopes of exactly zero would prove a bound then. Where the loss is all but zero there may
    be no such point, but steps for ever towards it, and zero is a bound.
    """
    features = (problem.design.n_features, problem.loss.n_outputs)
    bare = problem.penalty.domain_scale(np.full(features, np.finfo(float).tiny)) == 0.0
    if not (bare and Trait.SMOOTH in problem.traits):
        return False
    if not gap.kkt_residual <= STATIONARY * problem.slope_size:
        return False
    return gap.primal > ALL_BUT_ZERO * problem.value(problem.null_point())


def _ended(solution: Solution, status: Status) -> Solution:
    certificate = replace(solution.certificate, stop_reason=status.value)
    return replace(solution, status=status, certificate=certificate)


def _is_rounding(gap: Gap) -> bool:
    size = 16 * float(np.finfo(float).eps) * abs(gap.primal)
    return gap.gap <= LEAST_GAP * (gap.rounding + size)


def _told_of_both(
    callback: Callable[[Report], object], before: Solution
) -> Callable[[Report], object]:
    """The callback, told of iterations, passes and seconds since the first solver began."""
    past = before.certificate

    def told(report: Report) -> object:
        return callback(
            replace(
                report,
                n_iter=report.n_iter + past.n_iter,
                n_passes=report.n_passes + past.n_passes,
                seconds=report.seconds + past.seconds,
            )
        )

    return told


def _noted(solution: Solution, remark: str) -> Solution:
    because = f"{solution.certificate.because}; {remark}"
    return replace(solution, certificate=replace(solution.certificate, because=because))


def _joined(first: Solution, second: Solution) -> Solution:
    """The better of two results, for the work of both; why it ended is what the second says."""
    better = second if second.gap.gap <= first.gap.gap else first
    one, two = first.certificate, second.certificate
    certificate = replace(
        better.certificate,
        stop_reason=two.stop_reason,
        n_iter=one.n_iter + two.n_iter,
        n_passes=one.n_passes + two.n_passes,
        seconds=one.seconds + two.seconds,
        because=(
            f"{one.because}; it stalled at a relative gap of {one.relative_gap:.1e}, "
            f"and {two.solver!r} went on: {two.because}"
        ),
    )
    return replace(better, status=second.status, certificate=certificate)
