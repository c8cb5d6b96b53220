"""What the fits of all classes that make many fits have in common."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    _num_features,
)

from proxmargin.inputs.beyond_memory import is_beyond_memory

__all__ = ["forget", "names_checked", "no_convergence_warnings"]


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
