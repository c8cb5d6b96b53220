"""What competes in a selection: features, or clusters of them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs import Design, moments
from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.factors import checked_factors
from proxmargin.estimators.frames import users_level
from proxmargin.selection.stability.clusters import correlated

__all__ = ["units_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def units_of(
    template: MarginEstimator, design: Design, shares: Array, level: float | None
) -> tuple[Index, Index]:
    """The unit of each feature, -1 if it does not compete; and its cluster.

    Parameters
    ----------
    shares : (n_samples,)
        Weights that sum to one.
    level : float, optional
        Correlation from which features are a cluster.

    Raises
    ------
    ValueError
        Nothing competes.

    Warns
    -----
    UserWarning
        Some features are constant.
    """
    p = design.n_features
    _, scale = moments(design, shares, constant=np.inf)
    constant = ~np.isfinite(scale)
    _check_constant(constant)
    factors = checked_factors(getattr(template, "penalty_factor", None), p)
    competes = ~constant if factors is None else ~constant & (factors > 0)
    if not competes.any():
        raise ValueError("penalty_factor is 0 for all features: there is nothing to select")
    clusters = np.arange(p) if level is None else correlated(design, shares, float(level))
    units = np.full(p, -1, np.intp)
    units[competes] = np.unique(clusters[competes], return_inverse=True)[1]
    return units, clusters


def _check_constant(constant: NDArray[np.bool_]) -> None:
    """Raise if all features are constant, warn if some are."""
    if constant.all():
        raise ValueError("all features are constant: there is nothing to select")
    if constant.any():
        first, count = int(np.argmax(constant)), int(constant.sum())
        warnings.warn(
            f"{count} feature{'s are' if count > 1 else ' is'} constant, the first one column "
            f"{first} (counted from 0): never selected, and not counted in the bounds",
            UserWarning,
            stacklevel=users_level(),
        )
