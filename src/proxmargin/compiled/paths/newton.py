"""Newton's method on the features with a slot, by chord steps.

A step with an old Hessian (a chord step) costs a product with the columns in play and two
triangular solves; the Hessian is formed anew where such steps converge slowly.
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import model, stores
from proxmargin.compiled.paths import span as spans
from proxmargin.compiled.paths.certified import feature_term, scale_into_domain
from proxmargin.compiled.paths.passes import lost, settled
from proxmargin.compiled.paths.state import DONE, INTERCEPT, MEMBERS, NO_MEMBER, READ, SLOTS
from proxmargin.compiled.paths.steps import halve, step
from proxmargin.compiled.solvers.nets import violation

__all__ = ["descend"]

MAX_STEPS = 60
MAX_HALVINGS = 30
RISE = 1e-12  # relative increase of the objective that is rounding
CLAIM = 0.9  # share of the tolerance that Newton's method is to meet
SLOW = 0.25  # reduction of the violation by a step, above which the Hessian is formed anew
ADDED = 8  # newcomers that are appended to a model, and a quarter of its size
FIRST_VIOLATION = 1e-3  # relative, taken for that at the solution of the strength before


@njit(cache=True, nogil=True)
def descend(state, goal):  # type: ignore[no-untyped-def]
    """Newton steps on the slots until their gap meets the tolerance."""
    counts, buffers = state.counts, state.buffers
    last, before, turn, fresh, halved = math.inf, math.inf, 0.0, False, 0
    for trial in range(MAX_STEPS + MAX_HALVINGS):
        far = min(last / goal.l1, 1.0) if last < math.inf else FIRST_VIOLATION
        worst, gap, objective, slope = _standing(state, goal, far)
        if objective > before * (1.0 + RISE) and halved < MAX_HALVINGS:
            turn = halve(state, turn)
            halved, fresh = halved + 1, False
            continue
        halved = 0
        if gap <= CLAIM * goal.tol * objective:
            return DONE
        if trial >= MAX_STEPS or (fresh and worst >= last and trial > MAX_STEPS // 2):
            return DONE  # the certificate tells
        added, m = model.newcomers(state, goal.rule), counts[MEMBERS]
        slow = trial > 0 and worst > SLOW * last and not fresh
        fresh = m == 0 or state.terms.jumps or slow
        fresh = fresh or added > ADDED + m // 4 or m + added > buffers.members.size
        if fresh:
            if not model.form(state, goal.rule, worst / goal.l1):
                return NO_MEMBER
        elif added > 0:
            model.append(state, goal.rule)
        turn = step(state, goal, worst, slope)
        last, before = worst, objective
    return DONE


@njit(cache=True, nogil=True)
def _standing(state, goal, far):  # type: ignore[no-untyped-def]
    """The largest violation, gap and objective as far as the slots tell; the intercept's slope."""
    terms, slots, buffers, levels = state.terms, state.slots, state.buffers, state.levels
    k = state.counts[SLOTS]
    b, slope, _, loss, up, down = settled(
        state.phi,
        buffers.scores,
        levels[INTERCEPT],
        terms.signs,
        terms.weights,
        buffers.theta,
        buffers.curved,
        terms.free,
        far,
        goal.tol,
    )
    levels[INTERCEPT] = b
    stores.pull(state.store, slots, k, buffers.theta, terms.inverse)
    levels[READ] += 2.0 * k / slots.slot_of.size
    worst, scale, objective = _measured(state, goal, loss)
    gap = lost(state.phi, buffers.scores, b, terms.signs, terms.weights, scale * up, scale * down)
    for s in range(k):
        j, w = slots.feature[s], slots.coef[s]
        own, ridge = goal.l1 * terms.factor[j], goal.l2 * terms.factor[j]
        if w != 0.0 or abs(slots.slope[s]) > own:
            gap += feature_term(
                scale * slots.slope[s], 0.0, w, own, ridge, terms.lower[j], terms.upper[j]
            )
    return worst, gap, objective, slope


@njit(cache=True, nogil=True)
def _measured(state, goal, loss):  # type: ignore[no-untyped-def]
    """The largest violation of the slots, the scale of their dual point, and the objective."""
    terms, slots = state.terms, state.slots
    relative = spans.rounding(state.buffers.scores.size)
    worst, scale, objective = 0.0, 1.0, loss
    for s in range(state.counts[SLOTS]):
        j, w = slots.feature[s], slots.coef[s]
        own, ridge = goal.l1 * terms.factor[j], goal.l2 * terms.factor[j]
        off = violation(ridge * w - slots.slope[s], w, 0.0, own, terms.lower[j], terms.upper[j])
        worst = max(worst, off)
        scale = scale_into_domain(
            scale,
            slots.slope[s],
            relative * terms.norms[j],
            own,
            ridge,
            terms.lower[j],
            terms.upper[j],
        )
        if w != 0.0:
            objective += own * abs(w) + 0.5 * ridge * w * w
    return worst, scale, objective
