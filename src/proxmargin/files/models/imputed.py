"""Models that fill in missing entries: the imputer as its strategy and its values."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from proxmargin.files.errors import ModelFileError

__all__ = ["put_together", "taken_apart"]


def taken_apart(estimator: Any) -> tuple[Any, dict[str, Any] | None]:
    """The model of a pipeline that begins with an imputer, with the names of its columns; and the
    imputer as plain values. Any other estimator is returned as it is.

    Raises
    ------
    ModelFileError
        The pipeline has other steps than an imputer and a model.
    """
    from sklearn.pipeline import Pipeline

    if not isinstance(estimator, Pipeline):
        return estimator, None
    *before, (_, model) = estimator.steps
    objection = _objection([step for _, step in before])
    if objection is not None:
        raise ModelFileError(
            f"A pipeline can be stored if it is a SimpleImputer of NaN and a model: {objection}."
        )
    transformer, model = before[0][1], copy(model)
    if hasattr(transformer, "feature_names_in_"):
        model.feature_names_in_ = transformer.feature_names_in_
    values = [float(each) for each in transformer.statistics_]
    return model, {"strategy": transformer.strategy, "values": values}


def put_together(model: Any, imputed: Any) -> Any:
    """The pipeline of the imputer that a file describes and the model; the model without one."""
    if imputed is None:
        return model
    from proxmargin.inputs.preprocessing import STRATEGIES, Preprocessed, refilled

    whole = isinstance(imputed, dict) and set(imputed) == {"strategy", "values"}
    if not whole or imputed["strategy"] not in STRATEGIES:
        raise ModelFileError("it describes an imputer that there is not")
    values = imputed["values"]
    numbers = isinstance(values, list) and all(type(each) in (int, float) for each in values)
    if not numbers or len(values) != model.n_features_in_:
        raise ModelFileError("its imputer does not have one number for each feature")
    names = model.__dict__.pop("feature_names_in_", None)
    filled = refilled(imputed["strategy"], np.array(values, np.float64), names)
    return Preprocessed.of(filled, model)


def _objection(steps: list[Any]) -> str | None:
    """Why these steps before a model cannot be stored, or None."""
    from sklearn.impute import SimpleImputer

    if len(steps) != 1 or type(steps[0]) is not SimpleImputer:
        return f"this one has {', '.join(type(step).__name__ for step in steps) or 'no imputer'}"
    transformer = steps[0]
    if not hasattr(transformer, "statistics_"):
        return "this one is not fitted"
    if (
        not _are_numbers(transformer.statistics_)
        or transformer.add_indicator
        or transformer.strategy == "most_frequent"
    ):
        return "this imputer adds or removes columns, or fills in no numbers"
    missing = transformer.missing_values
    is_nan = isinstance(missing, float) and np.isnan(missing)
    return None if is_nan else f"this one fills in {missing!r}"


def _are_numbers(values: Any) -> bool:
    """Whether all values that an imputer fills in are finite; those of a constant are objects."""
    try:
        return bool(np.isfinite(np.asarray(values, dtype=np.float64)).all())
    except (TypeError, ValueError):
        return False
