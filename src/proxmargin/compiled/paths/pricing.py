"""The certificate of a strength over all features, and the features that have to enter."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import dual_subspace, products
from proxmargin.compiled.paths.certified import certified_gap
from proxmargin.compiled.paths.state import CANDIDATES, LOOKED, LOW, NEAR, PASSES, READ, REFERENCES
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import violation

__all__ = ["price"]

# a pass over the data for a new reference replaces inner products of single features once their
# number since the last reference exceeds
MANY_UNSURE = 4  # number of features over this


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", forceinline=True)
def price(state, goal):
    """The certified gap, the objective, the violation, and how many features have to enter.

    The features to enter come first in ``state.buffers.to_check``.
    """
    candidates, buffers = state.candidates, state.buffers
    size = math.sqrt(dot(buffers.theta, buffers.theta))
    relative = dual_subspace.rounding(buffers.theta.size) * size
    k, count = state.counts[CANDIDATES], 0
    if k < candidates.slot_of.size:
        count = _check_others(state, goal, relative)
    for s in range(k):
        buffers.estimate[candidates.feature[s]] = candidates.slope[s]
    gap, objective = certified_gap(state, goal, count)
    worst, wanted = _violators(state, goal, count)
    return gap, objective, worst, wanted


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _violators(state, goal, count):
    """The largest violation, and the number of violating unsure features, which are moved first."""
    terms, candidates, buffers = state.terms, state.candidates, state.buffers
    worst, wanted = 0.0, 0
    for s in range(state.counts[CANDIDATES]):
        j, w = candidates.feature[s], candidates.coef[s]
        slope, own = goal.l2 * terms.factor[j] * w - candidates.slope[s], goal.l1 * terms.factor[j]
        worst = max(worst, violation(slope, w, 0.0, own, terms.lower[j], terms.upper[j]))
    for x in range(count):
        j = buffers.to_check[x]
        slope, own = -buffers.estimate[j], goal.l1 * terms.factor[j]
        off = violation(slope, 0.0, 0.0, own, terms.lower[j], terms.upper[j])
        worst = max(worst, off)
        if off > 0.0:
            buffers.to_check[wanted] = j
            wanted += 1
    return worst, wanted


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", forceinline=True)
def _check_others(state, goal, relative):
    """List other features than candidates not proven inactive, and their inner products."""
    terms, buffers, counts, levels = state.terms, state.buffers, state.counts, state.levels
    p = buffers.estimate.size
    if not terms.spans:
        products.pull_all(state.store, buffers.theta, terms.inverse, buffers.estimate)
        counts[PASSES] += 1
        levels[READ] += 1.0
        return _find_unsure(state, goal, relative)
    left, radius = dual_subspace.bounded(state.span, counts[REFERENCES], buffers.theta, 1)
    dual_subspace.estimate(state.span, counts[REFERENCES], buffers.estimate)
    count = _find_unsure(state, goal, radius)
    counts[LOOKED] += count
    if counts[LOOKED] > p // MANY_UNSURE and left > 0.0:
        radius = _add_reference(state)
        dual_subspace.estimate(state.span, counts[REFERENCES], buffers.estimate)
        count = _find_unsure(state, goal, radius)
    products.some(
        state.store,
        state.column_cache,
        buffers.to_check,
        count,
        buffers.theta,
        terms.inverse,
        buffers.estimate,
        counts,
    )
    levels[READ] += count / p
    return count


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _add_reference(state):
    """Make the rest of the dual point a further reference; return the remaining radius."""
    span, theta, counts = state.span, state.buffers.theta, state.counts
    if counts[REFERENCES] == span.points.shape[0]:
        counts[REFERENCES] = dual_subspace.compress(span, counts[REFERENCES])
    c = counts[REFERENCES]
    left, _ = dual_subspace.bounded(span, c, theta, 2)
    dual_subspace.put(span, c, span.rest, left)
    products.pull_all(state.store, span.points[c], state.terms.inverse, span.products[c])
    counts[PASSES] += 1
    state.levels[READ] += 1.0
    counts[REFERENCES], counts[LOOKED] = c + 1, 0
    _, radius = dual_subspace.bounded(span, c + 1, theta, 1)
    return radius


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _find_unsure(state, goal, radius):
    """Write features outside the candidates whose product may exceed the l1 strength to check.

    Those whose product may exceed ``goal.low``, and so may enter at the next strength, go to
    ``near``. Flags are tested eight features at a time, because most groups of eight have none.
    """
    terms, candidates, buffers = state.terms, state.candidates, state.buffers
    estimate, near, to_check = buffers.estimate, buffers.near, buffers.to_check
    p, count, nearby = estimate.size, 0, 0
    for j in range(p):
        reach = abs(estimate[j]) + radius * terms.norms[j]
        buffers.flags[j] = reach > goal.low * candidates.gate[j]
    # lists grow by additions, as branches would be mispredicted
    for word in range(buffers.words.size):
        if buffers.words[word] != 0:
            for j in range(8 * word, min(8 * word + 8, p)):
                near[nearby] = j
                nearby += buffers.flags[j]
    for x in range(nearby):
        j = near[x]
        reach = abs(estimate[j]) + radius * terms.norms[j]
        to_check[count] = j
        count += reach > goal.l1 * terms.factor[j]
    state.counts[NEAR], state.levels[LOW] = nearby, goal.low
    return count
