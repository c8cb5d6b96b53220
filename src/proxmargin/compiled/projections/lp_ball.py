"""The optimality conditions of the nearest point of an lp ball, entry by entry."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["lp_unit"]

EPS = float(np.finfo(np.float64).eps)


@njit(cache=True, nogil=True)
def _two_powers(a, b, e, y):
    """The root x >= 0 of ``a x + b x^e = y``, e >= 1: Newton from above, where it is monotone."""
    x = y / a if a > 0.0 else math.inf
    if b > 0.0:
        x = min(x, (y / b) ** (1.0 / e))
    while x > 0.0:
        power = b * x ** (e - 1.0)
        step = (a * x + power * x - y) / (a + e * power)
        if not step > 2.0 * EPS * x:
            return x - step
        x -= step
    return 0.0


@njit(cache=True, nogil=True)
def lp_unit(sizes, radius, q, multiplier, out):
    """Solve ``radius z + multiplier z^q = sizes`` for each entry, z >= 0.

    These are the optimality conditions of the nearest point ``radius z`` of an lp ball, q = p - 1.

    Parameters
    ----------
    sizes : (n,) in [0, 1]
    out : (n,), gets z

    Returns
    -------
    power : sum of z^p
    slope : minus its derivative in the multiplier, over p
    """
    power, slope = 0.0, 0.0
    for i in range(sizes.size):
        if q >= 1.0:
            z = _two_powers(radius, multiplier, q, sizes[i])
        else:  # in t = z^q the exponent is 1/q > 1
            z = _two_powers(multiplier, radius, 1.0 / q, sizes[i]) ** (1.0 / q)
        out[i] = z
        if z > 0.0:
            z_q = z**q
            power += z_q * z
            slope += z_q * z_q * z / (radius * z + multiplier * q * z_q)
    return power, slope
