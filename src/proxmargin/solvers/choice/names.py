"""The names of the solvers, and the choice of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.brief import shown
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.augmented.ssnal import SemismoothNewton
from proxmargin.solvers.choice.fallback import Choice, RuleTable, solve
from proxmargin.solvers.choice.rules import rules_for
from proxmargin.solvers.dual.decomposition import BlockDecomposition
from proxmargin.solvers.dual.dual_coordinate_descent import DualCoordinateDescent
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.l1.class_newton import ClassNewton
from proxmargin.solvers.l1.newton import ProximalNewton
from proxmargin.solvers.l1.pass_newton import PassNewton
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Solver, UnsuitableSolverError, require
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.minimax.fisher_secular import FisherSecular
from proxmargin.solvers.minimax.probability_newton import ProbabilityNewton
from proxmargin.solvers.papers.accelerated import (
    AcceleratedProximalGradient,
    FastProximalGradient,
    FastProximalGradientStar,
    GuaranteedProximalGradient,
)
from proxmargin.solvers.papers.admm import AlternatingDirections
from proxmargin.solvers.papers.iterated_svm import Isvm1, Isvm2, Isvm3
from proxmargin.solvers.papers.primal_dual import PrimalDual
from proxmargin.solvers.papers.proximal_gradient import (
    CoordinateDescent,
    MulticlassProximalGradient,
    MulticlassTwoStage,
    ProximalGradient,
    TwoStage,
)
from proxmargin.solvers.programs.linear_program import LinearProgram
from proxmargin.solvers.ridge.ball_newton import BallNewton
from proxmargin.solvers.ridge.ridge_newton import RidgeNewton
from proxmargin.solvers.shared.working_set import WorkingSet
from proxmargin.solvers.wrappers.cutting_planes import CuttingPlanes
from proxmargin.solvers.wrappers.relay import Relay


def _coordinate_descent(
    smallest: int = 64, forcing: float = 0.03, plain: bool = False
) -> Solver[Any]:
    """GCD on a working set, whose columns are copied to Fortran order.

    With ``plain`` sweeps over all features, as printed.
    """
    require(isinstance(plain, bool | np.bool_), "plain must be True or False", plain)
    repairing = WorkingSet(CoordinateDescent(), smallest, forcing, "gcd")
    return CoordinateDescent() if plain else repairing


def _working_set(smallest: int = 64, forcing: float = 0.03) -> Solver[Any]:
    """FAPG on a working set of features."""
    return WorkingSet(FastProximalGradient(), smallest, forcing)


# by the first method; after FBPD, Newton steps are only worth it close to the solution
_RELAYS = {
    "fapg": Relay(),
    "fbpd": Relay(PrimalDual(restarts=True, relaxation=1.8), far_steps=math.inf),
}


def _relay(
    first: str = "fapg",
    near: float = 0.02,
    far_steps: float | None = None,
    working_set: bool = False,
    smallest: int = 64,
    forcing: float = 0.03,
) -> Solver[Any]:
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
) -> Solver[Any]:
    """The augmented Lagrangian method.

    A working set starts with many features: on a few the classes overlap, where all features
    separate them, and the restricted problem then takes more Newton steps than the whole one.
    """
    solver = SemismoothNewton(max_stalled)
    return _on_a_working_set(solver, working_set, smallest, forcing)


def _on_a_working_set(
    solver: Solver[Any], working_set: bool, smallest: int, forcing: float
) -> Solver[Any]:
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


def _cutting_planes(max_stalled: int = 8) -> Solver[Any]:
    """Cutting planes; the problems without a budget are solved by the rules."""
    return CuttingPlanes(ByTheRules(), max_stalled)


SOLVERS: Mapping[str, Callable[..., Solver[Any]]] = {
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
    "cutting-planes": _cutting_planes,
    "ridge-newton": RidgeNewton,
    "ball-newton": BallNewton,
    "active-set": ActiveSet,
    "interior-point": InteriorPoint,
    "linear-program": LinearProgram,
    "multiplier-newton": MultiplierNewton,
    "ssnal": _newton_on_the_dual,
    "fapg-ssnal": _relay,
    "class-newton": ClassNewton,
    "decomposition": BlockDecomposition,
    "dual-coordinate-descent": DualCoordinateDescent,
    "fisher-secular": FisherSecular,
    "probability-newton": ProbabilityNewton,
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
    "ssnal-ws": "solver='ssnal', solver_options={'working_set': True}",
    "fapg-ssnal-ws": "solver='fapg-ssnal', solver_options={'working_set': True}",
    "fbpd-ssnal": "solver='fapg-ssnal', solver_options={'first': 'fbpd'}",
}


def choose(problem: Problem, deadline: float = np.inf) -> Choice:
    """The first rule for a problem that matches and whose solver takes it.

    Solvers whose step would take too much of the time until the ``deadline``, on the clock of
    `proxmargin.compiled.clock`, are skipped unless there is no other.

    Raises UnsuitableSolverError: no solver takes the problem; the message is the objection of the
    last one.
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


def named_solver(name: str, options: Mapping[str, Any], problem: Problem) -> Solver[Any]:
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


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)
