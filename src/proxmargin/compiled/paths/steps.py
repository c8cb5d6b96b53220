"""A step towards the minimum of the quadratic model, and its length."""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import foresight, loss_passes, products
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.model import LEAST_SHARE
from proxmargin.compiled.paths.quadratic import quadratic_minimum
from proxmargin.compiled.paths.standing import recompute_scores
from proxmargin.compiled.paths.state import (
    DAMPED,
    DRIFT,
    FIRST,
    INTERCEPT,
    KEPT,
    LARGEST,
    MEMBERS,
    MOVED,
    RIDGE,
    SHARE,
    SLOPE,
    STEPS,
    TOTAL,
)
from proxmargin.compiled.paths.vectors import add
from proxmargin.compiled.solvers.nets import Net, largest_step

__all__ = ["halve", "step"]

FORCING = 0.05  # accuracy of the model's minimum, relative to the violation
FINE_FORCING = 1e-3  # the same relative to the tolerance, in units of the l1 strength
DAMPING = 1e-10  # relative to the largest diagonal entry
STRONGER = 1.3  # largest ratio of a kept factor's ridge to the present ridge
FACTOR_COST = 6.0  # members^2 over samples above which factors cost more than steps
NEAR_ZERO = 1e-9  # coefficient over its move that counts as zero
# losses whose curvature jumps
MOST_MOVED = 8  # steps whose moves, known from the line search, are added to the scores
FAR_DAMPING = 1e-4  # damping per unit of relative violation
LONG_STEP = 0.5  # step length above which the weight of the majoriser falls
SHORT_STEP = 0.1  # step length below which it rises
SEARCH_TOLERANCE = 0.3
SEARCH_STEPS = 60


@njit(cache=True, nogil=True, allocates=False, forceinline=True)
def step(state, goal, worst):
    """Step to the minimum of the model; return the change of the intercept.

    Parameters
    ----------
    worst : float
        The largest violation of optimality.
    """
    buffers, counts, levels = state.buffers, state.counts, state.levels
    m = counts[MEMBERS]
    _lift(state, goal, worst)
    _pose(state, goal)
    net = buffers.net
    counts[KEPT] = quadratic_minimum(
        state.quadratic,
        buffers.lift[:m],
        buffers.slope[:m],
        buffers.move[:m],
        Net(net.l1[:m], net.l2[:m], net.lower[:m], net.upper[:m]),
        max(FORCING * worst, FINE_FORCING * goal.tol * goal.l1),
        counts[KEPT],
    )
    turn = levels[SLOPE] / levels[TOTAL] if levels[TOTAL] > 0.0 else 0.0
    for x in range(m):
        buffers.move[x] -= buffers.start[x]
        if buffers.move[x] != 0.0 and levels[TOTAL] > 0.0:
            turn -= state.candidates.average[x] * buffers.move[x]
    counts[STEPS] += 1
    return _take(state, goal, _line_search(state, turn) if state.terms.jumps else 1.0, turn)


@njit(cache=True, nogil=True, allocates=False)
def _lift(state, goal, worst):
    """Set ridge and damping of the model's Hessian; a change invalidates its factor.

    Where a factor costs more than the rest of a step, one with a slightly stronger ridge is kept:
    the step is a chord step in the ridge, too.
    """
    counts, levels, m = state.counts, state.levels, state.counts[MEMBERS]
    damping = DAMPING
    if state.terms.jumps:
        damping = FAR_DAMPING * min(1.0, worst / goal.l1) + 10.0 * DAMPING
    damping *= levels[LARGEST]
    drift = STRONGER if m * m > FACTOR_COST * state.buffers.scores.size else 1.0
    fits = goal.l2 <= levels[RIDGE] <= drift * goal.l2 and levels[DAMPED] == damping
    if counts[KEPT] == 0 or not fits:
        levels[RIDGE], levels[DAMPED] = goal.l2, damping
        counts[KEPT] = 0


@njit(cache=True, nogil=True, allocates=False)
def _pose(state, goal):
    """Set the model's gradient and penalties at the present coefficients."""
    terms, candidates, buffers, levels = state.terms, state.candidates, state.buffers, state.levels
    net = buffers.net
    for x in range(state.counts[MEMBERS]):
        s = buffers.members[x]
        j = candidates.feature[s]
        ridge = goal.l2 * terms.factor[j]
        buffers.lift[x] = levels[RIDGE] * terms.factor[j] + levels[DAMPED]
        buffers.start[x] = buffers.move[x] = candidates.coef[s]
        buffers.slope[x] = ridge * candidates.coef[s] - candidates.slope[s]
        net.l1[x], net.l2[x] = goal.l1 * terms.factor[j], ridge
        net.lower[x], net.upper[x] = terms.lower[j], terms.upper[j]


