"""Step lengths of interior point methods, which keep slacks and multipliers positive."""

from __future__ import annotations

import numpy as np

from proxmargin.losses.base import Array

__all__ = ["BOUNDARY_FRACTION", "COMPLEMENTARITY_FLOOR", "fastest_fall", "length_to_boundary"]

BOUNDARY_FRACTION = 0.995  # of the longest step inside the positive orthant
COMPLEMENTARITY_FLOOR = 1e-100  # of slacks and multipliers, in their units: ratios stay finite


def length_to_boundary(*pairs: tuple[Array, Array]) -> float:
    """The largest step length, at most one, after which no value is negative.

    Parameters
    ----------
    *pairs : (values, changes)
        Non-negative values, and their changes in a full step.
    """
    fastest = fastest_fall(*pairs)
    return 1.0 / fastest if fastest > 1.0 else 1.0


def fastest_fall(*pairs: tuple[Array, Array]) -> float:
    """The largest relative decrease of a value in a full step; negative if all values grow."""
    return max(_largest_relative_decrease(values, changes) for values, changes in pairs)


def _largest_relative_decrease(values: Array, changes: Array) -> float:
    ratio = np.divide(changes, values, out=np.zeros_like(changes), where=values > 0)
    return -float(ratio.min())
