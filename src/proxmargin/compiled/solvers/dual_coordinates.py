"""Dual coordinate descent on the rows of dense or compressed data, with shrinking.

With w given by ``l2 w = sum_i y_i a_i z_i`` for the features ``z = (x - centre) / scale``, the dual
points a minimise

    ``l2/2 |w|^2 + sum_i term_i(a_i) - targets'a + multiplier r + stiffness r^2 / 2``,  ``r = y'a``,

over ``0 <= a <= upper`` one by one. A term is ``curvatures_i a^2 / 2``, or for the logistic loss
``upper_i`` times the negative entropy of ``(s, 1 - s)``, ``s = a / upper_i`` (Yu, Huang and Lin
2011). Rows are read as they are stored. With ``metric = 1 / (l2 scale^2)`` the weighted sum
``v = metric * sum_i y_i a_i x_i`` is kept up to date, and the score of a sample is

    ``z_i'w = x_i'v - r pull_i - moment + r square``,

where ``pull_i = x_i'(metric centre)``, ``moment = centre'v = sum_i y_i a_i pull_i`` and
``square = centre'(metric centre)``: centred sparse rows stay sparse.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import SUMS, intrinsic, njit
from proxmargin.compiled.losses.evaluation import logistic_descent
from proxmargin.compiled.rounding import NEGLIGIBLE, NORM_ROUNDING, SUM_ROUNDING

# dual points with entropies
NEAREST = 1e-14  # distance of a dual point to an end of its interval, over its length, at least
STEPS = 20  # of Newton's method or bisection for one dual point, at most
PRECISION = 1e-3  # ratio of its slope to the first one at which it is solved
SKIPPED = 0.05  # share of the gap to be reached that may be left in dual points that do not move
# rows
AHEAD = 4  # samples between one that is asked for and the one in work
LINE = 8  # entries of eight bytes in a cache line


class StoredRows(NamedTuple):
    """The rows of a matrix, and what centres and scales them."""

    # of a compressed matrix; of a dense one, all entries, no indices, and where its rows start
    data: Any
    indices: Any
    indptr: Any
    metric: Any  # (n_features,), or (1,) where all features have the same
    pull: Any  # (n_samples,)
    square: float


class DualTerms(NamedTuple):
    """The separable part of the objective, sample by sample."""

    # (n_samples,); the target is the margin that a sample should have
    signs: Any
    upper: Any
    curvatures: Any
    targets: Any
    entropic: bool  # terms are entropies; their ``curvatures`` are zero


class Descent(NamedTuple):
    """What a sweep starts from, besides dual points and v."""

    n_active: int
    # ``y'a`` and ``centre'v``
    residual: float
    moment: float
    # smallest and largest projected slope of the last sweep, for shrinking; infinite: unknown
    least: float
    most: float
    multiplier: float
    value: float


@njit(nogil=True, allocates=False)
def descend(
    rows,
    terms,
    diagonal,
    dual,
    coef,
    active,
    at,
    stiffness,
    free,
    enough,
    share,
    limit,
    budget,
    seed,
):
    """Sweeps over the active samples in random order until gap or violations are small.

    As in LIBLINEAR (Hsieh et al. 2008, section 3.2), a dual point at an end of its box leaves the
    active set if its slope points out of the box by more than the largest violation of the sweep
    before; none with an entropy does.

    The Fenchel-Young terms of loss and dual point, which add up to the duality gap, cost nothing
    where the slope is known. Those of one sweep, each at the coefficients on which its sample was
    visited, overestimate the gap after it.

    Parameters
    ----------
    rows : StoredRows
    terms : DualTerms
    diagonal : (n_samples,)
        The curvature along each dual point.
    dual : (n_samples,)
    coef : (n_features,)
        v. Dual points and v are changed in place.
    active : (n_live,) int
        The samples; the first ``n_active`` of them are active. Reordered in place.
    at : Descent
    stiffness : float
    free : bool
        The constraint ``r = 0`` has the multiplier, which moves after each sweep as in an augmented
        Lagrangian.
    enough : float
        Difference of the largest and the smallest projected slope at which to stop.
    share : float
        Sum of the Fenchel-Young terms over the objective at which to stop.
    limit, budget : int
        Sweeps, and rows that are read, at which to stop (the last sweep is completed).
    seed : uint64
        State of the random numbers, not zero.

    Returns
    -------
    n_active, residual, moment, least, most, multiplier, value, excess, sweeps, visited, seed
        ``excess`` is the sum of the terms in the last sweep, and what ``r`` costs. With entropies
        ``value`` is returned as it is.
    """
    n_active, residual, moment, least, most, multiplier, value = at
    sweeps = visited = 0
    excess, unbalanced = np.inf, 0.0
    low, high = -np.inf, np.inf
    while sweeps < limit and visited < budget:
        low, high, excess = np.inf, -np.inf, 0.0
        skipped = 0.0 if free else SKIPPED * share * max(value, 0.0) / max(n_active, 1)
        seed = _shuffled(active, n_active, seed)
        k = 0
        while k < n_active:
            if k + AHEAD < n_active:
                _ask_for(rows, active[k + AHEAD], dual)
            i = active[k]
            visited += 1
            sign, old, upper = terms.signs[i], dual[i], terms.upper[i]
            shift = multiplier - moment + residual * (stiffness + rows.square - rows.pull[i])
            margin = sign * (_product(rows, i, coef) + shift) - terms.targets[i]
            if terms.entropic:
                new, violation, term = _entropic_step(margin, old, upper, diagonal[i], skipped)
            else:
                slope = margin + terms.curvatures[i] * old
                if (slope > most and old <= 0.0) or (slope < least and old >= upper):
                    n_active -= 1
                    active[k] = active[n_active]
                    active[n_active] = i
                    continue
                new, violation, term = _boxed_step(
                    slope, old, upper, terms.curvatures[i], diagonal[i]
                )
                value -= (new - old) * (slope + 0.5 * diagonal[i] * (new - old))
            excess += term
            low, high = min(low, violation), max(high, violation)
            if new != old:
                dual[i] = new
                change = sign * (new - old)
                residual += change
                moment += change * rows.pull[i]
                _add(rows, i, change, coef)
            k += 1
        sweeps += 1
        if n_active == 0:
            low, high = 0.0, 0.0
        least = low if low < 0.0 else -np.inf
        most = high if high > 0.0 else np.inf
        unbalanced = 0.0
        if free:
            multiplier += stiffness * residual
            if terms.entropic:
                # as entropies are smooth, dual points that are moved to r = 0 cost ``multiplier r``
                # up to the square of r
                unbalanced = (stiffness * abs(residual) + abs(multiplier)) * abs(residual)
            else:
                value -= stiffness * residual * residual
                unbalanced = abs(residual) * (1.0 + abs(multiplier))
        precise = high - low <= enough and not free
        if n_active == 0 or precise or excess + unbalanced <= share * (value + excess):
            break
    excess += unbalanced
    return n_active, residual, moment, low, high, multiplier, value, excess, sweeps, visited, seed


@njit(nogil=True, allocates=False)
def _boxed_step(slope, old, upper, curvature, diagonal):
    """The minimiser along a dual point in a box, the projected slope, the Fenchel-Young term."""
    missing = curvature * old - slope
    if curvature > 0.0:
        best = min(max(missing / curvature, 0.0), upper)
    else:
        best = upper if missing > 0.0 else 0.0
    term = (best - old) * (missing - 0.5 * curvature * (best + old))
    violation = slope
    if not old > 0.0:
        violation = min(slope, 0.0)
    elif not old < upper:
        violation = max(slope, 0.0)
    new = old
    if abs(violation) > SUM_ROUNDING:
        new = min(max(old - slope / max(diagonal, NEGLIGIBLE), 0.0), upper)
    return new, violation, term


@njit(nogil=True, allocates=False, error_model="numpy")
def _entropic_step(margin, old, upper, diagonal, skipped):
    """The minimiser along a dual point with an entropy, the slope, and the Fenchel-Young term.

    The term of a sample is the relative entropy of its share s and the logistic function p of its
    margin; half of ``(s - p) (logit s - logit p)``, which it is close to where s is close to p,
    stands for it. Where that is at most ``skipped`` the dual point does not move.

    The minimiser has ``c (s - old) + slope - logit + log(s / (1 - s)) = 0``, c the curvature. By
    Newton's method in ``u = log(s / (1 - s))``: the derivative in u is at least 1, and at most
    ``1 + c / 4``. So the root is within ``|slope|`` of the first u, and Newton's method needs the
    bracket only where the curvature is large.
    """
    first = old / upper
    logit = math.log(first / (1.0 - first))
    slope = logit + margin
    term = 0.5 * upper * (first - logistic_descent(margin)) * slope
    if term <= skipped:
        return old, slope, term
    curvature, share, u, now = upper * diagonal, first, logit, slope
    low, high = min(u, u - slope), max(u, u - slope)
    for _ in range(STEPS):
        step = u - now / (1.0 + curvature * share * (1.0 - share))
        u = step if low < step < high else 0.5 * (low + high)
        share = logistic_descent(-u)
        now = curvature * (share - first) + (u - logit) + slope
        if abs(now) <= PRECISION * abs(slope):
            break
        if now > 0.0:
            high = u
        else:
            low = u
    return upper * min(max(share, NEAREST), 1.0 - NEAREST), slope, term


@njit(nogil=True, allocates=False)
def _shuffled(active, n_active, seed):
    """The first entries of ``active`` in random order, in place, by xorshift64 (Marsaglia 2003)."""
    for k in range(n_active):
        seed ^= seed << np.uint64(13)
        seed ^= seed >> np.uint64(7)
        seed ^= seed << np.uint64(17)
        other = k + np.int64((seed >> np.uint64(11)) % np.uint64(n_active - k))
        i = active[other]
        active[other] = active[k]
        active[k] = i
    return seed


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Load the cache line that holds the entry ``index`` of an array with one axis.

    Nothing waits for it, and an index out of bounds does no harm.
    """
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, number = signature.args
        start = context.make_array(kind)(context, builder, arguments[0]).data
        at = context.cast(builder, arguments[1], number, types.intp)
        line = builder.bitcast(builder.gep(start, [at]), cgutils.voidptr_t)
        flag = ir.IntType(32)
        described = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        # to read, into all caches, data
        called = cgutils.get_or_insert_function(builder.module, described, "llvm.prefetch.p0i8")
        builder.call(called, [line, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.none(array, index), codegen


@njit(nogil=True, allocates=False)
def _ask_for(rows, i, dual):
    """Ask for the row of a sample and its dual point, ahead of their use.

    Rows in random order wait for memory otherwise: short ones longer than the work on them takes.
    """
    prefetch(dual, i)
    for entry in range(rows.indptr[i], rows.indptr[i + 1], LINE):
        prefetch(rows.data, entry)
        if rows.indices.size > 0:
            prefetch(rows.indices, entry)


@njit(nogil=True, allocates=False, fastmath=SUMS)
def _product(rows, i, coef):
    """The product of one row with ``coef``."""
    total, data, indices = 0.0, rows.data, rows.indices
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    if indices.size == 0:
        for j in range(stop - start):
            total += data[start + j] * coef[j]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            total += data[entry] * coef[np.uint64(indices[entry])]
    return total


@njit(nogil=True, allocates=False, fastmath={"contract"})
def _add(rows, i, factor, coef):
    """``coef += factor metric * row``."""
    data, indices, metric = rows.data, rows.indices, rows.metric
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    if metric.size == 1:
        factor *= metric[0]
    if indices.size == 0:
        if metric.size == 1:
            for j in range(stop - start):
                coef[j] += factor * data[start + j]
        else:
            for j in range(stop - start):
                coef[j] += factor * metric[j] * data[start + j]
    elif metric.size == 1:
        for entry in range(np.uint64(start), np.uint64(stop)):
            coef[np.uint64(indices[entry])] += factor * data[entry]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            feature = np.uint64(indices[entry])
            coef[feature] += factor * metric[feature] * data[entry]


@njit(nogil=True, allocates=False)
def products(rows, index, coef, out):
    """``out_k = x_i'coef`` for the samples i = ``index_k``."""
    for k in range(index.size):
        out[k] = _product(rows, index[k], coef)


@njit(nogil=True, allocates=False)
def summed(rows, index, signed, out):
    """``out += metric * sum_k signed_k x_i`` for the samples i = ``index_k``."""
    for k in range(index.size):
        if signed[k] != 0.0:
            _add(rows, index[k], signed[k], out)


@njit(nogil=True, allocates=False, fastmath=SUMS)
def squares(rows, out):
    """``out_i = z_i'z_i / l2``, the curvature of ``l2/2 |w|^2`` along each dual point."""
    metric = rows.metric
    for i in range(out.size):
        total, start = 0.0, rows.indptr[i]
        for entry in range(start, rows.indptr[i + 1]):
            value = np.float64(rows.data[entry])
            feature = entry - start if rows.indices.size == 0 else np.int64(rows.indices[entry])
            total += metric[0 if metric.size == 1 else feature] * value * value
        square = total - 2.0 * rows.pull[i] + rows.square  # of a centred sample, which may cancel
        out[i] = max(square, NORM_ROUNDING * (total + rows.square))
