"""Claims of models of this library."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from proxmargin.auditing.claims import Claim, InFeatures, InKernel
from proxmargin.auditing.data import check_data, check_support
from proxmargin.designs.samples import by_rows, is_sparse
from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.models.hulls import NuSVC
from proxmargin.inputs.objects import as_objects, takes_objects

__all__ = ["own_claim"]


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
