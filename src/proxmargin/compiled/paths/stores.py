"""Access to the data for paths: single columns, and occasionally all of them.

Of dense data with more features than samples the columns that may enter the model are cached, by
columns and centred; others are read in place. Kernels are compiled once for `Dense` and once for
`Compressed`; what differs between them is here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.state import SHELVED
from proxmargin.compiled.paths.vectors import add, dot
from proxmargin.compiled.products.columns import Compressed

__all__ = [
    "Dense",
    "Shelf",
    "Slots",
    "combine",
    "cross",
    "gram",
    "load",
    "one",
    "pull",
    "pull_all",
    "revise",
    "some",
]

BLOCK = 1 << 14  # entries of weighted rows held at a time for a Gram matrix
LEAST_ROWS = 64


class Dense(NamedTuple):
    """A matrix with contiguous lines.

    Attributes
    ----------
    lines : (n_samples, n_features), or its transpose
    by_rows : bool
        Lines are samples.
    caches : bool
    """

    lines: Any
    by_rows: bool
    caches: bool


class Shelf(NamedTuple):
    """Contiguous copies of the most recently used columns of data that are stored by rows.

    Attributes
    ----------
    columns : (capacity, n_samples)
    owner : (capacity,) integers
        Feature of each copy, -1 where there is none.
    place : (n_features,) integers
        Index of the copy of each feature, -1 where it has none.
    """

    columns: Any
    owner: Any
    place: Any


class Slots(NamedTuple):
    """Features that may enter the model, in order of entry.

    Attributes
    ----------
    feature : (capacity,) integers
    every : (capacity,) integers
        0, 1, 2, ...: all slots.
    slot_of : (n_features,) integers
        Slot of each feature, -1 where it has none.
    gate : (n_features,)
        The factors of the penalty, infinite where a feature has a slot.
    coef, slope : (capacity,)
        Coefficients of the scaled features, and their inner products with the dual point.
    mean : (capacity,)
        Mean that was subtracted from the stored columns.
    place : (capacity,) integers
        Index in the quadratic model, -1 outside.
    guess, lag : (capacity,)
        The coefficients after the predictor step at a strength, and its error: what the correctors
        added (`proxmargin.compiled.paths.foresight`).
    cache : (capacity, n_samples), or empty
        Columns, centred and scaled.
    rows : (members, n_samples), or empty
        Columns in the quadratic model, less their means by curvature, times its roots; only valid
        while the model is formed.
    average : (members,)
        The means by curvature of the columns in the quadratic model.
    """

    feature: Any
    every: Any
    slot_of: Any
    gate: Any
    coef: Any
    slope: Any
    mean: Any
    place: Any
    guess: Any
    lag: Any
    cache: Any
    rows: Any
    average: Any


def pull_all(store: Any, vector: Any, inverse: Any, out: Any) -> Any:
    """Inner products of all features with ``vector``, into ``out``: one pass over the data."""


def one(store: Any, j: Any, vector: Any) -> Any:
    """Inner product of a column, as it is in the data, with ``vector``."""


def some(
    store: Any, shelf: Any, index: Any, count: Any, vector: Any, inverse: Any, out: Any, counts: Any
) -> Any:
    """Inner products of the first ``count`` features of ``index`` with ``vector``, into ``out``."""


def load(store: Any, slots: Any, slot: Any, j: Any, weights: Any, inverse: Any, free: Any) -> Any:
    """Take feature j into a slot."""


def pull(store: Any, slots: Any, k: Any, theta: Any, inverse: Any) -> Any:
    """Inner products of the first k slots with the dual point, into their slopes."""


def combine(
    store: Any, slots: Any, members: Any, m: Any, steps: Any, inverse: Any, out: Any
) -> Any:
    """The sum of the members' columns times ``steps``, into ``out``."""


def gram(
    store: Any, slots: Any, members: Any, m: Any, bends: Any, total: Any, inverse: Any, out: Any
) -> Any:
    """Curvature-weighted Gram matrix of the members, intercept eliminated; and their means."""


