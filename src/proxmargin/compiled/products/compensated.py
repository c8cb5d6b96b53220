"""Products in twice the working precision: what a certificate needs where float64 is too coarse.

Sums of products are accumulated with the roundings of every product and of every sum added
up, too (Dot2 of Ogita, Rump and Oishi 2005). With u = 2^-53 and gamma_n = n u / (1 - n u),
the result of n terms is off by no more than ``u |x'y| + gamma_n^2 |x|'|y|``; ``sizes`` is the
last factor. Nothing here may be reordered or contracted: no fastmath.
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit

SPLIT = 134217729.0  # 2^27 + 1 halves the 53 digits of a double (Veltkamp)
LANES = 32  # sums side by side, none of which waits for another: as vectors of the processor


@njit(nogil=True)
def rounding_of_sum(a, b, total):
    """``a + b - total``, exactly (Knuth)."""
    part = total - a
    return (a - (total - part)) + (b - part)


@njit(nogil=True)
def rounding_of_product(a, b, product):
    """``a b - product``, exactly, away from overflow (Dekker)."""
    big = SPLIT * a
    a_high = big - (big - a)
    a_low = a - a_high
    big = SPLIT * b
    b_high = big - (big - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(nogil=True)
def add(head, tail, term):
    """Head + tail + term, where the tail collects the rounding of the head."""
    total = head + term
    return total, tail + rounding_of_sum(head, term, total)


@njit(nogil=True)
def times(a, b):
    """The rounded product and its rounding error, zero near overflow."""
    product = a * b
    if abs(a) == 1.0:
        return product, 0.0
    error = rounding_of_product(a, b, product)
    return product, error if math.isfinite(error) else 0.0


@njit(nogil=True)
def _accumulated(total, low, size, x, y):
    """A sum, its rounding and its absolute values after one more product."""
    product = x * y
    summed = total + product
    low += rounding_of_sum(total, product, summed)
    low += rounding_of_product(x, y, product)
    return summed, low, size + abs(product)


@njit(nogil=True)
def along(lines, right, out, sizes):
    """``out[i] = sum_j lines_ij right[j]`` and ``sizes[i] = sum_j |lines_ij right[j]|``.

    The bound holds for any order of the sums.
    """
    total, low, size = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for i in range(lines.shape[0]):
        total[:] = 0.0
        low[:] = 0.0
        size[:] = 0.0
        for start in range(0, lines.shape[1], LANES):
            line, part = lines[i, start : start + LANES], right[start : start + LANES]
            for k in range(part.size):
                x = np.float64(line[k])
                total[k], low[k], size[k] = _accumulated(total[k], low[k], size[k], x, part[k])
        whole = rest = 0.0
        for k in range(LANES):
            summed = whole + total[k]
            rest += rounding_of_sum(whole, total[k], summed) + low[k]
            whole = summed
        out[i] = whole + rest
        sizes[i] = size.sum()


@njit(nogil=True)
def across(lines, right, out, sizes):
    """``out[j] = sum_i lines_ij right[i]`` and the sums of absolute values, line by line."""
    low = np.zeros(out.size)
    out[:] = 0.0
    sizes[:] = 0.0
    for i in range(lines.shape[0]):
        y = right[i]
        if y == 0.0:
            continue
        for j in range(lines.shape[1]):
            x = np.float64(lines[i, j])
            out[j], low[j], sizes[j] = _accumulated(out[j], low[j], sizes[j], x, y)
    for j in range(out.size):
        out[j] += low[j]


@njit(nogil=True)
def gather(data, indices, indptr, right, out, sizes):
    """`along` for the entries of each compressed line."""
    for i in range(out.size):
        total = low = size = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            x, y = np.float64(data[entry]), right[indices[entry]]
            total, low, size = _accumulated(total, low, size, x, y)
        out[i] = total + low
        sizes[i] = size


@njit(nogil=True)
def scatter(data, indices, indptr, right, out, sizes):
    """`across` for the entries of each compressed line."""
    low = np.zeros(out.size)
    out[:] = 0.0
    sizes[:] = 0.0
    for i in range(right.size):
        y = right[i]
        if y == 0.0:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            x = np.float64(data[entry])
            out[j], low[j], sizes[j] = _accumulated(out[j], low[j], sizes[j], x, y)
    for j in range(out.size):
        out[j] += low[j]
