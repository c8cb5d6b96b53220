"""The sum-to-zero row problem, row by row."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.rounding import ROOT_STEPS, SLOPE_ROUNDING, SUM_ROUNDING


@njit(nogil=True)
def _root(row, threshold):
    """The shift for which the soft-thresholded row sums to zero.

    The sum is non-increasing and piecewise linear in the shift. Newton steps solve the piece they
    stand on exactly, so they end when the piece no longer changes; bisection guards them.
    """
    low, high = row.min() - threshold, row.max() + threshold
    shift = 0.5 * (low + high)
    for _ in range(ROOT_STEPS):
        total, size, active = 0.0, 0.0, 0
        for value in row:
            moved = value - shift
            if moved > threshold:
                total += moved - threshold
                size += moved - threshold
                active += 1
            elif moved < -threshold:
                total += moved + threshold
                size -= moved + threshold
                active += 1
        if abs(total) <= SUM_ROUNDING * size:
            break
        if total > 0.0:
            low = shift
        else:
            high = shift
        candidate = shift + total / active
        if not low < candidate < high:
            candidate = 0.5 * (low + high)
        if candidate == shift:
            break
        shift = candidate
    return shift


@njit(nogil=True)
def sum_to_zero_rows(rows, thresholds):
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


@njit(nogil=True)
def sum_to_zero_shifts(rows, threshold):
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


@njit(nogil=True)
def _water_level(ordered, amount):
    """The level with ``sum (row - level)_+ = amount`` for a descending row; the count above it."""
    total, count = 0.0, 0
    level = ordered[0]
    for k in range(ordered.size):
        if total - k * ordered[k] >= amount:
            break
        total += ordered[k]
        count = k + 1
        level = (total - amount) / count
    return level, count


@njit(nogil=True)
def _off_middle(down, up, cut, rest):
    """The state of `_cut` where ``cut`` is taken off the top and ``rest`` off the bottom.

    Returns
    -------
    off : float
        Twice the mean of what is left, less the sum of its two levels.
    slope : float
        Its derivative in ``cut``, where what is taken off is the same in all.
    mean, upper, lower : float
    """
    upper, above = _water_level(down, cut)
    lower, below = _water_level(up, rest)
    mean = (down.sum() - cut + rest) / down.size
    slope = 1.0 / max(above, 1) + 1.0 / max(below, 1) - 4.0 / down.size
    return 2.0 * mean - (upper - lower), slope, mean, upper, -lower


@njit(nogil=True)
def _cut(row, radius):
    """The shift and the cap of ``clip(row - shift, -cap, cap)`` in `balanced_linf_prox`.

    ``radius`` is what is cut off the row, at the top and at the bottom, and for a sum of zero
    the mean of the rest is half-way between the two levels. How far it is from there is a
    non-decreasing, piecewise linear function of what is cut off at the top: Newton steps, guarded
    by bisection. Where it has no root, all is cut off at one end.
    """
    down = np.sort(row)[::-1].copy()
    up = -down[::-1].copy()
    off, _, mean, upper, lower = _off_middle(down, up, 0.0, radius)
    if off >= 0.0:
        return mean, mean - lower
    off, _, mean, upper, lower = _off_middle(down, up, radius, 0.0)
    if off <= 0.0:
        return mean, upper - mean
    low, high, cut = 0.0, radius, 0.5 * radius
    for _ in range(ROOT_STEPS):
        off, slope, mean, upper, lower = _off_middle(down, up, cut, radius - cut)
        if off < 0.0:
            low = cut
        elif off > 0.0:
            high = cut
        else:
            break
        candidate = cut - off / slope if slope > SLOPE_ROUNDING else low
        if not low < candidate < high:
            candidate = 0.5 * (low + high)
        if candidate in (low, high):
            break
        cut = candidate
    return mean, 0.5 * (upper - lower)


@njit(nogil=True)
def balanced_linf_prox(rows, radii):
    """``argmin_w 1/2 |w - z|^2 + radius |w|_inf, sum(w) = 0`` for each row z.

    Parameters
    ----------
    rows : (n_rows, n_classes) float64
    radii : (n_rows, 1) >= 0

    Returns
    -------
    w : (n_rows, n_classes)
        Entries at the largest absolute value of a row have exactly that value.
    shifts : (n_rows, 1)
        The unconstrained prox of ``z - shift`` is the same w; a median where w = 0.
    """
    out, shifts = np.zeros_like(rows), np.empty((rows.shape[0], 1))
    for i in range(rows.shape[0]):
        row, radius = rows[i], radii[i, 0]
        median = np.median(row)
        shifts[i, 0] = median
        if np.abs(row - median).sum() <= radius:
            continue
        shift, cap = _cut(row, radius)
        shifts[i, 0] = shift
        total, inside = 0.0, 0
        for k in range(row.size):
            out[i, k] = min(max(row[k] - shift, -cap), cap)
            total += out[i, k]
            inside += abs(out[i, k]) < cap
        for k in range(row.size):  # what rounding left of entries far larger than their sum
            if abs(out[i, k]) < cap:
                out[i, k] -= total / inside
    return out, shifts
