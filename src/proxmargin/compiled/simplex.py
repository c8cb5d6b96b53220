"""Nearest points of simplices, row by row, and of matrices with given row and column sums."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["project_row", "project_rows", "shifted_rows"]


@njit(cache=True, nogil=True, inline="always")
def project_row(row, size, out):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def project_rows(rows, sizes, out):  # type: ignore[no-untyped-def]
    """`project_row` for each row, with sizes >= 0 of their own; ``out`` may be ``rows``."""
    for i in range(rows.shape[0]):
        project_row(rows[i], sizes[i], out[i])


@njit(cache=True, nogil=True)
def shifted_rows(rows, shift, sizes, out, jacobian):  # type: ignore[no-untyped-def]
    """Project ``rows + shift`` onto simplices, with what Newton's method for the shift needs.

    Parameters
    ----------
    rows : (n, K)
    shift : (K,)
    sizes : (n,) >= 0
    out : (n, K)
        The projections.
    jacobian : (K, K)
        Derivative of their column sums in the shift: ``sum_i diag(A_i) - A_i A_i' / |A_i|``,
        A_i the support of row i.
    """
    n, classes = rows.shape
    moved = np.empty(classes)
    support = np.empty(classes, dtype=np.int64)
    jacobian[:] = 0.0
    for i in range(n):
        for k in range(classes):
            moved[k] = rows[i, k] + shift[k]
        project_row(moved, sizes[i], out[i])
        count = 0
        for k in range(classes):
            if out[i, k] > 0.0:
                support[count] = k
                count += 1
        if count < 2:
            continue
        share = 1.0 / count
        for a in range(count):
            jacobian[support[a], support[a]] += 1.0
            for b in range(count):
                jacobian[support[a], support[b]] -= share
