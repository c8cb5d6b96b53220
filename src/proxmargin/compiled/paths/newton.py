"""Newton's method on the candidate features, by chord steps.

A step with an old Hessian (a chord step) costs a product with the columns of the model and two
triangular solves; the Hessian is formed anew where such steps converge slowly.
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import model
from proxmargin.compiled.paths.standing import evaluate, standing
from proxmargin.compiled.paths.state import (
    DONE,
    GAVE_UP,
    LAST,
    MEMBERS,
    NO_MEMBER,
    NO_STEP,
    STEPS,
)
from proxmargin.compiled.paths.steps import halve, step

__all__ = ["descend"]

MAX_STEPS = 60
MAX_HALVINGS = 30
RISE = 1e-12  # relative increase of the objective that counts as rounding
LARGEST_RISE = 2.0  # factor on the objective, after all halvings, beyond which the method gives up
CLAIM = 0.9  # share of the tolerance at which Newton's method ends
SLOW = 0.25  # reduction factor of the violation above which the Hessian is formed anew
ADDED = 8  # number of newcomers, besides a quarter of the members, up to which they are appended


@njit(cache=True, nogil=True, allocates=False, forceinline=True)
def descend(state, goal):
    """Newton steps on the candidates until their gap meets the tolerance.

    The dual point and the slopes of the candidates are still those of the previous strength, so
    that the first step, the predictor, takes no evaluation.
    """
    counts, buffers = state.counts, state.buffers
    last, before, turn, fresh, halved = math.inf, math.inf, 0.0, False, 0
    for trial in range(MAX_STEPS + MAX_HALVINGS):
        if trial > 0:  # the predictor uses the dual point of the previous strength
            evaluate(state, min(last / goal.l1, 1.0), goal.tol)
        worst, gap, objective = standing(state, goal, CLAIM)
        if trial > 0 and not objective <= before * (1.0 + RISE):  # it may not be a number
            if halved < MAX_HALVINGS:
                turn = halve(state, turn)
                halved, fresh = halved + 1, False
                continue
            if not objective <= before * LARGEST_RISE:
                return GAVE_UP
        halved = 0
        if gap <= CLAIM * goal.tol * objective and gap < math.inf:
            return DONE
        if trial >= MAX_STEPS or (fresh and worst >= last and trial > MAX_STEPS // 2):
            return DONE  # the certificate decides
        if counts[STEPS] >= counts[LAST]:
            return NO_STEP
        added, m = model.newcomers(state, goal.rule), counts[MEMBERS]
        slow = trial > 0 and worst > SLOW * last and not fresh
        fresh = m == 0 or (slow and not state.terms.jumps)
        fresh = fresh or added > ADDED + m // 4 or m + added > buffers.members.size
        if not fresh and added > 0:
            model.append(state, goal.rule)
        if not fresh and state.terms.jumps:
            fresh = not model.revise(state, worst / goal.l1)
        if fresh and not model.form(state, goal.rule, worst / goal.l1):
            return NO_MEMBER
        fresh = fresh or state.terms.jumps
        turn = step(state, goal, worst)
        last, before = worst, objective
    return DONE
