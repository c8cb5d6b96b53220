"""The logistic loss and its derivatives, without branches and calls, so that loops vectorise.

To eight units in the last place. Beyond a margin of 708 in absolute value, what falls off as
``exp(-|t|)`` is zero: below the least normal number, objectives count as zero.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.exponentials import fast_exp, fast_log1p

__all__ = ["logistic", "logistic_descent", "logistic_shares"]


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def logistic(t):
    """``log(1 + e^-t)``."""
    return fast_log1p(fast_exp(-abs(t))) + max(-t, 0.0)


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def logistic_shares(t):
    """``1 / (1 + e^-|t|)`` and the rest, ``1 / (1 + e^|t|)``."""
    e = fast_exp(-abs(t))
    near = 1.0 / (1.0 + e)
    return near, e * near


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def logistic_descent(t):
    """``1 / (1 + e^t)``."""
    near, far = logistic_shares(t)
    return far if t > 0.0 else near
