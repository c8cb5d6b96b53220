"""Passes over the samples, and the best intercept and unpenalised coefficients."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import loss_passes, unpenalised
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.state import (
    DOWN,
    DRIFT,
    INTERCEPT,
    LOSS,
    METRIC,
    MOVED,
    POSITIVE,
    SLIP,
    SLOPE,
    TILT,
    UP,
)
from proxmargin.compiled.paths.vectors import add

__all__ = ["lost", "settle"]

SETTLED = 1e-2  # slope in the intercept relative to the dual's sum, per unit of relative violation
FURTHEST = 0.05  # relative violation beyond which this tolerance grows no further
FINE = 1e-3  # share of the tolerance at which a slope counts as zero
LONGEST_SHIFT = 2.0  # longest Newton step of the intercept, in units of the margin
MAX_SHIFTS = 4  # maximum number of Newton steps; then the safeguarded method
MAX_MOVES = 5  # maximum number of Newton steps of the unpenalised coefficients
MAX_HALVINGS = 20  # of such a step
RISE = 1e-12  # relative increase of the loss that counts as rounding
SHARE_ROUNDING = 2.0**-49  # relative rounding error of dual coordinates: 16 ulps


@njit(cache=True, nogil=True, allocates=False, forceinline=True)
def settle(state, far, tol):
    """Minimise over the intercept and the unpenalised coefficients, to a tolerance in proportion to
    the violation ``far``.

    Then the dual point is balanced: its heavier class is shrunk until the sum is zero, and what is
    left of its inner products with unpenalised features is projected away. The results are written
    into the buffers and levels of ``state``.

    Parameters
    ----------
    far : float
        Relative violation of optimality.
    """
    levels = state.levels
    enough = max(SETTLED * min(far, FURTHEST), FINE * tol)
    _settle_intercept(state, enough)
    levels[SLIP] = levels[TILT] = 0.0
    if state.unpenalised.feature.size == 0:
        _balance(state)
        return
    for trial in range(MAX_MOVES):
        if not _move_unpenalised(state, enough, trial == 0):
            break
    _balance(state)
    _project(state)


@njit(cache=True, nogil=True, allocates=False)
def _settle_intercept(state, enough):
    """Minimise over the intercept; write the dual point there, not balanced, and the loss."""
    terms, buffers, levels = state.terms, state.buffers, state.levels
    slope, positive, bend, loss = _evaluated(state, levels[INTERCEPT])
    levels[LOSS], levels[SLOPE], levels[POSITIVE] = loss, 0.0, positive
    if not terms.free:
        return
    intercept = levels[INTERCEPT]
    for _ in range(MAX_SHIFTS):
        if abs(slope) <= enough * (2.0 * positive - slope):
            break
        step = -slope / bend if bend > 0.0 else math.copysign(LONGEST_SHIFT, -slope)
        intercept -= min(max(step, -LONGEST_SHIFT), LONGEST_SHIFT)
        slope, positive, bend, loss = _evaluated(state, intercept)
    if abs(slope) > enough * (2.0 * positive - slope):
        intercept = loss_passes.settled(
            state.loss, buffers.scores, intercept, terms.signs, terms.weights, buffers.theta
        )
        slope, positive, bend, loss = _evaluated(state, intercept)
    levels[INTERCEPT], levels[LOSS] = intercept, loss
    levels[SLOPE], levels[POSITIVE] = slope, positive


@njit(cache=True, nogil=True, allocates=False)
def _evaluated(state, intercept):
    terms, buffers = state.terms, state.buffers
    return loss_passes.at_scores(
        state.loss,
        buffers.scores,
        intercept,
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
    )


@njit(cache=True, nogil=True, allocates=False)
def _move_unpenalised(state, enough, first):
    """A Newton step of the unpenalised coefficients; False if they are settled already.

    The ``first`` one uses the last metric. Steps are halved until the loss falls.
    """
    free, buffers, levels, counts = state.unpenalised, state.buffers, state.levels, state.counts
    mass = 2.0 * levels[POSITIVE] - levels[SLOPE]
    if unpenalised.residual(free, buffers.theta) <= enough * mass:
        return False
    before = levels[LOSS]
    kept = first and counts[METRIC] == 1
    shift = unpenalised.newton_direction(free, buffers.curved, state.terms.free, kept)
    _add_unpenalised(state, 1.0, shift)
    _settle_intercept(state, enough)
    share = 1.0
    for _ in range(MAX_HALVINGS):
        if levels[LOSS] <= before * (1.0 + RISE):
            return True
        share *= 0.5
        _add_unpenalised(state, -share, shift)
        _settle_intercept(state, enough)
    return False


@njit(cache=True, nogil=True, allocates=False)
def _project(state):
    """Project the dual point; with the last metric, if that still serves."""
    free, buffers, levels, terms = state.unpenalised, state.buffers, state.levels, state.terms
    theta, curved = buffers.theta, buffers.curved
    unpenalised.residual(free, theta)
    levels[SLIP] = math.inf
    if state.counts[METRIC] == 1:
        levels[SLIP], levels[TILT] = unpenalised.project(
            free, theta, curved, terms.weights, terms.free, True
        )
    if levels[SLIP] == math.inf:
        levels[SLIP], levels[TILT] = unpenalised.project(
            free, theta, curved, terms.weights, terms.free, False
        )
    state.counts[METRIC] = 0 if terms.jumps else 1


@njit(cache=True, nogil=True, allocates=False)
def _add_unpenalised(state, share, shift):
    """Add a share of the step of the unpenalised coefficients to them, the scores and the
    intercept."""
    free, candidates, buffers = state.unpenalised, state.candidates, state.buffers
    # scores are those of the columns in the candidates, less other means than these columns
    apart = 0.0
    for u in range(free.feature.size):
        j = free.feature[u]
        along, s = share * free.rows[unpenalised.MOVE, u], candidates.slot_of[j]
        move = along / free.rows[unpenalised.UNIT, u]
        candidates.coef[s] += move
        apart += move * (
            free.rows[unpenalised.MEAN, u] - candidates.mean[s] * state.terms.inverse[j]
        )
        add(along, free.columns[u], buffers.scores)
        size = abs(along) * free.rows[unpenalised.END, u]
        state.levels[DRIFT] += rounding(free.feature.size) * size
    state.counts[MOVED] += 1
    for i in range(buffers.scores.size):
        buffers.scores[i] += apart
    state.levels[INTERCEPT] += share * shift - apart


@njit(cache=True, nogil=True, allocates=False)
def _balance(state):
    """Shrink the heavier class of the dual point until its sum is zero."""
    terms, theta, levels = state.terms, state.buffers.theta, state.levels
    levels[UP], levels[DOWN] = 1.0, 1.0
    if not terms.free:
        return
    positive, negative = levels[POSITIVE], levels[POSITIVE] - levels[SLOPE]
    if positive > 0.0 and negative > 0.0:
        up, down = min(1.0, negative / positive), min(1.0, positive / negative)
        levels[UP], levels[DOWN] = up, down
        for i in range(theta.size):
            theta[i] *= up if terms.signs[i] > 0.0 else down


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def lost(state, scale, enough, far):
    """Fenchel-Young sum of the scores against ``scale`` times the dual point.

    Or an upper bound, where that is at most ``enough`` or more than ``far`` times ``enough``: the
    exact sum would change no decision.
    """
    levels = state.levels
    up, down = scale * levels[UP], scale * levels[DOWN]
    bound = _bound(state, up, down, scale * scale * levels[SLIP])
    if bound <= enough or enough < 0.0 or far * enough < bound < math.inf:
        return bound
    if levels[SLIP] == math.inf:
        return math.inf
    terms, scores, intercept = state.terms, state.buffers.scores, levels[INTERCEPT]
    if levels[SLIP] == 0.0:
        return loss_passes.gap_of_shares(
            state.loss, scores, intercept, terms.signs, terms.weights, up, down
        )
    # the projected dual point is no longer a share of the slopes at the scores
    return loss_passes.gap_of_dual(
        state.loss, scores, intercept, terms.signs, terms.weights, state.buffers.theta, scale
    )


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _bound(state, up, down, slip):
    """The bound from the curvature of the conjugate, by `shrunk_bound` of the loss.

    A dual point that was shrunk to shares, then moved by the projection by at most a fraction
    ``tilt`` of its distance to either end of its interval, has terms of at most
    ``move^2 / (2 share (1 - tilt)^2 curvature)``. The moves add up by the triangle inequality.

    Parameters
    ----------
    slip : float
        Sum of the squared moves by the projection, each over the curvature of its sample.
    """
    terms, buffers, levels = state.terms, state.buffers, state.levels
    above, below = loss_passes.bounds(state.loss, buffers.theta, buffers.curved, terms.signs)
    total = 0.0
    for share, factor, sums in ((up, levels[UP], above), (down, levels[DOWN], below)):
        if share != 1.0:
            total += (1.0 - share + SHARE_ROUNDING) ** 2 / (2.0 * share * factor * factor) * sums
    if slip == 0.0:
        return total
    if not above + below < math.inf:
        return math.inf
    kept = 1.0 - levels[TILT]  # the dual point may have lost the rest by the projection
    length = math.sqrt(total) / kept + math.sqrt(slip / (2.0 * min(up, down)))
    return (length / kept) ** 2
