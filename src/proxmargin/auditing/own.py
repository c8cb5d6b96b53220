"""Claims of models of this library, and whether data can be those of their fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from proxmargin.auditing.claims import Claim, InFeatures, InKernel
from proxmargin.datasets import Dataset
from proxmargin.designs.samples import by_rows, holds_objects, is_sparse
from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.models.nu_dwd import NuSVC
from proxmargin.inputs.objects import as_objects, takes_objects
from proxmargin.inputs.validation import check_labels

__all__ = ["check_data", "check_support", "own_claim"]

SAME_SUPPORT = 1e-12  # relative difference up to which rows of the data are support vectors
LISTED = 5  # classes that an error names


def check_data(model: Any, X: Any, y: Any) -> None:
    """Raise ValueError if the columns or the classes are not those of a fitted model."""
    if isinstance(X, Dataset):
        return  # names and labels are its own, and checked as it is opened for the model
    if hasattr(model, "feature_names_in_"):
        _check_feature_names(model, X, reset=False)
    if y is None:
        raise ValueError("y must be the labels that the model was fitted to, got None")
    check_labels(y)
    given, own = np.unique(np.asarray(y)), np.asarray(model.classes_)
    for labels, told in (
        (_without(given, own), "are none of the model's classes"),
        (_without(own, given), "are classes of the model that y lacks"),
    ):
        if labels:
            names = ", ".join(map(str, labels[:LISTED])) + (", ..." if labels[LISTED:] else "")
            raise ValueError(f"y must be the labels that the model was fitted to: {names} {told}")


def _without(labels: Any, others: Any) -> list[Any]:
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
    intercept: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
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


def _fix_nu(model: Any, bare: MarginEstimator) -> None:
    """Take the nu of a fitted nu-SVM, which 'auto' may have moved to where there is a margin."""
    if getattr(model, "nu", None) != "auto" or not isinstance(model, NuSVC):
        return
    if np.ndim(model.nu_):
        raise TypeError("nu='auto' may have chosen another nu for each class: fit NuSVC with a nu")
    bare.__dict__.update(nu=model.nu_)


def _own_kernel(model: Any, bare: MarginEstimator, X: Any, y: Any, sample_weight: Any) -> Claim:
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
