"""Sums and products with twice the digits: the rounding of each is kept beside it."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit

SPLIT = 134217729.0  # 2^27 + 1 halves the 53 digits of a double (Veltkamp)


@njit(cache=True, nogil=True)
def rounding_of_sum(a, b, total):
    """``a + b - total``, exactly (Knuth)."""
    part = total - a
    return (a - (total - part)) + (b - part)


@njit(cache=True, nogil=True)
def rounding_of_product(a, b, product):
    """``a b - product``, exactly, away from overflow (Dekker)."""
    big = SPLIT * a
    a_high = big - (big - a)
    a_low = a - a_high
    big = SPLIT * b
    b_high = big - (big - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True, nogil=True)
def add(head, tail, term):
    """Head + tail + term, where the tail collects the rounding of the head."""
    total = head + term
    return total, tail + rounding_of_sum(head, term, total)


@njit(cache=True, nogil=True)
def times(a, b):
    """The rounded product and its rounding error; no error is told near overflow."""
    product = a * b
    if abs(a) == 1.0:
        return product, 0.0
    error = rounding_of_product(a, b, product)
    return product, error if math.isfinite(error) else 0.0
