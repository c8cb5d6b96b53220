"""What is to be certified: a model of this library, data, and coefficients from anywhere."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from proxmargin.compiled.rounding import FURTHER_TERMS, TINY, UNIT
from proxmargin.data.datasets import Dataset
from proxmargin.data.designs.samples import by_rows, holds_objects, is_sparse
from proxmargin.data.inputs.aligned import as_objects
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.validation import check_labels, takes_objects
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.models.classifiers.kernel_machine import KernelMachine
from proxmargin.models.classifiers.nu_dwd import NuSVC
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.optimality.certificates.certificate import Certificate, Gap, lower_bound
from proxmargin.optimality.certificates.certify import certify as certified
from proxmargin.optimality.certificates.representer import enclosed_model
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array, Estimator, Values

SAME_COEF = 1e-9  # relative change of coefficients by a projection that is rounding
SAME_SUPPORT = 1e-12  # relative difference up to which rows of the data are support vectors
LISTED = 5  # classes that an error names


@dataclass(frozen=True)
class Value:
    """The objective of one problem at given coefficients."""

    primal: float  # an upper bound, as rounding allows; infinite outside of the domain
    dual: float = -np.inf  # a lower bound of the optimum from these coefficients alone
    inside: bool = True  # whether the coefficients meet the constraints, if primal is infinite
    negligible: float = TINY  # the objective that counts as zero
    kkt_residual: float = np.nan  # NaN where it is not computed

    def relative_gap(self, dual: float) -> float:
        """The gap to a lower bound, over the larger of both in size."""
        if not dual > -np.inf:
            return np.inf
        scale = max(abs(self.primal), abs(dual), self.negligible)
        return max(self.primal - dual, 0.0) / scale


@dataclass(frozen=True, eq=False, kw_only=True)
class Claim(ABC):
    """Coefficients that are said to minimise the objective of a model on data as of its `fit`."""

    estimator: MarginEstimator  # unfitted
    X: Any
    y: Any
    sample_weight: Any = None
    offset: ArrayLike | None = None
    factor: float = 1.0  # from the objective of the estimator to the one that is to be stated

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
    """Coefficients of the features, in the units of the data."""

    coef: Array  # (n_rows, n_features)
    intercept: Array  # (n_rows,)

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
    """Weights of the training samples in a kernel model of two classes."""

    estimator: KernelMachine  # unfitted
    weights: Array  # (n_samples,)
    shift: float  # the intercept

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
        primal = (value + shrunk) * (1.0 + FURTHER_TERMS * UNIT) + rounding
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
    """The objective at a point, with the bound that its own gradient gives; where only the
    direction of the coefficients matters, that of their best multiple."""
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
    return float((value + shrunk) * (1.0 + FURTHER_TERMS * UNIT) + rounding)


def check_data(model: Estimator, X: Features, y: Labels) -> None:
    """Raise ValueError if the columns or the classes are not those of a fitted model."""
    if isinstance(X, Dataset):
        return  # names and labels are its own, and checked as it is opened for the model
    if hasattr(model, "feature_names_in_"):
        _check_feature_names(model, X, reset=False)
    if y is None:
        raise ValueError("y must be the labels that the model was fitted to, got None")
    check_labels(y, X)
    given, own = np.unique(np.asarray(y)), np.asarray(model.classes_)
    for labels, told in (
        (_without(given, own), "are none of the model's classes"),
        (_without(own, given), "are classes of the model that y lacks"),
    ):
        if labels:
            names = ", ".join(map(str, labels[:LISTED])) + (", ..." if labels[LISTED:] else "")
            raise ValueError(f"y must be the labels that the model was fitted to: {names} {told}")


def _without(labels: Values, others: Values) -> list[object]:
    known = set(others.tolist())
    return [label for label in labels.tolist() if label not in known]


def check_support(rows: Any, support_vectors: Any) -> None:
    """Raise unless these rows of the data are the support vectors of the model."""
    apart = rows.shape != support_vectors.shape
    if not apart and holds_objects(rows):
        pairs = zip(rows, support_vectors, strict=True)
        apart = not all(one is other or np.array_equal(one, other) for one, other in pairs)
    elif not apart and rows.shape[0]:
        apart = abs(rows - support_vectors).max() > SAME_SUPPORT * abs(support_vectors).max()
    if apart:
        raise ValueError("X must be the data that the model was fitted to: the rows differ")


def own_claim(
    model: MarginEstimator,
    X: Any,
    y: Any,
    coef: Any = None,
    intercept: ArrayLike | None = None,
    sample_weight: Any = None,
    offset: ArrayLike | None = None,
) -> Claim:
    """The claim of a model of this library: of given coefficients, or of its own."""
    bare = clone(model)
    # without callbacks, which belong to its own fit; a subclass may have no such parameters
    bare.__dict__.update(callbacks=(), warm_start=False, verbose=0)
    if coef is None:
        if intercept is not None:
            raise ValueError("intercept needs coef")
        check_is_fitted(model)
        check_data(model, X, y)
        if not hasattr(model, "coef_"):
            if offset is not None:
                raise TypeError("offset is for linear models, given by coef or fitted")
            return _own_kernel(model, bare, X, y, sample_weight)
        coef, intercept = model.coef_, model.intercept_
        _fix_nu(model, bare)
    coef = coef.toarray() if is_sparse(coef) else coef
    rows = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    shift = np.zeros(len(rows)) if intercept is None else np.asarray(intercept, dtype=np.float64)
    shift = np.broadcast_to(shift, len(rows)).copy() if shift.ndim == 0 else shift
    return InFeatures(
        estimator=bare,
        X=X,
        y=y,
        sample_weight=sample_weight,
        offset=offset,
        coef=rows,
        intercept=shift,
    )


def _fix_nu(model: Estimator, bare: MarginEstimator) -> None:
    """Take the nu of a fitted nu-SVM, which 'auto' may have moved to where there is a margin."""
    if getattr(model, "nu", None) != "auto" or not isinstance(model, NuSVC):
        return
    if np.ndim(model.nu_):
        raise TypeError("nu='auto' may have chosen another nu for each class: fit NuSVC with a nu")
    bare.__dict__.update(nu=model.nu_)


def _own_kernel(model: Estimator, bare: Any, X: Values, y: Values, sample_weight: Array) -> Claim:
    if len(model.classes_) > 2:
        raise TypeError("kernel models are certified here for two classes; others by their fit")
    if not hasattr(model, "C"):
        raise TypeError(
            f"{type(model).__name__} with a kernel is certified by its fit only: its published "
            "scores are scaled"
        )
    if model._is_precomputed:
        raise TypeError("models of a precomputed kernel are certified by their fit only")
    objects = as_objects(X) if takes_objects(model) else None
    X = X if objects is None else objects
    index = model.support_
    if X.shape[0] > int(index.max(initial=-1)):
        rows = X.iloc[index].to_numpy() if hasattr(X, "iloc") else by_rows(X)[index]
        rows = model._prepared(rows, dense=not is_sparse(model.support_vectors_))
        check_support(rows, model.support_vectors_)
    else:
        raise ValueError("X must be the data that the model was fitted to: it has fewer rows")
    weights = np.zeros(X.shape[0])
    weights[index] = model.dual_coef_[0]
    return InKernel(
        estimator=bare,
        X=X,
        y=y,
        sample_weight=sample_weight,
        weights=weights,
        shift=float(model.intercept_[0]),
    )
