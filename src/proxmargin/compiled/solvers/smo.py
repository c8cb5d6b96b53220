"""Sequential minimal optimisation of a quadratic form on a box, with or without a hyperplane."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["pair_steps", "single_steps"]

MIN_CURVATURE = 1e-12  # of a pair, whose samples may be equal


@njit(cache=True, nogil=True)
def pair_steps(kernel, signs, caps, scale, dual, slope, enough, limit):
    """Steps of two coordinates on ``(scale/2) a'YKYa + l'a``, ``y'a`` kept, ``0 <= a <= caps``.

    The pair is the coordinate of the largest violation and the one with the largest second-order
    decrease together with it (Fan, Chen and Lin 2005).

    Parameters
    ----------
    kernel : (n, n)
    signs, caps : (n,)
    dual, slope : (n,)
        The point and the gradient there; both are changed in place.
    enough : float
        Violation at which to stop.
    limit : int
        Steps at most.

    Returns
    -------
    int
        Steps taken.
    """
    size = signs.size
    for step in range(limit):
        first, high = -1, -np.inf
        for i in range(size):
            rises = dual[i] < caps[i] if signs[i] > 0 else dual[i] > 0.0
            if rises and -signs[i] * slope[i] > high:
                first, high = i, -signs[i] * slope[i]
        if first < 0:
            return step
        second, low, best = -1, np.inf, 0.0
        for j in range(size):
            falls = dual[j] > 0.0 if signs[j] > 0 else dual[j] < caps[j]
            if not falls:
                continue
            at = -signs[j] * slope[j]
            low = min(low, at)
            if at < high:
                curvature = kernel[first, first] + kernel[j, j] - 2.0 * kernel[first, j]
                fall = (high - at) ** 2 / max(curvature, MIN_CURVATURE)
                if fall > best:
                    second, best = j, fall
        if second < 0 or high - low <= enough:
            return step
        curvature = kernel[first, first] + kernel[second, second] - 2.0 * kernel[first, second]
        length = (high + signs[second] * slope[second]) / (scale * max(curvature, MIN_CURVATURE))
        length = min(length, caps[first] - dual[first] if signs[first] > 0 else dual[first])
        length = min(length, dual[second] if signs[second] > 0 else caps[second] - dual[second])
        dual[first] = min(max(dual[first] + signs[first] * length, 0.0), caps[first])
        dual[second] = min(max(dual[second] - signs[second] * length, 0.0), caps[second])
        for k in range(size):
            slope[k] += scale * length * signs[k] * (kernel[first, k] - kernel[second, k])
    return limit


@njit(cache=True, nogil=True)
def single_steps(kernel, signs, caps, scale, dual, slope, enough, limit):
    """`pair_steps` without the hyperplane: the coordinate of the largest violation moves alone."""
    size = signs.size
    for step in range(limit):
        worst, most = -1, enough
        for i in range(size):
            violation = 0.0
            if slope[i] < 0.0 and dual[i] < caps[i]:
                violation = -slope[i]
            elif slope[i] > 0.0 and dual[i] > 0.0:
                violation = slope[i]
            if violation > most:
                worst, most = i, violation
        if worst < 0:
            return step
        move = -slope[worst] / (scale * max(kernel[worst, worst], MIN_CURVATURE))
        after = min(max(dual[worst] + move, 0.0), caps[worst])
        length = signs[worst] * (after - dual[worst])
        dual[worst] = after
        for k in range(size):
            slope[k] += scale * length * signs[k] * kernel[worst, k]
    return limit
