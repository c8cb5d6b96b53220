"""Roots of functions of one number: exact line searches, and secular equations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from proxmargin.compiled.rounding import ROOT_STEPS, SUM_ROUNDING
from proxmargin.data.designs.base import Array

LINE_SEARCH_TOLERANCE = 0.05  # slope at the end over the first slope
END_SLOPE_FRACTION = 0.8  # slope at the end of a step over the first, up to which it is kept
LINE_SEARCH_STEPS = 100  # limit: more bisections than a step has bits


def increasing_root(slope: Callable[[float], float], tolerance: float, limit: int) -> float:
    """The root of an increasing slope on a ray, by doubling, then false position and bisection in
    turn: a step >= 0 at which ``|slope|`` is at most ``tolerance`` of the first, after at most
    ``limit`` evaluations. Zero if the slope at zero is not negative.
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


def secular_multipliers(values: Array, squares: Array, kappa: Array | float) -> Array:
    """The root mu > 0 of ``sum_j d_j^2 lambda_j / (lambda_j + mu)^2 = kappa^2``, or 0 without one.

    ``values`` lambda > 0 and ``squares`` d^2 are (n_equations, k). Newton's method on ``1 / kappa =
    1 / root(mu)``, which is concave in mu, so that iterates stay left of the root.
    """
    mu = np.zeros(len(values))
    for _ in range(ROOT_STEPS):
        shifted = values + mu[:, None]
        square = (squares * values / shifted**2).sum(axis=1)
        fall = (squares * values / shifted**3).sum(axis=1)
        left = square > kappa**2 * (1.0 + SUM_ROUNDING)
        step = np.divide(square, fall, out=np.zeros_like(mu), where=left)
        moved = mu + (np.sqrt(square) / kappa - 1.0) * step
        if np.array_equal(moved, mu):
            break
        mu = moved
    return mu
