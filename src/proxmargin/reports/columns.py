"""What single features look like: missing, constant, rising with the rows; blocks of columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FeatureFacts", "blocks"]

# entries of a block of columns in float64: 16 MB, so that a few of them fit beside any data
BLOCK_ENTRIES = 1 << 21
# fewer rows rise by chance: of p features of 20 rows, 2 p / 20! do
ROWS_THAT_RISE = 20


@dataclass(frozen=True, eq=False)
class FeatureFacts:
    """Facts about every feature.

    Attributes
    ----------
    missing : (n_features,) integers
        Entries that are not finite.
    constant : (n_features,) bool
        One value in all rows, or none.
    in_row_order : (n_features,) bool
        Every row has a larger (or every row a smaller) value than the one before, or the values are
        consecutive whole numbers, each once: a row number, a run order or a time.
    """

    missing: NDArray[np.intp]
    constant: NDArray[np.bool_]
    in_row_order: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any) -> FeatureFacts:
        """Facts about the columns of an array or a canonical CSC matrix."""
        parts = _sparse_facts(X) if hasattr(X, "indptr") else _dense_facts(X)
        return cls(*(np.asarray(part) for part in parts))


def blocks(X: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Blocks of columns in float64, each with its place."""
    width = max(1, BLOCK_ENTRIES // max(1, X.shape[0]))
    for start in range(0, X.shape[1], width):
        place = slice(start, start + width)
        yield place, np.asarray(X[:, place], dtype=np.float64)


def _dense_facts(X: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    found = [_block_facts(block) for _, block in blocks(X)]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def _block_facts(block: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
    finite = np.isfinite(block)
    missing = (~finite).sum(axis=0)
    # fmin and fmax pass over NaN
    least, largest = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    constant = (least == largest) | (missing == block.shape[0])
    return missing, constant, _in_row_order(block, least, largest)


def _in_row_order(
    block: NDArray[np.float64], least: NDArray[Any], largest: NDArray[Any]
) -> NDArray[np.bool_]:
    n = block.shape[0]
    if n < ROWS_THAT_RISE:
        return np.zeros(block.shape[1], dtype=bool)
    with np.errstate(invalid="ignore"):
        # most columns are out after the first rows
        head = np.diff(block[:ROWS_THAT_RISE], axis=0)
        candidates = (head > 0).all(axis=0) | (head < 0).all(axis=0)
        candidates |= largest - least == n - 1
    ordered = np.zeros(block.shape[1], dtype=bool)
    for j in candidates.nonzero()[0]:
        ordered[j] = _is_order(block[:, j])
    return ordered


def _is_order(column: NDArray[np.float64]) -> bool:
    steps = np.diff(column)
    if (steps > 0).all() or (steps < 0).all():
        return True
    ascending = np.sort(column)
    return bool((np.diff(ascending) == 1).all())


def _sparse_facts(X: Any) -> tuple[NDArray[Any], ...]:
    n, p = X.shape
    stored = np.diff(X.indptr)
    owner = np.repeat(np.arange(p), stored)
    finite = np.isfinite(X.data)
    missing = np.bincount(owner[~finite], minlength=p)
    least, largest = np.full(p, np.inf), np.full(p, -np.inf)
    np.fmin.at(least, owner, X.data)
    np.fmax.at(largest, owner, X.data)
    with_zeros = stored < n
    least[with_zeros] = np.minimum(least[with_zeros], 0)
    largest[with_zeros] = np.maximum(largest[with_zeros], 0)
    constant = (least == largest) | (missing == n)
    ordered = np.zeros(p, dtype=bool)
    # a column of distinct values has at most one zero
    for j in (stored >= n - 1).nonzero()[0]:
        column = X[:, [j]].toarray().astype(np.float64)
        ordered[j] = _in_row_order(column, least[[j]], largest[[j]])[0]
    return missing, constant, ordered
