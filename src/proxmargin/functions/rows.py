"""Reductions over rows of arrays, with fast paths for one column; equal and representative rows.

For a single column NumPy's reduction along rows is ten times slower than a view.
"""

from __future__ import annotations

import pickle
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.runtime.types import Array, Values

# Columns up to which a reduction along rows is faster column by column; for sums, NumPy adds the
# entries of so short rows in the same order.
FEW_COLUMNS = 7


def live_rows(coef: Values) -> NDArray[np.intp]:
    """Indices of the rows with a nonzero entry."""
    # the zeros of flags are skipped faster than those of numbers
    if coef.shape[1] == 1:
        return np.flatnonzero(coef[:, 0] != 0)
    rows = np.flatnonzero(np.ravel(coef) != 0) // max(coef.shape[1], 1)
    first = np.ones(rows.size, np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return rows[first]


def sums_of_rows(values: Array) -> Array:
    """The sum of each row; a view, not to be modified, of a single column."""
    few = 0 < values.shape[1] <= FEW_COLUMNS
    total: Array = reduce(np.add, values.T) if few else values.sum(axis=1)
    return total


def largest_of_rows(values: Array) -> Array:
    """The largest entry of each row; a view, not to be modified, of a single column."""
    few = 0 < values.shape[1] <= FEW_COLUMNS
    largest: Array = reduce(np.maximum, values.T) if few else values.max(axis=1)
    return largest


def evenly_taken(weights: Array, count: int) -> tuple[NDArray[np.intp], Array]:
    """Rows at even steps of the cumulative weight, and the weight that each represents: all rows
    with weight if they are at most ``count``. A repeated row counts like one of twice the
    weight."""
    live = np.flatnonzero(weights > 0)
    if live.size <= count:
        return live, weights[live]
    below = np.cumsum(weights[live])
    # they begin at an irrational fraction of a step, so that weights cause no ties
    steps = (np.arange(count) + 0.381966) * (below[-1] / count)
    picked, times = np.unique(np.searchsorted(below, steps), return_counts=True)
    return live[picked], times * (below[-1] / count)


def first_of_equals(X: Any) -> NDArray[np.intp]:
    """For each row of dense or sparse data the index of the first row equal to it; signed zeros are
    equal, and some equal sparse rows may be missed."""
    _, first, number = np.unique(_keys(X), return_index=True, return_inverse=True)
    found: NDArray[np.intp] = first[number]
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:  # a few rows may share a key
        differ = np.diff((X - X[found]).tocsr().indptr) > 0
        return np.where(differ, np.arange(X.shape[0]), found)
    return found


def order_of_rows(X: Any) -> NDArray[np.intp]:
    """An order of the rows, dense or sparse, that depends on them alone: equal ones are
    neighbours."""
    return np.argsort(_keys(X), kind="stable")


def _keys(X: Values) -> Values:
    """A key for each row: of sparse ones a random projection, which a few may share."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        return np.asarray(X @ np.random.default_rng(0).random(X.shape[1]))
    if X.dtype == object:
        return _of_objects(X)
    rows = np.ascontiguousarray(X if X.ndim == 2 else X.reshape(len(X), -1)) + 0.0
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _of_objects(X: Values) -> Values:
    """The pickles of objects; of one that has none its identity, so that it equals itself alone."""
    keys = np.empty(len(X), dtype=object)
    for place, each in enumerate(X):
        try:
            keys[place] = pickle.dumps(each.tolist() if X.ndim > 1 else each)
        except (AttributeError, TypeError, pickle.PicklingError):
            keys[place] = repr(id(each)).encode()
    return keys
