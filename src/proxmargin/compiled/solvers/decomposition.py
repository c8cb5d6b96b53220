"""Sequential minimal optimisation on a dense block: two coordinates at a time, in closed form."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["pairwise"]

LEAST_CURVATURE = 1e-12  # relative to the largest diagonal entry; replaces a curvature <= 0
FAR = 1e300  # excludes a coordinate from a minimum: with infinities it would not vectorise
# all values are finite: minima and maxima vectorise
FINITE = {"nnan", "ninf", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=FINITE)
def _update_gradient(gradient, step, row, other):
    """``gradient += step (row - other)``."""
    for k in range(gradient.size):
        gradient[k] += step * (row[k] - other[k])


@njit(cache=True, nogil=True, fastmath=FINITE)
def _ends(gradient, grows, falls):
    """The least gradient of coordinates that may grow, the largest of those that may fall."""
    lowest, highest = FAR, -FAR
    for k in range(gradient.size):
        lowest = min(lowest, gradient[k] + grows[k])
        highest = max(highest, gradient[k] - falls[k])
    return lowest, highest


@njit(cache=True, nogil=True, fastmath=FINITE)
def _gains(gradient, falls, at, row, diagonal, own, floor, out):
    """Second-order gains of pairs with a coordinate of gradient ``at``; returns the largest."""
    best = 0.0
    for k in range(gradient.size):
        ahead = max(gradient[k] - falls[k] - at, 0.0)
        gain = ahead * ahead / max(own + diagonal[k] - 2.0 * row[k], floor)
        out[k] = gain
        best = max(best, gain)
    return best


@njit(cache=True, nogil=True)
def _first(numbers, wanted):
    """The first index of ``wanted``, or -1."""
    for k in range(numbers.size):
        if numbers[k] == wanted:
            return k
    return -1


@njit(cache=True, nogil=True)
def _lowest(gradient, grows, wanted):
    """The first coordinate that may grow and has the gradient ``wanted``, or -1."""
    for k in range(gradient.size):
        if gradient[k] == wanted and grows[k] == 0.0:
            return k
    return -1


@njit(cache=True, nogil=True)
def pairwise(matrix, value, gradient, low, high, split, tol, most):
    """Lower ``v'Qv / 2 - p'v`` over ``low <= v <= high``, the sum of each of two groups fixed.

    Of each group the coordinate that gains most by growing, i, is paired with the one, j, for
    which the step's second-order gain ``(g_j - g_i)^2 / (Q_ii + Q_jj - 2 Q_ij)`` is largest: the
    second-order working set selection of Fan, Chen and Lin (2005).

    Parameters
    ----------
    matrix : (n, n)
        Q, symmetric and positive semidefinite.
    value, gradient : (n,)
        v and ``Q v - p``; overwritten with what is found.
    low, high : (n,)
    split : int
        The first ``split`` coordinates are a group, the others the other one.
    tol : float
        Ends where no pair of a group has ``g_j - g_i`` above it: where v_i may grow and v_j fall.
    most : int
        Pairs that are moved at most.

    Returns
    -------
    pairs : int
        Number of pairs that were moved.
    violation : float
        The largest ``g_j - g_i`` there was before the last of them.
    """
    n = value.size
    diagonal, gain = np.empty(n), np.zeros(n)
    grows, falls = np.empty(n), np.empty(n)
    for k in range(n):
        diagonal[k] = matrix[k, k]
        grows[k] = 0.0 if value[k] < high[k] else FAR
        falls[k] = 0.0 if value[k] > low[k] else FAR
    floor = LEAST_CURVATURE * max(diagonal.max(), 1e-300)
    violation = 0.0
    for pairs in range(most):
        violation, best, i, j = 0.0, 0.0, -1, -1
        for start, stop in ((0, split), (split, n)):
            lowest, highest = _ends(gradient[start:stop], grows[start:stop], falls[start:stop])
            if not highest > lowest:
                continue
            violation = max(violation, highest - lowest)
            up = start + _lowest(gradient[start:stop], grows[start:stop], lowest)
            row = matrix[up]
            most_gain = _gains(
                gradient[start:stop],
                falls[start:stop],
                lowest,
                row[start:stop],
                diagonal[start:stop],
                diagonal[up],
                floor,
                gain[start:stop],
            )
            if most_gain > best:
                best, i = most_gain, up
                j = start + _first(gain[start:stop], most_gain)
        if violation <= tol or i < 0:
            return pairs, violation
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * matrix[i, j], floor)
        room_up, room_down = high[i] - value[i], value[j] - low[j]
        step = min((gradient[j] - gradient[i]) / curvature, room_up, room_down)
        # an end that is reached is reached exactly
        value[i] = high[i] if step == room_up else value[i] + step
        value[j] = low[j] if step == room_down else value[j] - step
        for k in (i, j):
            grows[k] = 0.0 if value[k] < high[k] else FAR
            falls[k] = 0.0 if value[k] > low[k] else FAR
        _update_gradient(gradient, step, matrix[i], matrix[j])
    return most, violation
