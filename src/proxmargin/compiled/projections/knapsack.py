"""The nearest point of a box cut by a hyperplane, by a search for the multiplier.

The nearest point is ``u_i(theta) = clip(point_i - theta normal_i, low_i, high_i)`` for a root theta
of the piecewise linear, non-increasing

    h(theta) = sum_i normal_i u_i(theta) = total

(Lemma 2 of Ito, Takeda and Toh (2017), here with any normal and bounds of each entry).

The search keeps an interval that holds a root as a `Piece`, drops the entries without a breakpoint
inside it, and ends in closed form when none is left. Sums of h are compensated: a wrong side near
the root would otherwise be possible where the entries differ by many orders of magnitude.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.compensated import add, times
from proxmargin.compiled.rounding import EPS, TINY

ENTRY_ROUNDING = 2.0 * EPS  # rounding of point - theta normal, relative to |point| + |theta normal|
NEWTON_STEPS = 10  # maximum number; a good start needs two or three
MAX_MISSES = 1000  # successive entries whose ulp is too large to absorb part of the residual


class Knapsack(NamedTuple):
    """A projection onto a box and a hyperplane; arrays of one entry hold for all entries."""

    point: NDArray[np.float64]
    normal: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    total: float


@njit(nogil=True)
def entry(problem, i):
    """Point, normal, low and high of entry i; a product is quicker here than a choice."""
    return (
        problem.point[i],
        problem.normal[i * (problem.normal.size > 1)],
        problem.low[i * (problem.low.size > 1)],
        problem.high[i * (problem.high.size > 1)],
    )


@njit(nogil=True)
def clip(value, low, high):
    """The nearest value of [low, high]; a NaN stays one, which min and max do not promise."""
    value = low if value < low else value
    return high if value > high else value


@njit(nogil=True)
def _place(problem, theta, out):
    """Write u(theta), and measure it against the hyperplane in twice the digits.

    Returns
    -------
    head, tail : total - normal'u
    curvature : sum of normal^2 over the entries not held at a bound
    capacity : how much of a residual is within the rounding of those entries
    size : sum of |normal u|
    valid : whether all inputs are numbers with low <= high, and point and normal finite
    """
    head, tail, size, curvature, capacity, ordered = problem.total, 0.0, 0.0, 0.0, 0.0, True
    for i in range(out.size):
        p, a, low, high = entry(problem, i)
        move = theta * a
        free = p - move
        u = clip(free, low, high)
        out[i] = u
        ordered &= low <= high
        product, error = times(a, u)
        head, tail = add(head, tail, -product)
        tail -= error
        size += abs(product)
        slack = ENTRY_ROUNDING * (abs(p) + abs(move))
        if abs(u - free) <= slack:
            curvature += a * a
            capacity += abs(a) * slack
    # an infinite point or normal has an infinite slack, a NaN stays one in u
    return head, tail, curvature, capacity, size, ordered and math.isfinite(capacity)


@njit(nogil=True)
def _measure(problem, out):
    """The residual head + tail and the size of a point, both as of `_place`."""
    head, tail, size = problem.total, 0.0, 0.0
    for i in range(out.size):
        product, error = times(entry(problem, i)[1], out[i])
        head, tail = add(head, tail, -product)
        tail -= error
        size += abs(product)
    return head, tail, size


@njit(nogil=True)
def _replace_term(head, tail, a, old, new):
    """The residual head + tail after an entry of normal a has moved from old to new."""
    before, before_error = times(a, old)
    after, after_error = times(a, new)
    head, tail = add(head, tail, before)
    head, tail = add(head, tail, -after)
    return head, tail + (before_error - after_error)


@njit(nogil=True)
def _shift(problem, head, tail, curvature, out):
    """Move all entries strictly inside their bounds by one step of theta, below its own rounding.

    Returns
    -------
    head, tail : what is left of the residual
    """
    step = (head + tail) / curvature
    for i in range(out.size):
        _, a, low, high = entry(problem, i)
        old = out[i]
        if (low < old) & (old < high):
            u = clip(old + step * a, low, high)
            head, tail = _replace_term(head, tail, a, old, u)
            out[i] = u
    return head, tail


@njit(nogil=True)
def _absorb(problem, theta, slack, head, tail, out):
    """Spread a residual over entries not held at a bound, each by ``slack`` of its size at most.

    Returns
    -------
    head, tail : what is left: nothing, less than the entries can express, or beyond their reach
    """
    negligible = 0.25 * EPS * abs(problem.total)  # half a unit in the last place of the total
    misses = 0
    for i in range(out.size):
        residual = head + tail
        if abs(residual) <= negligible or misses > MAX_MISSES:
            break
        p, a, low, high = entry(problem, i)
        free = p - theta * a
        reach = slack * max(abs(p) + abs(theta * a), TINY)
        if a == 0.0 or not abs(clip(free, low, high) - free) <= reach:
            continue
        step = min(max(residual / a, -reach), reach)
        u = clip(out[i] + step, low, high)
        if u != out[i]:
            head, tail = _replace_term(head, tail, a, out[i], u)
            out[i] = u
            misses = 0
        elif out[i] + step == out[i]:
            misses += 1
    return head, tail


@njit(nogil=True)
def _polish(problem, theta):
    """Newton's method for a root of ``h(theta) = total``.

    A step is to the root of the linear piece of h around theta, in closed form and so free of
    the rounding of theta: where it ends, on the piece of the root, does not depend on the start.
    """
    left, right = -math.inf, math.inf
    for _ in range(NEWTON_STEPS):
        head, tail, slope, slope_tail = -problem.total, 0.0, 0.0, 0.0
        for i in range(problem.point.size):
            p, a, low, high = entry(problem, i)
            free = p - theta * a
            inside = (low < free) & (free < high)
            product, error = times(a, p if inside else clip(free, low, high))
            head, tail = add(head, tail, product)
            tail += error
            slope, slope_tail = add(slope, slope_tail, a * a if inside else 0.0)
        moved = (head + tail) / (slope + slope_tail) if slope > 0.0 else theta
        if not left < moved < right or moved == theta:
            break
        left, right = (theta, right) if moved > theta else (left, theta)
        theta = moved
    return theta


@njit(nogil=True)
def refined_point(problem, theta):
    """The point u(theta) with ``normal'u = total`` to the last digits.

    Newton steps on theta remove what is more than rounding, and a last one below the digits of
    theta moves the entries themselves. What the entries' own rounding then leaves is put on a few
    of them, each moved by no more than that rounding, and only if it is not enough by more.

    Parameters
    ----------
    problem : Knapsack
    theta : near a root

    Returns
    -------
    u : (n,)
    theta : the multiplier after the Newton steps
    residual : total - normal'u
    size : sum of |normal u|
    near : whether the steps ended at a root: all that was left is rounding
    valid : whether all inputs are numbers with low <= high, and point and normal finite
    """
    theta = _polish(problem, theta)
    out = np.empty_like(problem.point)
    head, tail, curvature, capacity, size, valid = _place(problem, theta, out)
    near = abs(head + tail) <= max(capacity, EPS * size)
    if curvature > 0.0 and EPS * size < abs(head + tail) <= capacity:
        head, tail = _shift(problem, head, tail, curvature, out)
    for _ in range(2):  # the second time for the rounding of the first
        head, tail = _absorb(problem, theta, ENTRY_ROUNDING, head, tail, out)
    if 0.0 < abs(problem.total) < EPS * size:  # lost between numbers that have gone since
        head, tail, size = _measure(problem, out)
        head, tail = _absorb(problem, theta, ENTRY_ROUNDING, head, tail, out)
    if abs(head + tail) > 0.5 * EPS * size:
        head, tail = _absorb(problem, theta, math.inf, head, tail, out)
    return out, theta, head + tail, size, near, valid


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


@njit(nogil=True)
def _excess(problem, active, count, piece, theta):
    """``h(theta) - total``.

    Zero if it is below the rounding of the total: a plateau of h at the total (so many entries at
    their caps) would otherwise be missed by its last digit, and its end sought to the last digit.
    """
    head, tail = piece.constant, piece.constant_tail
    for k in range(count):
        p, a, low, high = entry(problem, active[k] if active.size else k)
        head, tail = add(head, tail, a * clip(p - theta * a, low, high))
    product, error = times(theta, piece.slope)
    head, tail = add(head, tail, -product)
    head, tail = add(head, tail, -problem.total)
    excess = head + (tail - error - theta * piece.slope_tail)
    return 0.0 if abs(excess) <= EPS * abs(problem.total) else excess


@njit(nogil=True)
def _side_with_root(piece, theta, excess):
    """The part of the interval on the side of theta that holds a root (some part, for a NaN)."""
    left = theta if excess >= 0.0 else piece.left
    right = piece.right if excess > 0.0 else theta
    return Piece(left, right, piece.constant, piece.constant_tail, piece.slope, piece.slope_tail)


@njit(nogil=True)
def _narrow(problem, active, count, kept, piece):
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
            head, tail = add(head, tail, a * at_first)
        elif (at_first == first) & (at_last == last):
            head, tail = add(head, tail, a * p)
            slope, slope_tail = add(slope, slope_tail, a * a)
        else:
            kept[kept_count] = i
            kept_count += 1
    return kept_count, Piece(left, right, head, tail, slope, slope_tail)


@njit(nogil=True)
def _breakpoint(problem, i, piece):
    """A breakpoint of entry i strictly inside the interval, or NaN."""
    p, a, low, high = entry(problem, i)
    for bound in (high, low):
        theta = (p - bound) / a
        if piece.left < theta < piece.right:
            return theta
    return math.nan


@njit(nogil=True)
def _midpoint(left, right):
    """The midpoint; with an infinite end, further out each time, so that some end is found."""
    if math.isfinite(left) and math.isfinite(right):
        return 0.5 * left + 0.5 * right
    if math.isfinite(left):
        return left + max(abs(left), 1.0)
    return right - max(abs(right), 1.0) if math.isfinite(right) else 0.0


@njit(nogil=True)
def _draw(problem, active, count, piece, state):
    """A breakpoint of a random active entry; the middle where four of them have none inside.

    The state is that of a 64-bit congruential generator, of which the high digits are good.
    """
    for _ in range(4):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        picked = (np.int64(state >> np.uint64(33)) * count) >> 31
        theta = _breakpoint(problem, active[picked], piece)
        if not math.isnan(theta):
            return theta, state
    return _midpoint(piece.left, piece.right), state


@njit(nogil=True)
def _search(problem, active, count, piece):
    """Narrow an interval until no active entry has a breakpoint inside (Kiwiel, 2008).

    Each round tries a breakpoint strictly inside, or the midpoint, and so the interval shrinks
    until it is free of breakpoints or its ends are neighbours. ``active`` is overwritten.

    Returns
    -------
    piece, rounds
    """
    state = np.uint64(88172645463325252)
    rounds = 0
    while count > 0:
        theta, state = _draw(problem, active, count, piece, state)
        if not piece.left < theta < piece.right:
            break
        piece = _side_with_root(piece, theta, _excess(problem, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, active, count, active, piece)
    return piece, rounds


@njit(nogil=True)
def _root(piece, total):
    """The root on an interval without breakpoints, (19); on a plateau, an end."""
    if piece.left < piece.right and piece.slope > 0.0:
        head, tail = add(piece.constant, piece.constant_tail, -total)
        return min(max((head + tail) / piece.slope, piece.left), piece.right)
    if math.isfinite(piece.left):
        return piece.left
    return piece.right if math.isfinite(piece.right) else 0.0


@njit(nogil=True)
def pivot(problem):
    """The multiplier by a search over breakpoints in random order (Kiwiel, 2008).

    Returns
    -------
    theta, rounds
    """
    active = np.empty(problem.point.size, np.int64)
    piece = Piece(-math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)
    count, piece = _narrow(problem, np.empty(0, np.int64), active.size, active, piece)
    piece, rounds = _search(problem, active, count, piece)
    return _root(piece, problem.total), rounds
