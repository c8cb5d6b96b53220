"""Nearest points of simplices and epigraphs row by row, and of matrices with given sums."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.cache import njit
from proxmargin.compiled.rounding import ROOT_STEPS, SUM_ROUNDING, TINY

# semismooth Newton method for the shifts of columns
STALL_FACTOR = 1e3  # multiple of rounding at which a residual that has stopped falling is rounding
MIN_DAMPING = 1e-12  # of the Jacobian, relative to its mean diagonal: more keeps certificates open
DAMPING = 0.1  # the same per unit of relative residual


class Columns(NamedTuple):
    """Rows, and the column sums that their projections onto simplices must have."""

    rows: NDArray[np.float64]  # (n, K)
    row_sums: NDArray[np.float64]  # (n,) >= 0
    column_sums: NDArray[np.float64]  # (K,) >= 0
    # >= 0; the residual of a shift is the column sums less the given ones, plus ridge times
    # the shift
    ridge: float


@njit(nogil=True, inline="always")
def project_row(row, size, out):
    """The nearest point of ``{y >= 0, sum(y) = size}``, written into ``out``.

    ``y_k = max(row_k - level, 0)``: entries below the mean excess are dropped until none is
    (Michelot, 1986). Everything is measured from the largest entry, so that the sum has the
    digits of ``size`` even where the row is far larger.

    Returns
    -------
    count : int
        Number of positive entries.
    """
    largest = row[0]
    for k in range(1, row.size):
        largest = max(largest, row[k])
    total, count = 0.0, 0
    for k in range(row.size):
        off = row[k] - largest
        if off > -size:
            total += off
            count += 1
    if count == 0:  # a simplex of size zero
        for k in range(row.size):
            out[k] = 0.0
        return 0
    level = (total - size) / count
    while True:
        total, kept = 0.0, 0
        for k in range(row.size):
            off = row[k] - largest
            if off > level:
                total += off
                kept += 1
        if kept >= count:
            break
        count = kept
        level = (total - size) / count
    for k in range(row.size):
        out[k] = max(row[k] - largest - level, 0.0)
    return count


@njit(nogil=True)
def project_rows(rows, sizes, out):
    """`project_row` for each row, with sizes >= 0 of their own; ``out`` may be ``rows``."""
    for i in range(rows.shape[0]):
        project_row(rows[i], sizes[i], out[i])


@njit(nogil=True)
def _expand(problem, shift, residual, jacobian):
    """The residual of the column sums at a shift, and its derivative.

    The derivative is ``sum_i diag(A_i) - A_i A_i' / |A_i|``, A_i the support of the projection of
    row i, plus the ridge.
    """
    n, classes = problem.rows.shape
    moved, out = np.empty(classes), np.empty(classes)
    support = np.empty(classes, np.intp)
    jacobian[:] = 0.0
    for k in range(classes):
        residual[k] = problem.ridge * shift[k] - problem.column_sums[k]
        jacobian[k, k] = problem.ridge
    for i in range(n):
        size = problem.row_sums[i]
        largest, second, best = -np.inf, -np.inf, 0
        for k in range(classes):
            moved[k] = problem.rows[i, k] + shift[k]
            if moved[k] > largest:
                largest, second, best = moved[k], largest, k
            elif moved[k] > second:
                second = moved[k]
        if second <= largest - size:  # a vertex
            residual[best] += size
            continue
        project_row(moved, size, out)
        count = 0
        for k in range(classes):
            if out[k] > 0.0:
                residual[k] += out[k]
                support[count] = k
                count += 1
        for a in range(count):
            jacobian[support[a], support[a]] += 1.0
            for b in range(count):
                jacobian[support[a], support[b]] -= 1.0 / count


@njit(nogil=True)
def solve_definite(matrix, right):
    """``matrix^-1 right`` by Cholesky's method; both are overwritten. For small matrices."""
    size = right.size
    for j in range(size):
        for i in range(j, size):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(max(total, TINY)) if i == j else total / matrix[j, j]
    for i in range(size):
        for k in range(i):
            right[i] -= matrix[i, k] * right[k]
        right[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for k in range(i + 1, size):
            right[i] -= matrix[k, i] * right[k]
        right[i] /= matrix[i, i]


@njit(nogil=True)
def column_newton(problem, shift):
    """Newton steps for the shift at which the projected rows have the wanted column sums.

    The Jacobian is singular along equal shifts, and nearly so in columns where no row has support;
    damping in proportion to the residual keeps steps there short. A step is good when the
    (increasing) slope along it has at least halved; it is found by doubling, then bisection.

    Parameters
    ----------
    problem : Columns
    shift : (K,)
        Where to start.

    Returns
    -------
    (K,)
    """
    classes = shift.size
    residual, ahead = np.empty(classes), np.empty(classes)
    jacobian, other = np.empty((classes, classes)), np.empty((classes, classes))
    direction = np.empty(classes)
    total = problem.column_sums.sum()
    size = np.abs(np.where(np.isfinite(problem.rows), problem.rows, 0.0)).max()
    rounding = SUM_ROUNDING * max(total, size)  # entries are differences
    shift = shift.copy()
    _expand(problem, shift, residual, jacobian)
    wrong = np.abs(residual).max()
    for _ in range(ROOT_STEPS):
        if wrong <= rounding:
            break
        scale = np.trace(jacobian) / classes
        damping = max(MIN_DAMPING, DAMPING * wrong / total) * max(scale, 1.0)
        for k in range(classes):
            direction[k] = -residual[k]
            for m in range(classes):
                jacobian[k, m] += scale / classes
            jacobian[k, k] += damping
        solve_definite(jacobian, direction)
        if problem.ridge == 0.0:  # equal shifts change nothing, but would cost digits
            direction -= direction.mean()
        slope = np.dot(residual, direction)
        low, high, step = 0.0, np.inf, 1.0
        for _ in range(ROOT_STEPS):
            _expand(problem, shift + step * direction, ahead, other)
            further = np.dot(ahead, direction)
            if abs(further) <= 0.5 * abs(slope):
                break
            if further < 0.0:
                low = step
            else:
                high = step
            step = 2.0 * step if high == np.inf else 0.5 * (low + high)
        left = np.abs(ahead).max()
        if left >= wrong and wrong <= STALL_FACTOR * rounding:
            break  # rounding
        shift += step * direction
        residual, ahead = ahead, residual
        jacobian, other = other, jacobian
        wrong = left
    return shift


@njit(nogil=True)
def project_epigraphs(rows, levels, codes, out, out_levels):
    """Nearest points of ``max_k y_k + [k != own] <= level``; ``out`` may be ``rows``.

    Proposition 3.3 of Chierchia et al. (2015).

    With nu the entries of ``y + r`` in descending order, the level is ``theta = (zeta + nu_1 + ...
    + nu_m) / (m + 1)`` for the m with ``nu_(m+1) <= theta <= nu_m``: entries are added while they
    are above the mean so far, which they only raise up to themselves. Rows are sorted by insertion,
    no further than that.

    Parameters
    ----------
    rows : (n, K)
    levels : (n,)
    codes : (n,) integers, the class of r_k = [k != own]
    out, out_levels : (n, K) and (n,)
    """
    classes = rows.shape[1]
    left = np.empty(classes)
    for i in range(rows.shape[0]):
        own = codes[i]
        for k in range(classes):
            value = rows[i, k] + (0.0 if k == own else 1.0)
            place = k
            while place > 0 and left[place - 1] < value:
                left[place] = left[place - 1]
                place -= 1
            left[place] = value
        total, level = levels[i], levels[i]
        for m in range(classes):
            if left[m] <= level:
                break
            total += left[m]
            level = total / (m + 2)
        for k in range(classes):
            out[i, k] = min(rows[i, k], level - (0.0 if k == own else 1.0))
        out_levels[i] = level
