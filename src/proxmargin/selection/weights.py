"""Under which name a classifier takes the weights of the samples."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

__all__ = ["weight_argument"]


def weight_argument(estimator: Any) -> str:
    """The argument of ``fit`` for the weights: of a pipeline that of its last step.

    Raises
    ------
    TypeError
        It takes none; names the last step.
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_argument(last)}"
    if isinstance(estimator, BaseSearchCV):  # whose fit passes its arguments on
        return weight_argument(estimator.estimator)
    raise TypeError(f"{type(estimator).__name__} takes no sample_weight")
