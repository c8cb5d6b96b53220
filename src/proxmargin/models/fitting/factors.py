"""Validation of penalty factors and bounds of single features."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.inputs.aligned import by_feature, feature_labels
from proxmargin.data.inputs.parameters import check_magnitude, real_numbers
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import are_separated
from proxmargin.runtime.brief import shown, users_level
from proxmargin.runtime.types import Array, Estimator

Bounds = tuple[Array, Array]

LEAST_FACTOR = 1e-16  # over the largest one; float64 certificates cannot resolve smaller factors


def checked_factors(
    penalty_factor: Any, n_features: int, labels: Sequence[object] | None = None
) -> Array | None:
    """One factor >= 0 a feature, or None if none are given.

    ``labels`` are the names of the features, for factors by name; a dict may leave out those of 1.

    Raises ValueError that names ``penalty_factor``.
    """
    if penalty_factor is None:
        return None
    if getattr(getattr(penalty_factor, "dtype", None), "kind", "") == "b":  # penalised, or not
        penalty_factor = penalty_factor.astype(float)
    given = by_feature("penalty_factor", penalty_factor, n_features, labels, missing=1.0)
    factors = real_numbers("penalty_factor", given)
    if factors.shape != (n_features,):
        raise ValueError(
            f"penalty_factor must be one number a feature, ({n_features},), got an array of shape "
            f"{factors.shape}"
        )
    if not np.all(np.isfinite(factors) & (factors >= 0)):
        raise ValueError(
            "penalty_factor must be finite numbers >= 0, got "
            f"{_first(factors, ~(np.isfinite(factors) & (factors >= 0)))}; to leave a feature out, "
            "give it the bounds (0, 0)"
        )
    if not factors.any():
        raise ValueError(
            "penalty_factor is zero for all features, so that no strength counts: a single fit "
            "without penalty_factor has no penalty with alpha=0"
        )
    check_magnitude("penalty_factor, the largest,", float(factors.max()), positive=True)
    small = (factors > 0) & (factors < LEAST_FACTOR * factors.max())
    if small.any():
        raise ValueError(
            f"penalty_factor must be 0 or at least {LEAST_FACTOR:g} times the largest, "
            f"{factors.max():g}, got {_first(factors, small)}: no dual point of double precision "
            "proves more"
        )
    return factors


def unpenalised(estimator: Estimator, n_features: int) -> NDArray[np.intp]:
    """The features whose factor is 0 in an estimator that was fitted to so many."""
    given = getattr(estimator, "penalty_factor", None)
    factors = checked_factors(given, n_features, feature_labels(estimator))
    return np.flatnonzero(np.ones(0) if factors is None else factors == 0)


def checked_bounds(
    bounds: object, n_features: int, labels: Sequence[object] | None = None
) -> Bounds | None:
    """Lower and upper bounds, one a feature, infinite where not given; None for no bounds.

    ``labels`` are the names of the features, for bounds by name.

    Raises ValueError that names ``bounds``.
    """
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        bounds = sides_of(bounds)
    if not (isinstance(bounds, list | tuple) and len(bounds) == 2):
        raise ValueError(
            "bounds must be a pair (lower, upper) of numbers, arrays with one number a feature or "
            "None, or a dict of such pairs of numbers by feature, {'age': (0, None)}, got "
            f"{shown(bounds)}"
        )
    lower = _one_side("bounds: lower", bounds[0], -np.inf, n_features, labels)
    upper = _one_side("bounds: upper", bounds[1], np.inf, n_features, labels)
    if not np.all(lower <= 0):
        raise ValueError(f"bounds: lower must be <= 0, got {_first(lower, ~(lower <= 0))}")
    if not np.all(upper >= 0):
        raise ValueError(f"bounds: upper must be >= 0, got {_first(upper, ~(upper >= 0))}")
    return lower, upper


def sides_of(bounds: Mapping[Any, Any]) -> tuple[dict[object, object], dict[object, object]]:
    """The lower and the upper bounds by feature, of pairs by feature."""
    for name, pair in bounds.items():
        if not (isinstance(pair, list | tuple) and len(pair) == 2):
            raise ValueError(
                f"bounds[{name!r}] must be a pair (lower, upper) of numbers or None, got "
                f"{shown(pair)}: (0, None) for a coefficient that is not negative"
            )
    return (
        {name: -np.inf if low is None else low for name, (low, _) in bounds.items()},
        {name: np.inf if high is None else high for name, (_, high) in bounds.items()},
    )


def unbounded(n_features: int) -> Bounds:
    """Infinite bounds."""
    return np.full(n_features, -np.inf), np.full(n_features, np.inf)


def scaled_bounds(bounds: Bounds, scale: Array) -> Bounds:
    """Bounds of the coefficients of features divided by ``scale``.

    A constant feature has an infinite scale and keeps its bounds: its coefficient is zero.
    """
    finite = np.where(np.isfinite(scale), scale, 1.0)
    with np.errstate(over="ignore"):  # an overflow means no bound
        return bounds[0] * finite, bounds[1] * finite


def warn_if_separated(problems: Iterable[Problem]) -> None:
    """Warn if the features without a penalty separate the classes of a problem."""
    if any(map(are_separated, problems)):
        warnings.warn(
            "the features without a penalty separate the classes: the objective is zero with their "
            "coefficients alone, which have no optimum or many; penalise them",
            UserWarning,
            stacklevel=users_level(),
        )


def _one_side(
    name: str, given: object, default: float, n_features: int, labels: Sequence[object] | None
) -> Array:
    given = by_feature(name, given, n_features, labels, missing=default)
    side = real_numbers(name, default if given is None else given)
    if side.ndim > 0 and side.shape != (n_features,):
        raise ValueError(
            f"{name} must be a number or one a feature, ({n_features},), got an array of shape "
            f"{side.shape}"
        )
    if np.isnan(side).any():
        raise ValueError(f"{name} must be numbers, got nan")
    check_magnitude(
        name, float(np.max(np.abs(side), initial=0.0, where=np.isfinite(side))), positive=False
    )
    return np.array(np.broadcast_to(side, n_features), dtype=np.float64)


def _first(values: Array, bad: NDArray[np.bool_]) -> str:
    """The first invalid number and its feature."""
    index = int(np.argmax(bad))
    return f"{values[index]:g} for feature {index} (counted from 0)"
