"""Sequential minimal optimisation on a dense block: two coordinates at a time, in closed form.

Numba does not vectorise a minimum over an array, but does vectorise the minimum of two arrays,
entry by entry: arrays are folded to `LANES` entries, whose minimum tells where to look.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.vectors import add, dot
from proxmargin.compiled.solvers.quadratic_model import solve

LEAST_CURVATURE = 1e-12  # relative to the largest diagonal entry; replaces a curvature <= 0
LEAST_CURVATURE_SINGLE = 1e-7  # the same in single precision
# excludes a coordinate from a minimum; finite, so that minima vectorise
FAR = 1e30
# of a diagonal, over it, until the matrix has a factor
SHIFTS = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5)
LANES = 256  # entries that arrays are folded to
FINITE = {"nnan", "ninf", "nsz", "reassoc", "contract"}


# each loop writes one array: with more, the checks for overlap would keep it from being vectorised


@njit(nogil=True, fastmath=FINITE)
def _update(gradient, step, row, other):
    """``gradient += step (row - other)``."""
    for k in range(gradient.size):
        gradient[k] += step * (row[k] - other[k])


@njit(nogil=True, fastmath=FINITE)
def _fold_lowest(gradient, grows, lowest):
    for k in range(gradient.size):
        lowest[k] = min(lowest[k], gradient[k] + grows[k])


@njit(nogil=True, fastmath=FINITE)
def _fold_highest(gradient, falls, highest):
    for k in range(gradient.size):
        highest[k] = max(highest[k], gradient[k] - falls[k])


@njit(nogil=True, fastmath=FINITE)
def _fold_largest(gain, largest):
    for k in range(gain.size):
        largest[k] = max(largest[k], gain[k])


@njit(nogil=True, fastmath=FINITE, error_model="numpy")
def _gain(gradient, falls, at, row, diagonal, own, floor, zero, out):
    """Second-order gains of pairs with a coordinate of gradient ``at``."""
    for k in range(gradient.size):
        ahead = max(gradient[k] - falls[k] - at, zero)
        out[k] = ahead * ahead / max(own + diagonal[k] - row[k] - row[k], floor)


@njit(nogil=True)
def _ends(gradient, step, row, other, grows, falls, far, lowest, highest):
    """Take a step; fold the gradients of coordinates that may grow, and of those that may fall."""
    for k in range(LANES):
        lowest[k], highest[k] = far, -far
    for start in range(0, gradient.size, LANES):
        stop = min(start + LANES, gradient.size)
        part = gradient[start:stop]
        _update(part, step, row[start:stop], other[start:stop])
        _fold_lowest(part, grows[start:stop], lowest)
        _fold_highest(part, falls[start:stop], highest)


@njit(nogil=True)
def _gains(gradient, falls, at, row, diagonal, own, floor, zero, out, largest):
    """The gains of pairs, and their fold."""
    for k in range(LANES):
        largest[k] = zero
    for start in range(0, gradient.size, LANES):
        stop = min(start + LANES, gradient.size)
        part = out[start:stop]
        _gain(
            gradient[start:stop],
            falls[start:stop],
            at,
            row[start:stop],
            diagonal[start:stop],
            own,
            floor,
            zero,
            part,
        )
        _fold_largest(part, largest)


@njit(nogil=True)
def _lowest(gradient, grows, wanted, lane):
    """The first coordinate of this lane that may grow and has the gradient ``wanted``, or -1."""
    for k in range(lane, gradient.size, LANES):
        if gradient[k] == wanted and grows[k] == 0.0:
            return k
    return -1


@njit(nogil=True)
def _first(numbers, wanted, lane):
    """The first index of this lane with the number ``wanted``, or -1."""
    for k in range(lane, numbers.size, LANES):
        if numbers[k] == wanted:
            return k
    return -1


@njit(nogil=True)
def pairwise(matrix, value, gradient, low, high, split, tol, most):
    """Lower ``v'Qv / 2 - p'v`` over ``low <= v <= high``, the sum of each of two groups fixed.

    Of each group the coordinate that gains most by growing, i, is paired with the one, j, for
    which the step's second-order gain ``(g_j - g_i)^2 / (Q_ii + Q_jj - 2 Q_ij)`` is largest: the
    second-order working set selection of Fan, Chen and Lin (2005). Gradients have the precision of
    the matrix, about a level between those of the first pair.

    Parameters
    ----------
    matrix : (m, m) float32 or float64, m >= n
        Its first n rows and columns are Q, symmetric and positive semidefinite up to rounding.
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
    slope, diagonal = np.empty(n, matrix.dtype), np.empty(n, matrix.dtype)
    grows, falls = np.empty(n, matrix.dtype), np.empty(n, matrix.dtype)
    gain = np.zeros(n, matrix.dtype)
    lows, highs = np.empty(LANES, matrix.dtype), np.empty(LANES, matrix.dtype)
    largest, levels = np.empty(LANES, matrix.dtype), np.zeros(2)
    # constants of the matrix's precision: zero, far, the least curvature, the step
    fixed = np.zeros(4, matrix.dtype)
    fixed[1] = FAR
    for group, (start, stop) in enumerate(((0, split), (split, n))):
        lowest, highest = FAR, -FAR
        for k in range(start, stop):
            diagonal[k] = matrix[k, k]
            fixed[2] = max(fixed[2], diagonal[k])
            grows[k] = 0.0 if value[k] < high[k] else FAR
            falls[k] = 0.0 if value[k] > low[k] else FAR
            lowest = min(lowest, gradient[k] + grows[k])
            highest = max(highest, gradient[k] - falls[k])
        levels[group] = 0.5 * (lowest + highest) if highest > lowest else 0.0
        for k in range(start, stop):
            slope[k] = gradient[k] - levels[group]
    fixed[2] = max(fixed[2], 1e-30)
    fixed[2] *= LEAST_CURVATURE_SINGLE if matrix.itemsize == 4 else LEAST_CURVATURE
    violation, i, j, pairs = 0.0, 0, 0, 0
    while n:
        violation, best, here, there = 0.0, fixed[0], -1, -1
        row, other = matrix[i, :n], matrix[j, :n]
        for start, stop in ((0, split), (split, n)):
            if start == stop:
                continue
            _ends(
                slope[start:stop],
                fixed[3],
                row[start:stop],
                other[start:stop],
                grows[start:stop],
                falls[start:stop],
                fixed[1],
                lows,
                highs,
            )
            lane = lows.argmin()
            lowest, highest = lows[lane], highs.max()
            if not highest > lowest:
                continue
            violation = max(violation, highest - lowest)
            up = start + _lowest(slope[start:stop], grows[start:stop], lowest, lane)
            _gains(
                slope[start:stop],
                falls[start:stop],
                lowest,
                matrix[up, start:stop],
                diagonal[start:stop],
                diagonal[up],
                fixed[2],
                fixed[0],
                gain[start:stop],
                largest,
            )
            lane = largest.argmax()
            if largest[lane] > best:
                best, here = largest[lane], up
                there = start + _first(gain[start:stop], best, lane)
        if violation <= tol or here < 0 or pairs == most:
            break
        i, j = here, there
        curvature = max(diagonal[i] + diagonal[j] - 2.0 * matrix[i, j], fixed[2])
        room_up, room_down = high[i] - value[i], value[j] - low[j]
        step = min((np.float64(slope[j]) - slope[i]) / curvature, room_up, room_down)
        # an end that is reached is reached exactly
        value[i] = high[i] if step == room_up else value[i] + step
        value[j] = low[j] if step == room_down else value[j] - step
        for k in (i, j):
            grows[k] = 0.0 if value[k] < high[k] else FAR
            falls[k] = 0.0 if value[k] > low[k] else FAR
        fixed[3] = step
        pairs += 1
    for k in range(n):
        gradient[k] = slope[k] + levels[0 if k < split else 1]
    return pairs, violation


