"""The parameter that a path moves along: ``alpha``, or ``C``."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.data.inputs.parameters import check_magnitude
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.registry import MODELS
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.brief import shown

Array = NDArray[np.float64]
Estimator = TypeVar("Estimator", bound=MarginEstimator)


@dataclass(frozen=True)
class Strength:
    """The name of the parameter, and which of its values mean a strong penalty.

    Attributes
    ----------
    name : {'alpha', 'C', 'nu', 'kappa'}
    falls : bool
        The penalty grows with the parameter, so that a path takes falling values.
    """

    name: str
    falls: bool

    def order(self, grid: Array) -> NDArray[np.intp]:
        """Indices of the grid from the strongest penalty to the weakest."""
        return np.argsort(-grid if self.falls else grid, kind="stable")

    def of_alpha(self, alphas: Array, total: float) -> Array:
        """The values that weigh the penalty against the mean loss with ``alphas``.

        Parameters
        ----------
        total : float
            Sum of the weights: ``C`` multiplies the sum of the losses.
        """
        return alphas if self.falls else 1.0 / (total * alphas)

    def checked(self, values: ArrayLike) -> Array:
        """The values as an array; raises ValueError for values outside the parameter's range."""
        least = ">= 0" if self.falls else "> 0"
        try:
            grid = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            grid = np.empty(0)
        good = np.isfinite(grid) & (grid >= 0 if self.falls else grid > 0)
        if grid.ndim != 1 or grid.size == 0 or not np.all(good):
            raise ValueError(
                f"{self.name}s must be a non-empty list of finite numbers {least}, got "
                f"{shown(values)}"
            )
        for extreme in (grid.max(), grid.min()):
            check_magnitude(f"each of {self.name}s", float(extreme), positive=not self.falls)
        return grid


ALPHA = Strength("alpha", falls=True)
WEIGHT = Strength("C", falls=False)
LIMITED = (Strength("nu", falls=True), Strength("kappa", falls=True))


def strength_of(estimator: Any) -> Strength:
    """The strength parameter of an estimator.

    Raises
    ------
    TypeError
        The estimator has neither ``alpha`` with ``l1_ratio`` nor ``C``.
    """
    strength = _of_kind(type(estimator))  # type: ignore[arg-type]  # classes are hashable
    if strength is None:
        raise TypeError(
            f"paths need an estimator with alpha and l1_ratio, such as HuberizedSVC, or with C, "
            f"such as SVC; {_what_instead(estimator)}"
        )
    return strength


def _what_instead(estimator: Any) -> str:
    """What a model without a strength offers instead of a path."""
    if isinstance(estimator, type):
        return f"{estimator.__name__} is a class: {estimator.__name__}() is an estimator"
    name = type(estimator).__name__
    if not isinstance(estimator, MarginEstimator):
        return f"{name} is no single model of this library"
    parameters = MODELS[name].parameters if name in MODELS else ()
    limited = next((one.name for one in LIMITED if one.name in parameters), None)
    if limited is None:
        return f"{name} has none"
    return f"{name} has {limited}, of which margin_path fits several values ({limited}s=)"


def limited_by(estimator: Any) -> Strength | None:
    """The nu or kappa of a model that has no strength, or None."""
    if not isinstance(estimator, MarginEstimator):
        return None
    if _of_kind(type(estimator)) is not None:  # type: ignore[arg-type]  # classes are hashable
        return None
    parameters = _every_parameter(type(estimator))
    return next((one for one in LIMITED if one.name in parameters), None)


def varying_of(estimator: Any) -> Strength:
    """The parameter of a path: the strength, or the nu or kappa of a model without one."""
    return limited_by(estimator) or strength_of(estimator)


@cache
def parameters_of(kind: type[MarginEstimator]) -> tuple[str, ...]:
    """The parameter names of a class of estimators, cached because reading signatures is slow."""
    return tuple(kind._get_param_names())


@cache
def _of_kind(kind: type) -> Strength | None:
    """The strength parameter of a class, or None; cached because reading signatures is slow."""
    if not issubclass(kind, MarginEstimator):
        return None
    parameters = _every_parameter(kind)
    if {"alpha", "l1_ratio"} <= parameters:
        return ALPHA
    return WEIGHT if "C" in parameters else None


def _every_parameter(kind: type) -> set[str]:
    """The parameters of a class and of those that it derives from, which it may have fixed."""
    makes = [vars(base)["__init__"] for base in kind.__mro__[:-1] if "__init__" in vars(base)]
    return {name for make in makes for name in signature(make).parameters}


def at_strength(estimator: Estimator, strength: float) -> Estimator:
    """A copy of the estimator with this strength."""
    model = copy(estimator)
    setattr(model, varying_of(estimator).name, float(strength))
    return model


def problems_of(model: MarginEstimator, assembly: Assembly) -> tuple[Problem, ...]:
    """The assembled problems under the penalty of this model."""
    penalty = model._penalty(assembly.targets, assembly.problems[0].design)
    return assembly.with_penalty(penalty).problems
