"""The quadratic model of the objective: its members and its Hessian."""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import gram, loss_passes
from proxmargin.compiled.paths.state import (
    CANDIDATES,
    INTERCEPT,
    KEPT,
    LARGEST,
    MEMBERS,
    MODELS,
    READ,
    SHARE,
    TOTAL,
)
from proxmargin.compiled.solvers.nets import open_slope

__all__ = ["append", "form", "newcomers", "revise"]

KEPT_SLOPE = 0.95  # share of the rule below which a new model leaves a candidate out
FEW = 512  # number of features up to which this share is `KEPT_OF_FEW`
KEPT_OF_FEW = 0.6
CHANGED = 0.25  # share of changed curvatures above which a model is formed anew
LEAST_SHARE = 1e-3  # weight of the majoriser, where the loss is flat, below which it is dropped


@njit(cache=True, nogil=True, allocates=False)
def form(state, rule, far):
    """Form a new model of the candidates that the rule admits; False if there is no room for them.

    Parameters
    ----------
    far : float
        Relative violation of optimality: largest weight of the majoriser where the loss is flat.
    """
    candidates, quadratic, buffers = state.candidates, state.quadratic, state.buffers
    counts, levels = state.counts, state.levels
    m = _choose_members(state, rule)
    if m < 0:
        return False
    total, _ = _update_curvatures(state, far)
    levels[TOTAL] = total if state.terms.free else 0.0
    gram.form(
        state.store,
        candidates,
        buffers.members,
        m,
        buffers.bends,
        levels[TOTAL],
        state.terms.inverse,
        quadratic.hessian,
    )
    levels[READ] += 2.0 * m / candidates.slot_of.size
    counts[MEMBERS] = m
    _measure(state)
    counts[MODELS] += 1
    return True


@njit(cache=True, nogil=True, allocates=False)
def revise(state, far):
    """Bring the curvatures of the model up to date; False if it has to be formed anew.

    Curvatures that jump are constant between the kinks of the loss: from step to step few change.
    """
    candidates, buffers, counts, levels = (
        state.candidates,
        state.buffers,
        state.counts,
        state.levels,
    )
    m, before = counts[MEMBERS], levels[TOTAL]
    total, changed = _update_curvatures(state, far)
    if changed > CHANGED * buffers.bends.size or (state.terms.free and min(before, total) <= 0.0):
        return False
    if changed == 0:
        return True
    levels[TOTAL] = total if state.terms.free else 0.0
    gram.revise(
        state.store,
        candidates,
        buffers.members,
        m,
        buffers.change,
        before,
        levels[TOTAL],
        state.terms.inverse,
        state.quadratic.hessian,
    )
    levels[READ] += 2.0 * m / candidates.slot_of.size * changed / buffers.bends.size
    counts[KEPT] = 0
    _measure(state)
    return True


@njit(cache=True, nogil=True, allocates=False)
def _measure(state):
    """Set the largest diagonal entry of the Hessian."""
    largest = 0.0
    for x in range(state.counts[MEMBERS]):
        largest = max(largest, state.quadratic.hessian[x, x])
    state.levels[LARGEST] = largest


@njit(cache=True, nogil=True, allocates=False)
def _choose_members(state, rule):
    """Choose the members; return their number, or -1 if there is no room for them."""
    terms, candidates, members, counts = (
        state.terms,
        state.candidates,
        state.buffers.members,
        state.counts,
    )
    for x in range(counts[MEMBERS]):
        candidates.place[members[x]] = -1
    counts[MEMBERS] = counts[KEPT] = 0
    least = rule * (KEPT_OF_FEW if terms.norms.size <= FEW else KEPT_SLOPE)
    m = 0
    for s in range(counts[CANDIDATES]):
        if candidates.coef[s] != 0.0 or _rule_admits(candidates, s, terms, least):
            if m == members.size:
                return -1
            members[m] = s
            m += 1
    for x in range(m):
        candidates.place[members[x]] = x
    return m


@njit(cache=True, nogil=True, allocates=False)
def _update_curvatures(state, far):
    """Set the curvatures of the samples in the model, and their changes; return the sum of the
    former, and the number of the latter that are not zero.

    Without any curvature, as with two classes of equal size at zero coefficients, the model has no
    minimum: it is then the majoriser.
    """
    terms, buffers, levels = state.terms, state.buffers, state.levels
    share = min(levels[SHARE], far)
    if not terms.jumps or share < LEAST_SHARE:
        share = 0.0
    if terms.jumps and _is_flat(buffers.curved):
        levels[SHARE] = share = 1.0
    now = buffers.curved
    if share > 0.0:
        now = buffers.change
        loss_passes.majorised(
            state.loss,
            buffers.scores,
            levels[INTERCEPT],
            terms.signs,
            terms.weights,
            share,
            buffers.curved,
            now,
        )
    total, changed = 0.0, 0
    for i in range(buffers.bends.size):
        bend = now[i]
        buffers.change[i] = bend - buffers.bends[i]
        changed += buffers.change[i] != 0.0
        buffers.bends[i] = bend
        total += bend
    return total, changed


@njit(cache=True, nogil=True, allocates=False)
def _is_flat(curved):
    i = 0
    while i < curved.size and curved[i] == 0.0:
        i += 1
    return i == curved.size


@njit(cache=True, nogil=True, allocates=False)
def _rule_admits(candidates, s, terms, rule):
    """Whether the slope of a candidate satisfies the rule, in a direction that its bounds allow."""
    j = candidates.feature[s]
    return open_slope(candidates.slope[s], terms.lower[j], terms.upper[j]) >= rule * terms.factor[j]


@njit(cache=True, nogil=True, allocates=False)
def _is_newcomer(candidates, s, terms, rule):
    """Whether a candidate outside the model now is nonzero or satisfies the rule."""
    if candidates.place[s] >= 0:
        return False
    return candidates.coef[s] != 0.0 or _rule_admits(candidates, s, terms, rule)


@njit(cache=True, nogil=True, allocates=False)
def newcomers(state, rule):
    """The number of candidates outside the model that now are nonzero or satisfy the rule."""
    candidates, count = state.candidates, 0
    for s in range(state.counts[CANDIDATES]):
        if _is_newcomer(candidates, s, state.terms, rule):
            count += 1
    return count


@njit(cache=True, nogil=True, allocates=False)
def append(state, rule):
    """Append the `newcomers` to the model."""
    candidates, buffers, counts = state.candidates, state.buffers, state.counts
    for s in range(counts[CANDIDATES]):
        if _is_newcomer(candidates, s, state.terms, rule):
            m = counts[MEMBERS]
            buffers.members[m], candidates.place[s] = s, m
            counts[MEMBERS] = m + 1
            gram.append(
                state.store,
                candidates,
                buffers.members,
                m + 1,
                buffers.bends,
                state.levels[TOTAL],
                state.terms.inverse,
                state.quadratic.hessian,
            )
