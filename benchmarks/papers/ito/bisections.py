"""The bisections of Ito et al. (2017) for the multiplier of a projection, by the library's sums."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.projections.knapsack import (
    EPS,
    Piece,
    _excess,
    _midpoint,
    _narrow,
    _root,
    _search,
    _side_with_root,
    add,
    clip,
    entry,
)

__all__ = ["bisection", "refined_bisection"]


@njit(nogil=True)
def _drop_fixed(problem, active, count, kept, piece):
    """Move entries at one bound on the whole interval into its sums: I of Algorithm 2.

    Returns
    -------
    count, piece, broken : as of `_narrow`; whether a kept entry has a breakpoint inside
    """
    left, right, head, tail, slope, slope_tail = piece
    kept_count, broken = 0, False
    for k in range(count):
        i = active[k] if active.size else k
        p, a, low, high = entry(problem, i)
        if a == 0.0:
            continue
        first, last = p - left * a, p - right * a
        at_first, at_last = clip(first, low, high), clip(last, low, high)
        if at_first == at_last:
            head, tail = add(head, tail, a * at_first)
        else:
            kept[kept_count] = i
            kept_count += 1
            broken |= at_first != first or at_last != last
    return kept_count, Piece(left, right, head, tail, slope, slope_tail), broken


@njit(nogil=True)
def _start(problem):
    """An interval that holds a root, for the bisections: from the first to the last breakpoint.

    Where a bound is infinite the root may lie beyond; h is then linear on that side.

    Returns
    -------
    active, count, piece
    """
    n = problem.point.size
    left, right, endless = math.inf, -math.inf, False
    for i in range(n):
        p, a, low, high = entry(problem, i)
        if a == 0.0:
            continue
        endless |= math.isinf(low) or math.isinf(high)
        for theta in ((p - high) / a, (p - low) / a):
            if math.isfinite(theta):
                left, right = min(left, theta), max(right, theta)
    whole, active = np.empty(0, np.int64), np.empty(n, np.int64)
    if not left <= right:
        left, right = -math.inf, math.inf
    elif endless:
        none = Piece(left, right, 0.0, 0.0, 0.0, 0.0)
        if _excess(problem, whole, n, none, left) < 0.0:
            left, right = -math.inf, left
        elif _excess(problem, whole, n, none, right) > 0.0:
            left, right = right, math.inf
    count, piece, _ = _drop_fixed(problem, whole, n, active, Piece(left, right, 0.0, 0.0, 0.0, 0.0))
    return active, count, piece


@njit(nogil=True)
def bisection(problem):
    """Algorithm 2: bisection that drops entries which stay at a bound, and ends by (19).

    The interval is closed and its tolerance is relative to its first ends; what is left inside it
    then (breakpoints that differ in their last digits) is decided by `_search`.

    Returns
    -------
    theta, rounds
    """
    active, count, piece = _start(problem)
    tolerance = EPS * max(abs(piece.left), abs(piece.right))
    rounds, broken = 0, True
    while count > 0 and broken and piece.right - piece.left > tolerance:
        theta = _midpoint(piece.left, piece.right)
        if not piece.left < theta < piece.right:
            break
        piece = _side_with_root(piece, theta, _excess(problem, active, count, piece, theta))
        rounds += 1
        count, piece, broken = _drop_fixed(problem, active, count, active, piece)
    count, piece = _narrow(problem, active, count, active, piece)
    piece, more = _search(problem, active, count, piece)
    return _root(piece, problem.total), rounds + more


@njit(nogil=True)
def refined_bisection(problem):
    """Algorithm 5: as `bisection`, and entries that stay between their bounds are dropped too."""
    active, count, piece = _start(problem)
    tolerance = EPS * max(abs(piece.left), abs(piece.right))
    count, piece = _narrow(problem, active, count, active, piece)
    rounds = 0
    while count > 0 and piece.right - piece.left > tolerance:
        theta = _midpoint(piece.left, piece.right)
        if not piece.left < theta < piece.right:
            break
        piece = _side_with_root(piece, theta, _excess(problem, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, active, count, active, piece)
    piece, more = _search(problem, active, count, piece)
    return _root(piece, problem.total), rounds + more
