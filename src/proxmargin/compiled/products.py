"""Products accumulated in float64 whatever the type of the data.

NumPy and SciPy would first copy float32 data to float64 for a float64 vector; these read the data
as they are: half the memory traffic at full precision. `along` and `across` are for dense
matrices with contiguous lines; `gather` and `scatter` for matrices compressed by lines, the first
multiplying along the lines (CSR times coefficients, CSC transposed times a dual), the second
across them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["across", "along", "gather", "scatter", "squares_across", "squares_along"]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def along(lines, right, out):  # type: ignore[no-untyped-def]
    """``out[i] = sum_j lines_ij right[j]``; the sum may be reordered, so that it vectorises."""
    for i in range(lines.shape[0]):
        total = 0.0
        for j in range(lines.shape[1]):
            total += np.float64(lines[i, j]) * right[j]
        out[i] = total


@njit(cache=True, nogil=True, fastmath={"contract"})
def across(lines, right, out):  # type: ignore[no-untyped-def]
    """``out[j] += sum_i lines_ij right[i]``, line by line."""
    for i in range(lines.shape[0]):
        factor = right[i]
        if factor != 0.0:
            for j in range(lines.shape[1]):
                out[j] += lines[i, j] * factor


@njit(cache=True, nogil=True)
def gather(data, indices, indptr, right, out):  # type: ignore[no-untyped-def]
    """``out[i] = sum_j data_ij right[j]`` over the entries of each compressed line i."""
    outputs = right.shape[1]
    if outputs == 1:
        column = right[:, 0]
        for i in range(out.shape[0]):
            total = 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                total += data[entry] * column[indices[entry]]
            out[i, 0] = total
        return
    for i in range(out.shape[0]):
        for k in range(outputs):
            out[i, k] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = data[entry]
            j = indices[entry]
            for k in range(outputs):
                out[i, k] += value * right[j, k]


@njit(cache=True, nogil=True)
def scatter(data, indices, indptr, right, out):  # type: ignore[no-untyped-def]
    """``out[j] += sum_i data_ij right[i]`` over the entries of each compressed line i."""
    outputs = right.shape[1]
    if outputs == 1:
        for i in range(right.shape[0]):
            factor = right[i, 0]
            if factor != 0.0:
                for entry in range(indptr[i], indptr[i + 1]):
                    out[indices[entry], 0] += data[entry] * factor
        return
    for i in range(right.shape[0]):
        live = False
        for k in range(outputs):
            if right[i, k] != 0.0:
                live = True
        if not live:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            value = data[entry]
            j = indices[entry]
            for k in range(outputs):
                out[j, k] += value * right[i, k]


@njit(cache=True, nogil=True)
def squares_along(data, indices, indptr, weights, out):  # type: ignore[no-untyped-def]
    """``out[i] = sum_j weights[j] data_ij^2`` over the entries of each compressed line i."""
    for i in range(out.size):
        total = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            total += weights[indices[entry]] * value * value
        out[i] = total


@njit(cache=True, nogil=True)
def squares_across(data, indices, indptr, weights, out):  # type: ignore[no-untyped-def]
    """``out[j] += sum_i weights[i] data_ij^2`` over the entries of each compressed line i."""
    for i in range(weights.size):
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            out[indices[entry]] += weights[i] * value * value
