"""Threshold, number of features of a half-sample, and false selections: two give the third."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.inputs.parameters import check_choice, check_number
from proxmargin.models.selection.stability.bounds import (
    ASSUMPTIONS,
    EVEN,
    false_selections,
    largest_q,
    least_threshold,
    reached,
)

PAIRS = (5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of pairs that are worth a try
DIGITS = 3  # of a bound in a message


def remedies(asked: SelectionTerms, q: float, p: int) -> str:
    """The smallest pfer that is attainable, and all changes of one parameter that will do.

    ``asked``: without a solution. ``q``: features of a half-sample: the given number, or 1 if it is
    to be found.
    """
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
                    "fdr needs q, the features of a half-sample, and neither threshold nor pfer: "
                    "the threshold follows from the frequencies"
                )
            return self
        if None not in (self.threshold, self.pfer, self.q):
            raise ValueError(
                "threshold, pfer and q are given: give two of them, and the third follows"
            )
        if self.threshold is None and (self.pfer is None or self.q is None):
            pfer = PFER if self.pfer is None and self.q is None else self.pfer
            return replace(self, threshold=THRESHOLD, pfer=pfer)
        return self

    def completed(self, p: int) -> SelectionTerms:
        """With the third of threshold, pfer and q, for p features. Raises ValueError: it is
        impossible, with the nearest possible value."""
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
            q = largest_q(threshold, p, pfer, *rest)
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
        """After the half-samples are fitted: with what depends on them.

        ``counts``: (p,), half-samples that selected each unit. ``mean``: mean number of units that
        a half-sample selected.
        """
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
