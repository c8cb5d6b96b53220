"""Reductions of the rows of coefficients; of a single column there is nothing to reduce.

NumPy would set up a loop of one entry for each row, which takes ten times as long as the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest_of_rows", "live_rows", "sums_of_rows"]

Array = NDArray[np.float64]


def live_rows(coef: NDArray[Any]) -> NDArray[np.intp]:
    """The rows with an entry that is not zero."""
    return np.flatnonzero(coef[:, 0] if coef.shape[1] == 1 else coef.any(axis=1))


def sums_of_rows(values: Array) -> Array:
    """The sum of each row; of a single column a view, not to be written into."""
    total: Array = values[:, 0] if values.shape[1] == 1 else values.sum(axis=1)
    return total


def largest_of_rows(values: Array) -> Array:
    """The largest entry of each row; of a single column a view, not to be written into."""
    largest: Array = values[:, 0] if values.shape[1] == 1 else values.max(axis=1)
    return largest
