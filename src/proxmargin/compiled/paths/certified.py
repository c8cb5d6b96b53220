"""The duality gap of a point on a path, rounding included, from quantities that the path keeps."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import unpenalised
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.passes import lost
from proxmargin.compiled.paths.state import CANDIDATES, DRIFT, INTERCEPT, LOSS, MOVED
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import gap_term

__all__ = ["certified_gap", "feature_term", "scale_into_domain"]

UNIT = 2.0**-53
ENTRY_ULPS = 8.0  # rounding of an entry of a centred column, in units of its largest term


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def scale_into_domain(scale, slope, error, l1, l2, lower, upper):
    """The scale of the dual point, reduced if this feature would violate ``|v| <= l1``."""
    reach = abs(slope) + error
    if l2 > 0.0 or reach <= l1:
        return scale
    rises = slope + error > l1 and upper == math.inf
    falls = slope - error < -l1 and lower == -math.inf
    return min(scale, l1 / reach) if rises or falls else scale


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def feature_term(slope, error, coef, l1, l2, lower, upper):
    """The largest Fenchel-Young term over ``slope +- error``: at an end, because it is convex."""
    if coef == 0.0 and abs(slope) + error <= l1:
        return 0.0
    low, high = slope - error, slope + error
    if l2 == 0.0:  # `scale_into_domain` has made the dual point feasible
        low = max(low, -l1) if lower == -math.inf else low
        high = min(high, l1) if upper == math.inf else high
        low, high = min(low, high), max(low, high)
    return max(
        gap_term(low, coef, l1, l2, lower, upper), gap_term(high, coef, l1, l2, lower, upper)
    )


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def certified_gap(state, goal, count):
    """Gap and objective; features that are neither in candidates nor unsure are proven inactive.

    Parameters
    ----------
    count : int
        Of ``state.buffers.to_check``: features that are no candidates whose inner products, in
        ``state.buffers.estimate``, count.
    """
    terms, buffers, levels, counts = state.terms, state.buffers, state.levels, state.counts
    k, n = counts[CANDIDATES], buffers.theta.size
    shift = abs(levels[INTERCEPT]) + terms.largest_offset
    # error of inner products with the dual point, in norms of features
    relative = rounding(n) * math.sqrt(dot(buffers.theta, buffers.theta))
    scale = _domain_scale(state, goal, count, relative)
    gap, penalty, sizes, live = _sums_over_candidates(state, goal, scale, relative)
    for x in range(count):
        gap += _term(state, goal, buffers.to_check[x], 0.0, scale, relative)
    objective = levels[LOSS] + penalty
    error = 2.0 * rounding(live + counts[MOVED]) * sizes + 8.0 * UNIT * shift
    error += 2.0 * levels[DRIFT]  # what was added to the scores since they were computed
    total, mass = 0.0, 0.0
    for i in range(n):
        total += buffers.theta[i]
        mass += abs(buffers.theta[i])
    gap += 2.0 * error * mass + 0.5 * state.loss.smoothness * error * error
    if terms.free:
        gap += (2.0 * shift + sizes) * (abs(total) + rounding(n) * mass)
    gap += rounding(n + k) * objective + _unpenalised_rounding(state)
    return gap + lost(state, scale, goal.tol * objective - gap, math.inf), objective


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _domain_scale(state, goal, count, relative):
    """The largest factor <= 1 that scales the dual point into the domain of the conjugate."""
    terms, candidates, buffers = state.terms, state.candidates, state.buffers
    scale = 1.0
    for x in range(-state.counts[CANDIDATES], count):
        j = candidates.feature[-x - 1] if x < 0 else buffers.to_check[x]
        if goal.l1 * terms.factor[j] == 0.0:  # bounded by `_unpenalised_rounding`
            continue
        scale = scale_into_domain(
            scale,
            buffers.estimate[j],
            relative * terms.norms[j],
            goal.l1 * terms.factor[j],
            goal.l2 * terms.factor[j],
            terms.lower[j],
            terms.upper[j],
        )
    return scale


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _unpenalised_rounding(state):
    """What it costs that inner products with unpenalised features are not exactly zero.

    They are zero up to rounding, v. With optimal coefficients w* the gap is too small by at most
    ``|v_j| (|w_j| + |w*_j|)``. The bound of ``|w*_j|`` is that of
    `proxmargin.certificates.certify`: one unit of the margins more than the present scores need.
    """
    free, buffers, terms = state.unpenalised, state.buffers, state.terms
    if free.feature.size == 0:
        return 0.0
    furthest, mass = 0.0, 0.0
    for i in range(buffers.theta.size):
        if terms.weights[i] > 0.0:
            furthest = max(furthest, abs(buffers.scores[i] + state.levels[INTERCEPT]))
        mass += abs(buffers.theta[i])
    furthest = (1.0 + terms.largest_offset + furthest) / free.least
    relative = rounding(buffers.theta.size) * math.sqrt(dot(buffers.theta, buffers.theta))
    total = 0.0
    for u in range(free.feature.size):
        slope = abs(free.rows[unpenalised.SLOPE, u]) + relative * free.rows[unpenalised.NORM, u]
        slope += ENTRY_ULPS * UNIT * free.rows[unpenalised.END, u] * mass
        coef = abs(state.candidates.coef[state.candidates.slot_of[free.feature[u]]])
        total += slope * (2.0 * coef * free.rows[unpenalised.UNIT, u] + furthest)
    return total


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _sums_over_candidates(state, goal, scale, relative):
    """Sums over candidates: gap terms, penalty, bound of the scores, number of nonzeros."""
    terms, candidates = state.terms, state.candidates
    gap, penalty, sizes, live = 0.0, 0.0, 0.0, 0
    for s in range(state.counts[CANDIDATES]):
        j, w = candidates.feature[s], candidates.coef[s]
        gap += _term(state, goal, j, w, scale, relative)
        if w != 0.0:
            penalty += terms.factor[j] * (goal.l1 * abs(w) + 0.5 * goal.l2 * w * w)
            sizes += abs(w) * terms.bounds[j]
            live += 1
    return gap, penalty, sizes, live


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _term(state, goal, j, coef, scale, relative):
    terms = state.terms
    return feature_term(
        scale * state.buffers.estimate[j],
        scale * relative * terms.norms[j],
        coef,
        goal.l1 * terms.factor[j],
        goal.l2 * terms.factor[j],
        terms.lower[j],
        terms.upper[j],
    )
