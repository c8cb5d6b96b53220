"""Inner products and sums of contiguous vectors."""

from __future__ import annotations

from proxmargin.compiled.cache import SUMS, njit


@njit(nogil=True, allocates=False, fastmath=SUMS)
def dot(left, right):
    """``left'right``; the sum may be reordered, so that it vectorises."""
    total = 0.0
    for i in range(left.size):
        total += left[i] * right[i]
    return total


@njit(nogil=True, allocates=False, fastmath={"contract"})
def add(factor, vector, out):
    """``out += factor * vector``."""
    for i in range(vector.size):
        out[i] += factor * vector[i]


@njit(nogil=True, allocates=False, fastmath={"contract"})
def add_four(factors, vectors, out):
    """``out += factors' vectors`` for four factors: ``out`` is read and written once."""
    first, second, third, fourth = vectors[0], vectors[1], vectors[2], vectors[3]
    a, b, c, d = factors[0], factors[1], factors[2], factors[3]
    for i in range(out.size):
        out[i] += a * first[i] + b * second[i] + c * third[i] + d * fourth[i]
