"""Rearrangements of labels: drawn by chance, or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice, product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "all_labelings", "count_labelings", "drawn_labelings"]

Codes = NDArray[np.intp]
"""Class indices, (n_samples,) or (n_samples, n_labelings)."""


def count_labelings(codes: Codes, groups: Codes) -> int:
    """How many different labelings there are that keep the labels of each group together."""
    return prod(_arrangements(np.bincount(codes[rows])) for rows in _rows_of(groups))


def _arrangements(counts: Codes) -> int:
    totals = np.cumsum(counts)
    return prod(comb(int(n), int(k)) for n, k in zip(totals, counts, strict=True))


def drawn_labelings(
    codes: Codes, groups: Codes, count: int, generator: np.random.Generator
) -> Codes:
    """``count`` independent rearrangements, (n_samples, count), within each group."""
    columns = np.repeat(codes[:, None], count, axis=1)
    for rows in _rows_of(groups):
        columns[rows] = generator.permuted(columns[rows], axis=0)
    return columns


def all_labelings(codes: Codes, groups: Codes) -> Codes:
    """Each different labeling once, (n_samples, n_labelings)."""
    parts = [list(_arranged(codes[rows])) for rows in _rows_of(groups)]
    found = []
    for combination in product(*parts):
        column = np.empty_like(codes)
        for rows, part in zip(_rows_of(groups), combination, strict=True):
            column[rows] = part
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
    return list(islice(np.split(order, np.cumsum(np.bincount(groups))), int(groups.max()) + 1))
