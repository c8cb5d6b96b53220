"""Searches for the multiplier of the nearest point of a box cut by a hyperplane.

It is a root theta of ``h(theta) = total`` (`knapsack`, beside this file). A search keeps an
interval that holds a root as a `Piece`, drops the entries without a breakpoint inside it, and ends
in closed form when none is left. Sums of h are compensated: a wrong side near the root would
otherwise be possible where the entries differ by many orders of magnitude.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.sums import add, times
from proxmargin.compiled.projections.knapsack import EPS, Knapsack, clip, entry

__all__ = ["bisection", "pivot", "refined_bisection"]

SAMPLED_FROM = 3000  # with fewer entries a sample costs more than the pivots that it spares
SAMPLINGS = 6
WIDTH = 3.0  # standard errors of the sample on either side of its root


class Piece(NamedTuple):
    """An interval of theta, and the part of h that is ``constant - theta slope`` on all of it.

    The tails are what the rounded sums leave: constant + constant_tail has twice the digits.
    """

    left: float
    right: float
    constant: float
    constant_tail: float
    slope: float
    slope_tail: float


@njit(cache=True, nogil=True)
def _excess(problem, weight, active, count, piece, theta):
    """``h(theta) - total``, with the active entries counted ``weight`` times.

    Zero if it is below the rounding of the total: a plateau of h at the total (so many entries at
    their caps) would otherwise be missed by its last digit, and its end sought to the last digit.
    """
    head, tail = piece.constant, piece.constant_tail
    for k in range(count):
        p, a, low, high = entry(problem, active[k] if active.size else k)
        head, tail = add(head, tail, weight * (a * clip(p - theta * a, low, high)))
    product, error = times(theta, piece.slope)
    head, tail = add(head, tail, -product)
    head, tail = add(head, tail, -problem.total)
    excess = head + (tail - error - theta * piece.slope_tail)
    return 0.0 if abs(excess) <= EPS * abs(problem.total) else excess


@njit(cache=True, nogil=True)
def _side_with_root(piece, theta, excess):
    """The part of the interval on the side of theta that holds a root (some part, for a NaN)."""
    left = theta if excess >= 0.0 else piece.left
    right = piece.right if excess > 0.0 else theta
    return Piece(left, right, piece.constant, piece.constant_tail, piece.slope, piece.slope_tail)


@njit(cache=True, nogil=True)
def _narrow(problem, weight, active, count, kept, piece):
    """Move entries without a breakpoint inside the interval into its sums: I of Algorithm 5.

    The indices of the others are written into ``kept``, which may be ``active`` itself; an empty
    ``active`` stands for all entries.

    Returns
    -------
    count, piece : how many are kept, and the interval with its new sums
    """
    left, right, head, tail, slope, slope_tail = piece
    kept_count = 0
    for k in range(count):
        i = active[k] if active.size else k
        p, a, low, high = entry(problem, i)
        if a == 0.0:
            continue
        first, last = p - left * a, p - right * a
        at_first, at_last = clip(first, low, high), clip(last, low, high)
        if at_first == at_last:
            head, tail = add(head, tail, weight * (a * at_first))
        elif (at_first == first) & (at_last == last):
            head, tail = add(head, tail, weight * (a * p))
            slope, slope_tail = add(slope, slope_tail, weight * (a * a))
        else:
            kept[kept_count] = i
            kept_count += 1
    return kept_count, Piece(left, right, head, tail, slope, slope_tail)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _next(state):
    """The next state of a 64-bit congruential generator; its high digits are the good ones."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit(cache=True, nogil=True)
def _below(state, count):
    """An index below count from the high digits of the state."""
    return (np.int64(state >> np.uint64(33)) * count) >> 31


@njit(cache=True, nogil=True)
def _breakpoint(problem, i, piece):
    """A breakpoint of entry i strictly inside the interval, or NaN."""
    p, a, low, high = entry(problem, i)
    for bound in (high, low):
        theta = (p - bound) / a
        if piece.left < theta < piece.right:
            return theta
    return math.nan


@njit(cache=True, nogil=True)
def _midpoint(left, right):
    """The midpoint; with an infinite end, further out each time, so that some end is found."""
    if math.isfinite(left) and math.isfinite(right):
        return 0.5 * left + 0.5 * right
    if math.isfinite(left):
        return left + max(abs(left), 1.0)
    return right - max(abs(right), 1.0) if math.isfinite(right) else 0.0


@njit(cache=True, nogil=True)
def _draw(problem, active, count, piece, state):
    """A breakpoint of a random active entry; the middle where four of them have none inside."""
    for _ in range(4):
        state = _next(state)
        theta = _breakpoint(problem, active[_below(state, count)], piece)
        if not math.isnan(theta):
            return theta, state
    return _midpoint(piece.left, piece.right), state


