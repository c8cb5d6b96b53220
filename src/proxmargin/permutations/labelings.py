"""Rearrangements of labels: drawn by chance, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import comb, lgamma, log, prod

import numpy as np
from numpy.typing import NDArray

__all__ = ["DRAWN_TOGETHER", "Codes", "all_labelings", "count_labelings", "drawn_labelings"]

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
    return min(prod(_arrangements(each) for each in counts), most + 1)


def _arrangements(counts: Codes) -> int:
    totals = np.cumsum(counts)
    return prod(comb(int(n), int(k)) for n, k in zip(totals, counts, strict=True))


def drawn_labelings(
    codes: Codes, groups: Codes, count: int, seed: int, block: int
) -> Iterator[Codes]:
    """Independent rearrangements within each group, (n_samples, at most ``block``) at a time.

    Parameters
    ----------
    count : int
        How many in all.
    block : int
        A multiple of `DRAWN_TOGETHER`.
    """
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
