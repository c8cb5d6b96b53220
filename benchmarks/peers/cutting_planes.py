"""The 1-slack cutting-plane method of SVM-struct (Joachims et al. 2009), for the hinge of classes.

    minimise  |W|^2 / 2 + C mean_i max_k [1{k != y_i} + <w_k - w_{y_i}, x_i>]

The mean is bounded below by cuts ``c_j - <G_j, W>``, one an iteration: for each sample the most
violated class at the present W. W minimises ``|W|^2 / 2 + C`` times the largest of the cuts and
zero, a quadratic program with as many variables as there are cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cut", "cutting_planes"]

Floats = NDArray[np.float64]

PAIRS = 100_000  # steps of the quadratic program, of two variables each
ROOM = 16  # cuts at first
SHARE = 0.1  # its accuracy, over that of the method


@dataclass(frozen=True)
class Cut:
    """The end of a run.

    Attributes
    ----------
    coef : (n_classes, n_features)
    primal, dual : float
        The objective, and the value of the last quadratic program: a lower bound.
    cuts : int
    """

    coef: Floats
    primal: float
    dual: float
    cuts: int


def cutting_planes(X: Any, y: NDArray[np.intp], C: float, tol: float, max_cuts: int = 2000) -> Cut:
    """Add cuts until the last one raises the largest by at most ``tol``.

    Parameters
    ----------
    X : (n_samples, n_features), dense or sparse; it has no intercept but by a column of ones
    y : (n_samples,) class codes 0, 1, ...
    C : float
        Of the mean loss: the n-fold of that of a sum.
    tol : float
        epsilon of the paper, in units of the mean loss.
    """
    samples, classes = np.arange(y.size), int(y.max()) + 1
    coef = np.zeros((classes, X.shape[1]))
    # the first cut is zero
    cuts, normals, heights = 1, np.zeros((ROOM, coef.size)), np.zeros(1)
    gram, weights, dual = np.zeros((1, 1)), np.array([C]), 0.0
    while True:
        scores = np.asarray(X @ coef.T)
        losses = scores - scores[samples, y][:, None] + 1.0
        losses[samples, y] = 0.0
        worst = losses.argmax(axis=1)
        mean = float(losses[samples, worst].mean())
        primal = 0.5 * float(np.vdot(coef, coef)) + C * mean
        largest = float((heights - normals[:cuts] @ coef.ravel()).max())
        if mean <= largest + tol or cuts > max_cuts:
            return Cut(coef, primal, dual, cuts - 1)
        turns = np.zeros((y.size, classes))
        np.add.at(turns, (samples, y), 1.0 / y.size)
        np.add.at(turns, (samples, worst), -1.0 / y.size)
        if cuts == len(normals):
            normals = np.concatenate([normals, np.zeros_like(normals)])
        normals[cuts] = np.asarray(X.T @ turns).T.ravel()
        cuts += 1
        heights = np.append(heights, (worst != y).mean())
        gram = np.pad(gram, (0, 1))
        gram[-1] = gram[:, -1] = normals[:cuts] @ normals[cuts - 1]
        weights = _on_simplex(gram, heights, np.append(weights, 0.0), C, SHARE * tol)
        coef = (weights @ normals[:cuts]).reshape(coef.shape)
        dual = float(weights @ heights) - 0.5 * float(weights @ gram @ weights)


def _on_simplex(gram: Floats, goal: Floats, start: Floats, C: float, tol: float) -> Floats:
    """``argmax  <goal, a> - a'gram a / 2`` over a >= 0 with sum C, by steps of the worst pair."""
    a, slope = start.copy(), goal - gram @ start
    for _ in range(PAIRS):
        up = int(slope.argmax())
        down = int(np.where(a > 0, slope, np.inf).argmin())
        if slope[up] - slope[down] <= tol:
            break
        curvature = gram[up, up] + gram[down, down] - 2.0 * gram[up, down]
        length = (slope[up] - slope[down]) / max(curvature, np.finfo(float).tiny)
        moved = min(length, float(a[down]))
        a[up] += moved
        a[down] = 0.0 if moved == a[down] else a[down] - moved
        slope -= moved * (gram[:, up] - gram[:, down])
    return a
