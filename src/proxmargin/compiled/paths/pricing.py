"""The certificate of a strength with all features, and which of them have to enter."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import span as spans
from proxmargin.compiled.paths import stores
from proxmargin.compiled.paths.certified import certified_gap
from proxmargin.compiled.paths.passes import settled
from proxmargin.compiled.paths.state import INTERCEPT, PASSES, READ, REFERENCES, SLOTS
from proxmargin.compiled.paths.vectors import dot
from proxmargin.compiled.solvers.nets import violation

__all__ = ["price"]

# a pass over the data for a new reference, rather than so many inner products of single features
MANY_UNSURE = 12  # number of features over this


@njit(cache=True, nogil=True)
def price(state, goal):  # type: ignore[no-untyped-def]
    """The certified gap, the objective, the violation, and how many features have to enter.

    These are the first ones in ``state.buffers.unsure``.
    """
    terms, slots, buffers, levels = state.terms, state.slots, state.buffers, state.levels
    k = state.counts[SLOTS]
    stores.combine(  # afresh
        state.store, slots, np.arange(k), k, slots.coef, terms.inverse, buffers.scores
    )
    b, _, _, loss, up, down = settled(
        state.phi,
        buffers.scores,
        levels[INTERCEPT],
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
        terms.free,
        0.0,
        goal.tol,
    )
    levels[INTERCEPT] = b
    size = math.sqrt(dot(buffers.theta, buffers.theta))
    relative = spans.rounding(buffers.theta.size) * size
    count = _unsure(state, goal.l1, relative) if k < slots.slot_of.size else 0
    stores.pull(state.store, slots, k, buffers.theta, terms.inverse)
    for s in range(k):
        buffers.estimate[slots.feature[s]] = slots.slope[s]
    gap, objective = certified_gap(
        state.phi,
        buffers.scores,
        b,
        buffers.theta,
        up,
        down,
        terms,
        slots,
        k,
        buffers.unsure,
        count,
        buffers.estimate,
        relative,
        goal.l1,
        goal.l2,
        loss,
    )
    worst, wanted = _violators(state, goal, count)
    return gap, objective, worst, wanted


@njit(cache=True, nogil=True)
def _violators(state, goal, count):  # type: ignore[no-untyped-def]
    """The largest violation; those of the unsure features that have one come first, counted."""
    terms, slots, buffers = state.terms, state.slots, state.buffers
    worst, wanted = 0.0, 0
    for s in range(state.counts[SLOTS]):
        j, w = slots.feature[s], slots.coef[s]
        slope, own = goal.l2 * terms.factor[j] * w - slots.slope[s], goal.l1 * terms.factor[j]
        worst = max(worst, violation(slope, w, 0.0, own, terms.lower[j], terms.upper[j]))
    for x in range(count):
        j = buffers.unsure[x]
        slope, own = -buffers.estimate[j], goal.l1 * terms.factor[j]
        off = violation(slope, 0.0, 0.0, own, terms.lower[j], terms.upper[j])
        worst = max(worst, off)
        if off > 0.0:
            buffers.unsure[wanted] = j
            wanted += 1
    return worst, wanted


@njit(cache=True, nogil=True)
def _unsure(state, l1, relative):  # type: ignore[no-untyped-def]
    """Features without a slot that are not proven inactive; their inner products are computed."""
    terms, buffers, counts, levels = state.terms, state.buffers, state.counts, state.levels
    p = buffers.estimate.size
    if not terms.spans:
        stores.pull_all(state.store, buffers.theta, terms.inverse, buffers.estimate)
        counts[PASSES] += 1
        levels[READ] += 1.0
        return _beyond(state, l1, relative)
    left, radius = spans.bounded(state.span, counts[REFERENCES], buffers.theta)
    spans.estimate(state.span, counts[REFERENCES], buffers.estimate)
    count = _beyond(state, l1, radius)
    if count > p // MANY_UNSURE and left > 0.0:
        radius = _referred(state)
        spans.estimate(state.span, counts[REFERENCES], buffers.estimate)
        count = _beyond(state, l1, radius)
    for x in range(count):
        j = buffers.unsure[x]
        buffers.estimate[j] = terms.inverse[j] * stores.one(state.store, j, buffers.theta)
    levels[READ] += count / p
    return count


@njit(cache=True, nogil=True)
def _referred(state):  # type: ignore[no-untyped-def]
    """The rest of the dual point as a further reference; the radius that remains."""
    span, theta, counts = state.span, state.buffers.theta, state.counts
    if counts[REFERENCES] == span.points.shape[0]:
        counts[REFERENCES] = spans.compress(span, counts[REFERENCES])
    c = counts[REFERENCES]
    left, _ = spans.bounded(span, c, theta)
    spans.put(span, c, span.rest, left)
    stores.pull_all(state.store, span.points[c], state.terms.inverse, span.products[c])
    counts[PASSES] += 1
    state.levels[READ] += 1.0
    counts[REFERENCES] = c + 1
    _, radius = spans.bounded(span, c + 1, theta)
    return radius


@njit(cache=True, nogil=True)
def _beyond(state, l1, radius):  # type: ignore[no-untyped-def]
    """Features without a slot whose inner product may be above its strength, into ``unsure``."""
    terms, slots, buffers = state.terms, state.slots, state.buffers
    count = 0
    for j in range(buffers.estimate.size):
        reach = abs(buffers.estimate[j]) + radius * terms.norms[j]
        if reach > l1 * terms.factor[j] and slots.slot_of[j] < 0:
            buffers.unsure[count] = j
            count += 1
    return count
