"""Passes over the samples, and the best intercept."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.margins import best_shift

__all__ = ["evaluated", "lost", "settled"]

SETTLED = 1e-2  # slope in the intercept, of the dual's sum, over the relative violation
FURTHEST = 0.05  # relative violation beyond which that is as loose as it gets
FINE = 1e-3  # of the tolerance: a slope that counts as zero
LONGEST_SHIFT = 2.0  # of the intercept in one Newton step, in units of the margin
MAX_SHIFTS = 4  # then the safeguarded method


@njit(cache=True, nogil=True)
def evaluated(phi, scores, shift, signs, weights, theta, curvature):  # type: ignore[no-untyped-def]
    """The dual point (minus the gradient) and the curvatures at ``scores + shift``.

    Returns
    -------
    slope : float
        Sum of the dual point.
    positive : float
        Sum of its entries for positive signs.
    bend : float
        Sum of the curvatures.
    loss : float
    """
    slope, positive, bend, loss = 0.0, 0.0, 0.0, 0.0
    for i in range(scores.size):
        weight = weights[i]
        if weight == 0.0:
            theta[i] = 0.0
            curvature[i] = 0.0
            continue
        t = signs[i] * (scores[i] + shift)
        force, curved = phi.descent_and_curvature(t)
        force *= weight
        curved *= weight
        theta[i] = signs[i] * force
        curvature[i] = curved
        slope += theta[i]
        bend += curved
        loss += weight * phi.value(t)
        if signs[i] > 0.0:
            positive += force
    return slope, positive, bend, loss


@njit(cache=True, nogil=True)
def settled(phi, scores, intercept, signs, weights, theta, curvature, free, far, tol):  # type: ignore[no-untyped-def]
    """Evaluate at an intercept that is as good as the violation of the coefficients asks for.

    Then the dual point is balanced: its heavier class is shrunk until the sum is zero.

    Parameters
    ----------
    far : float
        Relative violation of optimality.

    Returns
    -------
    intercept, slope, bend, loss
    up, down : float
        Factors that balanced the dual coordinates of positive and of negative signs.
    """
    slope, positive, bend, loss = evaluated(
        phi, scores, intercept, signs, weights, theta, curvature
    )
    if not free:
        return intercept, 0.0, bend, loss, 1.0, 1.0
    enough = max(SETTLED * min(far, FURTHEST), FINE * tol)
    for _ in range(MAX_SHIFTS):
        if abs(slope) <= enough * (2.0 * positive - slope):
            break
        step = -slope / bend if bend > 0.0 else math.copysign(LONGEST_SHIFT, -slope)
        intercept -= min(max(step, -LONGEST_SHIFT), LONGEST_SHIFT)
        slope, positive, bend, loss = evaluated(
            phi, scores, intercept, signs, weights, theta, curvature
        )
    if abs(slope) > enough * (2.0 * positive - slope):
        intercept += best_shift(phi, scores + intercept, signs, weights, 0.0, 0.0, theta)
        slope, positive, bend, loss = evaluated(
            phi, scores, intercept, signs, weights, theta, curvature
        )
    negative = positive - slope
    up = down = 1.0
    if positive > 0.0 and negative > 0.0:
        up, down = min(1.0, negative / positive), min(1.0, positive / negative)
        for i in range(theta.size):
            theta[i] *= up if signs[i] > 0.0 else down
    return intercept, slope, bend, loss, up, down


@njit(cache=True, nogil=True)
def lost(phi, scores, intercept, signs, weights, up, down):  # type: ignore[no-untyped-def]
    """Fenchel-Young sum of the scores against shares of their own dual coordinates."""
    total = 0.0
    for i in range(scores.size):
        share = up if signs[i] > 0.0 else down
        if weights[i] != 0.0 and share != 1.0:
            t = signs[i] * (scores[i] + intercept)
            total += weights[i] * phi.fenchel_young(t, share * phi.descent(t))
    return total
