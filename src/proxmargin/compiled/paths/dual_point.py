"""The scores and the dual point of a path, at the best intercept and unpenalised coefficients."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import loss_passes, unpenalised
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.products import candidate_products, combine
from proxmargin.compiled.products.vectors import add
from proxmargin.compiled.rounding import HALVINGS, RISE_ROUNDING

# sum of the dual point relative to that of its sizes, per unit of relative violation
SLOPE_TOLERANCE = 1e-2
FARTHEST = 0.05  # relative violation beyond which this tolerance grows no further
FINE = 1e-3  # share of the tolerance of the gap below which slopes need not be reduced
# Newton steps of the intercept, then by the safeguarded method, and of unpenalised coefficients
MAX_STEPS = 4
DUAL_ROUNDING = 2.0**-49  # relative rounding error of dual coordinates: 16 ulps


@njit(nogil=True, allocates=False)
def recompute_scores(data, candidates, point):
    """Recompute the scores from the coefficients."""
    point.scalars.updates, point.scalars.rounding = 0, 0.0
    count, coef, scores = candidates.scalars.count, candidates.coef, point.scores
    combine(data.store, candidates, candidates.every, count, coef, data.inverse, scores)
    for i in range(data.offset.size):
        point.scores[i] += data.offset[i]


@njit(nogil=True, allocates=False, forceinline=True)
def evaluate(path, relative_violation, tol):
    """Compute intercept, dual point and correlations of the candidates from the scores."""
    data, candidates = path.data, path.candidates
    optimise(path, relative_violation, tol)
    candidate_products(data.store, candidates, path.point.dual, data.inverse)
    path.scalars.read += 2.0 * candidates.scalars.count / data.norms.size


@njit(nogil=True, allocates=False, forceinline=True)
def optimise(path, relative_violation, tol):
    """Minimise over the intercept and the unpenalised coefficients, to a tolerance in proportion to
    the relative violation of optimality.

    Then the dual point is balanced: its heavier class is shrunk until the sum is zero, and what is
    left of its inner products with unpenalised features is projected away.
    """
    data, free, point = path.data, path.unpenalised, path.point
    enough = max(SLOPE_TOLERANCE * min(relative_violation, FARTHEST), FINE * tol)
    _optimise_intercept(data, point, enough)
    point.scalars.projected = point.scalars.largest_move = 0.0
    if free.feature.size == 0:
        _balance(data, point)
        return
    for trial in range(MAX_STEPS):
        if not _step_unpenalised(path, enough, trial == 0):
            break
    _balance(data, point)
    _project(data, free, point)


@njit(nogil=True, allocates=False)
def _optimise_intercept(data, point, enough):
    """Minimise over the intercept; write the dual point there, not balanced, and the loss."""
    scalars, intercept = point.scalars, point.scalars.intercept
    dual_sum, positive, curvature, loss = loss_passes.at_scores(data, point, intercept)
    scalars.loss, scalars.dual_sum, scalars.positive = loss, 0.0, positive
    if not data.free:
        return
    for _ in range(MAX_STEPS):
        if abs(dual_sum) <= enough * (2.0 * positive - dual_sum):
            break
        step = (
            -dual_sum / curvature
            if curvature > 0.0
            else math.copysign(unpenalised.LONGEST_MOVE, -dual_sum)
        )
        intercept -= min(max(step, -unpenalised.LONGEST_MOVE), unpenalised.LONGEST_MOVE)
        dual_sum, positive, curvature, loss = loss_passes.at_scores(data, point, intercept)
    if abs(dual_sum) > enough * (2.0 * positive - dual_sum):
        intercept = loss_passes.best_intercept(data, point, intercept)
        dual_sum, positive, curvature, loss = loss_passes.at_scores(data, point, intercept)
    scalars.intercept, scalars.loss = intercept, loss
    scalars.dual_sum, scalars.positive = dual_sum, positive


@njit(nogil=True, allocates=False)
def _step_unpenalised(path, enough, first):
    """A Newton step of the unpenalised coefficients; False if they are optimal already.

    The ``first`` one uses the last metric. Steps are halved until the loss falls.
    """
    data, free, point, scalars = path.data, path.unpenalised, path.point, path.point.scalars
    size = 2.0 * scalars.positive - scalars.dual_sum
    if unpenalised.set_correlations(free, point.dual) <= enough * size:
        return False
    before, share = scalars.loss, 1.0
    kept = first and scalars.has_metric
    shift = unpenalised.newton_direction(free, point.curvatures, data.free, kept)
    _move_unpenalised(path, 1.0, shift)
    _optimise_intercept(data, point, enough)
    for _ in range(HALVINGS):
        if scalars.loss <= before * (1.0 + RISE_ROUNDING):
            return True
        share *= 0.5
        _move_unpenalised(path, -share, shift)
        _optimise_intercept(data, point, enough)
    return False


@njit(nogil=True, allocates=False)
def _move_unpenalised(path, share, shift):
    """Add a share of the step of the unpenalised coefficients to them, the scores and the
    intercept."""
    data, free, candidates, point = path.data, path.unpenalised, path.candidates, path.point
    # scores are those of the columns of candidates, less other means than these columns
    apart = 0.0
    for u in range(free.feature.size):
        j = free.feature[u]
        along, s = share * free.step[u], candidates.number[j]
        move = along / free.unit[u]
        candidates.coef[s] += move
        apart += move * (free.mean[u] - candidates.mean[s] * data.inverse[j])
        add(along, free.columns[u], point.scores)
        point.scalars.rounding += rounding(free.feature.size) * abs(along) * free.bounds[u]
    point.scalars.updates += 1
    for i in range(point.scores.size):
        point.scores[i] += apart
    point.scalars.intercept += share * shift - apart


@njit(nogil=True, allocates=False)
def _balance(data, point):
    """Shrink the heavier class of the dual point until its sum is zero."""
    scalars = point.scalars
    scalars.up = scalars.down = 1.0
    positive, negative = scalars.positive, scalars.positive - scalars.dual_sum
    if data.free and positive > 0.0 and negative > 0.0:
        up, down = min(1.0, negative / positive), min(1.0, positive / negative)
        scalars.up, scalars.down = up, down
        for i in range(point.dual.size):
            point.dual[i] *= up if data.signs[i] > 0.0 else down


@njit(nogil=True, allocates=False)
def _project(data, free, point):
    """Project the dual point; with the last metric, if that still serves."""
    dual, scalars = point.dual, point.scalars
    unpenalised.set_correlations(free, dual)
    scalars.projected = math.inf
    if scalars.has_metric:
        scalars.projected, scalars.largest_move = unpenalised.project(
            free, dual, point.curvatures, data.weights, data.free, True
        )
    if scalars.projected == math.inf:
        scalars.projected, scalars.largest_move = unpenalised.project(
            free, dual, point.curvatures, data.weights, data.free, False
        )
    scalars.has_metric = not data.jumps


@njit(nogil=True, allocates=False, error_model="numpy")
def loss_gap(data, point, scale, enough, far):
    """Fenchel-Young sum of the scores against ``scale`` times the dual point.

    Or an upper bound, where that is at most ``enough`` or more than ``far`` times ``enough``: the
    exact sum would change no decision.
    """
    scalars = point.scalars
    up, down = scale * scalars.up, scale * scalars.down
    bound = _bound(data, point, up, down, scale * scale * scalars.projected)
    if bound <= enough or enough < 0.0 or far * enough < bound < math.inf:
        return bound
    if scalars.projected == math.inf:
        return math.inf
    if scalars.projected == 0.0:
        return loss_passes.gap_of_shares(data, point, up, down)
    # the projected dual point is no longer a share of the slopes at the scores
    return loss_passes.gap_of_dual(data, point, scale)


@njit(nogil=True, allocates=False, error_model="numpy")
def _bound(data, point, up, down, projected):
    """The bound from the curvature of the conjugate, by `shrunk_bound` of the loss.

    A dual point that was shrunk to shares, then moved by the projection by at most a fraction m of
    its distance to either end of its interval, has terms of at most
    ``move^2 / (2 share (1 - m)^2 curvature)``. The moves add up by the triangle inequality.

    Parameters
    ----------
    projected : float
        Sum of the squared moves by the projection, each over the curvature of its sample.
    """
    scalars = point.scalars
    above, below = loss_passes.bounds(data, point)
    total = 0.0
    for share, factor, sums in ((up, scalars.up, above), (down, scalars.down, below)):
        if share != 1.0:
            total += (1.0 - share + DUAL_ROUNDING) ** 2 / (2.0 * share * factor * factor) * sums
    if projected == 0.0:
        return total
    if not above + below < math.inf:
        return math.inf
    kept = 1.0 - scalars.largest_move  # the dual point may have lost the rest by the projection
    length = math.sqrt(total) / kept + math.sqrt(projected / (2.0 * min(up, down)))
    return (length / kept) ** 2