@njit(nogil=True)
def pairwise_and_faces(matrix, value, gradient, low, high, split, stages, tol, most):
    """`pairwise` up to each violation of ``stages`` and, between them, Newton's step on the face of
    the free coordinates; at last up to ``tol``. Returns the number of pairs that were moved."""
    pairs, stated = 0, (matrix, value, gradient, low, high, split)
    for stage in stages:
        pairs += pairwise(*stated, stage, most)[0]
        _to_minimum_on_face(*stated)
        if pairwise(*stated, tol, 0)[1] <= tol:
            break
    return pairs + pairwise(*stated, tol, most)[0]


@njit(nogil=True, error_model="numpy")
def _to_minimum_on_face(matrix, value, gradient, low, high, split):
    """Move free coordinates to the minimiser on their face, or to the first bound on the way. Where
    rounding has left the matrix no factor the step is damped (`_factored`), and still descends."""
    free = np.flatnonzero((value > low) & (value < high))
    m = free.size
    if m < 2:
        return
    factor, step = np.empty((m, m)), -gradient[free]
    if not _factored(matrix, free, factor):
        return
    solve(factor, m, step)
    first = 0
    for k in free:
        first += k < split
    across = np.empty((2, m))  # A^-1 of the ones of each group, orthogonal in A
    pivots = np.zeros(2)
    for group, (start, stop) in enumerate(((0, first), (first, m))):
        if start == stop:
            continue
        part = across[group]
        part[:] = 0.0
        part[start:stop] = 1.0
        solve(factor, m, part)
        if group and first:
            add(-part[:first].sum() / pivots[0], across[0], part)
        pivots[group] = part[start:stop].sum()
        if not pivots[group] > 0.0:
            return
        add(-step[start:stop].sum() / pivots[group], part, step)
    length = 1.0
    for a in range(m):
        if not np.isfinite(step[a]):
            return
        end = high[free[a]] if step[a] > 0.0 else low[free[a]]
        if step[a] != 0.0:
            length = min(length, (end - value[free[a]]) / step[a])
    for a in range(m):
        k = free[a]
        value[k] = min(max(value[k] + length * step[a], low[k]), high[k])
        add(length * step[a], matrix[k, : value.size], gradient)


@njit(nogil=True, error_model="numpy")
def _factored(matrix, free, factor):
    """The lower Cholesky factor of the rows and columns ``free``, with the first of `SHIFTS` of the
    diagonal that suffices; whether one does. A shift is rounding of the matrix, some 1e-15 or 1e-7
    of its diagonal by its precision, times its side; larger ones are of no semidefinite matrix."""
    for shift in SHIFTS:
        is_positive = True
        for a in range(free.size):
            row = factor[a]
            for b in range(a):
                row[b] = (matrix[free[a], free[b]] - dot(row[:b], factor[b, :b])) / factor[b, b]
            square = (1.0 + shift) * matrix[free[a], free[a]] - dot(row[:a], row[:a])
            is_positive = square > 0.0
            if not is_positive:
                break
            row[a] = np.sqrt(square)
        if is_positive:
            return True
    return False
