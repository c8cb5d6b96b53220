"""Sums and products with twice the digits: the rounding of each is kept beside it."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit

__all__ = ["add", "times"]

SPLIT = 134217729.0  # 2^27 + 1 halves the digits of a double (Veltkamp)


@njit(cache=True, nogil=True)
def add(head, tail, term):
    """Head + tail + term, where the tail collects the rounding of the head (Knuth's two-sum)."""
    total = head + term
    seen = total - head
    return total, tail + ((head - (total - seen)) + (term - seen))


@njit(cache=True, nogil=True)
def times(a, b):
    """The rounded product and its rounding error (Dekker); no error is told near overflow."""
    product = a * b
    if abs(a) == 1.0:
        return product, 0.0
    big = SPLIT * a
    a_head = big - (big - a)
    big = SPLIT * b
    b_head = big - (big - b)
    a_tail, b_tail = a - a_head, b - b_head
    error = ((a_head * b_head - product) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail
    return product, error if math.isfinite(error) else 0.0
