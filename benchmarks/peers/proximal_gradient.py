"""FISTA and forward-backward splitting for the smooth rivals of Chierchia et al. (2015, 4.1).

    minimise  g(x) + C sum_i loss(d_i),   d_i = (<x_k - x_{y_i}, phi_i>)_k for k != y_i

with the squared hinges ``sum_k max(0, 1 + d_k)^2`` of (19) or ``log(1 + sum_k exp(1 + d_k))`` of
(20), at constant step length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.iterates import Iterate

__all__ = ["LOGIT", "SQUARE", "Smooth", "proximal_gradient"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Smooth:
    """A loss of the differences (n, n_classes), with one at each ``1 + d_k`` and nothing at y_i.

    Attributes
    ----------
    slopes : callable
        Derivatives in the differences, from ``1 + d`` and the mask of the other classes.
    curvature : float
        Of the loss in the scores, over the squared norm K of the map to the differences.
    """

    slopes: Callable[[Floats, NDArray[np.bool_]], Floats]
    curvature: float


def _square(margins: Floats, others: NDArray[np.bool_]) -> Floats:
    return np.where(others, 2.0 * np.maximum(margins, 0.0), 0.0)


def _logit(margins: Floats, others: NDArray[np.bool_]) -> Floats:
    level = np.maximum(margins.max(axis=1, keepdims=True), 0.0)
    terms = np.where(others, np.exp(margins - level), 0.0)
    found: Floats = terms / (np.exp(-level) + terms.sum(axis=1, keepdims=True))
    return found


SQUARE, LOGIT = Smooth(_square, 2.0), Smooth(_logit, 0.5)


def proximal_gradient(
    X: Any,
    y: NDArray[np.intp],
    loss: Smooth,
    penalty: Any,
    C: float,
    norm: float,
    *,
    accelerated: bool,
) -> Iterator[Iterate]:
    """Its iterates.

    Parameters
    ----------
    X : (n_samples, n_features)
    y : (n_samples,) class codes
    penalty : with a ``prox(coef, step)`` of (n_features, n_classes)
    norm : float
        An upper bound of the norm of X with a column of ones.
    accelerated : bool
        FISTA, not forward-backward splitting.
    """
    rows, classes = np.arange(y.size), int(y.max()) + 1
    others = np.ones((y.size, classes), bool)
    others[rows, y] = False
    step = 1.0 / (C * loss.curvature * classes * norm**2)
    x, b = np.zeros((X.shape[1], classes)), np.zeros(classes)
    ahead, level, t = x, b, 1.0
    while True:
        scores = X @ ahead + level
        slopes = C * loss.slopes(1.0 + scores - scores[rows, y][:, None], others)
        slopes[rows, y] -= slopes.sum(axis=1)
        new_x = penalty.prox(ahead - step * (X.T @ slopes), step)
        new_b = level - step * slopes.sum(axis=0)
        next_t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2)) if accelerated else 1.0
        weight = (t - 1.0) / next_t
        ahead, level = new_x + weight * (new_x - x), new_b + weight * (new_b - b)
        x, b, t = new_x, new_b, next_t
        yield Iterate(x, b)
