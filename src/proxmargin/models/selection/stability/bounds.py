"""Bounds on the expected number of features that are chosen by mistake.

A half-sample selects at most q of p features; features whose frequency over B complementary pairs
reaches the threshold pi are stable. Features of *low selection probability* are those that a
half-sample selects with probability at most ``theta = q / p``: if noise features are chosen no more
often than features at random, all of them are. Shah and Samworth (2013) bound the expected
number of stable features among them

- without an assumption by ``q^2 / (p (2 pi - 1))``, equation (6), that of Meinshausen and
  Buehlmann (2010), Theorem 1;
- if frequencies of simultaneous selection are unimodal by ``C(pi, B) q^2 / p``, Theorem 2;
- if they are r-concave by ``p min(D(theta^2, 2 pi - 1, B, -1/2), D(theta, pi, 2 B, -1/4))``,
  equation (8), where ``D(eta, t, B, r)`` is the largest probability of at least t under an
  r-concave distribution on 0, 1/B, ..., 1 with mean eta.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[np.float64]

ASSUMPTIONS = ("none", "unimodal", "r-concave")
UNBOUNDED = np.inf  # where a bound does not hold
SIMULTANEOUS = 1  # doublings in -1/r = 2 for r = -1/2, of simultaneous selection; section 3.3
SINGLE = 2  # the same for r = -1/4, of selection by one half-sample; section 3.3
EVEN = 1e-9  # a threshold this close to a multiple of 1/(2B) is that multiple
SMALLEST_SHIFT = 1e-5  # least a of the extremal distributions (a + i)^(1/r)
LARGEST_SHIFT = 1e5  # largest a: they are nearly uniform
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0  # factor of the bracket in a golden-section search
SECTIONS = 40  # of that search: brackets shrink by 4e-9


def reached(threshold: float, n_pairs: int) -> int:
    """The number of half-samples, of ``2 n_pairs``, that reaches the threshold."""
    return int(np.ceil(2 * n_pairs * threshold - EVEN))


def false_selections(threshold: float, q: float, p: int, n_pairs: int, assumption: str) -> float:
    """The bound on the expected number of stable features of low selection probability.

    ``threshold``: float in (0.5, 1]. ``q``: float in (0, p], features selected by a half-sample, or
    their mean. ``assumption``: {'none', 'unimodal', 'r-concave'}. `UNBOUNDED` where the theorem
    does not apply: for thresholds just above 1/2 or a large q.
    """
    if assumption == "none":
        return q**2 / p / (2.0 * threshold - 1.0)
    if assumption == "unimodal":
        return q**2 / p * _unimodal_factor(threshold, q / p, n_pairs)
    return p * _tail(q / p, reached(threshold, n_pairs), n_pairs)


def least_threshold(q: float, p: int, pfer: float, n_pairs: int, assumption: str) -> float | None:
    """The least threshold whose bound is at most ``pfer``; None if there is none up to one. A
    multiple of ``1 / (2 n_pairs)``, as frequencies are, except without an assumption."""
    if assumption == "none":
        threshold = (q**2 / (pfer * p) + 1.0) / 2.0
        return threshold if threshold <= 1.0 else None
    low, high = n_pairs, 2 * n_pairs
    if _of_count(high, q, p, n_pairs, assumption) > pfer:
        return None
    while high - low > 1:  # bounds fall with the threshold
        middle = (low + high) // 2
        if _of_count(middle, q, p, n_pairs, assumption) <= pfer:
            high = middle
        else:
            low = middle
    return high / (2 * n_pairs)


def largest_q(threshold: float, p: int, pfer: float, n_pairs: int, assumption: str) -> int:
    """The largest integer q up to p whose bound is at most ``pfer``; 0 if there is none."""
    low, high = 0, p + 1
    while high - low > 1:  # bounds rise with q
        middle = (low + high) // 2
        if false_selections(threshold, middle, p, n_pairs, assumption) <= pfer:
            low = middle
        else:
            high = middle
    return low


def _of_count(count: int, q: float, p: int, n_pairs: int, assumption: str) -> float:
    return false_selections(count / (2 * n_pairs), q, p, n_pairs, assumption)


def _unimodal_factor(threshold: float, theta: float, n_pairs: int) -> float:
    """C of Theorem 2."""
    half = 1.0 / (2 * n_pairs)
    if threshold > 0.75:
        return 4.0 * (1.0 - threshold + half) / (1.0 + 2.0 * half)
    least = 0.5 + min(theta**2, half + 0.75 * theta**2)
    room = 2.0 * threshold - 1.0 - half
    # thresholds of the theorem are multiples of 1/(2B), from 1/2 + 1/B on
    valid = threshold > least and threshold >= 0.5 + 2.0 * half - EVEN
    return 1.0 / (2.0 * room) if valid else UNBOUNDED


@lru_cache(maxsize=4096)
def _tail(theta: float, count: int, n_pairs: int) -> float:
    """The minimum of (8) for a frequency of at least ``count / (2 n_pairs)``."""
    both = _largest_tail(theta**2, count - n_pairs, n_pairs, SIMULTANEOUS)
    return min(both, _largest_tail(theta, count, 2 * n_pairs, SINGLE))


def _largest_tail(mean: float, count: int, steps: int, doublings: int) -> float:
    """``D(mean, count / steps, steps, -1 / 2**doublings)``; 1 where it is not known to be less.

    Appendix A.4: a maximiser is proportional to ``(a + i)^(1/r)`` up to some i = k, and mixes
    the distributions that end at k and at k + 1. ``a`` lies between those shifts for which the
    distribution that ends at k + 1, or at k, has the given mean.
    """
    first = int(np.ceil(2.0 * mean * steps)) + 1
    if count < first or first >= steps:
        return 1.0
    ends = np.arange(first, steps + 1)
    shifts = _shifts(mean * steps, ends, doublings)
    return _highest(mean * steps, count, ends[:-1], shifts, doublings)


def _weights(i: Array, a: Array | float, doublings: int) -> Array:
    """``(a + i)^(1/r)`` but for a factor, as ``a^(1/r)`` may underflow."""
    weights: Array = a / (a + i)
    for _ in range(doublings):
        weights = weights * weights
    return weights


def _shifts(total: float, ends: NDArray[np.intp], doublings: int) -> Array:
    """For each end k the shift a at which ``(a + i)^(1/r)``, i = 0..k, has the mean ``total``."""
    shifts = np.empty(ends.size)
    highest = LARGEST_SHIFT
    for place, k in enumerate(ends.tolist()):
        i = np.arange(k + 1.0)

        def excess(a: float, i: Array = i) -> float:
            weights = _weights(i, a, doublings)
            return float(i @ weights / weights.sum()) - total

        low = excess(SMALLEST_SHIFT)
        highest = brentq(excess, SMALLEST_SHIFT, highest, xtol=1e-13) if low < 0 else SMALLEST_SHIFT
        shifts[place] = highest
    return shifts


def _highest(
    total: float, count: int, ends: NDArray[np.intp], shifts: Array, doublings: int
) -> float:
    """The largest tail over ends and shifts, by a golden-section search for all ends at once."""
    i = np.arange(ends[-1] + 1.0)
    inside = i <= ends[:, None]
    lengths = (ends[:, None] + 1.0 - i) * inside

    def tails(a: Array) -> Array:
        weights = _weights(i, a[:, None], doublings)
        # the part of mass below the count
        below = (ends + 1.0 - total) * weights[:, :count].sum(axis=1)
        return 1.0 - below / (lengths * weights).sum(axis=1)

    low, high = shifts[1:].copy(), shifts[:-1].copy()
    best = np.maximum(tails(low), tails(high))
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_left, at_right = tails(left), tails(right)
        best = np.maximum(best, np.maximum(at_left, at_right))
        rises = at_left < at_right
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return float(np.clip(best.max(), 0.0, 1.0))
