"""Reductions over rows of arrays, with fast paths for one column; equal and representative rows.

For a single column NumPy would run a loop of one entry for each row, ten times slower than a view.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["evenly_taken", "first_of_equals", "largest_of_rows", "live_rows", "sums_of_rows"]

Array = NDArray[np.float64]

# where in the first of even steps a row is taken: no ratio of weights, which would be a tie
STEP_START = 0.381966


def live_rows(coef: NDArray[Any]) -> NDArray[np.intp]:
    """The rows with an entry that is not zero."""
    return np.flatnonzero(coef[:, 0] if coef.shape[1] == 1 else coef.any(axis=1))


def sums_of_rows(values: Array) -> Array:
    """The sum of each row; of a single column a view, not to be written into."""
    total: Array = values[:, 0] if values.shape[1] == 1 else values.sum(axis=1)
    return total


def largest_of_rows(values: Array) -> Array:
    """The largest entry of each row; of a single column a view, not to be written into."""
    largest: Array = values[:, 0] if values.shape[1] == 1 else values.max(axis=1)
    return largest


def evenly_taken(weights: Array, count: int) -> tuple[NDArray[np.intp], Array]:
    """Some of the rows, at even steps of their weight, and the weight that each stands for.

    All rows with weight, where they are not more than ``count``. A repeated row and one of twice
    the weight are taken alike.

    Parameters
    ----------
    weights : (n,) >= 0
    count : int
    """
    live = np.flatnonzero(weights > 0)
    if live.size <= count:
        return live, weights[live]
    below = np.cumsum(weights[live])
    steps = (np.arange(count) + STEP_START) * (below[-1] / count)
    picked, times = np.unique(np.searchsorted(below, steps), return_counts=True)
    return live[picked], times * (below[-1] / count)


def first_of_equals(X: Any) -> NDArray[np.intp]:
    """The number of the first row that is equal to each row, bit for bit but for signed zeros.

    Parameters
    ----------
    X : (n_rows, n_columns), dense or sparse
        Of sparse rows some equal ones may be missed.
    """
    if sparse.issparse(X):
        return _first_of_equal_sparse(X)
    rows = np.ascontiguousarray(X) + 0.0
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
    return _firsts(keys)


def _first_of_equal_sparse(X: Any) -> NDArray[np.intp]:
    """By one product with random numbers, the same sum for the same rows; then compared."""
    found = _firsts(X @ np.random.default_rng(0).random(X.shape[1]))
    differ = np.diff((X - X[found]).tocsr().indptr) > 0
    return np.where(differ, np.arange(X.shape[0]), found)


def _firsts(keys: NDArray[Any]) -> NDArray[np.intp]:
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    found: NDArray[np.intp] = first[number]
    return found
