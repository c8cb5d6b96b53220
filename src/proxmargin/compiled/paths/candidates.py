"""Features that may enter the model of a path, and their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import overload

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.stores import is_compressed
from proxmargin.compiled.paths.vectors import dot

__all__ = ["Candidates", "load"]


class Candidates(NamedTuple):
    """Features that may enter the model, in order of entry.

    Attributes
    ----------
    feature : (capacity,) integers
    every : (capacity,) integers
        0, 1, 2, ...: all candidates.
    slot_of : (n_features,) integers
        Slot of each feature, -1 where it has none.
    gate : (n_features,)
        The factors of the penalty, infinite where a feature is a candidate.
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


def load(
    store: Any, candidates: Any, candidate: Any, j: Any, weights: Any, inverse: Any, free: Any
) -> Any:
    """Make feature j a candidate."""


@overload(load)
def _load(store, candidates, candidate, j, weights, inverse, free):
    if is_compressed(store):

        def compressed(store, candidates, candidate, j, weights, inverse, free):
            candidates.mean[candidate] = 0.0

        return compressed
    return lambda store, candidates, candidate, j, weights, inverse, free: _dense_load(
        store, candidates, candidate, j, weights, inverse, free
    )


@njit(cache=True, nogil=True, allocates=False)
def _dense_load(store, candidates, candidate, j, weights, inverse, free):
    candidates.mean[candidate] = 0.0
    if not store.caches:
        return
    column = candidates.cache[candidate]
    for i in range(column.size):
        column[i] = store.lines[i, j] if store.by_rows else store.lines[j, i]
    if free:
        mean = dot(column, weights)
        candidates.mean[candidate] = mean
        for i in range(column.size):
            column[i] = (column[i] - mean) * inverse[j]
    else:
        for i in range(column.size):
            column[i] *= inverse[j]
