"""Parameters that several estimators share, checked: fields of dataclasses, by keyword only.

A classifier is a dataclass too. Its constructor takes the fields of its last base first, so that
the order of the bases is that of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from proxmargin.data.inputs.kinds import ByFeature, ClassWeight, Seed
from proxmargin.data.inputs.parameters import (
    check_choice,
    check_flag,
    check_number,
    check_threads,
    check_verbose,
)
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Facts, Record
from proxmargin.solvers.loop.report import Report, interval_of
from proxmargin.solvers.loop.solver import RULES, AnySolver, Solver

_Descent: TypeAlias = Literal["b-pgh", "b-pgh-2", "m-pgh", "m-pgh-2", "gcd"]
_Accelerated: TypeAlias = Literal["apg", "fapg-guaranteed", "fapg", "fapg-star", "fapg-ws"]
_Newton: TypeAlias = Literal["newton", "pass-newton", "chord-newton"]
_Split: TypeAlias = Literal["isvm1", "isvm2", "isvm3", "admm", "fbpd", "fbpd-linear"]
_Budget: TypeAlias = Literal["fista", "forward-backward", "cutting-planes"]
_Ridge: TypeAlias = Literal["ridge-newton", "ball-newton", "active-set", "interior-point"]
_Augmented: TypeAlias = Literal["linear-program", "multiplier-newton", "ssnal", "fapg-ssnal"]
_Dual: TypeAlias = Literal["class-newton", "decomposition", "dual-coordinate-descent"]
_Primal: TypeAlias = Literal[_Descent, _Accelerated, _Newton, _Split, _Budget]
SolverName: TypeAlias = Literal["auto", _Primal, _Ridge, _Augmented, _Dual, "minimax-newton"]
_Change: TypeAlias = Literal["relative-change", "iterate-change"]
_Residual: TypeAlias = Literal["primal-residual", "step-residual", "fixed-point", "point-residual"]
RuleName: TypeAlias = Literal["gap", _Change, _Residual]


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class FeatureParameters:
    """Of the penalty of each feature."""

    penalty_factor: ByFeature = None
    bounds: Sequence[ByFeature] | Mapping[Any, Sequence[float | None]] | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class DataParameters:
    """Of what the data become before they are fitted."""

    fit_intercept: bool = True
    standardize: bool = False
    class_weight: ClassWeight = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class KernelParameters(DataParameters):
    """Of the matrix of a kernel."""

    cache_size: float = 1000.0
    rank: int | None = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class SolverParameters:
    """Of the solver and its limits."""

    solver: SolverName | AnySolver = "auto"
    solver_options: Facts | None = None
    stopping: RuleName = "gap"
    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: bool = False
    callbacks: Sequence[Callable[[Report], object]] = ()
    verbose: int = 0


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class SolvingParameters(SolverParameters):
    """Of the solver of one model, which draws nothing at random."""

    random_state: Seed = None


@dataclass(init=False, eq=False, repr=False, kw_only=True)
class ThreadParameters:
    """Of models that may have a problem for each class."""

    n_jobs: int | None = None


NAMES = ("feature_names_in_", "_column_labels")  # attributes with the names of features
# values of multi_class in other libraries
ELSEWHERE = {
    "multinomial": "classes are fitted together by multi_class='joint', which is the multinomial "
    "model in SparseLogisticRegression",
    "crammer_singer": "MulticlassSVC has the loss of Crammer and Singer",
    "ovo": "DDAGClassifier fits the pairs of classes",
}


class ChecksParameters(SolvingParameters, DataParameters):
    """Names the parameter that is not what it can be."""

    multi_class: str
    n_jobs: int | None = None
    _joint_allowed = True
    # why a model needs all data in memory; empty if passes over blocks of rows are enough
    _in_memory: str = ""

    def _check_parameters(self) -> None:
        named = self.multi_class if isinstance(self.multi_class, str) else None
        if named in ("joint", "multinomial") and not self._joint_allowed:
            raise ValueError(
                f"multi_class={named!r} is not for {type(self).__name__}, which fits "
                "each class against the rest (multi_class='ovr'): HuberizedSVC, "
                "SparseLogisticRegression and MulticlassSVC fit them together, DDAGClassifier "
                "pair by pair"
            )
        allowed = ("joint", "ovr") if self._joint_allowed else ("ovr",)
        if named in ELSEWHERE:
            raise ValueError(
                f"multi_class must be one of {', '.join(map(repr, allowed))}, got "
                f"{named!r}: {ELSEWHERE[named]}"
            )
        check_choice("multi_class", self.multi_class, allowed)
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("standardize", self.standardize)
        check_flag("warm_start", self.warm_start)
        check_choice("stopping", self.stopping, ("gap", *RULES))
        check_number("tol", self.tol, low=0.0)
        check_number("max_iter", self.max_iter, low=0, integer=True, optional=True)
        check_threads(self.n_jobs)
        check_number("time_limit", self.time_limit, low=0.0, low_open=True, optional=True)
        check_verbose(self.verbose)
        callbacks = self.callbacks if isinstance(self.callbacks, list | tuple) else [None]
        if not all(map(callable, callbacks)):
            raise ValueError("callbacks must be a list or tuple of callables that take a report")
        for callback in self.callbacks:
            interval_of(callback)  # raises for one that is none
        if not isinstance(self.solver, str | Solver):
            raise ValueError(f"solver must be a name or a solver object, got {shown(self.solver)}")
        if not isinstance(self.solver_options, Mapping | None):
            raise ValueError(
                f"solver_options must be a dict or None, got {shown(self.solver_options)}"
            )
        if self.solver_options and not (isinstance(self.solver, str) and self.solver != "auto"):
            given = "an object" if isinstance(self.solver, Solver) else "'auto'"
            raise ValueError(f"solver_options need a solver asked for by name, not {given}")

    def _check_passes(self) -> None:
        """Raise ValueError if the model cannot be fitted in passes over blocks of rows."""
        if self._in_memory:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to data in blocks of rows: "
                f"{self._in_memory}"
            )

    # -- names of the features --------------------------------------------------------------

    def _in_order(self) -> Record:
        """The parameters that are given by feature names, as arrays in the order of the fit."""
        return {}

    def _without_names(self) -> Record:
        """Make this a classifier of arrays, whose features have no names, after `validated`.

        Returns the attributes that make it one of the data frame again.
        """
        ordered = self._in_order()
        names = [*ordered, *(each for each in NAMES if hasattr(self, each))]
        kept = {name: self.__dict__.pop(name) for name in names}
        self.__dict__.update(ordered)
        return kept
