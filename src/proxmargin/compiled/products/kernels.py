"""Kernel values: inner products of sparse rows, Gaussians of squared distances, and their products.

SciPy's product of sparse matrices has a sparse result, which kernels would only make dense again.
The exponential of a whole tile is vectorised: in double precision by `fast_exp`; in single
precision by the same steps with fewer digits.
"""

from __future__ import annotations

from math import factorial, log2

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.exponentials import fast_exp
from proxmargin.compiled.products.compensated import add

LOG2_E = np.float32(log2(np.e))
# log 2 in two parts, the first of 10 digits: its multiples are exact
LOG_2_HEAD = np.float32(0.693359375)
LOG_2_TAIL = np.float32(-2.12194440e-4)
ROUNDER = np.float32(1.5 * 2.0**23)  # added to a number, it leaves a whole one
LEAST = np.float32(-87.0)  # exponents below give zero
T0, T1, T2, T3, T4, T5, T6, T7 = (np.float32(1.0 / factorial(k)) for k in range(8))


@njit(nogil=True)
def sparse_products(data, indices, indptr, others_data, others_indices, others_indptr, out):
    """``out[i, k] = <row_i, other_k>`` in float64; costs a pass over the columns row i has.

    Parameters
    ----------
    data, indices, indptr : arrays
        The rows, (n_rows, n_features) compressed by rows.
    others_data, others_indices, others_indptr : arrays
        The others, (n_others, n_features) compressed by columns.
    out : (n_rows, n_others) float64
    """
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            j = indices[entry]
            for other in range(others_indptr[j], others_indptr[j + 1]):
                row[others_indices[other]] += value * others_data[other]


@njit(nogil=True)
def rbf_product(samples, anchors, weights, gamma, out):
    """``out[i] = sum_j weights_j exp(-gamma |sample_i - anchor_j|^2)``, by compensated sums.

    Distances are sums of squared differences: close samples far from all others keep their digits.
    """
    for i in range(samples.shape[0]):
        total = low = 0.0
        for j in range(anchors.shape[0]):
            distance = 0.0
            for k in range(samples.shape[1]):
                apart = np.float64(samples[i, k]) - np.float64(anchors[j, k])
                distance += apart * apart
            term = weights[j] * np.exp(-gamma * distance)
            total, low = add(total, low, term)
        out[i] = total + low


@njit(nogil=True, fastmath={"contract"})
def _in_double(line, gamma):
    for k in range(line.size):
        x = -gamma * abs(line[k])
        value = fast_exp(x)
        line[k] = x if x != x else value  # what is not a number stays so


@njit(nogil=True, fastmath={"contract"})
def _in_single(line, gamma):
    for k in range(line.size):
        x = -gamma * abs(line[k])
        low = x < LEAST
        x = LEAST if low else x
        shifted = x * LOG2_E + ROUNDER
        whole = shifted - ROUNDER
        r = (x - whole * LOG_2_HEAD) - whole * LOG_2_TAIL
        p = T7
        p = p * r + T6
        p = p * r + T5
        p = p * r + T4
        p = p * r + T3
        p = p * r + T2
        p = p * r + T1
        p = p * r + T0
        biased = np.float32(shifted).view(np.int32) + np.int32(127)
        power = np.int32(biased << np.int32(23)).view(np.float32)
        line[k] = np.float32(0.0) if low else p * power


@njit(nogil=True)
def gaussian(tile, gamma):
    """Replace ``tile`` by ``exp(-gamma |tile|)``, in its own precision.

    The relative error is below 2 ulps and that of the exponent, or the value below the least normal
    number.

    Parameters
    ----------
    tile : (m, n) float32 or float64, C-contiguous
        Squared distances, which rounding may have made negative.
    gamma : float
    """
    for i in range(tile.shape[0]):
        if tile.itemsize == 4:
            _in_single(tile[i], np.float32(gamma))
        else:
            _in_double(tile[i], gamma)
