"""Fused passes over the scores for losses of a margin t = sign * score.

``phi`` is what the loss brings, see `proxmargin.compiled.losses.scalars`. Everything is over arrays
of shape (n_samples, n_outputs) with `weights` that sum the samples (sample weights over their
total; zero where an output does not count).
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import SUMS, njit
from proxmargin.compiled.rounding import SLOPE_ROUNDING


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def best_shift(phi, scores, signs, weights, l2, at, dual):
    """The shift of all scores that minimises the loss plus ``(l2/2) (at + shift)^2``.

    The derivative of the loss in each score, there, is written into ``dual``. Newton's method on
    the monotone derivative, between brackets; where every sample is on a linear piece, outward by
    doubling.
    """
    low, high, shift, reach = -np.inf, np.inf, 0.0, 1.0
    for _ in range(200):
        slope, total_curvature, size = l2 * (at + shift), l2, l2 * abs(at)
        for i in range(scores.size):
            force, curvature = phi.descent_and_curvature(signs[i] * (scores[i] + shift))
            force *= weights[i]
            dual[i] = -signs[i] * force
            slope += dual[i]
            size += force
            total_curvature += weights[i] * curvature
        if abs(slope) <= SLOPE_ROUNDING * size:
            break
        if slope > 0.0:
            high = shift
        else:
            low = shift
        trial = (
            shift - slope / total_curvature
            if total_curvature > 0.0
            else math.copysign(np.inf, -slope)
        )
        if abs(trial - shift) > reach:
            trial = shift + math.copysign(reach, -slope)
            reach *= 2.0
        if trial >= high or trial <= low:
            trial = 0.5 * (low + high)
        if trial in (shift, low, high):
            break
        shift = trial
    return shift


@njit(nogil=True)
def optimal_intercept_and_gradient(phi, scores, signs, weights, has_intercept, l2, at, dual):
    """Shift ``scores``, in place, as `best_shift` says; write the gradient there into ``dual``.

    Returns the shift, zero where there is no intercept.
    """
    if has_intercept:
        shift = best_shift(phi, scores, signs, weights, l2, at, dual)
        scores += shift
        return shift
    for i in range(scores.size):
        dual[i] = -weights[i] * signs[i] * phi.descent(signs[i] * scores[i])
    return 0.0


# in the order of the samples: monotone methods compare sums of nearly equal terms, whose rounding
# errors then agree
@njit(nogil=True, error_model="numpy")
def value_sum(phi, scores, signs, weights):
    """Sum of weighted losses, of contiguous arrays."""
    scores, signs, weights = scores.reshape(-1), signs.reshape(-1), weights.reshape(-1)
    total = 0.0
    for i in range(scores.size):
        total += weights[i] * phi.value(signs[i] * scores[i]) if weights[i] != 0.0 else 0.0
    return total


@njit(nogil=True, error_model="numpy")
def value_and_gradient(phi, scores, signs, weights, gradient):
    """Sum of weighted losses; their derivative in each score is written into ``gradient``.

    All arrays are contiguous. The sum is that of `value_sum`, to the last bit: its terms wait in
    ``gradient``, so that the loops over the loss vectorise.
    """
    scores, signs, weights = scores.reshape(-1), signs.reshape(-1), weights.reshape(-1)
    gradient = gradient.reshape(-1)
    for i in range(scores.size):
        t = signs[i] * scores[i]
        gradient[i] = weights[i] * phi.value(t) if weights[i] != 0.0 else 0.0
    total = 0.0
    for i in range(scores.size):
        total += gradient[i]
    for i in range(scores.size):
        t = signs[i] * scores[i]
        gradient[i] = -weights[i] * signs[i] * phi.descent(t) if weights[i] != 0.0 else 0.0
    return total


@njit(nogil=True, error_model="numpy")
def bregman_sum(phi, scores, signs, weights, dual):
    """Fenchel-Young sum of the scores against ``dual`` (a gradient at some other scores).

    When ``dual`` is the gradient at scores Z0, this is ``L(Z) - L(Z0) - <L'(Z0), Z - Z0>``. All
    arrays are contiguous.
    """
    scores, signs, weights = scores.reshape(-1), signs.reshape(-1), weights.reshape(-1)
    dual = dual.reshape(-1)
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            a = -signs[i] * dual[i] / weights[i]
            total += weights[i] * phi.fenchel_young(signs[i] * scores[i], a)
    return total


@njit(nogil=True, allocates=False, error_model="numpy")
def growth_sum(phi, scores, signs, weights, dual, error):
    """A bound on the increase of `bregman_sum` if scores change by at most ``error``, (n_outputs,)
    or (n_samples, n_outputs): the larger of both ends, as the terms are convex."""
    scores, signs, weights = scores.reshape(-1), signs.reshape(-1), weights.reshape(-1)
    dual, error = dual.reshape(-1), error.reshape(-1)
    total = 0.0
    for i in range(scores.size):
        if weights[i] != 0.0:
            t, a = signs[i] * scores[i], -signs[i] * dual[i] / weights[i]
            off = error[i % error.size]
            end = np.maximum(phi.fenchel_young(t - off, a), phi.fenchel_young(t + off, a))
            total += weights[i] * np.maximum(end - phi.fenchel_young(t, a), 0.0)  # keeps NaN
    return total


@njit(nogil=True, error_model="numpy")
def root_of_steps(steps, heights, below, slope, slack):
    """The root b of ``below + slope b + sum_i heights_i [steps_i <= b]``, which increases.

    Values within ``slack`` of zero are zero where there is no slope; of an interval of zeros the
    middle is returned, and the last step where all values are negative. By quickselect, whose
    pivots are drawn: in the order of a wave those of fixed places would take quadratic time. Steps
    without height do not count; NaN if another is NaN.
    """
    at, jump, count, drawn = np.empty(steps.size), np.empty(steps.size), 0, 1
    for i in range(steps.size):
        if heights[i] > 0.0:
            if np.isnan(steps[i]):
                return np.nan
            at[count], jump[count] = steps[i], heights[i]
            count += 1
    least = 0.0 if slope > 0.0 else -slack
    first, last = 0, count  # the root is in this range, or beyond all
    while first < last:
        drawn = (1103515245 * drawn + 12345) % 2**31  # a linear congruential generator
        pivot = at[first + drawn % (last - first)]
        # less than the pivot: first to low; equal: low to i; greater: high to last
        low, i, high, left, here, nearest = first, first, last, below, 0.0, -np.inf
        while i < high:
            value, height = at[i], jump[i]
            if value < pivot:
                at[i], jump[i], at[low], jump[low] = at[low], jump[low], value, height
                left, nearest, low, i = left + height, max(nearest, value), low + 1, i + 1
            elif value > pivot:
                high -= 1
                at[i], jump[i], at[high], jump[high] = at[high], jump[high], value, height
            else:
                here, i = here + height, i + 1
        if low > first and left + slope * nearest >= least:
            last = low
        elif left + here + slope * pivot < least:
            below, first = left + here, high
        elif slope > 0.0:
            return pivot - max(left + slope * pivot, 0.0) / slope
        else:
            beyond = np.inf
            for i in range(count):
                beyond = min(beyond, at[i]) if at[i] > pivot else beyond
            is_flat = left + here <= slack and beyond < np.inf
            return 0.5 * (pivot + beyond) if is_flat else pivot
    if not count:
        return -below / slope if slope > 0.0 else 0.0
    end = at[:count].max()
    return end - min(below + slope * end, 0.0) / slope if slope > 0.0 else end


@njit(nogil=True)
def slope_and_curvature(phi, scores, signs, weights, shift):
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
            force, second = phi.descent_and_curvature(t)
            slope[k] -= weight * signs[i, k] * force
            curvature[k] += weight * second
    return slope, curvature


@njit(nogil=True)
def shrink_columns(dual, target, low, high):
    """Shrink the heavier side of each column to the sum ``target``; ``low`` and ``high`` are the
    sums of the negative and of the positive entries, (n_outputs,)."""
    for k in range(dual.shape[1]):
        up = min(max((target[k] - low[k]) / high[k], 0.0), 1.0) if high[k] > 0.0 else 1.0
        down = min(max((target[k] - high[k]) / low[k], 0.0), 1.0) if low[k] < 0.0 else 1.0
        for i in range(dual.shape[0]):
            dual[i, k] *= up if dual[i, k] > 0.0 else down


@njit(nogil=True)
def clip_into_box(dual, signs, weights, bound):
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
