"""Nearest points of a box cut by a hyperplane, for numbers and arrays of any kind."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections.knapsack import Knapsack
from proxmargin.functions.projections import nearest_in_box

Array = NDArray[np.float64]


def box_hyperplane_multiplier(
    point: ArrayLike,
    normal: ArrayLike,
    total: float,
    low: ArrayLike,
    high: ArrayLike,
    *,
    guess: float | None = None,
) -> tuple[Array, float]:
    """The nearest point of a box cut by a hyperplane, and the multiplier of the hyperplane
    (`nearest_in_box`); normal and bounds may be numbers, and bounds infinite."""
    return nearest_in_box(_knapsack(point, normal, total, low, high), guess)


def capped_simplex(
    point: ArrayLike, total: float, cap: ArrayLike, *, guess: float | None = None
) -> Array:
    """The nearest u to ``point`` with ``sum(u) = total`` and ``0 <= u <= cap``: (22) of Ito,
    Takeda and Toh (2017), one class of the dual of the nu-SVM."""
    return box_hyperplane_multiplier(point, 1.0, total, 0.0, cap, guess=guess)[0]


def _knapsack(
    point: ArrayLike, normal: ArrayLike, total: float, low: ArrayLike, high: ArrayLike
) -> Knapsack:
    start = np.ascontiguousarray(point, dtype=np.float64)
    if start.ndim != 1 or start.size == 0:
        raise ValueError(f"point has shape {np.shape(point)}; give a vector of at least one entry")
    if not math.isfinite(total):
        raise ValueError(f"total={total} is no finite number")
    return Knapsack(
        start,
        _fitted("normal", normal, start.size),
        _fitted("low", low, start.size),
        _fitted("high", high, start.size),
        float(total),
    )


def _fitted(name: str, value: ArrayLike, n: int) -> Array:
    """The value as an array of n entries, or of one entry that holds for all."""
    array = np.ascontiguousarray(value, dtype=np.float64)
    if array.shape not in ((n,), (1,)) or (np.ndim(value) and array.size != n):
        raise ValueError(f"{name} has shape {np.shape(value)}; give a number or {n} entries")
    return array
