"""Passes over the samples, and the best intercept."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.margins import best_shift
from proxmargin.compiled.paths.state import DOWN, INTERCEPT, LOSS, SLOPE, UP

__all__ = ["lost", "settle"]

SETTLED = 1e-2  # slope in the intercept relative to the dual's sum, per unit of relative violation
FURTHEST = 0.05  # relative violation beyond which this tolerance grows no further
FINE = 1e-3  # share of the tolerance at which a slope counts as zero
LONGEST_SHIFT = 2.0  # longest Newton step of the intercept, in units of the margin
MAX_SHIFTS = 4  # maximum number of Newton steps; then the safeguarded method
SHARE_ROUNDING = 2.0**-49  # relative rounding error of dual coordinates: 16 ulps


@njit(cache=True, nogil=True, allocates=False)
def settle(state, far, tol):
    """Minimise over the intercept, to a tolerance in proportion to the violation ``far``.

    Then the dual point is balanced: its heavier class is shrunk until the sum is zero. The results
    are written into the buffers and levels of ``state``.

    Parameters
    ----------
    far : float
        Relative violation of optimality.
    """
    phi, terms, buffers, levels = state.phi, state.terms, state.buffers, state.levels
    scores, theta, curved = buffers.scores, buffers.theta, buffers.curved
    signs, weights, intercept = terms.signs, terms.weights, levels[INTERCEPT]
    slope, positive, bend, loss = phi.evaluated(scores, intercept, signs, weights, theta, curved)
    levels[LOSS], levels[SLOPE], levels[UP], levels[DOWN] = loss, 0.0, 1.0, 1.0
    if not terms.free:
        return
    enough = max(SETTLED * min(far, FURTHEST), FINE * tol)
    for _ in range(MAX_SHIFTS):
        if abs(slope) <= enough * (2.0 * positive - slope):
            break
        step = -slope / bend if bend > 0.0 else math.copysign(LONGEST_SHIFT, -slope)
        intercept -= min(max(step, -LONGEST_SHIFT), LONGEST_SHIFT)
        slope, positive, bend, loss = phi.evaluated(
            scores, intercept, signs, weights, theta, curved
        )
    if abs(slope) > enough * (2.0 * positive - slope):
        intercept = _safeguarded(phi, scores, intercept, signs, weights, theta)
        slope, positive, bend, loss = phi.evaluated(
            scores, intercept, signs, weights, theta, curved
        )
    levels[INTERCEPT], levels[LOSS], levels[SLOPE] = intercept, loss, slope
    negative = positive - slope
    if positive > 0.0 and negative > 0.0:
        up, down = min(1.0, negative / positive), min(1.0, positive / negative)
        levels[UP], levels[DOWN] = up, down
        for i in range(theta.size):
            theta[i] *= up if signs[i] > 0.0 else down


@njit(cache=True, nogil=True)
def _safeguarded(phi, scores, intercept, signs, weights, theta):
    return intercept + best_shift(phi, scores + intercept, signs, weights, 0.0, 0.0, theta)


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def lost(state, scale, enough, far):
    """Fenchel-Young sum of the scores against ``scale`` times the dual point.

    Or an upper bound, where that is at most ``enough`` or more than ``far`` times ``enough``: the
    exact sum would change no decision.
    """
    levels = state.levels
    up, down = scale * levels[UP], scale * levels[DOWN]
    bound = _bound(state, up, down)
    if bound <= enough or enough < 0.0 or far * enough < bound < math.inf:
        return bound
    return _lost(state, up, down)


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _bound(state, up, down):
    """The bound from the curvature of the conjugate, by `shrunk_bound` of the loss."""
    terms, buffers, levels = state.terms, state.buffers, state.levels
    above, below = 0.0, 0.0
    for i in range(buffers.theta.size):
        one = state.phi.shrunk_bound(abs(buffers.theta[i]), buffers.curved[i])
        above += one if terms.signs[i] > 0.0 else 0.0
        below += one if terms.signs[i] < 0.0 else 0.0
    total = 0.0
    for share, factor, sums in ((up, levels[UP], above), (down, levels[DOWN], below)):
        if share != 1.0:
            total += (1.0 - share + SHARE_ROUNDING) ** 2 / (2.0 * share * factor * factor) * sums
    return total


@njit(cache=True, nogil=True, allocates=False)
def _lost(state, up, down):
    terms, scores, intercept = state.terms, state.buffers.scores, state.levels[INTERCEPT]
    total = 0.0
    for i in range(scores.size):
        share = up if terms.signs[i] > 0.0 else down
        if terms.weights[i] != 0.0 and share != 1.0:
            t = terms.signs[i] * (scores[i] + intercept)
            total += terms.weights[i] * state.phi.fenchel_young(t, share * state.phi.descent(t))
    return total
