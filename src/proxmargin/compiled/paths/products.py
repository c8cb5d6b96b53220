"""Products of the data with vectors of samples and of coefficients, for paths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.state import SHELVED
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
    store: Any, shelf: Any, index: Any, count: Any, vector: Any, inverse: Any, out: Any, counts: Any
) -> Any:
    """Inner products of the first ``count`` features of ``index`` with ``vector``, into ``out``."""


@overload(some)
def _some(store, shelf, index, count, vector, inverse, out, counts):
    if is_compressed(store):
        return lambda store, shelf, index, count, vector, inverse, out, counts: _each(
            store, index, count, vector, inverse, out
        )
    return lambda store, shelf, index, count, vector, inverse, out, counts: _dense_some(
        store, shelf, index, count, vector, inverse, out, counts
    )


@njit(cache=True, nogil=True, allocates=False)
def _each(store, index, count, vector, inverse, out):
    for x in range(count):
        j = index[x]
        out[j] = inverse[j] * one(store, j, vector)


@njit(cache=True, nogil=True, allocates=False)
def _dense_some(store, shelf, index, count, vector, inverse, out, counts):
    if not store.by_rows:
        _each(store, index, count, vector, inverse, out)
        return
    for x in range(count):
        j = index[x]
        if shelf.place[j] < 0:
            _shelve(store, shelf, j, counts[SHELVED] % shelf.owner.size)
            counts[SHELVED] += 1
        out[j] = inverse[j] * dot(shelf.columns[shelf.place[j]], vector)


@njit(cache=True, nogil=True, allocates=False)
def _shelve(store, shelf, j, place):
    """Put a column on the shelf, in place of the oldest."""
    if shelf.owner[place] >= 0:
        shelf.place[shelf.owner[place]] = -1
    shelf.owner[place], shelf.place[j] = j, place
    for i in range(shelf.columns.shape[1]):
        shelf.columns[place, i] = store.lines[i, j]


def pull(store: Any, slots: Any, k: Any, theta: Any, inverse: Any) -> Any:
    """Inner products of the first k slots with the dual point, into their slopes."""


@overload(pull)
def _pull(store, slots, k, theta, inverse):
    if is_compressed(store):
        return lambda store, slots, k, theta, inverse: _compressed_pull(
            store, slots, k, theta, inverse
        )
    return lambda store, slots, k, theta, inverse: _dense_pull(store, slots, k, theta, inverse)


@njit(cache=True, nogil=True, allocates=False)
def _compressed_pull(store, slots, k, theta, inverse):
    for s in range(k):
        j = slots.feature[s]
        slots.slope[s] = inverse[j] * _compressed_one(store, j, theta)


@njit(cache=True, nogil=True)
def _dense_pull(store, slots, k, theta, inverse):
    if store.caches:
        np.dot(slots.cache[:k], theta, slots.slope[:k])
    else:  # all features have slots, in their order
        _dense_pull_all(store, theta, inverse, slots.slope)


def combine(
    store: Any, slots: Any, members: Any, m: Any, steps: Any, inverse: Any, out: Any
) -> Any:
    """The sum of the members' columns times ``steps``, into ``out``."""


@overload(combine)
def _combine(store, slots, members, m, steps, inverse, out):
    if is_compressed(store):
        return lambda store, slots, members, m, steps, inverse, out: _compressed_combine(
            store, slots, members, m, steps, inverse, out
        )
    return lambda store, slots, members, m, steps, inverse, out: _dense_combine(
        store, slots, members, m, steps, inverse, out
    )


@njit(cache=True, nogil=True, allocates=False)
def _compressed_combine(store, slots, members, m, steps, inverse, out):
    out[:] = 0.0
    for x in range(m):
        if steps[x] != 0.0:
            j = slots.feature[members[x]]
            factor = steps[x] * inverse[j]
            for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
                out[np.uint64(store.indices[at])] += factor * store.data[at]


@njit(cache=True, nogil=True)
def _dense_combine(store, slots, members, m, steps, inverse, out):
    if store.caches or not store.by_rows:
        out[:] = 0.0
        for x in range(m):
            if steps[x] != 0.0:
                s = members[x]
                if store.caches:
                    add(steps[x], slots.cache[s], out)
                else:
                    j = slots.feature[s]
                    add(steps[x] * inverse[j], store.lines[j], out)
        return
    whole = np.zeros(store.lines.shape[1])
    for x in range(m):
        j = slots.feature[members[x]]
        whole[j] = steps[x] * inverse[j]
    np.dot(store.lines, whole, out)
