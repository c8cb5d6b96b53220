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

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from proxmargin.data.inputs.parameters import check_choice, check_number
from proxmargin.runtime.types import Array

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
    """The bound on the expected number of stable features of low selection probability, for ``q``
    features of a half-sample (or their mean); `UNBOUNDED` where the theorem does not apply: for
    thresholds just above 1/2 or a large q."""
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
    Appendix A.4: a maximiser is proportional to ``(a + i)^(1/r)`` and mixes the distributions that
    end at some k and k + 1, with ``a`` between the shifts at which these have the given mean."""
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


PAIRS = (5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of pairs that are worth a try
DIGITS = 3  # of a bound in a message


def remedies(asked: SelectionTerms, q: float, p: int) -> str:
    """The smallest attainable pfer, and all changes of one parameter of the terms without a
    solution that will do. ``q``: the given number, or 1 if it is to be found."""
    pairs, assumption = asked.n_pairs, asked.assumption
    at = 1.0 if asked.threshold is None else asked.threshold
    # any bound will do where there is none to meet
    most = sys.float_info.max if asked.pfer is None else asked.pfer
    bound = false_selections(at, q, p, pairs, assumption)
    threshold = None if asked.threshold is None else least_threshold(q, p, most, pairs, assumption)
    largest = 0 if asked.q is None else largest_q(at, p, most, pairs, assumption)
    more = [each for each in PAIRS if each > pairs]
    meeting = (each for each in more if false_selections(at, q, p, each, assumption) <= most)
    enough = next(meeting, None)
    ways = []
    if threshold is not None:
        count = reached(threshold, pairs)
        ways.append("threshold=1" if count == 2 * pairs else f"threshold >= {count}/{2 * pairs}")
    if largest:
        ways.append(f"q <= {largest}")
    if enough:
        ways.append(f"n_pairs >= {enough}")
    if asked.pfer is not None and isfinite(bound):
        ways.append(f"pfer >= {_up(bound)}")
    smallest = _up(false_selections(1.0, q, p, pairs, assumption))
    if not ways:  # only together with the highest threshold
        ways = [f"threshold=1 and pfer >= {smallest}"]
    *others, last = ways
    either = f"{', '.join(others)} or {last}" if others else last
    return f"the smallest pfer attainable is {smallest}, with threshold=1; give {either}"


def _up(bound: float) -> str:
    """A bound rounded up, so that it is met when it is given back."""
    if bound == 0.0:
        return "0"
    unit = 10.0 ** (floor(log10(bound)) + 1 - DIGITS)
    return f"{ceil(bound / unit) * unit:.{DIGITS}g}"


THRESHOLD = 0.75  # where neither it nor what it follows from is given
PFER = 1.0  # the same


@dataclass(frozen=True)
class SelectionTerms:
    """What is asked of a selection; None for what is not given."""

    threshold: float | None  # least frequency of a stable feature
    pfer: float | None  # bound on the expected number of false selections
    q: int | None  # features of a half-sample
    fdr: float | None  # estimated share of false selections that the threshold is to meet
    assumption: str
    n_pairs: int

    @classmethod
    def checked(cls, settings: Any) -> SelectionTerms:
        """The terms among the parameters of a selector, each in its range. Raises ValueError: a
        parameter out of its range, or a combination that says too much."""
        check_choice("assumption", settings.assumption, ASSUMPTIONS)
        check_number("n_pairs", settings.n_pairs, low=1, integer=True)
        names = ("threshold", "pfer", "q", "fdr")
        check_number("threshold", settings.threshold, low=0.5, low_open=True, high=1, optional=True)
        check_number("pfer", settings.pfer, low=0.0, low_open=True, optional=True)
        check_number("q", settings.q, low=1, integer=True, optional=True)
        check_number("fdr", settings.fdr, low=0.0, low_open=True, high=1.0, optional=True)
        given = {name: getattr(settings, name) for name in names}
        made = cls(**given, assumption=settings.assumption, n_pairs=int(settings.n_pairs))
        return made._with_defaults()

    def _with_defaults(self) -> SelectionTerms:
        """With the defaults for what is missing, so that two of three are known at most."""
        if self.fdr is not None:
            if self.q is None or self.threshold is not None or self.pfer is not None:
                raise ValueError(
                    "fdr needs q, the features of a half-sample, and neither threshold= nor pfer: "
                    "the threshold follows from the frequencies"
                )
            return self
        if None not in (self.threshold, self.pfer, self.q):
            raise ValueError(
                "threshold=, pfer= and q= are given: give two of them, and the third follows"
            )
        if self.threshold is None and (self.pfer is None or self.q is None):
            pfer = PFER if self.pfer is None and self.q is None else self.pfer
            return replace(self, threshold=THRESHOLD, pfer=pfer)
        return self

    def completed(self, p: int, most: int) -> SelectionTerms:
        """With the third of threshold, pfer and q, for p features; a q that follows is ``most`` or
        less. Raises ValueError: it is impossible, with the nearest possible value."""
        if self.q is not None and self.q > p:
            raise ValueError(f"q={self.q} is more than the {p} features that can be chosen")
        if self.fdr is not None or (self.q is None and self.pfer is None):
            return self
        features = f"{_features(p)} and n_pairs={self.n_pairs}"
        q, threshold, pfer, rest = (
            self.q,
            self.threshold,
            self.pfer,
            (self.n_pairs, self.assumption),
        )
        if q is None:
            assert threshold is not None
            assert pfer is not None
            q = min(largest_q(threshold, p, pfer, *rest), most)
            if q == 0:
                raise ValueError(
                    f"pfer={pfer:g} is impossible with threshold={threshold:g}, {features} "
                    f"(n_features = {p}), even if a half-sample selects a single one: "
                    f"{remedies(self, 1, p)}"
                )
        if threshold is None:
            assert pfer is not None
            threshold = least_threshold(q, p, pfer, *rest)
            if threshold is None:
                raise ValueError(
                    f"pfer={pfer:g} is impossible with q={q} of {features}: {remedies(self, q, p)}"
                )
        bound = false_selections(threshold, q, p, *rest)
        if not np.isfinite(bound):
            raise ValueError(
                f"threshold={threshold:g} is too low for assumption={self.assumption!r} with "
                f"q={q:g} of {features}: {remedies(self, q, p)}"
            )
        return replace(self, q=q, threshold=threshold, pfer=bound)

    def judged(self, counts: NDArray[np.intp], mean: float, p: int) -> SelectionTerms:
        """With what depends on the half-samples: ``counts``, (p,), of those that selected each
        unit, and the ``mean`` number of units that they selected."""
        if self.fdr is not None:
            return self._estimated(counts, p)
        if self.q is None and self.threshold is not None:
            bound = false_selections(self.threshold, mean, p, self.n_pairs, self.assumption)
            return replace(self, pfer=bound)
        return self

    def _estimated(self, counts: NDArray[np.intp], p: int) -> SelectionTerms:
        """With the least threshold at which the bound is at most ``fdr`` of the stable units."""
        assert self.q is not None
        assert self.fdr is not None
        for count in range(self.n_pairs + 1, 2 * self.n_pairs + 1):
            stable = int(np.count_nonzero(counts >= count))
            threshold = count / (2 * self.n_pairs)
            bound = false_selections(threshold, self.q, p, self.n_pairs, self.assumption)
            if stable and bound <= self.fdr * stable + EVEN:
                return replace(self, threshold=threshold, pfer=bound)
        return replace(self, threshold=np.inf, pfer=0.0)

    def stable(self, counts: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which units reach the threshold."""
        assert self.threshold is not None
        if not np.isfinite(self.threshold):
            return np.zeros(counts.size, np.bool_)
        return np.asarray(counts >= reached(self.threshold, self.n_pairs))


def _features(p: int) -> str:
    return "1 feature" if p == 1 else f"{p} features"