def cross(
    store: Any, slots: Any, members: Any, m: Any, bends: Any, total: Any, inverse: Any, out: Any
) -> Any:
    """The last row and column of the matrix of `gram`, for an appended member."""


def revise(
    store: Any,
    slots: Any,
    members: Any,
    m: Any,
    change: Any,
    before: Any,
    after: Any,
    inverse: Any,
    out: Any,
) -> Any:
    """The matrix of `gram` and its means, after some of the curvatures have changed.

    With the centred matrix H, the means c and the total T of the former curvatures,

        S = H + sum_i change_i (x_i - c) (x_i - c)',   h = sum_i change_i (x_i - c),

    the new matrix is ``S - h h' / T_new`` and the new means are ``c + h / T_new``: only samples
    with a change are read.

    Parameters
    ----------
    change : (n_samples,)
    before, after : float
        Totals of the curvatures; zero without intercept.
    """


@overload(pull_all)
def _pull_all(store, vector, inverse, out):
    if _is_compressed(store):
        return lambda store, vector, inverse, out: _compressed_pull_all(store, vector, inverse, out)
    return lambda store, vector, inverse, out: _dense_pull_all(store, vector, inverse, out)


@njit(cache=True, nogil=True)
def _dense_pull_all(store, vector, inverse, out):
    _multiply(store, vector, out)
    for j in range(out.size):
        out[j] *= inverse[j]


@njit(cache=True, nogil=True)
def _multiply(store, vector, out):
    if store.by_rows:
        np.dot(vector, store.lines, out)
    else:
        np.dot(store.lines, vector, out)


@njit(cache=True, nogil=True, allocates=False)
def _compressed_pull_all(store, vector, inverse, out):
    for j in range(out.size):
        out[j] = inverse[j] * _compressed_one(store, j, vector)


@overload(one)
def _one(store, j, vector):
    if _is_compressed(store):
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


@overload(some)
def _some(store, shelf, index, count, vector, inverse, out, counts):
    if _is_compressed(store):
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


@overload(load)
def _load(store, slots, slot, j, weights, inverse, free):
    if _is_compressed(store):

        def compressed(store, slots, slot, j, weights, inverse, free):
            slots.mean[slot] = 0.0

        return compressed
    return lambda store, slots, slot, j, weights, inverse, free: _dense_load(
        store, slots, slot, j, weights, inverse, free
    )


@njit(cache=True, nogil=True, allocates=False)
def _dense_load(store, slots, slot, j, weights, inverse, free):
    slots.mean[slot] = 0.0
    if not store.caches:
        return
    column = slots.cache[slot]
    for i in range(column.size):
        column[i] = store.lines[i, j] if store.by_rows else store.lines[j, i]
    if free:
        mean = dot(column, weights)
        slots.mean[slot] = mean
        for i in range(column.size):
            column[i] = (column[i] - mean) * inverse[j]
    else:
        for i in range(column.size):
            column[i] *= inverse[j]


@overload(pull)
def _pull(store, slots, k, theta, inverse):
    if _is_compressed(store):
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


@overload(combine)
def _combine(store, slots, members, m, steps, inverse, out):
    if _is_compressed(store):
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


@overload(gram)
def _gram(store, slots, members, m, bends, total, inverse, out):
    if _is_compressed(store):
        return lambda store, slots, members, m, bends, total, inverse, out: _compressed_gram(
            store, slots, members, m, bends, total, inverse, out
        )
    return lambda store, slots, members, m, bends, total, inverse, out: _dense_gram(
        store, slots, members, m, bends, total, inverse, out
    )


@njit(cache=True, nogil=True)
def _dense_gram(store, slots, members, m, bends, total, inverse, out):
    if store.caches:
        for x in range(m):
            _weigh(slots, members[x], x, bends, total)
        rows = slots.rows[:m]
        whole = np.dot(rows, rows.T)
        for x in range(m):
            for z in range(m):
                out[x, z] = whole[x, z]
    else:
        _dense_gram_by_blocks(store, slots, members, m, bends, total, inverse, out)


