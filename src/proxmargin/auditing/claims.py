"""What is to be certified: a model of this library, data, and coefficients from anywhere."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.certificates.certificate import Certificate
from proxmargin.certificates.certify import certify as certified
from proxmargin.certificates.gap import Gap, lower_bound
from proxmargin.certificates.representer import enclosed_model
from proxmargin.certificates.rounding_terms import SUM_ULPS
from proxmargin.estimators.assembly import Assembly
from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.models.kernel_machine import KernelMachine
from proxmargin.kernels.kernel_design import KernelDesign
from proxmargin.kernels.matrices import kernel_matrix
from proxmargin.problem import Point, Problem
from proxmargin.rounding import TINY, UNIT

__all__ = ["Claim", "InFeatures", "InKernel", "Value"]

Array = NDArray[np.float64]

SAME_COEF = 1e-9  # relative change of coefficients by a projection that is rounding


@dataclass(frozen=True)
class Value:
    """The objective of one problem at given coefficients.

    Attributes
    ----------
    primal : float
        An upper bound of it, as rounding allows; infinite outside of the domain.
    dual : float
        A lower bound of the optimum from these coefficients alone; ``-inf`` if there is none.
    inside : bool
        Whether the coefficients meet the constraints, if ``primal`` is infinite.
    negligible : float
        The objective that counts as zero, see `Certificate.relative_gap`.
    kkt_residual : float
        See `Certificate`; NaN where it is not computed.
    """

    primal: float
    dual: float = -np.inf
    inside: bool = True
    negligible: float = TINY
    kkt_residual: float = np.nan

    def relative_gap(self, dual: float) -> float:
        """The gap to a lower bound, over the larger of both in size."""
        if not dual > -np.inf:
            return np.inf
        scale = max(abs(self.primal), abs(dual), self.negligible)
        return max(self.primal - dual, 0.0) / scale


@dataclass(frozen=True, eq=False, kw_only=True)
class Claim(ABC):
    """Coefficients that are said to minimise the objective of a model on some data.

    Attributes
    ----------
    estimator : MarginEstimator, unfitted
    X, y, sample_weight, offset
        As its `fit` takes them.
    factor : float
        From the objective of the estimator to the one that is to be stated.
    """

    estimator: MarginEstimator
    X: Any
    y: Any
    sample_weight: Any = None
    offset: Any = None
    factor: float = 1.0

    @abstractmethod
    def values(self) -> list[Value]:
        """The objectives at the claimed coefficients, one a problem, in the estimator's units."""

    def bounds(self) -> list[Certificate]:
        """Certificates of the estimator's own fit, one a problem; any of them is a bound."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # the model of the class, whatever the fit of a subclass does besides
            MarginEstimator.fit(self.estimator, self.X, self.y, self.sample_weight, self.offset)
        found = self.estimator.certificate_
        return [found] if isinstance(found, Certificate) else list(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class InFeatures(Claim):
    """Coefficients of the features.

    Attributes
    ----------
    coef : (n_rows, n_features), in the units of the data
    intercept : (n_rows,)
    """

    coef: Array
    intercept: Array

    def __post_init__(self) -> None:
        _check_finite(self.coef, self.intercept)

    def values(self) -> list[Value]:
        assembly = self.estimator._assemble(self.X, self.y, self.sample_weight, self.offset)
        self._check_shapes(assembly)
        points = self.estimator._points(assembly, self.coef, self.intercept)
        return [
            _value(problem, point, self.estimator._objective_scale(problem))
            for problem, point in zip(assembly.problems, points, strict=True)
        ]

    def _check_shapes(self, assembly: Assembly) -> None:
        count = assembly.targets.classes.size
        wanted = 1 if count == 2 else count, assembly.scale.size
        if self.coef.shape != wanted or self.intercept.shape != wanted[:1]:
            raise ValueError(
                f"coef must have the shape {wanted} and intercept {wanted[:1]} for these data, got "
                f"{self.coef.shape} and {self.intercept.shape}"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class InKernel(Claim):
    """Weights of the training samples in a kernel model of two classes.

    Attributes
    ----------
    estimator : KernelMachine, unfitted
    weights : (n_samples,)
    shift : float
        The intercept.
    """

    estimator: KernelMachine
    weights: Array
    shift: float

    def __post_init__(self) -> None:
        _check_finite(self.weights, np.array([self.shift]))

    def values(self) -> list[Value]:
        X, targets = self.estimator._checked(self.X, self.y, self.sample_weight, None)
        X, kernel = self.estimator._kernel_of(X, targets)
        matrix = kernel_matrix(kernel, X)
        scores, square = enclosed_model(matrix, self.weights, self.shift)
        (problem,) = self.estimator._problems(targets, KernelDesign(matrix))
        loss = problem.loss
        value, gradient = loss.value_and_gradient(scores.values)
        rounding = loss.growth(scores.values, gradient, np.zeros_like(gradient), scores.error)
        shrunk = problem.penalty.value(np.array([[np.sqrt(square)]]))
        primal = (value + shrunk) * (1.0 + SUM_ULPS * UNIT) + rounding
        return [Value(self.estimator._objective_scale(problem) * primal)]


def _check_finite(coef: Array, intercept: Array) -> None:
    for values in (coef, intercept):
        if not np.isfinite(values).all():
            wrong = values[~np.isfinite(values)][0]
            raise ValueError(f"the coefficients and the intercept must be finite, got {wrong}")


def _is_inside(problem: Problem, point: Point) -> bool:
    """Whether projecting the coefficients changes them by no more than rounding."""
    into = problem.projected(point)
    pairs = ((point.coef, into.coef), (point.intercept, into.intercept))
    return all(
        bool(np.all(np.abs(own - other) <= SAME_COEF * np.abs(own).max(initial=0.0)))
        for own, other in pairs
    )


def _value(problem: Problem, point: Point, scale: float) -> Value:
    """The objective at a point, with the bound that its own gradient gives.

    Where only the direction of the coefficients matters to the model, it is that of their best
    multiple.
    """
    gap: Gap = certified(problem, point)
    primal = gap.primal if problem.loss.is_homogeneous else _objective(problem, point)
    return Value(
        scale * primal,
        scale * lower_bound(gap.primal, gap.gap),
        inside=primal < np.inf or _is_inside(problem, point),
        negligible=scale * gap.negligible,
        kkt_residual=scale * gap.kkt_residual,
    )


def _objective(problem: Problem, point: Point) -> float:
    """The objective at a point, with a bound on the rounding of its scores."""
    loss = problem.loss
    scores = problem.design.scores(point.coef) + point.intercept
    error = problem.design.enclosed(point.coef, point.intercept, scores).error
    value, gradient = loss.value_and_gradient(scores)
    rounding = loss.growth(scores, gradient, np.zeros_like(scores), error)  # of the loss itself
    shrunk = problem.penalty.value(point.coef) + problem.intercept.value(point.intercept[None, :])
    return float((value + shrunk) * (1.0 + SUM_ULPS * UNIT) + rounding)
