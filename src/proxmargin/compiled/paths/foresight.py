"""Correction of the predictor step by the error that it made at the strength before.

The path is followed by a predictor and correctors. At strength ``l_k`` the first Newton step, from
the solution ``w_{k-1}``, is the predictor; its result is ``p_k``. The steps after it are the
correctors, which end at ``w_k``. The error of the predictor,

    e_k = w_k - p_k,

has two parts: the model's Hessian is that of an earlier strength, and the path is curved. Over
steps of similar length both are smooth along the path, so that the error of the next predictor is
known in advance. With the relative step lengths ``h_k = 1 - l_k / l_{k-1}``, the predictor is
replaced by

    p_k + (h_k / h_{k-1}) e_{k-1},

which takes no evaluation and saves a corrector at most strengths. The ratio is linear in h, as the
error of an old Hessian is; that of the curvature would be quadratic, but on the usual geometric
grids the ratio is one. The intercept is corrected in the same way.

A coefficient is corrected only where predictor and solution are both nonzero at the strength
before, and where the corrected value keeps its sign and its bounds: otherwise a kink of the path
lies between, and the error on its other side says nothing. Corrections change where Newton's method
starts, not what it converges to.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.state import (
    BEFORE,
    CANDIDATES,
    FIRST,
    GUESS,
    INTERCEPT,
    LAG,
    MEMBERS,
    STRIDE,
)

__all__ = ["correct_predictor", "forget", "learn"]

LARGEST_RATIO = 1.5  # of two step lengths; beyond it the last error is not extrapolated


@njit(cache=True, nogil=True, allocates=False)
def correct_predictor(state, goal, turn):
    """Add the expected error to the predictor step just taken.

    Parameters
    ----------
    turn : float
        The predictor's step of the intercept, which is still to be added to it.

    Returns
    -------
    float
        The corrected step of the intercept.
    """
    candidates, buffers, counts, levels = (
        state.candidates,
        state.buffers,
        state.counts,
        state.levels,
    )
    net, share = buffers.net, _share(levels, goal)
    counts[FIRST] = 0
    for s in range(counts[CANDIDATES]):
        candidates.guess[s] = candidates.coef[s]
    levels[GUESS] = levels[INTERCEPT] + turn
    for x in range(counts[MEMBERS]):
        s = buffers.members[x]
        end = candidates.coef[s] + share * candidates.lag[s]
        if candidates.coef[s] * end > 0.0 and net.lower[x] <= end <= net.upper[x]:
            candidates.coef[s] = end
            buffers.move[x] = end - buffers.start[x]
    return turn + share * levels[LAG]


@njit(cache=True, nogil=True, allocates=False)
def _share(levels, goal):
    """``h_k / h_{k-1}``; 0 where it is too large, or there is no strength before to learn from."""
    stride = 1.0 - goal.l1 / levels[BEFORE] if goal.l1 < levels[BEFORE] else 0.0
    share = stride / levels[STRIDE] if levels[STRIDE] > 0.0 else 0.0
    levels[STRIDE] = stride
    return share if share <= LARGEST_RATIO else 0.0


@njit(cache=True, nogil=True, allocates=False)
def learn(state):
    """Store the error of the predictor, when the strength is solved."""
    candidates, counts, levels = state.candidates, state.counts, state.levels
    if counts[FIRST] == 1:  # the start was within the tolerance: no step was taken
        forget(state)
        return
    for s in range(counts[CANDIDATES]):
        both = candidates.guess[s] != 0.0 and candidates.coef[s] != 0.0
        candidates.lag[s] = candidates.coef[s] - candidates.guess[s] if both else 0.0
    levels[LAG] = levels[INTERCEPT] - levels[GUESS]


@njit(cache=True, nogil=True, allocates=False)
def forget(state):
    """Set the expected errors to zero: the next predictor is taken as it is."""
    for s in range(state.counts[CANDIDATES]):
        state.candidates.lag[s] = 0.0
    state.levels[LAG] = 0.0
