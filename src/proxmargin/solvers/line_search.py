"""The root of an increasing function, for exact line searches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["increasing_root"]


def increasing_root(slope: Callable[[float], float], tolerance: float, limit: int) -> float:
    """The root of an increasing function, by doubling, then false position and bisection in turn.

    Parameters
    ----------
    slope : callable
        The derivative of a convex function along a ray, at steps >= 0.
    tolerance : float > 0
        Largest ``|slope|`` at the root, relative to ``|slope(0)|``.
    limit : int
        Limit of evaluations.

    Returns
    -------
    step : float
        Zero if the slope at zero is not negative.
    """
    first = slope(0.0)
    if not first < 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    at_low, at_high = first, np.inf
    for trial in range(limit):
        here = slope(step)
        if abs(here) <= tolerance * abs(first):
            return step
        if here < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high == np.inf:
            step = 2.0 * step
        elif trial % 2 == 0:
            step = low + (high - low) * at_low / (at_low - at_high)
        else:
            step = 0.5 * (low + high)
        if step in (low, high):  # neighbouring floats
            return step
    return low
