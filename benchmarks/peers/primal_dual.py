"""Algorithms 1 and 2 of Chierchia et al. (2015) as bare loops, as their rivals are here.

    minimise  g(x) + C sum_i max_k (T_i x + r_i)_k              (7), Algorithm 1
    minimise  g(x)  subject to  the sum <= eta                  (8), Algorithm 2

T maps to the differences of scores with that of the own class: its squared norm is K times that of
the data with a column of ones. ``tau = sigma = 1 / |T|``; the paper does not print their ratio.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.iterates import Floats, Iterate
from proxmargin.functions.projections import hinge_epigraphs, simplex_rows

__all__ = ["budget", "penalised"]

Codes = NDArray[np.intp]


def penalised(X: Any, y: Codes, penalty: Any, C: float, norm: float) -> Iterator[Iterate]:
    """Algorithm 1.

    Parameters
    ----------
    X : (n_samples, n_features)
    y : (n_samples,) class codes
    penalty : with a ``prox(coef, step)`` of (n_features, n_classes)
    norm : float
        An upper bound of ``|T|``.
    """
    rows, classes = np.arange(y.size), int(y.max()) + 1
    margins = np.ones((y.size, classes))
    margins[rows, y] = 0.0
    step = 1.0 / norm
    x, b = np.zeros((X.shape[1], classes)), np.zeros(classes)
    dual, differences = np.zeros((y.size, classes)), np.zeros((y.size, classes))
    while True:
        x, b = _primal_step(X, y, rows, penalty, step, Iterate(x, b), dual)
        new = _differences(X, y, rows, x, b)
        dual = simplex_rows(dual + step * (2.0 * new - differences + margins), C)
        differences = new
        yield Iterate(x, b)


def budget(X: Any, y: Codes, penalty: Any, eta: float, norm: float) -> Iterator[Iterate]:
    """Algorithm 2; parameters as in `penalised`, ``norm`` bounds ``max(|T|, 1)``."""
    rows, classes = np.arange(y.size), int(y.max()) + 1
    step = 1.0 / max(norm, 1.0)
    x, b = np.zeros((X.shape[1], classes)), np.zeros(classes)
    dual, differences = np.zeros((y.size, classes)), np.zeros((y.size, classes))
    levels, heights = np.full(y.size, eta / y.size), np.zeros(y.size)
    while True:
        x, b = _primal_step(X, y, rows, penalty, step, Iterate(x, b), dual)
        moved = levels - step * heights
        new_levels = moved - max(float(moved.sum()) - eta, 0.0) / y.size
        new = _differences(X, y, rows, x, b)
        raised = dual + step * (2.0 * new - differences)
        high = heights + step * (2.0 * new_levels - levels)
        nearest, nearest_levels = hinge_epigraphs(raised / step, high / step, y)
        dual, heights = raised - step * nearest, high - step * nearest_levels
        differences, levels = new, new_levels
        yield Iterate(x, b)


def _primal_step(
    X: Any, y: Codes, rows: Codes, penalty: Any, step: float, now: Iterate, dual: Floats
) -> Iterate:
    pull = dual.copy()
    pull[rows, y] -= dual.sum(axis=1)  # the adjoint of the differences
    coef = penalty.prox(now.coef - step * (X.T @ pull), step)
    return Iterate(coef, now.intercept - step * pull.sum(axis=0))


def _differences(X: Any, y: Codes, rows: Codes, coef: Floats, intercept: Floats) -> Floats:
    scores: Floats = X @ coef + intercept
    return scores - scores[rows, y][:, None]
