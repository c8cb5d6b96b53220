"""Kernels of the proximal Newton method: curvature weights, Gram matrices, the quadratic model."""

from __future__ import annotations

import numpy as np
from numba import njit

from proxmargin.compiled.margins import _curvature, _descent

__all__ = ["curvature_weights", "model_sweeps", "ray_slope", "sparse_gram"]


@njit(cache=True, nogil=True)
def curvature_weights(shape, scores, signs, weights, theta, out):  # type: ignore[no-untyped-def]
    """Second derivative of the loss in each score, (n_samples,), written into ``out``.

    Where the capped quadratic is flat or linear its curvature is zero. With ``theta > 0`` it is
    replaced there by theta times the curvature of the quadratic that touches the loss on both
    sides of the middle of its quadratic zone (the majoriser of iteratively reweighted least
    squares).
    """
    for i in range(out.size):
        t = signs[i] * scores[i]
        bend = _curvature(shape, t)
        if bend == 0.0 and theta > 0.0:
            slope = shape.curvature * shape.cap
            bend = theta * slope / (2.0 * abs(1.0 - t - 0.5 * shape.cap))
        out[i] = weights[i] * bend


@njit(cache=True, nogil=True)
def ray_slope(shape, scores, direction, signs, weights, step):  # type: ignore[no-untyped-def]
    """Derivative of the loss along ``scores + step * direction``."""
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            t = signs[i] * (scores[i] + step * direction[i])
            total -= weights[i] * signs[i] * direction[i] * _descent(shape, t)
    return total


@njit(cache=True, nogil=True)
def sparse_gram(data, indices, indptr, bend, out):  # type: ignore[no-untyped-def]
    """``out += X' diag(bend) X`` for X compressed by rows, by outer products of its rows."""
    for i in range(bend.size):
        if bend[i] == 0.0:
            continue
        for first in range(indptr[i], indptr[i + 1]):
            value = bend[i] * data[first]
            row = indices[first]
            for second in range(indptr[i], indptr[i + 1]):
                out[row, indices[second]] += value * data[second]


@njit(cache=True, nogil=True)
def model_sweeps(hessian, slope, coef, l1, sweeps, target):  # type: ignore[no-untyped-def]
    """Coordinate descent on ``slope'd + d'Hd/2 + l1 |coef + d|_1``; ``slope`` is kept up to date.

    Parameters
    ----------
    hessian : (k, k), symmetric with a positive diagonal
    slope : (k,)
        Gradient of the smooth part at ``coef``.
    coef : (k,)
    sweeps : int
        At most this many.
    target : float
        Violation of the optimality conditions at which to stop.

    Returns
    -------
    float
        Largest violation met in the last sweep. Changes ``slope`` and ``coef`` in place.
    """
    worst = np.inf
    for _ in range(sweeps):
        worst = 0.0
        for j in range(coef.size):
            old = coef[j]
            if old == 0.0 and abs(slope[j]) <= l1:
                continue
            reach = hessian[j, j] * old - slope[j]
            new = 0.0
            if reach > l1:
                new = (reach - l1) / hessian[j, j]
            elif reach < -l1:
                new = (reach + l1) / hessian[j, j]
            change = new - old
            if change != 0.0:
                worst = max(worst, abs(change) * hessian[j, j])
                coef[j] = new
                for k in range(coef.size):
                    slope[k] += change * hessian[j, k]
        if worst <= target:
            break
    return worst
