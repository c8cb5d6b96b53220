"""Exponentials and logarithms: some that compilers vectorise, others that do not cancel.

`fast_exp` and `fast_log1p` are without branches and calls.
For ``x <= 0``, ``e^x = 2^k e^r`` with k the integer next to ``x / log 2`` and ``|r| <= log(2) / 2``
(Cody and Waite 1980), where the Taylor polynomial of degree 13 is exact to ``r^14 / 14! < 5e-18``.
For ``0 <= e <= 1``, ``log(1 + e)`` is ``2 artanh(z / (2 + z))`` with ``z = e`` or, above
``sqrt(2) - 1``, ``log 2`` and that of ``z = (e - 1) / 2``: the argument u of artanh is at most
0.1716 in absolute value, and its series up to u^23 is exact to ``u^24 / 25 < 2e-20`` of u.
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit

LOG2_E = math.log2(math.e)
LOG_2_HIGH = 0.693147180369123816490  # with 21 zeros at the end: k times it is exact
LOG_2_LOW = 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0  # 1.5 2^52: what is added to it is rounded to an integer
LEAST = -708.39  # its power is the least normal number, nearly: those below count as zero


@njit(nogil=True, allocates=False, error_model="numpy", fastmath={"contract"})
def fast_exp(x):
    """``e^x`` for ``x <= 0``, to two units in the last place; zero where it is not normal."""
    is_normal = x > LEAST
    x = max(x, LEAST)
    rounded = x * LOG2_E + ROUNDER
    k = rounded - ROUNDER
    r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    s = 1.0 / 6227020800.0
    s = s * r + 1.0 / 479001600.0
    s = s * r + 1.0 / 39916800.0
    s = s * r + 1.0 / 3628800.0
    s = s * r + 1.0 / 362880.0
    s = s * r + 1.0 / 40320.0
    s = s * r + 1.0 / 5040.0
    s = s * r + 1.0 / 720.0
    s = s * r + 1.0 / 120.0
    s = s * r + 1.0 / 24.0
    s = s * r + 1.0 / 6.0
    s = s * r + 0.5
    s = r + r * r * s
    # the low bits of the rounded number are those of k; exponents are biased, above 52 bits
    power = np.int64((np.float64(rounded).view(np.int64) + 1023) << 52).view(np.float64)
    return (1.0 + s) * power if is_normal else 0.0


@njit(nogil=True, allocates=False, error_model="numpy", fastmath={"contract"})
def fast_log1p(e):
    """``log(1 + e)`` for ``0 <= e <= 1``, to three units in the last place."""
    far = e > 0.41421356237309503  # sqrt(2) - 1
    z = 0.5 * (e - 1.0) if far else e
    u = z / (2.0 + z)
    v = u * u
    s = 1.0 / 23.0
    s = s * v + 1.0 / 21.0
    s = s * v + 1.0 / 19.0
    s = s * v + 1.0 / 17.0
    s = s * v + 1.0 / 15.0
    s = s * v + 1.0 / 13.0
    s = s * v + 1.0 / 11.0
    s = s * v + 1.0 / 9.0
    s = s * v + 1.0 / 7.0
    s = s * v + 1.0 / 5.0
    s = s * v + 1.0 / 3.0
    value = 2.0 * u + 2.0 * u * (v * s)
    return LOG_2_HIGH + (LOG_2_LOW + value) if far else value


@njit(nogil=True, inline="always")
def log_excess(x):
    """``x - log(1 + x) >= 0`` without cancellation."""
    if abs(x) > 1e-2:
        return x - math.log1p(x)
    return x * x * (0.5 - x * (1 / 3 - x * (0.25 - x * (0.2 - x * (1 / 6 - x * (1 / 7 - x / 8))))))


@njit(nogil=True, inline="always")
def relative_entropy(a, p, log_p):
    """``a log(a / p) + p - a >= 0`` for a > 0, also where p is too small for a float."""
    if abs(p - a) <= 0.5 * a:
        return a * log_excess((p - a) / a)
    return a * (math.log(a) - log_p) + (p - a)
