"""The first solver that a table of rules finds; if it stalls, the next one continues."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING, TINY
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.certificates.rounding_terms import is_dual_rounding
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import NEGLIGIBLE_LOSS, null_point
from proxmargin.runtime.threads import affordable
from proxmargin.solvers.choice.rules import FALLBACK, FAPG, INTERIOR_POINT, Rule
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import InPlaceOf, Report, Solution, Status
from proxmargin.solvers.loop.run import Certify
from proxmargin.solvers.loop.solver import Solver, State
from proxmargin.solvers.loop.stopping import Stop

PROVABLE_GAP = 4.0  # gap over its rounding, up to which no solver can be expected to reduce it
STATIONARY = 1e-13  # relative gradient norm below which it is rounding
# gap over the cost of rounding its dual point to float64
FEW_ROUNDINGS = 20.0  # up to which another solver is unlikely to reduce it much
MANY_ROUNDINGS = 50.0  # up to which rounding explains the gap of the last solver
NEAR_GAP = 1e-2  # relative gap up to which rounding is what ended an interior point
# how a solver ended after which the next one goes on
ENDS = {
    Status.ITERATION_LIMIT: "it reached its iteration limit",
    Status.DIVERGED: "it diverged",
}


@dataclass(frozen=True)
class RuleTable:
    """Rules, the constructors of the solvers that they name, and the solvers to skip."""

    rules: tuple[Rule, ...]
    solvers: Mapping[str, Callable[..., Solver[Any]]]
    tried: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def first(self, problem: Problem, deadline: float = np.inf) -> Choice | str:
        """The choice by the first rule that fits, or the objection of the last solver."""
        objection = "there are no rules"
        for k, rule in enumerate(self.rules):
            known = rule.use, rule.options
            if known in self.tried or not (rule.when is None or rule.when(problem)):
                continue
            solver = _made(self.solvers[rule.use], **rule.options)
            refusal = solver.objection(problem)
            if refusal is not None:
                objection = refusal
            elif deadline < np.inf and not affordable(solver.work(problem), deadline):
                objection = "one step would take longer than the time that is left"
            else:
                others = replace(self, rules=self.rules[k + 1 :], tried=(*self.tried, known))
                return Choice(solver, rule.use, rule.because, others)
        return objection


@cache
def _made(make: Callable[..., Solver[Any]], **options: Any) -> Solver[Any]:
    """A solver; as solvers are immutable, all problems share it."""
    return make(**options)


@dataclass(frozen=True)
class Choice:
    """A solver with the reason for it, and the rest of the table in case it stalls."""

    solver: Solver[Any]
    name: str
    because: str
    others: RuleTable | None = None

    def following(self, problem: Problem, deadline: float = np.inf) -> Choice | None:
        """The choice by the next rule whose solver takes the problem in the remaining time."""
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
    """`minimize` with the chosen solver; if it stalls, the next one in the table continues.

    That one starts from the best point and has the rest of the limits. Iterations, passes and
    seconds add up, ``because`` names every switch, and the better result is returned.
    """
    stop = stop.started(clock(), ())
    solution = minimize(
        problem,
        choice.solver,
        stop=stop,
        callbacks=callbacks,
        start=start,
        because=choice.because,
        certify=certify,
    )
    while not solution.certificate.converged and _gave_up(solution, stop):
        best, done = solution.gap, solution.certificate
        if _is_unprovable(problem, best):
            return _with_status(solution, Status.UNPROVED)
        following = choice.following(problem, stop.deadline)
        if following and done.relative_gap <= NEAR_GAP and _is_hopeless(problem, following):
            following = None
        roundings = MANY_ROUNDINGS if following is None else FEW_ROUNDINGS
        if is_dual_rounding(problem, best, stop.tol, roundings):
            return _with_status(solution, Status.UNBALANCED)
        if following is None:
            return solution
        failures: list[Exception] = []
        left = None if stop.max_iter is None else max(stop.max_iter - done.n_iter, 0)
        try:
            further = minimize(
                problem,
                following.solver,
                stop=stop.further(left),
                callbacks=[_ReportingBoth(each, solution, failures) for each in callbacks],
                start=best.point if np.isfinite(best.gap) else start,
                because=following.because,
                certify=certify,
                known=best,
            )
        except (ArithmeticError, MemoryError, ValueError) as error:  # return the result so far
            if any(error is failure for failure in failures):
                raise
            because = f"{done.because}; {following.name!r} was to go on, and failed: {error}"
            return replace(solution, certificate=replace(done, because=because))
        solution, choice = better_with_all_work(solution, further), following
    return solution


def _gave_up(solution: Solution, stop: Stop) -> bool:
    """Whether a solver stalled, diverged or met its own iteration limit, above rounding."""
    ended = solution.status in (Status.STALLED, Status.DIVERGED)
    ended |= solution.status is Status.ITERATION_LIMIT and stop.max_iter is None
    gap = solution.gap
    return ended and not gap.gap <= PROVABLE_GAP * (
        gap.rounding + OBJECTIVE_ROUNDING * abs(gap.primal)
    )


def _is_hopeless(problem: Problem, following: Choice) -> bool:
    """Whether a first-order method would follow an interior point, which stalls at rounding."""
    tried = following.others.tried if following.others else ()
    interior = any(use == INTERIOR_POINT.use for use, _ in tried)
    first_order = any(following.name == rule.use for rule in (FAPG, *FALLBACK))
    return interior and first_order and Trait.BALL not in problem.traits


def _is_unprovable(problem: Problem, gap: Gap) -> bool:
    """Whether a smooth loss without a penalty is stationary up to rounding.

    Only a dual point with exactly ``X'q = 0`` would give a lower bound. Losses close to zero are
    excluded: they may have no minimiser, and zero is a bound.
    """
    features = (problem.design.n_features, problem.loss.n_outputs)
    bare = problem.penalty.domain_scale(np.full(features, TINY)) == 0.0
    if problem.unpenalised.size or not (bare and Trait.SMOOTH in problem.traits):
        return False
    if not gap.kkt_residual <= STATIONARY * problem.slope_size:
        return False
    return gap.primal > NEGLIGIBLE_LOSS * problem.value(null_point(problem))


def _with_status(solution: Solution, status: Status) -> Solution:
    certificate = replace(solution.certificate, stop_reason=status.value)
    return replace(solution, status=status, certificate=certificate)


@dataclass(frozen=True)
class _ReportingBoth(InPlaceOf):
    """A callback, with iterations, passes and seconds of the solver before added.

    Its exceptions are appended to ``failures``.
    """

    before: Solution
    failures: list[Exception]

    def __call__(self, report: Report) -> object:
        past = self.before.certificate
        whole = replace(
            report,
            n_iter=report.n_iter + past.n_iter,
            n_passes=report.n_passes + past.n_passes,
            seconds=report.seconds + past.seconds,
        )
        try:
            return self.callback(whole)
        except Exception as error:
            self.failures.append(error)
            raise


def better_with_all_work(first: Solution, second: Solution) -> Solution:
    """The better of two results, with the work of both.

    It ends as the second run did, unless that met the tolerance at a point that is not the better
    one: relative gaps of objectives below zero are not monotone in the gap.
    """
    better = second if second.gap.gap <= first.gap.gap else first
    last = first if second.status is Status.CONVERGED and better is first else second
    one, two = first.certificate, second.certificate
    certificate = replace(
        better.certificate,
        stop_reason=last.certificate.stop_reason,
        n_iter=one.n_iter + two.n_iter,
        n_passes=one.n_passes + two.n_passes,
        seconds=one.seconds + two.seconds,
        because=(
            f"{one.because}; {ENDS.get(first.status, 'it stalled')} at a relative gap of "
            f"{one.relative_gap:.1e}, "
            f"and {two.solver!r} went on: {two.because}"
        ),
    )
    return replace(better, status=last.status, certificate=certificate)
