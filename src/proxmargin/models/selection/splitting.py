"""Folds, weights, warnings and feature names, as all classes that make many fits treat them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    _num_features,
    has_fit_parameter,
)

from proxmargin.data.inputs.beyond_memory import is_beyond_memory
from proxmargin.data.inputs.parameters import check_folds

DEFAULT_FOLDS = 5  # of cv=None, as in scikit-learn


def splitter_of(cv: Any, y: Any, groups: Any = None) -> Any:
    """The splitter of a value of ``cv``; a number of folds keeps ``groups`` whole. Raises
    ValueError: ``cv`` is none of these, or there are fewer groups than folds."""
    check_folds("cv", cv)
    by_count = cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool))
    if groups is None or not by_count:
        return check_cv(cv, y, classifier=True)
    folds = DEFAULT_FOLDS if cv is None else int(cv)
    count = np.unique(np.asarray(groups)).size
    if count < folds:
        raise ValueError(
            f"cv={folds} folds of whole groups need as many groups, and there are {count}"
        )
    return StratifiedGroupKFold(folds)


def routed_splitter(cv: Any) -> Any:
    """The splitter that says whether groups are wanted: a number of folds takes them."""
    plain = check_cv(cv, classifier=True)
    is_count = isinstance(cv, Integral) and not isinstance(cv, bool)
    return StratifiedGroupKFold(plain.get_n_splits()) if is_count else plain


def check_disjoint(folds: Iterable[tuple[Any, Any]], count: int) -> None:
    """Raise ValueError for a fold that holds out rows of its own training part. ``folds``: pairs of
    row numbers or masks. ``count``: rows of the data."""
    rows = np.arange(count)
    for number, (train, test) in enumerate(folds):
        shared = np.intersect1d(rows[train], rows[test])
        if shared.size:
            raise ValueError(
                f"cv: fold {number} holds out row {shared[0]} and {shared.size - 1} more that its "
                "training part has, too: held-out scores need rows that the fit did not see"
            )


def forget(estimator: Any) -> None:
    """Drop what an earlier fit has learned."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


@contextmanager
def no_convergence_warnings() -> Iterator[None]:
    """Of single fits: one warning sums them up at the end. Filters are shared by all threads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@contextmanager
def names_checked(estimator: Any, X: Any) -> Iterator[None]:
    """Predictions by classifiers within another one, in whose name another number of features is
    refused, and a warning is given, once, where the fit or ``X`` alone has feature names."""
    named = hasattr(estimator, "feature_names_in_")
    has_features = hasattr(estimator, "n_features_in_") and not is_beyond_memory(X)
    if has_features:
        with suppress(TypeError):  # what is no matrix is refused by the fitted classifier
            if _num_features(X) != estimator.n_features_in_:
                _check_n_features(estimator, X, reset=False)
    if not has_features or named == (_get_feature_names(X) is not None):
        yield
        return
    _check_feature_names(estimator, X, reset=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (does not have valid|has) feature names")
        yield


def weight_argument(estimator: Any) -> str:
    """The argument of ``fit`` for the weights: of a pipeline that of its last step. Raises
    TypeError: it takes none; names the last step."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_argument(last)}"
    if isinstance(estimator, BaseSearchCV):  # whose fit passes its arguments on
        return weight_argument(estimator.estimator)
    raise TypeError(f"{type(estimator).__name__} takes no sample_weight")