@njit(cache=True, nogil=True, allocates=False)
def _take(state, goal, length, turn):
    """Move coefficients, scores and intercept; return the move of the intercept."""
    terms, candidates, buffers, levels = state.terms, state.candidates, state.buffers, state.levels
    is_exact = True
    for x in range(state.counts[MEMBERS]):
        if buffers.move[x] != 0.0:
            s, move = buffers.members[x], length * buffers.move[x]
            end = buffers.start[x] + move
            if abs(end) <= NEAR_ZERO * abs(move):
                is_exact = is_exact and end == 0.0
                end = 0.0
            candidates.coef[s] = end
            buffers.move[x] = candidates.coef[s] - buffers.start[x]
    turn *= length
    if not terms.jumps and state.counts[FIRST] == 1:
        turn = foresight.correct_predictor(state, goal, turn)
    if terms.jumps and is_exact and state.counts[MOVED] < MOST_MOVED:
        add(length, buffers.moved, buffers.scores)
        state.counts[MOVED] += 1
        levels[DRIFT] += rounding(state.counts[MEMBERS]) * _largest_move(state)
    else:
        recompute_scores(state)
    levels[INTERCEPT] += turn
    return turn


@njit(cache=True, nogil=True, allocates=False)
def _largest_move(state):
    """A bound on the moves of the scores by a step, from the moves of the members."""
    buffers, total = state.buffers, 0.0
    for x in range(state.counts[MEMBERS]):
        j = state.candidates.feature[buffers.members[x]]
        total += abs(buffers.move[x]) * state.terms.bounds[j]
    return total


@njit(cache=True, nogil=True, allocates=False)
def halve(state, turn):
    """Take back half of the last step; return the remaining move of the intercept."""
    buffers = state.buffers
    for x in range(state.counts[MEMBERS]):
        buffers.move[x] *= 0.5
        if buffers.move[x] != 0.0:
            state.candidates.coef[buffers.members[x]] -= buffers.move[x]
    recompute_scores(state)
    turn *= 0.5
    state.levels[INTERCEPT] -= turn
    return turn


@njit(cache=True, nogil=True)
def _line_search(state, turn):
    """The step length; it also sets the weight of the majoriser.

    One if the slope along the step falls there to `SEARCH_TOLERANCE` of its first value, in one
    pass over the samples; otherwise that of an exact line search.
    """
    terms, buffers, levels, m = state.terms, state.buffers, state.levels, state.counts[MEMBERS]
    products.combine(
        state.store,
        state.candidates,
        buffers.members,
        m,
        buffers.move,
        terms.inverse,
        buffers.moved,
    )
    length = 1.0
    if not _is_level(state, turn):
        length = loss_passes.step_length(
            state.loss,
            buffers.scores + levels[INTERCEPT],
            buffers.moved + turn,
            terms.signs,
            terms.weights,
            buffers.start[:m],
            buffers.move[:m],
            buffers.net.l1[:m],
            buffers.net.l2[:m],
            SEARCH_TOLERANCE,
            SEARCH_STEPS,
        )
    share = levels[SHARE]
    if length >= LONG_STEP:
        levels[SHARE] = SEARCH_TOLERANCE * share
    elif length < SHORT_STEP:
        levels[SHARE] = min(1.0, 3.0 * max(share, 3.0 * LEAST_SHARE))
    return min(length, largest_step(buffers.net, buffers.start, buffers.move, m))


@njit(cache=True, nogil=True, allocates=False)
def _is_level(state, turn):
    """Whether the objective is level at the end of the step, relative to its start.

    The slope is two-sided where a coefficient ends at zero. It may be level at a higher objective:
    then the step is halved later.
    """
    terms, candidates, buffers, levels = state.terms, state.candidates, state.buffers, state.levels
    net, first, left, right = buffers.net, -levels[SLOPE] * turn, 0.0, 0.0
    for x in range(state.counts[MEMBERS]):
        start, move = buffers.start[x], buffers.move[x]
        if move != 0.0:
            end, jump = start + move, net.l1[x] * abs(move)
            first += (net.l2[x] * start - candidates.slope[buffers.members[x]]) * move
            first += jump if start * move >= 0.0 else -jump
            at_zero = abs(end) <= NEAR_ZERO * abs(move)
            left += net.l2[x] * end * move + (jump if end * move > 0.0 and not at_zero else -jump)
            right += net.l2[x] * end * move + (jump if end * move > 0.0 or at_zero else -jump)
    loss = -loss_passes.descent_along(
        state.loss,
        buffers.scores,
        buffers.moved,
        levels[INTERCEPT],
        turn,
        terms.signs,
        terms.weights,
    )
    enough = -SEARCH_TOLERANCE * first
    return loss + left <= enough and loss + right >= -enough
