"""The sum-to-zero row problem, row by row."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sum_to_zero_rows"]


@njit(cache=True, nogil=True)
def _soft_sum(row, shift, threshold):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in row:
        moved = value - shift
        if moved > threshold:
            total += moved - threshold
        elif moved < -threshold:
            total += moved + threshold
    return total


@njit(cache=True, nogil=True)
def _root(row, threshold):  # type: ignore[no-untyped-def]
    """The shift for which the soft-thresholded row sums to zero: bisection on the breakpoints."""
    count = row.size
    breaks = np.empty(2 * count)
    breaks[:count] = row - threshold
    breaks[count:] = row + threshold
    breaks.sort()
    left, right = 0, 2 * count - 1
    while right - left > 1:
        middle = (left + right) // 2
        if _soft_sum(row, breaks[middle], threshold) > 0.0:
            left = middle
        else:
            right = middle
    # inside one interval the active set is fixed: solve the linear equation
    inside = 0.5 * (breaks[left] + breaks[right])
    total = 0.0
    active = 0
    for value in row:
        if value - inside > threshold:
            total += value - threshold
            active += 1
        elif value - inside < -threshold:
            total += value + threshold
            active += 1
    if active == 0:
        return inside
    return min(max(total / active, breaks[left]), breaks[right])


@njit(cache=True, nogil=True)
def sum_to_zero_rows(rows, threshold):  # type: ignore[no-untyped-def]
    """``argmin_w 1/2 |w - z|^2 + threshold |w|_1, sum(w) = 0`` for each row z: (17) of [X].

    Parameters
    ----------
    rows : (n_rows, n_classes) float64
    threshold : float >= 0

    Returns
    -------
    (n_rows, n_classes), a new array
    """
    out = np.zeros_like(rows)
    for i in range(rows.shape[0]):
        row = rows[i]
        if row.max() - row.min() <= 2.0 * threshold:
            continue
        shift = _root(row, threshold)
        for k in range(row.size):
            moved = row[k] - shift
            if moved > threshold:
                out[i, k] = moved - threshold
            elif moved < -threshold:
                out[i, k] = moved + threshold
    return out
