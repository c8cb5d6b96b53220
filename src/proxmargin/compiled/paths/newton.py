"""Newton's method on the features with a slot, by chord steps.

A step with an old Hessian (a chord step) costs a product with the columns in play and two
triangular solves; the Hessian is formed anew where such steps converge slowly.
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import model
from proxmargin.compiled.paths.standing import evaluate, standing
from proxmargin.compiled.paths.state import DONE, GAVE_UP, MEMBERS, NO_MEMBER
from proxmargin.compiled.paths.steps import halve, step

__all__ = ["descend"]

MAX_STEPS = 60
MAX_HALVINGS = 30
RISE = 1e-12  # relative increase of the objective that is rounding
LARGEST_RISE = 2.0  # factor on the objective of a step cut short: beyond it the model is rounding
CLAIM = 0.9  # share of the tolerance that Newton's method is to meet
SLOW = 0.25  # reduction of the violation by a step, above which the Hessian is formed anew
ADDED = 8  # newcomers that are appended to a model, and a quarter of its size


@njit(cache=True, nogil=True, allocates=False)
def descend(state, goal):  # type: ignore[no-untyped-def]
    """Newton steps on the slots until their gap meets the tolerance.

    At first the dual point and the slopes of the slots are those of the strength before, so that
    the first step follows the path without an evaluation.
    """
    counts, buffers = state.counts, state.buffers
    last, before, turn, fresh, halved = math.inf, math.inf, 0.0, False, 0
    for trial in range(MAX_STEPS + MAX_HALVINGS):
        if trial > 0:  # at first the dual point is known
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
        turn = step(state, goal, worst)
        last, before = worst, objective
    return DONE
