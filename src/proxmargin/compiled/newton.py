"""Kernels of Newton methods: curvature weights, Gram matrices, the search along a step."""

from __future__ import annotations

import numpy as np
from numba import njit

from proxmargin.compiled.margins import _curvature, _descent

__all__ = ["curvature_weights", "exact_step", "ray_slope", "sparse_gram"]


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
def ray_slope(  # type: ignore[no-untyped-def]
    shape, scores, moved, signs, weights, coef, direction, l1, l2, step
):
    """Right derivative of the loss plus the elastic net along the ray, at ``step``.

    Parameters
    ----------
    scores, moved, signs, weights : (n_samples,)
        The scores are ``scores + step * moved``.
    coef, direction : (n_features,)
        The coefficients are ``coef + step * direction``.
    """
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            t = signs[i] * (scores[i] + step * moved[i])
            total -= weights[i] * signs[i] * moved[i] * _descent(shape, t)
    for j in range(coef.size):
        at = coef[j] + step * direction[j]
        if at > 0.0:
            total += (l1 + l2 * at) * direction[j]
        elif at < 0.0:
            total += (l2 * at - l1) * direction[j]
        else:
            total += l1 * abs(direction[j])
    return total


@njit(cache=True, nogil=True)
def exact_step(  # type: ignore[no-untyped-def]
    shape, scores, moved, signs, weights, coef, direction, l1, l2, lift, bend, share, limit
):
    """A step at which the slope along the ray has fallen to ``share`` of its first value.

    ``lift + step * bend`` is added to the slope, for what else is quadratic along the ray. The
    slope increases with the step: doubling until it is positive, then false position guarded by
    bisection. Where it jumps across zero, the last step with a negative slope is returned, and 0
    where the ray does not descend.
    """
    first = lift + ray_slope(shape, scores, moved, signs, weights, coef, direction, l1, l2, 0.0)
    if first >= 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    at_low, at_high = first, np.inf
    for trial in range(limit):
        here = lift + step * bend
        here += ray_slope(shape, scores, moved, signs, weights, coef, direction, l1, l2, step)
        if abs(here) <= share * abs(first):
            return step
        if here < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high == np.inf:
            step = 2.0 * step
        elif trial % 2 == 0:
            step = low + (high - low) * at_low / (at_low - at_high)
        else:
            step = 0.5 * (low + high)
    return low


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
