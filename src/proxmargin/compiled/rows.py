"""The sum-to-zero row problem, row by row."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sum_to_zero_rows", "sum_to_zero_shifts"]


@njit(cache=True, nogil=True)
def _root(row, threshold):  # type: ignore[no-untyped-def]
    """The shift for which the soft-thresholded row sums to zero.

    The sum is non-increasing and piecewise linear in the shift. Newton steps solve the piece they
    stand on exactly, so they end when the piece no longer changes; bisection guards them.
    """
    low, high = row.min() - threshold, row.max() + threshold
    shift = 0.5 * (low + high)
    for _ in range(200):
        total, active = 0.0, 0
        for value in row:
            moved = value - shift
            if moved > threshold:
                total += moved - threshold
                active += 1
            elif moved < -threshold:
                total += moved + threshold
                active += 1
        if total > 0.0:
            low = shift
        elif total < 0.0:
            high = shift
        else:
            break
        candidate = shift + total / active
        if not low < candidate < high:
            candidate = 0.5 * (low + high)
        if candidate == shift:
            break
        shift = candidate
    return shift


@njit(cache=True, nogil=True)
def sum_to_zero_rows(rows, thresholds):  # type: ignore[no-untyped-def]
    """``argmin_w 1/2 |w - z|^2 + threshold |w|_1, sum(w) = 0`` for each row z: (17) of [X].

    Parameters
    ----------
    rows : (n_rows, n_classes) float64
    thresholds : (n_rows, 1) >= 0

    Returns
    -------
    (n_rows, n_classes), a new array
    """
    out = np.zeros_like(rows)
    for i in range(rows.shape[0]):
        row, threshold = rows[i], thresholds[i, 0]
        if row.max() - row.min() <= 2.0 * threshold:
            continue
        shift = _root(row, threshold)
        total, active = 0.0, 0
        for k in range(row.size):
            moved = row[k] - shift
            if moved > threshold:
                out[i, k] = moved - threshold
            elif moved < -threshold:
                out[i, k] = moved + threshold
            total += out[i, k]
            active += out[i, k] != 0.0
        for k in range(row.size):  # what rounding left of entries far larger than their sum
            if out[i, k] != 0.0:
                out[i, k] -= total / active
    return out


@njit(cache=True, nogil=True)
def sum_to_zero_shifts(rows, threshold):  # type: ignore[no-untyped-def]
    """The shift of each row that `sum_to_zero_rows` subtracts; the midrange where it is not unique.

    Returns
    -------
    (n_rows, 1)
    """
    out = np.empty((rows.shape[0], 1))
    for i in range(rows.shape[0]):
        row = rows[i]
        low, high = row.min(), row.max()
        out[i, 0] = 0.5 * (low + high) if high - low <= 2.0 * threshold else _root(row, threshold)
    return out
