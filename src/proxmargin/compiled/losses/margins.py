"""Fused passes over the scores for losses of a margin.

A loss of a margin t = sign * score is one of two shapes, told by a `Shape`: the *capped quadratic*
with u = 1 - t

    0 for u <= 0,   (h/2) u^2 for u < cap,   h cap (u - cap/2) beyond

(huberized hinge: h = 1/delta, cap = delta; squared hinge: h = 2, cap infinite), or the logistic
loss. Everything is over arrays of shape (n_samples, n_outputs) with `weights` that sum the
samples (sample weights over their total; zero where an output does not count).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.entropy import log_excess, relative_entropy

__all__ = [
    "Shape",
    "best_shift",
    "bregman_sum",
    "clip_into_box",
    "settle",
    "shrink_columns",
    "slope_and_curvature",
    "value_and_gradient",
    "value_sum",
]

SLOPE_ROUNDING = 1e-14  # of the sums of positive and negative terms: a smaller slope is zero


class Shape(NamedTuple):
    """Which loss a kernel evaluates: logistic, or the capped quadratic (curvature, cap)."""

    logistic: bool
    curvature: float
    cap: float


@njit(cache=True, nogil=True, inline="always")
def _value(shape, t):  # type: ignore[no-untyped-def]
    if shape.logistic:
        return math.log1p(math.exp(-t)) if t > 0 else math.log1p(math.exp(t)) - t
    u = 1.0 - t
    if u <= 0.0:
        return 0.0
    if u < shape.cap:
        return 0.5 * shape.curvature * u * u
    return shape.curvature * shape.cap * (u - 0.5 * shape.cap)


@njit(cache=True, nogil=True, inline="always")
def _descent(shape, t):  # type: ignore[no-untyped-def]
    """Minus the derivative: the dual coordinate a >= 0."""
    if shape.logistic:
        if t > 0:
            e = math.exp(-t)
            return e / (1.0 + e)
        return 1.0 / (1.0 + math.exp(t))
    return shape.curvature * min(max(1.0 - t, 0.0), shape.cap)


@njit(cache=True, nogil=True, inline="always")
def _curvature(shape, t):  # type: ignore[no-untyped-def]
    if shape.logistic:
        e = math.exp(-abs(t))
        return e / ((1.0 + e) * (1.0 + e))
    u = 1.0 - t
    return shape.curvature if 0.0 < u < shape.cap else 0.0


@njit(cache=True, nogil=True, inline="always")
def _descent_and_curvature(shape, t):  # type: ignore[no-untyped-def]
    """`_descent` and `_curvature`, with one exponential."""
    if shape.logistic:
        e = math.exp(-abs(t))
        near = 1.0 / (1.0 + e)
        return (e * near if t > 0 else near), e * near * near
    return _descent(shape, t), _curvature(shape, t)


@njit(cache=True, nogil=True, inline="always")
def _value_and_shrunk_gap(shape, t, share, near_share):  # type: ignore[no-untyped-def]
    """The loss, and `_fenchel_young` against ``share < 1`` times its own dual coordinate.

    ``near_share`` is ``share log_excess(1 / share - 1)``, the same for all samples. With the
    shares p = 1 / (1 + e^t) and q = 1 - p of the logistic loss, the relative entropies of
    (share p, 1 - share p) are ``near_share p`` and that of r = (1 - share) p + q.
    """
    if not shape.logistic:
        return _value(shape, t), _fenchel_young(shape, t, share * _descent(shape, t))
    e = math.exp(-abs(t))
    near = 1.0 / (1.0 + e)
    p, q = (e * near, near) if t > 0 else (near, e * near)
    value = math.log1p(e) + max(-t, 0.0)
    moved = (1.0 - share) * p
    rest = moved + q
    off = -moved / rest
    excess = log_excess(off) if off > -0.5 else off + value + math.log(rest)
    return value, near_share * p + rest * excess


@njit(cache=True, nogil=True, inline="always")
def _fenchel_young(shape, t, a):  # type: ignore[no-untyped-def]
    """``phi(t) + phi*(-a) + a t >= 0`` in closed form, no cancellation."""
    if shape.logistic:
        if a <= 0.0:
            return _value(shape, t)
        if a >= 1.0:
            return _value(shape, -t)
        # the shares are p = 1 / (1 + e^t) and 1 - p, with logarithms -phi(-t) and -phi(t)
        return relative_entropy(a, _descent(shape, t), -_value(shape, -t)) + relative_entropy(
            1.0 - a, _descent(shape, -t), -_value(shape, t)
        )
    u = 1.0 - t
    half = 0.5 / shape.curvature
    if u <= 0.0:
        return -a * u + half * a * a
    if u < shape.cap:
        difference = shape.curvature * u - a
        return half * difference * difference
    top = shape.curvature * shape.cap
    return (top - a) * (u - half * (top + a))


@njit(cache=True, nogil=True)
def best_shift(shape, scores, signs, weights, l2, at, dual):  # type: ignore[no-untyped-def]
    """The shift of all scores that minimises the loss plus ``(l2/2) (at + shift)^2``.

    The derivative of the loss in each score, there, is written into ``dual``. Newton's method on
    the monotone derivative, between brackets; where every sample is on a linear piece, outward by
    doubling.
    """
    low, high, shift, reach = -np.inf, np.inf, 0.0, 1.0
    for _ in range(200):
        slope, bend, size = l2 * (at + shift), l2, l2 * abs(at)
        for i in range(scores.size):
            force, curvature = _descent_and_curvature(shape, signs[i] * (scores[i] + shift))
            force *= weights[i]
            dual[i] = -signs[i] * force
            slope += dual[i]
            size += force
            bend += weights[i] * curvature
        if abs(slope) <= SLOPE_ROUNDING * size:
            break
        if slope > 0.0:
            high = shift
        else:
            low = shift
        trial = shift - slope / bend if bend > 0.0 else math.copysign(np.inf, -slope)
        if abs(trial - shift) > reach:
            trial = shift + math.copysign(reach, -slope)
            reach *= 2.0
        if trial >= high or trial <= low:
            trial = 0.5 * (low + high)
        if trial in (shift, low, high):
            break
        shift = trial
    return shift


@njit(cache=True, nogil=True)
def settle(shape, scores, signs, weights, has_intercept, l2, at, dual):  # type: ignore[no-untyped-def]
    """Shift ``scores``, in place, as `best_shift` says; write the gradient there into ``dual``.

    Returns the shift, zero where there is no intercept.
    """
    if has_intercept:
        shift = best_shift(shape, scores, signs, weights, l2, at, dual)
        scores += shift
        return shift
    for i in range(scores.size):
        dual[i] = -weights[i] * signs[i] * _descent(shape, signs[i] * scores[i])
    return 0.0


@njit(cache=True, nogil=True)
def value_sum(shape, scores, signs, weights):  # type: ignore[no-untyped-def]
    """Sum of weighted losses."""
    total = 0.0
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            if weights[i, k] != 0.0:
                total += weights[i, k] * _value(shape, signs[i, k] * scores[i, k])
    return total


@njit(cache=True, nogil=True)
def value_and_gradient(shape, scores, signs, weights, gradient):  # type: ignore[no-untyped-def]
    """Sum of weighted losses; their derivative in each score is written into ``gradient``."""
    total = 0.0
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            weight = weights[i, k]
            if weight == 0.0:
                gradient[i, k] = 0.0
                continue
            t = signs[i, k] * scores[i, k]
            total += weight * _value(shape, t)
            gradient[i, k] = -weight * signs[i, k] * _descent(shape, t)
    return total


@njit(cache=True, nogil=True)
def bregman_sum(shape, scores, signs, weights, dual):  # type: ignore[no-untyped-def]
    """Fenchel-Young sum of the scores against ``dual`` (a gradient at some other scores).

    When ``dual`` is the gradient at scores Z0, this is ``L(Z) - L(Z0) - <L'(Z0), Z - Z0>``.
    """
    total = 0.0
    for i in range(scores.shape[0]):
        for k in range(scores.shape[1]):
            weight = weights[i, k]
            if weight == 0.0:
                continue
            t = signs[i, k] * scores[i, k]
            total += weight * _fenchel_young(shape, t, -signs[i, k] * dual[i, k] / weight)
    return total


@njit(cache=True, nogil=True)
def slope_and_curvature(shape, scores, signs, weights, shift):  # type: ignore[no-untyped-def]
    """First and second derivative of the loss in one shift per output, at ``scores + shift``.

    Returns
    -------
    slope, curvature : (n_outputs,)
    """
    outputs = scores.shape[1]
    slope = np.zeros(outputs)
    curvature = np.zeros(outputs)
    for i in range(scores.shape[0]):
        for k in range(outputs):
            weight = weights[i, k]
            if weight == 0.0:
                continue
            t = signs[i, k] * (scores[i, k] + shift[k])
            force, bend = _descent_and_curvature(shape, t)
            slope[k] -= weight * signs[i, k] * force
            curvature[k] += weight * bend
    return slope, curvature


@njit(cache=True, nogil=True)
def shrink_columns(dual, up, down):  # type: ignore[no-untyped-def]
    """Multiply the positive entries of column k by ``up[k]``, the negative ones by ``down[k]``."""
    for i in range(dual.shape[0]):
        for k in range(dual.shape[1]):
            dual[i, k] *= up[k] if dual[i, k] > 0.0 else down[k]


@njit(cache=True, nogil=True)
def clip_into_box(dual, signs, weights, bound):  # type: ignore[no-untyped-def]
    """The nearest dual with coordinates in [0, bound], and the sums of its two signs by column.

    Returns
    -------
    inside : (n_samples, n_outputs)
    low, high : (n_outputs,)
        Sums of the negative and of the positive entries.
    """
    inside = np.empty_like(dual)
    low = np.zeros(dual.shape[1])
    high = np.zeros(dual.shape[1])
    for i in range(dual.shape[0]):
        for k in range(dual.shape[1]):
            reach = bound * weights[i, k] if weights[i, k] > 0.0 else 0.0
            size = min(max(-signs[i, k] * dual[i, k], 0.0), reach)
            value = -signs[i, k] * size
            inside[i, k] = value
            if value > 0.0:
                high[k] += value
            else:
                low[k] += value
    return inside, low, high
