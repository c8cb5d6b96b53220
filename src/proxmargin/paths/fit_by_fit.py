"""Paths of models without a strength that shrinks coefficients to zero, and of a fixed ridge.

Each model is a fit from the solution before, to data that are checked and standardised once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from proxmargin.estimators.base import MarginEstimator
from proxmargin.inputs.parameters import check_number
from proxmargin.paths.grid import default_grid, unfitted
from proxmargin.paths.settings import default_values, fitted_models, mixes
from proxmargin.paths.strength import at_strength, varying_of

__all__ = ["Fits", "template_of", "values_of", "walked"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fits:
    """The models of a path, in the order in which they were fitted.

    Attributes
    ----------
    models : list of estimators
        Fewer than values if the path was interrupted.
    values : (n_values,)
        Of the parameter, the strongest penalty first.
    scale : (n_features,)
    """

    models: list[Any]
    values: Array
    scale: Array


def template_of(estimator: MarginEstimator, l2: float | None) -> MarginEstimator:
    """An unfitted copy; of an elastic net beside a fixed ridge the one with an l1 part alone.

    Raises
    ------
    TypeError
        The estimator has a nonlinear kernel, or is no elastic net and l2 is given.
    """
    name = type(estimator).__name__
    if l2 is not None:
        check_number("l2", l2, low=0.0)
        if varying_of(estimator).name != "alpha":
            raise TypeError(f"l2 is for elastic nets with alpha, which {name} does not have")
        return at_strength(unfitted(estimator), 1.0).set_params(l1_ratio=1.0)
    if not getattr(estimator, "_is_linear", True):
        raise TypeError(f"paths need a linear model: {name} has a kernel")
    copied: MarginEstimator = clone(estimator)
    return copied


def values_of(
    template: MarginEstimator, data: Sequence[Any], count: int, l2: float | None, eps: float
) -> Array:
    """The default values; ``data`` are X, y, sample_weight and offset."""
    if l2 is not None:
        return default_grid(template, template._assemble(*data), count, eps)
    X, y, weights, _ = data
    return default_values(template, varying_of(template), X, y, weights, count)


def walked(template: MarginEstimator, data: Sequence[Any], values: Array, l2: float | None) -> Fits:
    """The models of these values, the strongest penalty first.

    ``template`` gets the first setting, and knows the features as a fitted model does.
    """
    name = varying_of(template).name
    settings: Sequence[Mapping[str, Any]] = [{name: float(value)} for value in values]
    settings = settings if l2 is None else mixes(l2, values)
    template.set_params(**settings[0])  # first, because values called 'auto' take fits
    scale = template._assemble(*data).scale
    models = fitted_models(template, settings, *data)
    return Fits(models, values + (0.0 if l2 is None else l2), scale)
