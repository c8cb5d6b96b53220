"""What the first step at a strength will miss, from what it missed at the one before.

That step follows the path with an old Hessian; its error is that of the Hessian and of the path's
own curvature, and both change little from one strength to the next.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.state import (
    BEFORE,
    FIRST,
    GUESS,
    INTERCEPT,
    LAG,
    MEMBERS,
    SLOTS,
    STRIDE,
)

__all__ = ["corrected", "forget", "learn"]

ALIKE = 1.5  # ratio of two strides up to which one tells of the other


@njit(cache=True, nogil=True, allocates=False)
def corrected(state, goal, turn):  # type: ignore[no-untyped-def]
    """Correct the step just taken, and its turn of the intercept, which it returns."""
    slots, buffers, counts, levels = state.slots, state.buffers, state.counts, state.levels
    net, share = buffers.net, _share(levels, goal)
    counts[FIRST] = 0
    for s in range(counts[SLOTS]):
        slots.guess[s] = slots.coef[s]
    levels[GUESS] = levels[INTERCEPT] + turn
    for x in range(counts[MEMBERS]):
        s = buffers.members[x]
        end = slots.coef[s] + share * slots.lag[s]
        if slots.coef[s] * end > 0.0 and net.lower[x] <= end <= net.upper[x]:
            slots.coef[s] = end
            buffers.move[x] = end - buffers.start[x]
    return turn + share * levels[LAG]


@njit(cache=True, nogil=True, allocates=False)
def _share(levels, goal):  # type: ignore[no-untyped-def]
    """The stride of this strength over that of the last one, if they are alike."""
    stride = 1.0 - goal.l1 / levels[BEFORE] if goal.l1 < levels[BEFORE] else 0.0
    share = stride / levels[STRIDE] if levels[STRIDE] > 0.0 else 0.0
    levels[STRIDE] = stride
    return share if share <= ALIKE else 0.0


@njit(cache=True, nogil=True, allocates=False)
def learn(state):  # type: ignore[no-untyped-def]
    """At the end of a strength: what its first step missed."""
    slots, counts, levels = state.slots, state.counts, state.levels
    if counts[FIRST] == 1:  # there was none
        forget(state)
        return
    for s in range(counts[SLOTS]):
        both = slots.guess[s] != 0.0 and slots.coef[s] != 0.0
        slots.lag[s] = slots.coef[s] - slots.guess[s] if both else 0.0
    levels[LAG] = levels[INTERCEPT] - levels[GUESS]


@njit(cache=True, nogil=True, allocates=False)
def forget(state):  # type: ignore[no-untyped-def]
    """Nothing is known of what a first step will miss."""
    for s in range(state.counts[SLOTS]):
        state.slots.lag[s] = 0.0
    state.levels[LAG] = 0.0