@njit(cache=True, nogil=True)
def _search(problem, weight, active, count, piece, guess):
    """Narrow an interval until no active entry has a breakpoint inside (Kiwiel, 2008).

    Each round tries a breakpoint strictly inside, or the midpoint, and so the interval shrinks
    until it is free of breakpoints or its ends are neighbours. ``active`` is overwritten.

    Returns
    -------
    piece, rounds
    """
    state = np.uint64(88172645463325252)
    theta, rounds = guess, 0
    while count > 0:
        if not piece.left < theta < piece.right:
            theta, state = _draw(problem, active, count, piece, state)
        if not piece.left < theta < piece.right:
            break
        piece = _side_with_root(piece, theta, _excess(problem, weight, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, weight, active, count, active, piece)
        theta = math.nan
    return piece, rounds


@njit(cache=True, nogil=True)
def _root(piece, total):
    """The root on an interval without breakpoints, (19); on a plateau, an end."""
    if piece.left < piece.right and piece.slope > 0.0:
        head, tail = add(piece.constant, piece.constant_tail, -total)
        return min(max((head + tail) / piece.slope, piece.left), piece.right)
    if math.isfinite(piece.left):
        return piece.left
    return piece.right if math.isfinite(piece.right) else 0.0


@njit(cache=True, nogil=True)
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
        if _excess(problem, 1.0, whole, n, none, left) < 0.0:
            left, right = -math.inf, left
        elif _excess(problem, 1.0, whole, n, none, right) > 0.0:
            left, right = right, math.inf
    count, piece, _ = _drop_fixed(problem, whole, n, active, Piece(left, right, 0.0, 0.0, 0.0, 0.0))
    return active, count, piece


@njit(cache=True, nogil=True)
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
        piece = _side_with_root(piece, theta, _excess(problem, 1.0, active, count, piece, theta))
        rounds += 1
        count, piece, broken = _drop_fixed(problem, active, count, active, piece)
    count, piece = _narrow(problem, 1.0, active, count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds + more


@njit(cache=True, nogil=True)
def refined_bisection(problem):
    """Algorithm 5: as `bisection`, and entries that stay between their bounds are dropped too."""
    active, count, piece = _start(problem)
    tolerance = EPS * max(abs(piece.left), abs(piece.right))
    count, piece = _narrow(problem, 1.0, active, count, active, piece)
    rounds = 0
    while count > 0 and piece.right - piece.left > tolerance:
        theta = _midpoint(piece.left, piece.right)
        if not piece.left < theta < piece.right:
            break
        piece = _side_with_root(piece, theta, _excess(problem, 1.0, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, 1.0, active, count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds + more


@njit(cache=True, nogil=True)
def _error(problem, weight, sample, theta):
    """Standard error of the sampled h at theta."""
    mean, squares = 0.0, 0.0
    for k in range(sample.size):
        p, a, low, high = entry(problem, sample[k])
        term = a * clip(p - theta * a, low, high)
        step = term - mean
        mean += step / (k + 1)
        squares += step * (term - mean)
    return weight * math.sqrt(squares)


@njit(cache=True, nogil=True)
def _likely_interval(problem, active, count, piece):
    """An interval that likely holds a root and few breakpoints: roots for a sample, shifted.

    Returns
    -------
    left, right : infinite, or an end of the piece, where the sample gives no bound
    """
    sample = np.empty(int(0.7 * count ** (2 / 3)), np.int64)
    state = np.uint64(count)
    for k in range(sample.size):
        state = _next(state)
        i = _below(state, count)
        sample[k] = active[i] if active.size else i
    weight = count / sample.size
    scratch = np.empty_like(sample)
    left, right = piece.left, piece.right
    kept, narrowed = _narrow(problem, weight, sample, sample.size, scratch, piece)
    centre, _ = _search(problem, weight, scratch, kept, narrowed, math.nan)
    theta = _root(centre, problem.total)
    shift = WIDTH * _error(problem, weight, sample, theta)
    for sign in (-1.0, 1.0):
        shifted = Knapsack(
            problem.point, problem.normal, problem.low, problem.high, problem.total - sign * shift
        )
        kept, narrowed = _narrow(problem, weight, sample, sample.size, scratch, piece)
        found, _ = _search(shifted, weight, scratch, kept, narrowed, theta)
        if sign < 0.0:
            left = found.left
        else:
            right = found.right
    return min(left, right), max(left, right)


@njit(cache=True, nogil=True)
def pivot(problem):
    """Breakpoint search: large sets are cut by a sample first, and random pivots finish.

    A sample of n^(2/3) entries tells an interval that holds a root but few breakpoints, as in the
    selection of Floyd and Rivest; one pass over all entries confirms it and leaves the few. If
    the root is outside, the side is known and the other entries are dropped.

    Returns
    -------
    theta, rounds
    """
    active, count, rounds = np.empty(0, np.int64), problem.point.size, 0
    piece = Piece(-math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)
    while count >= SAMPLED_FROM and rounds < SAMPLINGS:
        rounds += 1
        kept = np.empty(count, np.int64)
        left, right = _likely_interval(problem, active, count, piece)
        likely = Piece(
            left, right, piece.constant, piece.constant_tail, piece.slope, piece.slope_tail
        )
        kept_count, narrowed = _narrow(problem, 1.0, active, count, kept, likely)
        if left > piece.left and _excess(problem, 1.0, kept, kept_count, narrowed, left) < 0.0:
            kept_count, narrowed = _narrow(
                problem, 1.0, active, count, kept, _side_with_root(piece, left, -1.0)
            )
        elif right < piece.right and (
            _excess(problem, 1.0, kept, kept_count, narrowed, right) > 0.0
        ):
            kept_count, narrowed = _narrow(
                problem, 1.0, active, count, kept, _side_with_root(piece, right, 1.0)
            )
        active, count, piece = kept, kept_count, narrowed
    if rounds == 0:
        active = np.empty(count, np.int64)
        count, piece = _narrow(problem, 1.0, np.empty(0, np.int64), count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds + more
