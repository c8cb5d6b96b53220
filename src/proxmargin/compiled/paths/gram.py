"""Gram matrices of the features in the model, weighted by curvatures, for paths.

They are formed whole (`form`), gain a member (`append`), or follow a change of few curvatures
(`revise`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.products import multiply, one, pull_all
from proxmargin.compiled.paths.stores import is_compressed
from proxmargin.compiled.paths.vectors import dot

__all__ = ["append", "form", "revise"]

BLOCK = 1 << 14  # entries of weighted rows held at a time for a Gram matrix
LEAST_ROWS = 64  # of a block


def form(
    store: Any,
    candidates: Any,
    members: Any,
    m: Any,
    bends: Any,
    total: Any,
    inverse: Any,
    out: Any,
) -> Any:
    """Curvature-weighted Gram matrix of the members, intercept eliminated; and their means."""


@overload(form)
def _form(store, candidates, members, m, bends, total, inverse, out):
    if is_compressed(store):
        return lambda store, candidates, members, m, bends, total, inverse, out: _compressed_form(
            store, candidates, members, m, bends, total, inverse, out
        )
    return lambda store, candidates, members, m, bends, total, inverse, out: _dense_form(
        store, candidates, members, m, bends, total, inverse, out
    )


@njit(cache=True, nogil=True)
def _dense_form(store, candidates, members, m, bends, total, inverse, out):
    if store.caches:
        for x in range(m):
            _weigh(candidates, members[x], x, bends, total)
        rows = candidates.rows[:m]
        whole = np.dot(rows, rows.T)
        for x in range(m):
            for z in range(m):
                out[x, z] = whole[x, z]
    else:
        _dense_form_by_blocks(store, candidates, members, m, bends, total, inverse, out)


@njit(cache=True, nogil=True, allocates=False)
def _weigh(candidates, candidate, place, bends, total):
    """A cached column less its mean by curvature, times the roots of the curvatures."""
    column, row = candidates.cache[candidate], candidates.rows[place]
    mean = dot(column, bends) / total if total > 0.0 else 0.0
    candidates.average[place] = mean
    for i in range(row.size):
        row[i] = np.sqrt(bends[i]) * (column[i] - mean)


@njit(cache=True, nogil=True)
def _dense_form_by_blocks(store, candidates, members, m, bends, total, inverse, out):
    n = bends.size
    means = np.zeros(m)
    if total > 0.0:
        sums = np.empty(inverse.size)
        multiply(store, bends, sums)
        for x in range(m):
            means[x] = sums[candidates.feature[members[x]]] / total
    out[:m, :m] = 0.0
    height = max(LEAST_ROWS, min(n, BLOCK // max(m, 1) + 1))
    block = np.empty((height, m))
    for start in range(0, n, height):
        used = 0
        for i in range(start, min(start + height, n)):
            if bends[i] != 0.0:
                root = np.sqrt(bends[i])
                for x in range(m):
                    j = candidates.feature[members[x]]
                    value = store.lines[i, j] if store.by_rows else store.lines[j, i]
                    block[used, x] = root * (value - means[x])
                used += 1
        part = block[:used]
        share = np.dot(part.T, part)
        for x in range(m):
            for z in range(m):
                out[x, z] += share[x, z]
    for x in range(m):
        scale = inverse[candidates.feature[members[x]]]
        candidates.average[x] = means[x] * scale
        for z in range(m):
            out[x, z] *= scale
            out[z, x] *= scale


@njit(cache=True, nogil=True)
def _compressed_form(store, candidates, members, m, bends, total, inverse, out):
    out[:m, :m] = 0.0
    means = np.zeros(m)
    _add_outer(store, candidates, members, m, bends, inverse, out, means)
    for x in range(m):
        candidates.average[x] = means[x] / total if total > 0.0 else 0.0
    for x in range(m):
        for z in range(x + 1):
            out[x, z] -= means[x] * candidates.average[z]
            out[z, x] = out[x, z]


@njit(cache=True, nogil=True)
def _add_outer(store, candidates, members, m, bends, inverse, out, sums):
    """Add ``sum_i bends_i x_i x_i'`` to the lower triangle of ``out``, ``sum_i bends_i x_i`` to
    ``sums``: by rows first, then the outer product of each row with itself."""
    starts = np.zeros(store.n_rows + 1, np.int64)
    for x in range(m):
        j = candidates.feature[members[x]]
        for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
            if bends[store.indices[at]] != 0.0:
                starts[store.indices[at] + 1] += 1
    for i in range(store.n_rows):
        starts[i + 1] += starts[i]
    place = starts[:-1].copy()
    column = np.empty(starts[-1], np.int32)
    value = np.empty(starts[-1])
    for x in range(m):
        j = candidates.feature[members[x]]
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


def append(
    store: Any,
    candidates: Any,
    members: Any,
    m: Any,
    bends: Any,
    total: Any,
    inverse: Any,
    out: Any,
) -> Any:
    """The last row and column of the matrix of `form`, for an appended member."""


@overload(append)
def _append(store, candidates, members, m, bends, total, inverse, out):
    if is_compressed(store):
        return lambda store, candidates, members, m, bends, total, inverse, out: _compressed_append(
            store, candidates, members, m, bends, total, inverse, out
        )
    return lambda store, candidates, members, m, bends, total, inverse, out: _dense_append(
        store, candidates, members, m, bends, total, inverse, out
    )


@njit(cache=True, nogil=True)
def _dense_append(store, candidates, members, m, bends, total, inverse, out):
    last = m - 1
    if store.caches:
        column, row = candidates.cache[members[last]], candidates.rows[last]
        mean = dot(column, bends) / total if total > 0.0 else 0.0
        candidates.average[last] = mean
        for i in range(row.size):
            row[i] = bends[i] * (column[i] - mean)  # sum zero: the others need no centring
        for x in range(m):
            out[last, x] = dot(row, candidates.cache[members[x]])
            out[x, last] = out[last, x]
        return
    j = candidates.feature[members[last]]
    weighted, mean = np.empty(bends.size), 0.0
    for i in range(bends.size):
        weighted[i] = bends[i] * (store.lines[i, j] if store.by_rows else store.lines[j, i])
        mean += weighted[i]
    mean = mean / total if total > 0.0 else 0.0
    candidates.average[last] = mean * inverse[j]
    for i in range(bends.size):
        weighted[i] -= bends[i] * mean  # sum zero: the other columns need no centring
    sums = np.empty(inverse.size)
    pull_all(store, weighted, inverse, sums)
    for x in range(m):
        out[last, x] = inverse[j] * sums[candidates.feature[members[x]]]
        out[x, last] = out[last, x]


@njit(cache=True, nogil=True)
def _compressed_append(store, candidates, members, m, bends, total, inverse, out):
    last = m - 1
    j = candidates.feature[members[last]]
    weighted, mean = np.zeros(bends.size), 0.0
    for at in range(np.uint64(store.indptr[j]), np.uint64(store.indptr[j + 1])):
        i = store.indices[at]
        weighted[i] = bends[i] * store.data[at]
        mean += weighted[i]
    candidates.average[last] = inverse[j] * mean / total if total > 0.0 else 0.0
    for x in range(m):
        other = candidates.feature[members[x]]
        value = inverse[j] * inverse[other] * one(store, other, weighted)
        out[last, x] = value - candidates.average[x] * mean * inverse[j]
        out[x, last] = out[last, x]


def revise(
    store: Any,
    candidates: Any,
    members: Any,
    m: Any,
    change: Any,
    before: Any,
    after: Any,
    inverse: Any,
    out: Any,
) -> Any:
    """The matrix of `form` and its means, after some of the curvatures have changed.

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


