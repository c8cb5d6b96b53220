"""Exponentials and logarithms that compilers vectorise: without branches and calls.

For ``x <= 0``, ``e^x = 2^k e^r`` with k the integer next to ``x / log 2`` and ``|r| <= log(2) / 2``
(Cody and Waite 1980), where the Taylor polynomial of degree 13 is exact to ``r^14 / 14! < 5e-18``.
For ``0 <= e <= 1``, ``log(1 + e)`` is ``2 artanh(z / (2 + z))`` with ``z = e`` or, above
``sqrt(2) - 1``, ``log 2`` and that of ``z = (e - 1) / 2``: the argument u of artanh is at most
0.1716 in absolute value, and its series up to u^23 is exact to ``u^24 / 25 < 2e-20`` of u.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from proxmargin.compiled.cache import njit

LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
LOG_2_HIGH = 0.693147180369123816490  # with 21 zeros at the end: k times it is exact
LOG_2_LOW = 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0  # 1.5 2^52: what is added to it is rounded to an integer
LEAST = -708.39  # its power is the least normal number, nearly: those below count as zero
ROOT_2_LESS_1 = 0.41421356237309503
BIAS = 1023  # of exponents
MANTISSA = 52  # bits


@intrinsic
def _bits(typing: Any, value: Any) -> Any:
    """The bits of a float as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def _float(typing: Any, value: Any) -> Any:
    """The float that has these bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath={"contract"})
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
    # the low bits of the rounded number are those of k
    power = (_bits(rounded) + BIAS) << MANTISSA  # type: ignore[call-arg]
    return (1.0 + s) * _float(power) if is_normal else 0.0


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath={"contract"})
def fast_log1p(e):
    """``log(1 + e)`` for ``0 <= e <= 1``, to three units in the last place."""
    far = e > ROOT_2_LESS_1
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
    return LOG_2 + value if far else value