@njit(cache=True, nogil=True, allocates=False)
def _weigh(slots, slot, place, bends, total):
    """A cached column less its mean by curvature, times the roots of the curvatures."""
    column, row = slots.cache[slot], slots.rows[place]
    mean = dot(column, bends) / total if total > 0.0 else 0.0
    slots.average[place] = mean
    for i in range(row.size):
        row[i] = np.sqrt(bends[i]) * (column[i] - mean)


@njit(cache=True, nogil=True)
def _dense_gram_by_blocks(store, slots, members, m, bends, total, inverse, out):
    n = bends.size
    means = np.zeros(m)
    if total > 0.0:
        sums = np.empty(inverse.size)
        _multiply(store, bends, sums)
        for x in range(m):
            means[x] = sums[slots.feature[members[x]]] / total
    out[:m, :m] = 0.0
    height = max(LEAST_ROWS, min(n, BLOCK // max(m, 1) + 1))
    block = np.empty((height, m))
    for start in range(0, n, height):
        used = 0
        for i in range(start, min(start + height, n)):
            if bends[i] != 0.0:
                root = np.sqrt(bends[i])
                for x in range(m):
                    j = slots.feature[members[x]]
                    value = store.lines[i, j] if store.by_rows else store.lines[j, i]
                    block[used, x] = root * (value - means[x])
                used += 1
        part = block[:used]
        share = np.dot(part.T, part)
        for x in range(m):
            for z in range(m):
                out[x, z] += share[x, z]
    for x in range(m):
        scale = inverse[slots.feature[members[x]]]
        slots.average[x] = means[x] * scale
        for z in range(m):
            out[x, z] *= scale
            out[z, x] *= scale


@njit(cache=True, nogil=True)
def _compressed_gram(store, slots, members, m, bends, total, inverse, out):
    out[:m, :m] = 0.0
    means = np.zeros(m)
    _add_outer(store, slots, members, m, bends, inverse, out, means)
    for x in range(m):
        slots.average[x] = means[x] / total if total > 0.0 else 0.0
    for x in range(m):
        for z in range(x + 1):
            out[x, z] -= means[x] * slots.average[z]
            out[z, x] = out[x, z]


@njit(cache=True, nogil=True)
def _add_outer(store, slots, members, m, bends, inverse, out, sums):
    """Add ``sum_i bends_i x_i x_i'`` to the lower triangle of ``out``, ``sum_i bends_i x_i`` to
    ``sums``: by rows first, then the outer product of each row with itself."""
    starts = np.zeros(store.n_rows + 1, np.int64)
    for x in range(m):
        j = slots.feature[members[x]]
        for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
            if bends[store.indices[at]] != 0.0:
                starts[store.indices[at] + 1] += 1
    for i in range(store.n_rows):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    column = np.empty(starts[-1], np.int32)
    value = np.empty(starts[-1])
    for x in range(m):
        j = slots.feature[members[x]]
        for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
            row = store.indices[at]
            if bends[row] != 0.0:
                column[place[row]] = x
                value[place[row]] = store.data[at] * inverse[j]
                place[row] += 1
    for i in range(store.n_rows):
        last = np.uint64(starts[i + 1])
        for first in range(np.uint64(starts[i]), last):
            weighted = bends[i] * value[first]
            sums[column[first]] += weighted
            line = out[column[first]]
            for second in range(np.uint64(starts[i]), first + np.uint64(1)):
                line[np.uint64(column[second])] += weighted * value[second]


@overload(revise)
def _revise(store, slots, members, m, change, before, after, inverse, out):
    if _is_compressed(store):
        return lambda store, slots, members, m, change, before, after, inverse, out: (
            _compressed_revise(store, slots, members, m, change, before, after, inverse, out)
        )
    return lambda store, slots, members, m, change, before, after, inverse, out: _dense_revise(
        store, slots, members, m, change, after, inverse, out
    )


@njit(cache=True, nogil=True)
def _compressed_revise(store, slots, members, m, change, before, after, inverse, out):
    sums, average = np.zeros(m), slots.average
    _add_outer(store, slots, members, m, change, inverse, out, sums)
    more, share = after - before, 1.0 / after if after > 0.0 else 0.0
    for x in range(m):
        turned = sums[x] - more * average[x]
        for z in range(x + 1):
            out[x, z] -= sums[x] * average[z] + average[x] * (sums[z] - more * average[z])
            out[x, z] -= share * turned * (sums[z] - more * average[z])
            out[z, x] = out[x, z]
    for x in range(m):
        average[x] += share * (sums[x] - more * average[x])


@njit(cache=True, nogil=True)
def _dense_revise(store, slots, members, m, change, after, inverse, out):
    n, used, average = change.size, 0, slots.average
    height = max(LEAST_ROWS, min(n, BLOCK // max(m, 1) + 1))
    rows, weighted, sums = np.empty((height, m)), np.empty((height, m)), np.zeros(m)
    for i in range(n):
        if change[i] != 0.0:
            for x in range(m):
                value = _entry(store, slots, members[x], i, inverse) - average[x]
                rows[used, x], weighted[used, x] = value, change[i] * value
                sums[x] += weighted[used, x]
            used += 1
        if used == height or (used > 0 and i == n - 1):
            more = np.dot(weighted[:used].T, rows[:used])
            for x in range(m):
                for z in range(m):
                    out[x, z] += more[x, z]
            used = 0
    if after > 0.0:
        for x in range(m):
            average[x] += sums[x] / after
            for z in range(m):
                out[x, z] -= sums[x] * sums[z] / after


@njit(cache=True, nogil=True, allocates=False)
def _entry(store, slots, slot, i, inverse):
    """The feature of a slot at sample i."""
    if store.caches:
        return slots.cache[slot, i]
    j = slots.feature[slot]
    return inverse[j] * (store.lines[i, j] if store.by_rows else store.lines[j, i])


@overload(cross)
def _cross(store, slots, members, m, bends, total, inverse, out):
    if _is_compressed(store):
        return lambda store, slots, members, m, bends, total, inverse, out: _compressed_cross(
            store, slots, members, m, bends, total, inverse, out
        )
    return lambda store, slots, members, m, bends, total, inverse, out: _dense_cross(
        store, slots, members, m, bends, total, inverse, out
    )


@njit(cache=True, nogil=True)
def _dense_cross(store, slots, members, m, bends, total, inverse, out):
    last = m - 1
    if store.caches:
        column, row = slots.cache[members[last]], slots.rows[last]
        mean = dot(column, bends) / total if total > 0.0 else 0.0
        slots.average[last] = mean
        for i in range(row.size):
            row[i] = bends[i] * (column[i] - mean)  # sum zero: the others need no centring
        for x in range(m):
            out[last, x] = dot(row, slots.cache[members[x]])
            out[x, last] = out[last, x]
        return
    j = slots.feature[members[last]]
    weighted, mean = np.empty(bends.size), 0.0
    for i in range(bends.size):
        weighted[i] = bends[i] * (store.lines[i, j] if store.by_rows else store.lines[j, i])
        mean += weighted[i]
    mean = mean / total if total > 0.0 else 0.0
    slots.average[last] = mean * inverse[j]
    for i in range(bends.size):
        weighted[i] -= bends[i] * mean  # sum zero: the other columns need no centring
    sums = np.empty(inverse.size)
    _dense_pull_all(store, weighted, inverse, sums)
    for x in range(m):
        out[last, x] = inverse[j] * sums[slots.feature[members[x]]]
        out[x, last] = out[last, x]


@njit(cache=True, nogil=True)
def _compressed_cross(store, slots, members, m, bends, total, inverse, out):
    last = m - 1
    j = slots.feature[members[last]]
    weighted, mean = np.zeros(bends.size), 0.0
    for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
        i = store.indices[at]
        weighted[i] = bends[i] * store.data[at]
        mean += weighted[i]
    slots.average[last] = inverse[j] * mean / total if total > 0.0 else 0.0
    for x in range(m):
        other = slots.feature[members[x]]
        value = inverse[j] * inverse[other] * _compressed_one(store, other, weighted)
        out[last, x] = value - slots.average[x] * mean * inverse[j]
        out[x, last] = out[last, x]


def _is_compressed(store: Any) -> bool:
    return getattr(store, "instance_class", None) is Compressed