@overload(revise)
def _revise(store, candidates, members, m, change, before, after, inverse, out):
    if is_compressed(store):
        return lambda store, candidates, members, m, change, before, after, inverse, out: (
            _compressed_revise(store, candidates, members, m, change, before, after, inverse, out)
        )
    return lambda store, candidates, members, m, change, before, after, inverse, out: _dense_revise(
        store, candidates, members, m, change, after, inverse, out
    )


@njit(cache=True, nogil=True)
def _compressed_revise(store, candidates, members, m, change, before, after, inverse, out):
    sums, average = np.zeros(m), candidates.average
    _add_outer(store, candidates, members, m, change, inverse, out, sums)
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
def _dense_revise(store, candidates, members, m, change, after, inverse, out):
    n, used, average = change.size, 0, candidates.average
    height = max(LEAST_ROWS, min(n, BLOCK // max(m, 1) + 1))
    rows, weighted, sums = np.empty((height, m)), np.empty((height, m)), np.zeros(m)
    for i in range(n):
        if change[i] != 0.0:
            for x in range(m):
                value = _entry(store, candidates, members[x], i, inverse) - average[x]
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
def _entry(store, candidates, candidate, i, inverse):
    """The feature of a candidate at sample i."""
    if store.caches:
        return candidates.cache[candidate, i]
    j = candidates.feature[candidate]
    return inverse[j] * (store.lines[i, j] if store.by_rows else store.lines[j, i])
