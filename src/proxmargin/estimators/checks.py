"""The parameters that all margin classifiers share, checked before a fit."""

from __future__ import annotations

from collections.abc import Mapping

from proxmargin.estimators.parameters import DataParameters, SolvingParameters
from proxmargin.inputs.validation import (
    check_choice,
    check_flag,
    check_number,
    check_threads,
    check_verbose,
)
from proxmargin.loop.report import interval_of
from proxmargin.loop.solver import Solver
from proxmargin.loop.stopping import RULES
from proxmargin.runtime.brief import shown

__all__ = ["ChecksParameters"]

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
        if not all(callable(callback) for callback in callbacks):
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
