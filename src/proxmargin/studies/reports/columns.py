"""What rows and columns look like: missing, constant, repeated, in order, telling classes apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

# entries of a block of columns in float64: 16 MB, so that a few of them fit beside any data
BLOCK_ENTRIES = 1 << 21
ROWS_THAT_RISE = 20  # fewer rows rise by chance: of p features of 20 rows, 2 p / 20! do
DIGEST = 16  # bytes: among 1e9 rows, two differing ones agree with probability 1e-21
BLOCK_ROWS = 1024  # that are made contiguous at once


@dataclass(frozen=True, eq=False)
class FeatureFacts:
    """Facts about every feature."""

    missing: NDArray[np.intp]  # entries that are not finite
    constant: NDArray[np.bool_]  # one value in all rows, or none
    # every row has a larger (or every row a smaller) value than the one before, or the values are
    # consecutive whole numbers, each once: a row number, a run order or a time
    in_row_order: NDArray[np.bool_]

    @classmethod
    def of(cls, X: Any) -> FeatureFacts:
        """Facts about the columns of an array or a canonical CSC matrix."""
        if hasattr(X, "indptr"):
            return cls(*_sparse_facts(X))
        found = [_block_facts(block) for _, block in blocks(X)]
        return cls(*(np.concatenate(part) for part in zip(*found, strict=True)))


def blocks(X: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Blocks of columns in float64, each with its place."""
    width = max(1, BLOCK_ENTRIES // max(1, X.shape[0]))
    for start in range(0, X.shape[1], width):
        place = slice(start, start + width)
        yield place, np.asarray(X[:, place], dtype=np.float64)


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
        steps = np.diff(block[:, j])
        consecutive = (np.diff(np.sort(block[:, j])) == 1).all()
        ordered[j] = (steps > 0).all() or (steps < 0).all() or consecutive
    return ordered


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


def repeated_rows(X: Any) -> list[NDArray[np.intp]]:
    """Groups of equal rows of an array or a canonical CSR matrix, two or more in each."""
    return _groups(_sparse_lines(X) if hasattr(X, "indptr") else _dense_lines(X))


def repeated_columns(X: Any, skipped: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Groups of equal columns of an array or a canonical CSC matrix; some are not looked at."""
    kept = (~skipped).nonzero()[0]
    lines = _sparse_lines(X) if hasattr(X, "indptr") else _dense_lines(X.T)
    return _groups(lines, kept=set(kept.tolist()))


def _groups(lines: Iterator[bytes], kept: set[int] | None = None) -> list[NDArray[np.intp]]:
    seen: dict[bytes, list[int]] = {}
    for place, line in enumerate(lines):
        if kept is None or place in kept:
            seen.setdefault(blake2b(line, digest_size=DIGEST).digest(), []).append(place)
    return [np.array(places) for places in seen.values() if len(places) > 1]


def _dense_lines(X: NDArray[Any]) -> Iterator[bytes]:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        # adding zero turns -0.0, which equals 0.0, into it
        block = np.ascontiguousarray(X[start : start + BLOCK_ROWS]) + 0
        yield from (line.tobytes() for line in block)


def _sparse_lines(X: Any) -> Iterator[bytes]:
    """Places and values of each line along the compressed axis."""
    data = X.data + 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes() + data[start:stop].tobytes()


def single_feature_auc(X: Any, members: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas under the curves, (n_classes, n_features), of each class (a column of ``members``,
    zeros and ones) against the rest, by rank sums with midranks; zeros of a CSC matrix are one tie.
    Missing entries of an array are left out; NaN for columns of a matrix with some, and without a
    class or a rest."""
    sizes = members.sum(axis=0)[:, None]
    count = np.full(X.shape[1], members.shape[0], dtype=np.float64)
    if hasattr(X, "indptr"):
        sums = _sparse_rank_sums(X, members)
    else:
        sums, sizes, count = _rank_sums(X, members)
    rest = count - sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums - sizes * (sizes + 1) / 2) / (sizes * rest))


def _rank_sums(X: NDArray[Any], members: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Sums of ranks among the known entries, and the numbers of these, of a class and of all."""
    sums, sizes = np.empty((2, members.shape[1], X.shape[1]))
    count = np.empty(X.shape[1])
    for place, block in blocks(X):
        known = ~np.isnan(block)
        # missing entries rank last, which leaves the ranks of the others as they are
        ranks = rankdata(np.where(known, block, np.inf), axis=0)
        sums[:, place] = members.T @ np.where(known, ranks, 0.0)
        sizes[:, place] = members.T @ known
        count[place] = known.sum(axis=0)
    return sums, sizes, count


def _sparse_rank_sums(X: Any, members: NDArray[np.float64]) -> NDArray[np.float64]:
    n, p = X.shape
    stored = np.diff(X.indptr)
    owner = np.repeat(np.arange(p), stored)
    order = np.lexsort((X.data, owner))
    values, rows = X.data[order], X.indices[order]
    zeros = n - stored
    negative = np.bincount(owner[values < 0], minlength=p)
    # the zeros of a column stand between its negative and its positive values
    position = np.arange(values.size) - X.indptr[owner] + 1
    position = position + np.where(values > 0, zeros[owner], 0)
    ranks = _midranks(values, owner, position)
    of_zeros = negative + (zeros + 1) / 2
    sums = np.empty((members.shape[1], p))
    for k, member in enumerate(members.T):
        of_class = member[rows]
        listed = np.bincount(owner, weights=of_class * ranks, minlength=p)
        unlisted = member.sum() - np.bincount(owner, weights=of_class, minlength=p)
        sums[k] = listed + unlisted * of_zeros
    sums[:, np.unique(owner[~np.isfinite(values)])] = np.nan
    return sums


def _midranks(
    values: NDArray[Any], owner: NDArray[np.intp], position: NDArray[Any]
) -> NDArray[np.float64]:
    """Mean positions of runs of equal values of a column."""
    if values.size == 0:
        return np.zeros(0)
    starts = np.r_[True, (np.diff(values) != 0) | (np.diff(owner) != 0)]
    run = np.cumsum(starts) - 1
    lengths = np.bincount(run)
    first = position[starts]
    return np.asarray(first + (lengths - 1) / 2)[run]
