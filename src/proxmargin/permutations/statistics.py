"""How far apart two classes are along a direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from proxmargin.rounding import EPS, score_levels

__all__ = ["OF_PROJECTIONS", "Statistic", "spread_of_t"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Statistic = Callable[[Array, Mask], Array]
"""From projections (n_samples, n_labelings) and the members of the second class to a number a
labeling; the larger, the farther apart."""


def mean_difference(projections: Array, second: Mask) -> Array:
    """Mean of the second class minus that of the first."""
    (mean, _), (other, _) = _moments(projections, second), _moments(projections, ~second)
    return mean - other


def t_statistic(projections: Array, second: Mask) -> Array:
    """Welch's t: the difference of the means over its standard error, which is no less than the
    rounding of a projection."""
    (mean, error), (other, its_error) = (_moments(projections, m) for m in (second, ~second))
    rounding = EPS * np.abs(projections).max(axis=0)
    spread = np.maximum(np.sqrt(error + its_error), rounding)
    return np.divide(mean - other, spread, out=np.zeros_like(mean), where=spread > 0)


def spread_of_t(t: Array, sizes: NDArray[np.integer]) -> Array:
    """The standard deviation within the classes over the difference of their means, from Welch's t
    of two classes of these sizes (their variances averaged as t does)."""
    scaled = np.abs(t) * np.sqrt((1.0 / sizes).sum())
    return np.divide(1.0, scaled, out=np.full_like(scaled, np.inf), where=scaled > 0)


def auc(projections: Array, second: Mask) -> Array:
    """The share of pairs of both classes in which the second class lies ahead; ties count half."""
    count = second.sum(axis=0)
    ranks = np.where(second, rankdata(score_levels(projections.T), axis=1).T, 0.0).sum(axis=0)
    pairs = count * (second.shape[0] - count)
    return np.asarray((ranks - count * (count + 1) / 2) / pairs)


def _moments(projections: Array, members: Mask) -> tuple[Array, Array]:
    """The mean of the members, and the square of its standard error."""
    count = members.sum(axis=0)
    mean = np.where(members, projections, 0.0).sum(axis=0) / count
    squares = np.where(members, (projections - mean) ** 2, 0.0).sum(axis=0)
    return mean, squares / (np.maximum(count - 1, 1) * count)


OF_PROJECTIONS: Mapping[str, Statistic] = MappingProxyType(
    {"mean-difference": mean_difference, "t": t_statistic, "auc": auc}
)
