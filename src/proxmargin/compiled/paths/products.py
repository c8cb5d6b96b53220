"""Products of the data with vectors of samples and of coefficients, for paths.

Of dense data with more features than samples the columns that may enter the model are copied and
centred; others are read in place.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products import columns
from proxmargin.compiled.products.vectors import add, dot


@njit(nogil=True, allocates=False)
def copy_column(data, candidates, s, j):
    """Copy the column of feature j for candidate s, centred by its mean and scaled."""
    store, mean = data.store, 0.0
    if store.copies:
        column = candidates.columns[s]
        for i in range(column.size):
            column[i] = store.lines[i, j] if store.by_rows else store.lines[j, i]
        if data.free:
            mean = dot(column, data.weights)
        for i in range(column.size):
            column[i] = (column[i] - mean) * data.inverse[j]
    candidates.mean[s] = mean


@njit(nogil=True, allocates=False)
def all_products(store, vector, inverse, out):
    """Inner products of all features with ``vector``, into ``out``: one pass over the data."""
    if store.is_sparse:
        for j in range(out.size):
            out[j] = inverse[j] * columns.dot(store.sparse, j, vector)
    else:
        dense_products(store, vector, out)
        for j in range(out.size):
            out[j] *= inverse[j]


@njit(nogil=True)
def dense_products(store, vector, out):
    """Inner products of all features, as they are in dense data, with ``vector``."""
    if store.by_rows:
        np.dot(vector, store.lines, out)
    else:
        np.dot(store.lines, vector, out)


@njit(nogil=True, allocates=False)
def product(store, j, vector):
    """Inner product of a column, as it is in the data, with ``vector``."""
    if store.is_sparse:
        return columns.dot(store.sparse, j, vector)
    if not store.by_rows:
        return dot(store.lines[j], vector)
    total = 0.0
    for i in range(vector.size):
        total += store.lines[i, j] * vector[i]
    return total


@njit(nogil=True, allocates=False)
def some_products(store, index, count, vector, inverse, out):
    """Inner products of the first ``count`` features of ``index`` with ``vector``, into ``out``."""
    scattered = store.by_rows and not store.is_sparse
    for x in range(count):
        j = index[x]
        if scattered:
            _cache_column(store.cache, store.lines, j)
            value = dot(store.cache.columns[store.cache.place[j]], vector)
        else:
            value = product(store, j, vector)
        out[j] = inverse[j] * value


@njit(nogil=True, allocates=False)
def _cache_column(cache, lines, j):
    """Copy a column that has no copy yet, in place of the oldest one."""
    if cache.place[j] >= 0:
        return
    place = cache.scalars.copied % cache.owner.size
    if cache.owner[place] >= 0:
        cache.place[cache.owner[place]] = -1
    cache.owner[place], cache.place[j] = j, place
    for i in range(cache.columns.shape[1]):
        cache.columns[place, i] = lines[i, j]
    cache.scalars.copied += 1


@njit(nogil=True, allocates=False)
def candidate_products(store, candidates, vector, inverse):
    """Set the correlations of the candidates, their inner products with ``vector``."""
    if store.copies:
        _copied_products(candidates, vector)
    elif store.is_sparse:
        for s in range(candidates.scalars.count):
            j = candidates.feature[s]
            candidates.correlation[s] = inverse[j] * columns.dot(store.sparse, j, vector)
    else:  # all features are candidates, in their order
        all_products(store, vector, inverse, candidates.correlation)


@njit(nogil=True)
def _copied_products(candidates, vector):
    k = candidates.scalars.count
    np.dot(candidates.columns[:k], vector, candidates.correlation[:k])


@njit(nogil=True, allocates=False)
def combine(store, candidates, members, m, factors, inverse, out):
    """The sum of the columns of the first m members times their ``factors``, into ``out``."""
    if store.by_rows and not (store.copies or store.is_sparse):
        _combine_rows(store, candidates, members, m, factors, inverse, out)
        return
    out[:] = 0.0
    for x in range(m):
        if factors[x] != 0.0:
            s = members[x]
            j = candidates.feature[s]
            if store.copies:
                add(factors[x], candidates.columns[s], out)
            elif store.is_sparse:
                columns.add(store.sparse, j, factors[x] * inverse[j], out)
            else:
                add(factors[x] * inverse[j], store.lines[j], out)


@njit(nogil=True)
def _combine_rows(store, candidates, members, m, factors, inverse, out):
    whole = np.zeros(store.lines.shape[1])
    for x in range(m):
        j = candidates.feature[members[x]]
        whole[j] = factors[x] * inverse[j]
    np.dot(store.lines, whole, out)
