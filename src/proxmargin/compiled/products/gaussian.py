"""Gaussian kernel values of squared distances: the exponential of a whole tile, vectorised.

In double precision by `fast_exp`; in single precision by the same steps with fewer digits.
"""

from __future__ import annotations

from math import factorial, log2

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.exponentials import fast_exp

LOG2_E = np.float32(log2(np.e))
# log 2 in two parts, the first of 10 digits: its multiples are exact
LOG_2_HEAD = np.float32(0.693359375)
LOG_2_TAIL = np.float32(-2.12194440e-4)
ROUNDER = np.float32(1.5 * 2.0**23)  # added to a number, it leaves a whole one
LEAST = np.float32(-87.0)  # exponents below give zero
BIAS = np.int32(127)  # of the exponent
DIGITS = np.int32(23)  # bits of the fraction
T0, T1, T2, T3, T4, T5, T6, T7 = (np.float32(1.0 / factorial(k)) for k in range(8))
ZERO = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _in_double(line, gamma):
    for k in range(line.size):
        x = -gamma * abs(line[k])
        value = fast_exp(x)
        line[k] = x if x != x else value  # what is not a number stays so


@njit(cache=True, nogil=True, fastmath={"contract"})
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
        biased = np.float32(shifted).view(np.int32) + BIAS
        power = np.int32(biased << DIGITS).view(np.float32)
        line[k] = ZERO if low else p * power


@njit(cache=True, nogil=True)
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
