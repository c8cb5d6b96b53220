"""Rearrangements of labels within or of groups, and how far apart classes are on a direction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb, lgamma, log, prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from proxmargin.compiled.rounding import EPS, score_levels
from proxmargin.runtime.types import Array, Mask

Codes = NDArray[np.integer]
"""Class indices, (n_samples,) or (n_samples, n_labelings)."""

DRAWN_TOGETHER = 10  # labelings of one generator: what is drawn does not depend on blocks
LOG_ROUNDING = 1.0  # of the logarithm of a count, generously


def count_labelings(codes: Codes, groups: Codes, most: int) -> int:
    """How many different labelings keep the labels of each group together; ``most + 1`` stands for
    all counts above ``most``, which may have millions of digits."""
    counts = [np.bincount(codes[rows]) for rows in _rows_of(groups)]
    size = sum(lgamma(each.sum() + 1) - sum(lgamma(k + 1) for k in each) for each in counts)
    if size > log(most) + LOG_ROUNDING:
        return most + 1
    steps = (zip(np.cumsum(each), each, strict=True) for each in counts)
    return min(prod(comb(int(n), int(k)) for each in steps for n, k in each), most + 1)


def drawn_labelings(
    codes: Codes, groups: Codes, count: int, seed: int, block: int
) -> Iterator[Codes]:
    """Independent rearrangements within each group, (n_samples, at most ``block``) at a time.
    ``count``: how many in all. ``block``: a multiple of `DRAWN_TOGETHER`."""
    rows = _rows_of(groups)
    seeds = np.random.SeedSequence(seed).spawn(-(-count // DRAWN_TOGETHER))
    for start in range(0, count, block):
        size = min(block, count - start)
        columns = np.repeat(codes[:, None], size, axis=1)
        for first in range(0, size, DRAWN_TOGETHER):
            generator = np.random.default_rng(seeds[(start + first) // DRAWN_TOGETHER])
            part = columns[:, first : first + DRAWN_TOGETHER]
            for each in rows:
                part[each] = generator.permuted(part[each], axis=0)
        yield columns


def all_labelings(codes: Codes, groups: Codes) -> Codes:
    """Each different labeling once, (n_samples, n_labelings); the given one is the first."""
    parts = [list(_arranged(codes[rows])) for rows in _rows_of(groups)]
    found = [codes]
    for combination in product(*parts):
        column = np.empty_like(codes)
        for rows, part in zip(_rows_of(groups), combination, strict=True):
            column[rows] = part
        if not np.array_equal(column, codes):
            found.append(column)
    return np.stack(found, axis=1)


@dataclass(frozen=True, eq=False)
class Labelings:
    """The permutations of a test: all different ones, if there are no more than were asked for."""

    codes: Codes  # (n_samples,), the given labels
    # (n_samples,), within which labels change places; where each is of one class, as the samples of
    # a patient often are, groups change theirs as wholes
    groups: Codes
    asked: int
    seed: int

    @cached_property
    def units(self) -> tuple[Codes, Codes, Codes]:
        """Labels that change places, the groups within which they do, and whose label each sample
        has."""
        samples = np.arange(self.codes.size)
        if count_labelings(self.codes, self.groups, 1) > 1:
            return self.codes, self.groups, samples
        first = np.unique(self.groups, return_index=True)[1]
        return self.codes[first], np.zeros_like(first), self.groups

    @cached_property
    def distinct(self) -> int:
        return count_labelings(*self.units[:2], self.asked)

    @property
    def exact(self) -> bool:
        return self.distinct <= self.asked

    @property
    def count(self) -> int:
        """How many there are besides the given one."""
        return self.distinct - 1 if self.exact else self.asked

    def others(self, block: int) -> Iterator[Codes]:
        """These, (n_samples, at most ``block``) at a time if they are drawn."""
        codes, groups, owners = self.units
        if self.exact:
            return iter([all_labelings(codes, groups)[owners, 1:]])
        drawn = drawn_labelings(codes, groups, self.asked, self.seed, block)
        return (each[owners] for each in drawn)


def _arranged(labels: Codes) -> Iterator[Codes]:
    """Each different rearrangement of labels once: places for the first class, then for the
    others among the rest."""
    first = labels.min()
    if (labels == first).all():
        yield labels
        return
    others = labels[labels != first]
    for places in combinations(range(labels.size), labels.size - others.size):
        rest = np.delete(np.arange(labels.size), places)
        for arranged in _arranged(others):
            column = np.full_like(labels, first)
            column[rest] = arranged
            yield column


def _rows_of(groups: Codes) -> list[Codes]:
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1])


Statistic = Callable[[Array, Mask], Array]
"""From projections (n_samples, n_labelings) and the members of the second class to a number a
labeling; the larger, the farther apart."""


def mean_difference(projections: Array, second: Mask) -> Array:
    (mean, _), (other, _) = _moments(projections, second), _moments(projections, ~second)
    return mean - other


def t_statistic(projections: Array, second: Mask) -> Array:
    """Welch's t: the difference of the means over its standard error, which is no less than the
    rounding of a projection."""
    (mean, error), (other, its_error) = (_moments(projections, m) for m in (second, ~second))
    rounding = EPS * np.abs(projections).max(axis=0)
    spread = np.maximum(np.sqrt(error + its_error), rounding)
    return np.divide(mean - other, spread, out=np.zeros_like(mean), where=spread > 0)


def spread_of_t(t: Array, sizes: NDArray[np.integer]) -> Array:
    """The standard deviation within the classes over the difference of their means, from Welch's t
    of two classes of these sizes (their variances averaged as t does)."""
    scaled = np.abs(t) * np.sqrt((1.0 / sizes).sum())
    return np.divide(1.0, scaled, out=np.full_like(scaled, np.inf), where=scaled > 0)


def auc(projections: Array, second: Mask) -> Array:
    """The share of pairs of both classes in which the second class lies ahead; ties count half."""
    count = second.sum(axis=0)
    ranks = np.where(second, rankdata(score_levels(projections.T), axis=1).T, 0.0).sum(axis=0)
    pairs = count * (second.shape[0] - count)
    return np.asarray((ranks - count * (count + 1) / 2) / pairs)


def _moments(projections: Array, members: Mask) -> tuple[Array, Array]:
    """The mean of the members, and the square of its standard error."""
    count = members.sum(axis=0)
    mean = np.where(members, projections, 0.0).sum(axis=0) / count
    squares = np.where(members, (projections - mean) ** 2, 0.0).sum(axis=0)
    return mean, squares / (np.maximum(count - 1, 1) * count)


OF_PROJECTIONS: Mapping[str, Statistic] = MappingProxyType(
    {"mean-difference": mean_difference, "t": t_statistic, "auc": auc}
)
