"""Products of the data with vectors of samples and of coefficients, for paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.state import COLUMNS_CACHED
from proxmargin.compiled.paths.stores import is_compressed
from proxmargin.compiled.paths.vectors import add, dot

__all__ = ["combine", "multiply", "one", "pull", "pull_all", "some"]


def pull_all(store: Any, vector: Any, inverse: Any, out: Any) -> Any:
    """Inner products of all features with ``vector``, into ``out``: one pass over the data."""


@overload(pull_all)
def _pull_all(store, vector, inverse, out):
    if is_compressed(store):
        return lambda store, vector, inverse, out: _compressed_pull_all(store, vector, inverse, out)
    return lambda store, vector, inverse, out: _dense_pull_all(store, vector, inverse, out)


@njit(cache=True, nogil=True)
def _dense_pull_all(store, vector, inverse, out):
    multiply(store, vector, out)
    for j in range(out.size):
        out[j] *= inverse[j]


@njit(cache=True, nogil=True)
def multiply(store, vector, out):
    """Inner products of all features, as they are in dense data, with ``vector``."""
    if store.by_rows:
        np.dot(vector, store.lines, out)
    else:
        np.dot(store.lines, vector, out)


@njit(cache=True, nogil=True, allocates=False)
def _compressed_pull_all(store, vector, inverse, out):
    for j in range(out.size):
        out[j] = inverse[j] * _compressed_one(store, j, vector)


def one(store: Any, j: Any, vector: Any) -> Any:
    """Inner product of a column, as it is in the data, with ``vector``."""


@overload(one)
def _one(store, j, vector):
    if is_compressed(store):
        return lambda store, j, vector: _compressed_one(store, j, vector)
    return lambda store, j, vector: _dense_one(store, j, vector)


@njit(cache=True, nogil=True, allocates=False, fastmath={"contract"})
def _compressed_one(store, j, vector):
    total = 0.0
    for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
        total += store.data[at] * vector[np.uint64(store.indices[at])]
    return total


@njit(cache=True, nogil=True, allocates=False)
def _dense_one(store, j, vector):
    if not store.by_rows:
        return dot(store.lines[j], vector)
    total = 0.0
    for i in range(vector.size):
        total += store.lines[i, j] * vector[i]
    return total


def some(
    store: Any,
    column_cache: Any,
    index: Any,
    count: Any,
    vector: Any,
    inverse: Any,
    out: Any,
    counts: Any,
) -> Any:
    """Inner products of the first ``count`` features of ``index`` with ``vector``, into ``out``."""


@overload(some)
def _some(store, column_cache, index, count, vector, inverse, out, counts):
    if is_compressed(store):
        return lambda store, column_cache, index, count, vector, inverse, out, counts: _each(
            store, index, count, vector, inverse, out
        )
    return lambda store, column_cache, index, count, vector, inverse, out, counts: _dense_some(
        store, column_cache, index, count, vector, inverse, out, counts
    )


@njit(cache=True, nogil=True, allocates=False)
def _each(store, index, count, vector, inverse, out):
    for x in range(count):
        j = index[x]
        out[j] = inverse[j] * one(store, j, vector)


@njit(cache=True, nogil=True, allocates=False)
def _dense_some(store, column_cache, index, count, vector, inverse, out, counts):
    if not store.by_rows:
        _each(store, index, count, vector, inverse, out)
        return
    for x in range(count):
        j = index[x]
        if column_cache.place[j] < 0:
            _cache_column(store, column_cache, j, counts[COLUMNS_CACHED] % column_cache.owner.size)
            counts[COLUMNS_CACHED] += 1
        out[j] = inverse[j] * dot(column_cache.columns[column_cache.place[j]], vector)


@njit(cache=True, nogil=True, allocates=False)
def _cache_column(store, column_cache, j, place):
    """Put a column on the column_cache, in place of the oldest."""
    if column_cache.owner[place] >= 0:
        column_cache.place[column_cache.owner[place]] = -1
    column_cache.owner[place], column_cache.place[j] = j, place
    for i in range(column_cache.columns.shape[1]):
        column_cache.columns[place, i] = store.lines[i, j]


def pull(store: Any, candidates: Any, k: Any, theta: Any, inverse: Any) -> Any:
    """Inner products of the first k candidates with the dual point, into their slopes."""


@overload(pull)
def _pull(store, candidates, k, theta, inverse):
    if is_compressed(store):
        return lambda store, candidates, k, theta, inverse: _compressed_pull(
            store, candidates, k, theta, inverse
        )
    return lambda store, candidates, k, theta, inverse: _dense_pull(
        store, candidates, k, theta, inverse
    )


@njit(cache=True, nogil=True, allocates=False)
def _compressed_pull(store, candidates, k, theta, inverse):
    for s in range(k):
        j = candidates.feature[s]
        candidates.slope[s] = inverse[j] * _compressed_one(store, j, theta)


@njit(cache=True, nogil=True)
def _dense_pull(store, candidates, k, theta, inverse):
    if store.caches:
        np.dot(candidates.cache[:k], theta, candidates.slope[:k])
    else:  # all features have candidates, in their order
        _dense_pull_all(store, theta, inverse, candidates.slope)


def combine(
    store: Any, candidates: Any, members: Any, m: Any, steps: Any, inverse: Any, out: Any
) -> Any:
    """The sum of the members' columns times ``steps``, into ``out``."""


@overload(combine)
def _combine(store, candidates, members, m, steps, inverse, out):
    if is_compressed(store):
        return lambda store, candidates, members, m, steps, inverse, out: _compressed_combine(
            store, candidates, members, m, steps, inverse, out
        )
    return lambda store, candidates, members, m, steps, inverse, out: _dense_combine(
        store, candidates, members, m, steps, inverse, out
    )


@njit(cache=True, nogil=True, allocates=False)
def _compressed_combine(store, candidates, members, m, steps, inverse, out):
    out[:] = 0.0
    for x in range(m):
        if steps[x] != 0.0:
            j = candidates.feature[members[x]]
            factor = steps[x] * inverse[j]
            for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
                out[np.uint64(store.indices[at])] += factor * store.data[at]


@njit(cache=True, nogil=True)
def _dense_combine(store, candidates, members, m, steps, inverse, out):
    if store.caches or not store.by_rows:
        out[:] = 0.0
        for x in range(m):
            if steps[x] != 0.0:
                s = members[x]
                if store.caches:
                    add(steps[x], candidates.cache[s], out)
                else:
                    j = candidates.feature[s]
                    add(steps[x] * inverse[j], store.lines[j], out)
        return
    whole = np.zeros(store.lines.shape[1])
    for x in range(m):
        j = candidates.feature[members[x]]
        whole[j] = steps[x] * inverse[j]
    np.dot(store.lines, whole, out)
