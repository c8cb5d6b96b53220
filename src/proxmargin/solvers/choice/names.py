"""Which solver takes a problem by name or by the rules, and what goes on where one stalls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import signature
from typing import ClassVar

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING, TINY
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.certificates.rounding_terms import is_dual_rounding
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import NEGLIGIBLE_LOSS, null_point
from proxmargin.runtime.brief import shown
from proxmargin.runtime.threads import affordable
from proxmargin.runtime.types import Facts
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.augmented.ssnal import SemismoothNewton
from proxmargin.solvers.choice.rules import FALLBACK, FAPG, INTERIOR_POINT, Rule, rules_for
from proxmargin.solvers.dual.decomposition import BlockDecomposition
from proxmargin.solvers.dual.dual_coordinate_descent import DualCoordinateDescent
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.interior.small_box import SmallInteriorPoint
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.l1.class_newton import ClassNewton
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.l1.pass_newton import PassNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import InPlaceOf, Report, Solution, Status
from proxmargin.solvers.loop.run import Certify
from proxmargin.solvers.loop.solver import AnySolver, State, Stop, UnsuitableSolverError, require
from proxmargin.solvers.minimax.newton import MinimaxNewton
from proxmargin.solvers.papers.accelerated import (
    AcceleratedProximalGradient,
    FastProximalGradient,
    FastProximalGradientStar,
    Fista,
    ForwardBackward,
    GuaranteedProximalGradient,
)
from proxmargin.solvers.papers.iterated_svm import AlternatingDirections, Isvm1, Isvm2, Isvm3
from proxmargin.solvers.papers.primal_dual import LinearPrimalDual, PrimalDual
from proxmargin.solvers.papers.proximal_gradient import (
    CoordinateDescent,
    MulticlassProximalGradient,
    MulticlassTwoStage,
    ProximalGradient,
    TwoStage,
)
from proxmargin.solvers.programs.linear_program import LinearProgram
from proxmargin.solvers.ridge.newton import BallNewton, RidgeNewton
from proxmargin.solvers.shared.working_set import WorkingSet
from proxmargin.solvers.wrappers import CuttingPlanes, Relay

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
    solvers: Mapping[str, Callable[..., AnySolver]]
    tried: tuple[tuple[str, Facts], ...] = ()

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
                others = RuleTable(self.rules[k + 1 :], self.solvers, (*self.tried, known))
                return Choice(solver, rule.use, rule.because, others)
        return objection


@cache
def _made(make: Callable[..., AnySolver], **options: object) -> AnySolver:
    """A solver; as solvers are immutable, all problems share it."""
    return make(**options)


@dataclass(frozen=True)
class Choice:
    """A solver with the reason for it, and the rest of the table in case it stalls."""

    solver: AnySolver
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
    """`minimize` with the chosen solver; if it stalls, the next one in the table continues. That
    one starts from the best point and has the rest of the limits. Iterations, passes and seconds
    add up, ``because`` names every switch, and the better result is returned."""
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
    """Whether a smooth loss without a penalty is stationary up to rounding. Only a dual point with
    exactly ``X'q = 0`` would give a lower bound. Losses close to zero are excluded: they may have
    no minimiser, and zero is a bound."""
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
    """A callback, with iterations, passes and seconds of the solver before added. Its exceptions
    are appended to ``failures``."""

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
    """The better of two results, with the work of both. It ends as the second run did, unless that
    met the tolerance at a point that is not the better one: relative gaps of objectives below zero
    are not monotone in the gap."""
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


def _interior_point(max_stalled: int = 8, at_once: bool = False) -> AnySolver:
    """The interior point method, or its form for few dense entries, ``at_once`` in one step."""
    require(isinstance(at_once, bool | np.bool_), "at_once must be True or False", at_once)
    return SmallInteriorPoint() if at_once else InteriorPoint(max_stalled)


def _coordinate_descent(
    smallest: int = 64, forcing: float = 0.03, plain: bool = False
) -> AnySolver:
    """GCD on a working set, whose columns are copied to Fortran order. With ``plain`` sweeps over
    all features, as printed."""
    require(isinstance(plain, bool | np.bool_), "plain must be True or False", plain)
    repairing = WorkingSet(CoordinateDescent(), smallest, forcing, "gcd")
    return CoordinateDescent() if plain else repairing


def _working_set(smallest: int = 64, forcing: float = 0.03) -> AnySolver:
    """FAPG on a working set of features."""
    return WorkingSet(FastProximalGradient(), smallest, forcing)


# by the first method; after FBPD, Newton steps are only worth it close to the solution
_RELAYS = {
    "fapg": Relay(),
    "fbpd": Relay(PrimalDual(restarts=True, relaxation=1.8)),
}


def _relay(
    first: str = "fapg",
    near: float = 0.02,
    far_steps: float | None = None,
    working_set: bool = False,
    smallest: int = 64,
    forcing: float = 0.03,
) -> AnySolver:
    """FAPG or FBPD, then Newton steps on the dual."""
    known = isinstance(first, str) and first in _RELAYS
    require(known, f"first must be one of {', '.join(_RELAYS)}", first)
    relay = replace(_RELAYS[first], near=near)
    relay = relay if far_steps is None else replace(relay, far_steps=far_steps)
    return _on_a_working_set(relay, working_set, smallest, forcing)


def _newton_on_the_dual(
    max_stalled: int = 8,
    working_set: bool = False,
    smallest: int = 512,
    forcing: float = 0.03,
) -> AnySolver:
    """The augmented Lagrangian method. A working set starts with many features: on a few the
    classes overlap, where all features separate them, and the restricted problem then takes more
    Newton steps than the whole one."""
    solver = SemismoothNewton(max_stalled)
    return _on_a_working_set(solver, working_set, smallest, forcing)


def _on_a_working_set(
    solver: AnySolver, working_set: bool, smallest: int, forcing: float
) -> AnySolver:
    """The solver on a working set of features, under its own name, or on all of them."""
    is_flag = isinstance(working_set, bool | np.bool_)
    require(is_flag, "working_set must be True or False", working_set)
    restricted = WorkingSet(solver, smallest, forcing, solver.name)
    return restricted if working_set else solver


@dataclass(frozen=True)
class ByTheRules:
    """Solves a problem by the solver that the rules choose."""

    is_portable: ClassVar[bool] = True

    def __call__(self, problem: Problem, stop: Stop, start: Point) -> Solution:
        return solve(problem, choose(problem), stop=stop, start=start)


def _cutting_planes(max_stalled: int = 8) -> AnySolver:
    """Cutting planes; the problems without a budget are solved by the rules."""
    return CuttingPlanes(ByTheRules(), max_stalled)


SOLVERS: Mapping[str, Callable[..., AnySolver]] = {
    "b-pgh": ProximalGradient,
    "b-pgh-2": TwoStage,
    "m-pgh": MulticlassProximalGradient,
    "m-pgh-2": MulticlassTwoStage,
    "gcd": _coordinate_descent,
    "apg": AcceleratedProximalGradient,
    "fapg-guaranteed": GuaranteedProximalGradient,
    "fapg": FastProximalGradient,
    "fapg-star": FastProximalGradientStar,
    "fapg-ws": _working_set,
    "newton": ProximalNewton,
    "pass-newton": PassNewton,
    "chord-newton": ChordNewton,
    "isvm1": Isvm1,
    "isvm2": Isvm2,
    "isvm3": Isvm3,
    "admm": AlternatingDirections,
    "fbpd": PrimalDual,
    "fbpd-linear": LinearPrimalDual,
    "fista": Fista,
    "forward-backward": ForwardBackward,
    "cutting-planes": _cutting_planes,
    "ridge-newton": RidgeNewton,
    "ball-newton": BallNewton,
    "active-set": ActiveSet,
    "interior-point": _interior_point,
    "linear-program": LinearProgram,
    "multiplier-newton": MultiplierNewton,
    "ssnal": _newton_on_the_dual,
    "fapg-ssnal": _relay,
    "class-newton": ClassNewton,
    "decomposition": BlockDecomposition,
    "dual-coordinate-descent": DualCoordinateDescent,
    "minimax-newton": MinimaxNewton,
}

# names of earlier versions, and what to type now
RETIRED: Mapping[str, str] = {
    "hinge-newton": "solver='multiplier-newton'",
    "tall-newton": "solver='chord-newton', or 'newton'",
    "sampled-newton": "solver='ridge-newton'",
    "dual-newton": "solver='ridge-newton'",
    "b-pgh-fapg-star": "solver='b-pgh', or 'fapg-star'",
    "ball-interior-point": "solver='interior-point'",
    "net-interior-point": "solver='interior-point'",
    "fisher-secular": "solver='minimax-newton'",
    "probability-newton": "solver='minimax-newton'",
    "ssnal-ws": "solver='ssnal', solver_options={'working_set': True}",
    "fapg-ssnal-ws": "solver='fapg-ssnal', solver_options={'working_set': True}",
    "fbpd-ssnal": "solver='fapg-ssnal', solver_options={'first': 'fbpd'}",
}


def choose(problem: Problem, deadline: float = np.inf) -> Choice:
    """The first rule for a problem that matches and whose solver takes it.

    Solvers whose step would take too much of the time until the ``deadline``, on the clock of
    `proxmargin.compiled.clock`, are skipped unless there is no other. Raises UnsuitableSolverError,
    with the objection of the last one, if no solver takes the problem.
    """
    table = RuleTable(rules_for(problem), SOLVERS)
    found = table.first(problem, deadline)
    if isinstance(found, str) and deadline < np.inf:
        found = table.first(problem)
    if isinstance(found, str):
        raise UnsuitableSolverError(f"no solver takes this problem: {found}")
    return found


def suitable(problem: Problem) -> list[str]:
    """Names of the solvers that take ``problem``."""
    return [name for name, make in SOLVERS.items() if make().objection(problem) is None]


def named_solver(name: str, options: Facts, problem: Problem) -> AnySolver:
    """The solver called ``name`` with ``options``; errors say what would work instead."""
    if name in RETIRED:
        raise ValueError(f"there is no solver {name!r} any more: it is now {RETIRED[name]}")
    if name not in SOLVERS:
        raise ValueError(
            f"unknown solver {shown(name)}: for this problem there are 'auto', "
            f"{_listed(suitable(problem))}"
        )
    make = SOLVERS[name]
    allowed = list(signature(make).parameters)
    unknown = [option for option in options if option not in allowed]
    if unknown:
        raise ValueError(
            f"solver_options: {name!r} has no {_listed(unknown)}; it takes {_listed(allowed)}"
        )
    solver = make(**options)
    objection = solver.objection(problem)
    if objection:
        raise UnsuitableSolverError(
            f"solver {name!r} cannot take this problem: {objection}; these can: 'auto', "
            f"{_listed(suitable(problem))}"
        )
    return solver


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)
