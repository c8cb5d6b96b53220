"""How far a step of an interior point method may go: all slacks and multipliers stay positive."""

from __future__ import annotations

import numpy as np

from proxmargin.losses.base import Array

__all__ = ["BOUNDARY_FRACTION", "COMPLEMENTARITY_FLOOR", "fastest_fall", "length_to_boundary"]

BOUNDARY_FRACTION = 0.995  # of the way to the boundary that a step may go
COMPLEMENTARITY_FLOOR = 1e-100  # of slacks and multipliers, in their units: ratios stay finite


def length_to_boundary(*pairs: tuple[Array, Array]) -> float:
    """The largest step length up to one after which no value is negative.

    Parameters
    ----------
    *pairs : (values, changes)
        Non-negative values, and their changes in a step of length one.
    """
    fastest = fastest_fall(*pairs)
    return 1.0 / fastest if fastest > 1.0 else 1.0


def fastest_fall(*pairs: tuple[Array, Array]) -> float:
    """The largest decrease of a value relative to itself; negative where all of them grow."""
    return max(_fall(values, changes) for values, changes in pairs)


def _fall(values: Array, changes: Array) -> float:
    ratio = np.divide(changes, values, out=np.zeros_like(changes), where=values > 0)
    return -float(ratio.min())
