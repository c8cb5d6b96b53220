"""The current point of a path: scores, dual point, slopes, violation and gap of the candidates."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import dual_subspace, products
from proxmargin.compiled.paths.certified import feature_term, scale_into_domain
from proxmargin.compiled.paths.passes import lost, settle
from proxmargin.compiled.paths.state import CANDIDATES, DRIFT, LOSS, MOVED, READ
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import violation

__all__ = ["evaluate", "recompute_scores", "standing"]

HOPELESS = 4.0  # factor on the gap tolerance beyond which bounds need not be sharp


@njit(cache=True, nogil=True, allocates=False)
def recompute_scores(state):
    """Recompute the scores from the coefficients."""
    candidates, k = state.candidates, state.counts[CANDIDATES]
    state.counts[MOVED], state.levels[DRIFT] = 0, 0.0
    products.combine(
        state.store,
        candidates,
        candidates.every,
        k,
        candidates.coef,
        state.terms.inverse,
        state.buffers.scores,
    )
    offset, scores = state.terms.offset, state.buffers.scores
    for i in range(offset.size):
        scores[i] += offset[i]


@njit(cache=True, nogil=True, allocates=False, forceinline=True)
def evaluate(state, far, tol):
    """Compute the intercept, the dual point and the slopes of the candidates from the scores."""
    candidates, k = state.candidates, state.counts[CANDIDATES]
    settle(state, far, tol)
    products.pull(state.store, candidates, k, state.buffers.theta, state.terms.inverse)
    state.levels[READ] += 2.0 * k / candidates.slot_of.size


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def standing(state, goal, claim):
    """The largest violation, the gap and the objective, all over the candidates only.

    Parameters
    ----------
    claim : float
        Share of the tolerance within which an upper bound of the gap is enough.
    """
    terms, candidates = state.terms, state.candidates
    worst, scale, objective = _measure(state, goal)
    gap = 0.0
    for s in range(state.counts[CANDIDATES]):
        j, w = candidates.feature[s], candidates.coef[s]
        own = goal.l1 * terms.factor[j]
        if w != 0.0 or abs(candidates.slope[s]) > own:
            ridge, slope = goal.l2 * terms.factor[j], scale * candidates.slope[s]
            gap += feature_term(slope, 0.0, w, own, ridge, terms.lower[j], terms.upper[j])
    gap += lost(state, scale, claim * goal.tol * objective - gap, HOPELESS)
    return worst, gap, objective


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _measure(state, goal):
    """The largest violation of the candidates, the scale of their dual point, and the objective."""
    terms, candidates = state.terms, state.candidates
    theta = state.buffers.theta
    relative = dual_subspace.rounding(theta.size) * math.sqrt(dot(theta, theta))
    worst, scale, objective = 0.0, 1.0, state.levels[LOSS]
    for s in range(state.counts[CANDIDATES]):
        j, w, slope = candidates.feature[s], candidates.coef[s], candidates.slope[s]
        own, ridge = goal.l1 * terms.factor[j], goal.l2 * terms.factor[j]
        lower, upper, error = terms.lower[j], terms.upper[j], relative * terms.norms[j]
        worst = max(worst, violation(ridge * w - slope, w, 0.0, own, lower, upper))
        if own > 0.0:  # of unpenalised features the dual point was projected
            scale = scale_into_domain(scale, slope, error, own, ridge, lower, upper)
        if w != 0.0:
            objective += own * abs(w) + 0.5 * ridge * w * w
    return worst, scale, objective
