"""Logarithms that would cancel, in closed forms that do not."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit


@njit(cache=True, nogil=True, inline="always")
def log_excess(x):
    """``x - log(1 + x) >= 0`` without cancellation."""
    if abs(x) > 1e-2:
        return x - math.log1p(x)
    return x * x * (0.5 - x * (1 / 3 - x * (0.25 - x * (0.2 - x * (1 / 6 - x * (1 / 7 - x / 8))))))


@njit(cache=True, nogil=True, inline="always")
def relative_entropy(a, p, log_p):
    """``a log(a / p) + p - a >= 0`` for a > 0, also where p is too small for a float."""
    if abs(p - a) <= 0.5 * a:
        return a * log_excess((p - a) / a)
    return a * (math.log(a) - log_p) + (p - a)
