"""Gaussian kernel values of squared distances: the exponential of a whole tile, vectorised.

``exp(x) = 2^k exp(r)`` with ``x = k log 2 + r``, ``|r| <= log(2) / 2``: log 2 is subtracted in two
parts, the first with so few digits that its multiples are exact (Cody and Waite 1980), and exp(r)
is its Taylor polynomial, whose remainder is below an ulp. Adding 1.5 times the largest power of two
with a last digit of one rounds to a whole number, which is then in the lowest digits: these,
shifted into the exponent, make 2^k.
"""

from __future__ import annotations

from math import factorial, log2

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["gaussian"]

TAYLOR = tuple(1.0 / factorial(k) for k in range(14))
LOG2_E = log2(np.e)
# log 2 in two parts, the first of 33 digits; in single precision of 10
LOG_2_HEAD = 0.693147180369123816490
LOG_2_TAIL = 1.90821492927058770002e-10
LOG_2_HEAD_SINGLE = np.float32(0.693359375)
LOG_2_TAIL_SINGLE = np.float32(-2.12194440e-4)
ROUNDING = 1.5 * 2.0**52  # added to a number, it leaves a whole one
ROUNDING_SINGLE = np.float32(1.5 * 2.0**23)
LEAST = -708.0  # exponents below give zero: so do those of numbers with fewer digits
LEAST_SINGLE = np.float32(-87.0)
BIAS = 1023  # of the exponent, double precision
DIGITS = 52  # bits of the fraction
BIAS_SINGLE = np.int32(127)  # single precision
DIGITS_SINGLE = np.int32(23)

T0, T1, T2, T3, T4, T5, T6, T7 = (np.float32(each) for each in TAYLOR[:8])
ZERO_SINGLE = np.float32(0.0)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _in_double(line, gamma):
    for k in range(line.size):
        x = -gamma * abs(line[k])
        low = x < LEAST
        x = LEAST if low else x
        shifted = x * LOG2_E + ROUNDING
        whole = shifted - ROUNDING
        r = (x - whole * LOG_2_HEAD) - whole * LOG_2_TAIL
        p = TAYLOR[13]
        p = p * r + TAYLOR[12]
        p = p * r + TAYLOR[11]
        p = p * r + TAYLOR[10]
        p = p * r + TAYLOR[9]
        p = p * r + TAYLOR[8]
        p = p * r + TAYLOR[7]
        p = p * r + TAYLOR[6]
        p = p * r + TAYLOR[5]
        p = p * r + TAYLOR[4]
        p = p * r + TAYLOR[3]
        p = p * r + TAYLOR[2]
        p = p * r + TAYLOR[1]
        p = p * r + TAYLOR[0]
        power = np.int64((np.float64(shifted).view(np.int64) + BIAS) << DIGITS).view(np.float64)
        line[k] = 0.0 if low else p * power


@njit(cache=True, nogil=True, fastmath={"contract"})
def _in_single(line, gamma):
    for k in range(line.size):
        x = -gamma * abs(line[k])
        low = x < LEAST_SINGLE
        x = LEAST_SINGLE if low else x
        shifted = x * np.float32(LOG2_E) + ROUNDING_SINGLE
        whole = shifted - ROUNDING_SINGLE
        r = (x - whole * LOG_2_HEAD_SINGLE) - whole * LOG_2_TAIL_SINGLE
        p = T7
        p = p * r + T6
        p = p * r + T5
        p = p * r + T4
        p = p * r + T3
        p = p * r + T2
        p = p * r + T1
        p = p * r + T0
        biased = np.float32(shifted).view(np.int32) + BIAS_SINGLE
        power = np.int32(biased << DIGITS_SINGLE).view(np.float32)
        line[k] = ZERO_SINGLE if low else p * power


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
