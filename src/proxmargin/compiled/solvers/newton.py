"""Kernels of Newton methods: curvature weights, Gram matrices, the search along a step."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import SUMS, njit
from proxmargin.compiled.rounding import ROOT_STEPS

# forcing terms: residual of a quadratic model over the violation of optimality
TIGHT_FORCING = 0.01  # near the solution, where Newton's method converges quadratically
NEAR_SOLUTION = 0.01  # violation over the l1 strength below which it is used
SLOW_CHORD = 0.25  # violation over the last one, above which the next step has a new Hessian
# convergence, by the largest violation of the optimality conditions
PATIENCE_STEPS = 25  # steps without a smaller violation: it has reached rounding
ROUNDING_VIOLATION = 1e-9  # violation over the l1 strength at which one such step is enough
# the search along a step
SEARCH_TOLERANCE = 0.3  # slope at its end over the first slope
ZERO_COEFFICIENT = 1e-9  # coefficient over its move in a step that counts as zero
LEVEL_SLOPE = 0.01  # share of the first slope too small to raise the objective by much
# weight of the majoriser where the loss has no curvature
LEAST_WEIGHT = 1e-3  # below it the weight is zero


@njit(nogil=True, allocates=False)
def used_weight(weight, relative_violation):
    """The weight of the majoriser in a step, at most the relative violation."""
    used = min(weight, relative_violation)
    return used if used >= LEAST_WEIGHT else 0.0


@njit(nogil=True, allocates=False)
def next_weight(weight, step):
    """The next weight of the majoriser: less after a long step, more after a short one."""
    if step >= 0.5:
        return 0.3 * weight
    return min(1.0, max(3.0 * weight, 9.0 * LEAST_WEIGHT)) if step < 0.1 else weight


@njit(nogil=True, allocates=False, error_model="numpy")
def curvature_weights(phi, scores, signs, weights, weight, out):
    """Second derivative of the loss in each score, (n_samples,), written into ``out``.

    With ``weight > 0``, where the loss is flat or linear, weight times the curvature of its
    majoriser (that of iteratively reweighted least squares).
    """
    for i in range(out.size):
        t = signs[i] * scores[i]
        curvature = phi.curvature(t)
        if curvature == 0.0 and weight > 0.0:
            curvature = weight * phi.majorant(t)
        out[i] = weights[i] * curvature


@njit(nogil=True)
def exact_step(
    phi, scores, moved, signs, weights, coef, direction, l1, l2, slope, curvature, share
):
    """A step at which the slope along the ray has fallen to ``share`` of its first value.

    A step with a positive slope is rejected if it raises the objective. The slope of loss and
    elastic net increases with the step, and jumps where a coefficient crosses zero. The step is
    doubled until the slope is positive; then the slope is interpolated in the bracket, linear but
    for its jumps, guarded by bisection. A jump across zero is therefore met exactly.

    Parameters
    ----------
    scores, moved, signs, weights : (n_samples,)
        The scores are ``scores + step * moved``.
    coef, direction : (n_features,)
        The coefficients are ``coef + step * direction``.
    l1, l2 : (n_features,)
    slope, curvature : float
        ``slope + step * curvature`` is added, for other quadratic terms along the ray.

    Returns
    -------
    step : float
        0 where the ray does not descend.
    """
    for j in range(coef.size):
        slope += l2[j] * coef[j] * direction[j]
        curvature += l2[j] * direction[j] * direction[j]
    at_low, at_high = slope + _loss_slope(phi, scores, moved, signs, weights, 0.0), np.inf
    first = at_low + _l1_slopes(coef, direction, l1, 0.0)[1]
    if first >= 0.0:
        return 0.0
    low, high, step, enough = 0.0, np.inf, 1.0, share * abs(first)
    for trial in range(ROOT_STEPS):
        here = slope + step * curvature + _loss_slope(phi, scores, moved, signs, weights, step)
        left, right = _l1_slopes(coef, direction, l1, step)
        if here + left <= enough and here + right >= -enough:
            if here + left <= LEVEL_SLOPE * abs(first):
                return step
            rise = _rise(phi, scores, moved, signs, weights, coef, direction, l1, step)
            if rise + slope * step + 0.5 * curvature * step * step <= 0.0:
                return step
        if here + right < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high == np.inf:
            step = 2.0 * step
            continue
        step = 0.5 * (low + high)
        if trial % 3 != 2:
            crossing = _crossing(low, high, at_low, at_high, coef, direction, l1)
            step = crossing if low < crossing < high else step
    return low


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _loss_slope(phi, scores, moved, signs, weights, step):
    total = 0.0
    for i in range(scores.size):
        t = signs[i] * (scores[i] + step * moved[i])
        share = weights[i] * signs[i] * moved[i]
        total -= share * phi.descent(t) if weights[i] != 0.0 else 0.0
    return total


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _rise(phi, scores, moved, signs, weights, coef, direction, l1, step):
    """How far loss and l1 norm lie above their value at a step of zero."""
    total = 0.0
    for i in range(scores.size):
        t = signs[i] * scores[i]
        rise = phi.value(t + signs[i] * step * moved[i]) - phi.value(t)
        total += weights[i] * rise if weights[i] != 0.0 else 0.0
    for j in range(coef.size):
        total += l1[j] * (abs(coef[j] + step * direction[j]) - abs(coef[j]))
    return total


@njit(nogil=True)
def _l1_slopes(coef, direction, l1, step):
    """Left and right derivative of ``sum_j l1_j |coef_j + step * direction_j|`` in the step."""
    left, right = 0.0, 0.0
    for j in range(coef.size):
        move = step * direction[j]
        at, size = coef[j] + move, l1[j] * abs(direction[j])
        if abs(at) <= ZERO_COEFFICIENT * abs(move):
            left, right = left - size, right + size
        elif (at > 0.0) == (direction[j] > 0.0):
            left, right = left + size, right + size
        else:
            left, right = left - size, right - size
    return left, right


@njit(nogil=True)
def _crossing(low, high, at_low, at_high, coef, direction, l1):
    """The zero of the slope between ``low`` and ``high``, all but the jumps of l1 being linear."""
    rate = (at_high - at_low) / (high - low)
    jumps = np.empty(coef.size)
    places = np.full(coef.size, np.inf)
    for j in range(coef.size):
        jumps[j] = 2.0 * l1[j] * abs(direction[j])
        if coef[j] * direction[j] < 0.0 and low < -coef[j] / direction[j] < high:
            places[j] = -coef[j] / direction[j]
    slope = at_low + _l1_slopes(coef, direction, l1, low)[1] - rate * low  # at a step of zero
    for _ in range(places.size):
        j = int(np.argmin(places))  # few are needed, and a sort compiles for seconds
        at = places[j]
        if at == np.inf or slope + rate * at >= 0.0:
            break
        slope += jumps[j]
        places[j] = np.inf
        if slope + rate * at >= 0.0:
            return at
    return -slope / rate if rate > 0.0 else high


@njit(nogil=True, fastmath={"contract"})
def sparse_gram(data, indices, indptr, weights, out):
    """``out += X' diag(weights) X`` for X compressed by rows, by outer products of its rows.

    Each pair of entries of a row is added once, to either side of the diagonal; ``out``, which is
    symmetric, is made so again at the end.
    """
    size = out.shape[0]
    for j in range(size):
        for k in range(j):
            out[j, k] = 0.0
    for i in range(weights.size):
        if weights[i] == 0.0:
            continue
        last = np.uint64(indptr[i + 1])
        for first in range(np.uint64(indptr[i]), last):
            value = weights[i] * data[first]
            row = out[indices[first]]
            row[np.uint64(indices[first])] += value * data[first]
            for second in range(first + np.uint64(1), last):
                row[np.uint64(indices[second])] += value * data[second]
    for j in range(size):
        for k in range(j):
            out[k, j] += out[j, k]
            out[j, k] = out[k, j]
