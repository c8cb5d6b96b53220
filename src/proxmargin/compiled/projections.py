"""Searches for the multiplier of a projection, and the pass that writes the nearest point.

The nearest point of a box cut by a hyperplane is ``u_i(theta) = clip(point_i - theta normal_i,
low_i, high_i)`` for a root theta of the piecewise linear, non-increasing

    h(theta) = sum_i normal_i u_i(theta) = total

(Lemma 2 of Ito, Takeda and Toh (2017), here with any normal and bounds of each entry). A search
keeps an interval that holds a root as a `Piece`, drops the entries without a breakpoint inside it,
and ends in closed form when none is left. Sums of h are compensated: a wrong side near the root
would otherwise be possible where the entries differ by many orders of magnitude.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "Knapsack",
    "bisection",
    "lp_unit",
    "pivot",
    "refined_bisection",
    "settle",
]

EPS = float(np.finfo(np.float64).eps)
SLACK = 2.0 * EPS  # rounding of point - theta normal, over |point| + |theta normal|, with room
TINY = float(np.finfo(np.float64).tiny)
REPAIRS = 8  # Newton steps on the exact residual; more than one is needed only by chance
SWEEPS = 2  # the second takes what the first lost where an entry became much smaller
MISSES = 1000  # entries in a row that are too coarse to take what is left of a residual
SAMPLED_FROM = 3000  # with fewer entries a sample costs more than the pivots that it spares
SAMPLINGS = 6
WIDTH = 3.0  # standard errors of the sample on either side of its root
SPLIT = 134217729.0  # 2^27 + 1 halves the digits of a double (Veltkamp)


class Knapsack(NamedTuple):
    """A projection onto a box and a hyperplane; arrays of one entry hold for all entries."""

    point: NDArray[np.float64]
    normal: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    total: float


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
def _entry(problem, i):  # type: ignore[no-untyped-def]
    """Point, normal, low and high of entry i; a product is quicker here than a choice."""
    return (
        problem.point[i],
        problem.normal[i * (problem.normal.size > 1)],
        problem.low[i * (problem.low.size > 1)],
        problem.high[i * (problem.high.size > 1)],
    )


@njit(cache=True, nogil=True)
def _clip(value, low, high):  # type: ignore[no-untyped-def]
    """The nearest value of [low, high]; a NaN stays one, which min and max do not promise."""
    value = low if value < low else value
    return high if value > high else value


@njit(cache=True, nogil=True)
def _add(head, tail, term):  # type: ignore[no-untyped-def]
    """Head + tail + term, where the tail collects the rounding of the head (Knuth's two-sum)."""
    total = head + term
    seen = total - head
    return total, tail + ((head - (total - seen)) + (term - seen))


@njit(cache=True, nogil=True)
def _product(a, b):  # type: ignore[no-untyped-def]
    """The rounded product and its rounding error (Dekker); no error is told near overflow."""
    product = a * b
    if abs(a) == 1.0:
        return product, 0.0
    big = SPLIT * a
    a_head = big - (big - a)
    big = SPLIT * b
    b_head = big - (big - b)
    a_tail, b_tail = a - a_head, b - b_head
    error = ((a_head * b_head - product) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail
    return product, error if math.isfinite(error) else 0.0


@njit(cache=True, nogil=True)
def _excess(problem, weight, active, count, piece, theta):  # type: ignore[no-untyped-def]
    """``h(theta) - total``, with the active entries counted ``weight`` times.

    Zero if it is below the rounding of the total: a plateau of h at the total (so many entries at
    their caps) would otherwise be missed by its last digit, and its end sought to the last digit.
    """
    head, tail = piece.constant, piece.constant_tail
    for k in range(count):
        p, a, low, high = _entry(problem, active[k] if active.size else k)
        head, tail = _add(head, tail, weight * (a * _clip(p - theta * a, low, high)))
    product, error = _product(theta, piece.slope)
    head, tail = _add(head, tail, -product)
    head, tail = _add(head, tail, -problem.total)
    excess = head + (tail - error - theta * piece.slope_tail)
    return 0.0 if abs(excess) <= EPS * abs(problem.total) else excess


@njit(cache=True, nogil=True)
def _beside(piece, theta, excess):  # type: ignore[no-untyped-def]
    """The part of the interval on the side of theta that holds a root (some part, for a NaN)."""
    left = theta if excess >= 0.0 else piece.left
    right = piece.right if excess > 0.0 else theta
    return Piece(left, right, piece.constant, piece.constant_tail, piece.slope, piece.slope_tail)


@njit(cache=True, nogil=True)
def _narrow(problem, weight, active, count, kept, piece):  # type: ignore[no-untyped-def]
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
        p, a, low, high = _entry(problem, i)
        if a == 0.0:
            continue
        first, last = p - left * a, p - right * a
        at_first, at_last = _clip(first, low, high), _clip(last, low, high)
        if at_first == at_last:
            head, tail = _add(head, tail, weight * (a * at_first))
        elif (at_first == first) & (at_last == last):
            head, tail = _add(head, tail, weight * (a * p))
            slope, slope_tail = _add(slope, slope_tail, weight * (a * a))
        else:
            kept[kept_count] = i
            kept_count += 1
    return kept_count, Piece(left, right, head, tail, slope, slope_tail)


@njit(cache=True, nogil=True)
def _drop_fixed(problem, active, count, kept, piece):  # type: ignore[no-untyped-def]
    """Move entries at one bound on the whole interval into its sums: I of Algorithm 2.

    Returns
    -------
    count, piece, broken : as of `_narrow`; whether a kept entry has a breakpoint inside
    """
    left, right, head, tail, slope, slope_tail = piece
    kept_count, broken = 0, False
    for k in range(count):
        i = active[k] if active.size else k
        p, a, low, high = _entry(problem, i)
        if a == 0.0:
            continue
        first, last = p - left * a, p - right * a
        at_first, at_last = _clip(first, low, high), _clip(last, low, high)
        if at_first == at_last:
            head, tail = _add(head, tail, a * at_first)
        else:
            kept[kept_count] = i
            kept_count += 1
            broken |= at_first != first or at_last != last
    return kept_count, Piece(left, right, head, tail, slope, slope_tail), broken


@njit(cache=True, nogil=True)
def _next(state):  # type: ignore[no-untyped-def]
    """The next state of a 64-bit congruential generator; its high digits are the good ones."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@njit(cache=True, nogil=True)
def _below(state, count):  # type: ignore[no-untyped-def]
    """An index below count from the high digits of the state."""
    return (np.int64(state >> np.uint64(33)) * count) >> 31


@njit(cache=True, nogil=True)
def _breakpoint(problem, i, piece):  # type: ignore[no-untyped-def]
    """A breakpoint of entry i strictly inside the interval, or NaN."""
    p, a, low, high = _entry(problem, i)
    for bound in (high, low):
        theta = (p - bound) / a
        if piece.left < theta < piece.right:
            return theta
    return math.nan


@njit(cache=True, nogil=True)
def _between(left, right):  # type: ignore[no-untyped-def]
    """The midpoint; with an infinite end, further out each time, so that some end is found."""
    if math.isfinite(left) and math.isfinite(right):
        return 0.5 * left + 0.5 * right
    if math.isfinite(left):
        return left + max(abs(left), 1.0)
    return right - max(abs(right), 1.0) if math.isfinite(right) else 0.0


@njit(cache=True, nogil=True)
def _draw(problem, active, count, piece, state):  # type: ignore[no-untyped-def]
    """A breakpoint of a random active entry; the middle where four of them have none inside."""
    for _ in range(4):
        state = _next(state)
        theta = _breakpoint(problem, active[_below(state, count)], piece)
        if not math.isnan(theta):
            return theta, state
    return _between(piece.left, piece.right), state


@njit(cache=True, nogil=True)
def _search(problem, weight, active, count, piece, guess):  # type: ignore[no-untyped-def]
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
        piece = _beside(piece, theta, _excess(problem, weight, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, weight, active, count, active, piece)
        theta = math.nan
    return piece, rounds


@njit(cache=True, nogil=True)
def _root(piece, total):  # type: ignore[no-untyped-def]
    """The root on an interval without breakpoints, (19); on a plateau, an end."""
    if piece.left < piece.right and piece.slope > 0.0:
        head, tail = _add(piece.constant, piece.constant_tail, -total)
        return min(max((head + tail) / piece.slope, piece.left), piece.right)
    if math.isfinite(piece.left):
        return piece.left
    return piece.right if math.isfinite(piece.right) else 0.0


@njit(cache=True, nogil=True)
def _start(problem):  # type: ignore[no-untyped-def]
    """An interval that holds a root, for the bisections: from the first to the last breakpoint.

    Where a bound is infinite the root may lie beyond; h is then linear on that side.

    Returns
    -------
    active, count, piece
    """
    n = problem.point.size
    left, right, endless = math.inf, -math.inf, False
    for i in range(n):
        p, a, low, high = _entry(problem, i)
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
def _middle(piece, guess):  # type: ignore[no-untyped-def]
    """The guess where it is inside the interval, and the midpoint otherwise."""
    if piece.left < guess < piece.right:
        return guess
    return _between(piece.left, piece.right)


@njit(cache=True, nogil=True)
def bisection(problem, guess):  # type: ignore[no-untyped-def]
    """Algorithm 2: bisection that drops entries which stay at a bound, and ends by (19).

    The interval is closed and its tolerance is relative to its first ends; what is left inside it
    then (breakpoints that differ in their last digits) is decided by `_search`.

    Parameters
    ----------
    problem : Knapsack
    guess : where to try first; NaN for nowhere

    Returns
    -------
    theta, rounds
    """
    active, count, piece = _start(problem)
    tolerance = EPS * max(abs(piece.left), abs(piece.right))
    rounds, broken = 0, True
    while count > 0 and broken and piece.right - piece.left > tolerance:
        theta = _middle(piece, guess)
        if not piece.left < theta < piece.right:
            break
        guess = math.nan
        piece = _beside(piece, theta, _excess(problem, 1.0, active, count, piece, theta))
        rounds += 1
        count, piece, broken = _drop_fixed(problem, active, count, active, piece)
    count, piece = _narrow(problem, 1.0, active, count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds + more


@njit(cache=True, nogil=True)
def refined_bisection(problem, guess):  # type: ignore[no-untyped-def]
    """Algorithm 5: as `bisection`, and entries that stay between their bounds are dropped too."""
    active, count, piece = _start(problem)
    tolerance = EPS * max(abs(piece.left), abs(piece.right))
    count, piece = _narrow(problem, 1.0, active, count, active, piece)
    rounds = 0
    while count > 0 and piece.right - piece.left > tolerance:
        theta = _middle(piece, guess)
        if not piece.left < theta < piece.right:
            break
        guess = math.nan
        piece = _beside(piece, theta, _excess(problem, 1.0, active, count, piece, theta))
        rounds += 1
        count, piece = _narrow(problem, 1.0, active, count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds + more


@njit(cache=True, nogil=True)
def _error(problem, weight, sample, theta):  # type: ignore[no-untyped-def]
    """Standard error of the sampled h at theta."""
    mean, squares = 0.0, 0.0
    for k in range(sample.size):
        p, a, low, high = _entry(problem, sample[k])
        term = a * _clip(p - theta * a, low, high)
        step = term - mean
        mean += step / (k + 1)
        squares += step * (term - mean)
    return weight * math.sqrt(squares)


@njit(cache=True, nogil=True)
def _likely(problem, active, count, piece):  # type: ignore[no-untyped-def]
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
def pivot(problem, guess):  # type: ignore[no-untyped-def]
    """Breakpoint search: large sets are cut by a sample first, and random pivots finish.

    A sample of n^(2/3) entries tells an interval that holds a root but few breakpoints, as in the
    selection of Floyd and Rivest; one pass over all entries confirms it and leaves the few. If
    the root is outside, the side is known and the other entries are dropped.

    Parameters
    ----------
    problem : Knapsack
    guess : the first pivot, once few entries are left; NaN for none

    Returns
    -------
    theta, rounds
    """
    active, count, rounds = np.empty(0, np.int64), problem.point.size, 0
    piece = Piece(-math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)
    while count >= SAMPLED_FROM and rounds < SAMPLINGS:
        rounds += 1
        kept = np.empty(count, np.int64)
        left, right = _likely(problem, active, count, piece)
        likely = Piece(
            left, right, piece.constant, piece.constant_tail, piece.slope, piece.slope_tail
        )
        kept_count, narrowed = _narrow(problem, 1.0, active, count, kept, likely)
        if left > piece.left and _excess(problem, 1.0, kept, kept_count, narrowed, left) < 0.0:
            kept_count, narrowed = _narrow(
                problem, 1.0, active, count, kept, _beside(piece, left, -1.0)
            )
        elif right < piece.right and (
            _excess(problem, 1.0, kept, kept_count, narrowed, right) > 0.0
        ):
            kept_count, narrowed = _narrow(
                problem, 1.0, active, count, kept, _beside(piece, right, 1.0)
            )
        active, count, piece = kept, kept_count, narrowed
    if rounds == 0:
        active = np.empty(count, np.int64)
        count, piece = _narrow(problem, 1.0, np.empty(0, np.int64), count, active, piece)
    piece, more = _search(problem, 1.0, active, count, piece, guess)
    return _root(piece, problem.total), rounds + more


@njit(cache=True, nogil=True)
def _place(problem, theta, out):  # type: ignore[no-untyped-def]
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
        p, a, low, high = _entry(problem, i)
        move = theta * a
        free = p - move
        u = _clip(free, low, high)
        out[i] = u
        ordered &= low <= high
        product, error = _product(a, u)
        head, tail = _add(head, tail, -product)
        tail -= error
        size += abs(product)
        slack = SLACK * (abs(p) + abs(move))
        if abs(u - free) <= slack:
            curvature += a * a
            capacity += abs(a) * slack
    # an infinite point or normal has an infinite slack, a NaN stays one in u
    return head, tail, curvature, capacity, size, ordered and math.isfinite(capacity)


@njit(cache=True, nogil=True)
def _measure(problem, out):  # type: ignore[no-untyped-def]
    """The residual head + tail and the size of a point, both as of `_place`."""
    head, tail, size = problem.total, 0.0, 0.0
    for i in range(out.size):
        product, error = _product(_entry(problem, i)[1], out[i])
        head, tail = _add(head, tail, -product)
        tail -= error
        size += abs(product)
    return head, tail, size


@njit(cache=True, nogil=True)
def _less(head, tail, a, old, new):  # type: ignore[no-untyped-def]
    """The residual head + tail after an entry of normal a has moved from old to new."""
    before, before_error = _product(a, old)
    after, after_error = _product(a, new)
    head, tail = _add(head, tail, before)
    head, tail = _add(head, tail, -after)
    return head, tail + (before_error - after_error)


@njit(cache=True, nogil=True)
def _shift(problem, head, tail, curvature, out):  # type: ignore[no-untyped-def]
    """Move all entries strictly inside their bounds by one step of theta, below its own rounding.

    Returns
    -------
    head, tail : what is left of the residual
    """
    step = (head + tail) / curvature
    for i in range(out.size):
        _, a, low, high = _entry(problem, i)
        old = out[i]
        if (low < old) & (old < high):
            u = _clip(old + step * a, low, high)
            head, tail = _less(head, tail, a, old, u)
            out[i] = u
    return head, tail


@njit(cache=True, nogil=True)
def _absorb(problem, theta, slack, head, tail, out):  # type: ignore[no-untyped-def]
    """Spread a residual over entries not held at a bound, each by ``slack`` of its size at most.

    Returns
    -------
    head, tail : what is left: nothing, less than the entries can express, or beyond their reach
    """
    goal = 0.25 * EPS * abs(problem.total)  # half a unit in the last place of the total
    misses = 0
    for i in range(out.size):
        residual = head + tail
        if abs(residual) <= goal or misses > MISSES:
            break
        p, a, low, high = _entry(problem, i)
        free = p - theta * a
        reach = slack * max(abs(p) + abs(theta * a), TINY)
        if a == 0.0 or not abs(_clip(free, low, high) - free) <= reach:
            continue
        step = min(max(residual / a, -reach), reach)
        u = _clip(out[i] + step, low, high)
        if u != out[i]:
            head, tail = _less(head, tail, a, out[i], u)
            out[i] = u
            misses = 0
        elif out[i] + step == out[i]:
            misses += 1
    return head, tail


@njit(cache=True, nogil=True)
def settle(problem, theta):  # type: ignore[no-untyped-def]
    """The point u(theta) with ``normal'u = total`` to the last digits.

    Rounding of theta and of the entries leaves a residual. Newton steps on theta remove what is
    more than rounding, and a last one below the digits of theta moves the entries themselves.
    What the entries' own rounding then leaves is put on a few of them, each moved by no more than
    that rounding, and only if it is not enough by more.

    Returns
    -------
    u : (n,)
    theta : the multiplier after the Newton steps
    residual : total - normal'u
    size : sum of |normal u|
    valid : whether all inputs are numbers with low <= high, and point and normal finite
    """
    out = np.empty_like(problem.point)
    head, tail, curvature, capacity, size, valid = _place(problem, theta, out)
    for _ in range(REPAIRS):
        if not abs(head + tail) > capacity or curvature == 0.0:
            break
        moved = theta - (head + tail) / curvature
        if moved == theta or not math.isfinite(moved):
            break
        theta = moved
        head, tail, curvature, capacity, size, valid = _place(problem, theta, out)
    if curvature > 0.0 and EPS * size < abs(head + tail) <= capacity:
        head, tail = _shift(problem, head, tail, curvature, out)
    for _ in range(SWEEPS):
        head, tail = _absorb(problem, theta, SLACK, head, tail, out)
    if 0.0 < abs(problem.total) < EPS * size:  # lost between numbers that have gone since
        head, tail, size = _measure(problem, out)
        head, tail = _absorb(problem, theta, SLACK, head, tail, out)
    if abs(head + tail) > 0.5 * EPS * size:
        head, tail = _absorb(problem, theta, math.inf, head, tail, out)
    return out, theta, head + tail, size, valid


@njit(cache=True, nogil=True)
def _two_powers(a, b, e, y):  # type: ignore[no-untyped-def]
    """The root x >= 0 of ``a x + b x^e = y``, e >= 1: Newton from above, where it is monotone."""
    x = y / a if a > 0.0 else math.inf
    if b > 0.0:
        x = min(x, (y / b) ** (1.0 / e))
    while x > 0.0:
        power = b * x ** (e - 1.0)
        step = (a * x + power * x - y) / (a + e * power)
        if not step > 2.0 * EPS * x:
            return x - step
        x -= step
    return 0.0


@njit(cache=True, nogil=True)
def lp_unit(sizes, radius, q, multiplier, out):  # type: ignore[no-untyped-def]
    """Solve ``radius z + multiplier z^q = sizes`` for each entry, z >= 0.

    These are the optimality conditions of the nearest point ``radius z`` of an lp ball, q = p - 1.

    Parameters
    ----------
    sizes : (n,) in [0, 1]
    out : (n,), gets z

    Returns
    -------
    power : sum of z^p
    slope : minus its derivative in the multiplier, over p
    """
    power, slope = 0.0, 0.0
    for i in range(sizes.size):
        if q >= 1.0:
            z = _two_powers(radius, multiplier, q, sizes[i])
        else:  # in t = z^q the exponent is 1/q > 1
            z = _two_powers(multiplier, radius, 1.0 / q, sizes[i]) ** (1.0 / q)
        out[i] = z
        if z > 0.0:
            z_q = z**q
            power += z_q * z
            slope += z_q * z_q * z / (radius * z + multiplier * q * z_q)
    return power, slope
