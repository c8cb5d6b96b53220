"""GCD as an interpreted language runs it, which the paper times and compiled loops hide."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import DataSet, Floats

__all__ = ["sweep", "sweep_seconds"]

TIMED = 1000  # columns of a sweep that are timed; a sweep costs as much for each of them
REPEATS = 3


def sweep(
    data: DataSet, coef: Floats, scores: Floats, l1: float, l2: float, delta: float = 1.0
) -> None:
    """One update of each coefficient of (2), in place, with the scores (n,) after each.

    ``w_j <- soft(M_j w_j - f'_j, l1) / (M_j + l2)``, M_j the mean of ``x_ij^2 / delta``.
    """
    X, y = data.design, data.labels
    columns = X.tocsc() if sp.issparse(X) else X
    for j in range(coef.size):
        rows, x = _column(columns, j)
        short = np.minimum(np.maximum((1.0 - y[rows] * scores[rows]) / delta, 0.0), 1.0)
        gradient = -float(x @ (y[rows] * short)) / y.size
        major = float(x @ x) / (delta * y.size)
        target = major * coef[j] - gradient
        new = np.sign(target) * max(abs(target) - l1, 0.0) / (major + l2)
        if new != coef[j]:
            scores[rows] += (new - coef[j]) * x
            coef[j] = new


def _column(columns: Any, j: int) -> tuple[Any, Floats]:
    if not sp.issparse(columns):
        return slice(None), columns[:, j]
    part = slice(columns.indptr[j], columns.indptr[j + 1])
    return columns.indices[part], columns.data[part]


def sweep_seconds(data: DataSet, l1: float, l2: float, delta: float = 1.0) -> float:
    """CPU seconds of a sweep in NumPy, the least of a few, from zero; of many columns some are
    timed."""
    p = data.design.shape[1]
    some = np.linspace(0, p - 1, min(p, TIMED)).astype(int)
    design = data.design.tocsc()[:, some] if sp.issparse(data.design) else data.design[:, some]
    part = DataSet(
        data.name, design if sp.issparse(design) else np.asfortranarray(design), data.labels
    )
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        sweep(part, np.zeros(some.size), np.zeros(data.labels.size), l1, l2, delta)
        times.append(time.process_time() - start)
    return min(times) * p / some.size
