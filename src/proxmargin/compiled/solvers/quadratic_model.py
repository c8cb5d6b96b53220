"""The minimum of a quadratic model plus an elastic net: sweeps, and Newton steps on the support.

Coordinate descent finds the signs, Newton steps on the support the values. With the Hessian of few
features formed, both are in Gram form (`quadratic_minimum`); otherwise sweeps are over the columns,
and only the Hessian of the support is formed (`model_minimum`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products import columns as column_operations
from proxmargin.compiled.products import vectors
from proxmargin.compiled.products.columns import active, column_square, gram_of, height
from proxmargin.compiled.rounding import DIAGONAL_SHIFT
from proxmargin.compiled.solvers.nets import minimiser, step_to_bound, violation

MAX_CYCLES = 80  # each of sweeps and a Newton step
# in Gram form
FIRST_SWEEPS = 3  # sweeps after the first Newton step of a call
SWEEPS = 8  # sweeps after each later one
UNCHANGED = 0.1  # share of the target below which a coordinate is left where it is
PIVOT = 1e-13  # pivot of the factor, relative to the diagonal entry, that is rounding
# over columns: regularisation of the diagonal, relative to the curvature a coordinate can have
MIN_DAMPING = 1e-6  # minimum: some ulps of the model's single precision
DAMPING = 1e-3  # initial value, which falls with the violation; and what is added where it is flat
FLAT_CURVATURE = 1e-4  # below it a coordinate has hardly a sample in the curved zone
# over columns: cycles of sweeps, then a Newton step on the support
FULL_SWEEP_EVERY = 5  # the other sweeps visit the support only
MIN_SUPPORT_SWEEPS = 4  # in a cycle, growing with the support: then a factor is worth its work
MAX_SUPPORT_SWEEPS = 30  # in a cycle
MAX_SWEEPS = 400  # in all cycles
SINGLE_PRECISION_REDUCTION = 0.5  # reduction of the model's violation that float32 rounding allows


class Quadratic(NamedTuple):
    """Arrays for models of up to m features in Gram form."""

    hessian: Any  # (m, m)
    factor: Any  # (m, m); lower Cholesky factor of the support's Hessian, in the order ``order``
    order: Any  # (m,) integers
    placed: Any  # (m,) bool
    direction: Any  # (m,)


def room_for(hessian: Any) -> Quadratic:
    """The arrays around this Hessian."""
    m = len(hessian)
    order, placed = np.zeros(m, np.int64), np.zeros(m, np.bool_)
    return Quadratic(hessian, np.empty((m, m)), order, placed, np.zeros(m))


@njit(nogil=True, allocates=False, error_model="numpy")
def quadratic_minimum(quadratic, lift, slope, value, net, target, kept):
    """Minimise ``slope'd + d'(H + diag(lift)) d / 2`` plus the l1 norm, between bounds.

    The Cholesky factor of the support's Hessian is kept between calls as long as the Hessian is the
    same: rows of features that stay in the support remain, others are appended.

    Parameters
    ----------
    quadratic : Quadratic
    lift : (k,)
    slope, value : (k,)
        The gradient and the point at which it is taken; overwritten with those at the minimum.
    net : Net
        Penalty of the k features; its ridge is included in ``lift``.
    target : float
        Change of a coordinate, times its curvature, at which sweeps stop.
    kept : int
        Rows of the factor that are still valid.

    Returns
    -------
    int
        ``kept`` for the next call, if Hessian and lift do not change.
    """
    hessian, order, direction = quadratic.hessian, quadratic.order, quadratic.direction
    k = value.size
    for cycle in range(MAX_CYCLES):
        if cycle > 0:
            sweeps = SWEEPS if cycle > 1 else FIRST_SWEEPS
            if _sweep(hessian, lift, slope, value, net, target, sweeps):
                return kept
        kept = max(_factor(quadratic, lift, value, net, kept), 0)
        if _step_on_support(quadratic.factor, order, kept, slope, value, net, direction):
            for a in range(kept):
                j = order[a]
                vectors.add(direction[a], hessian[j, :k], slope)
                slope[j] += lift[j] * direction[a]
    return kept


@njit(nogil=True, allocates=False, error_model="numpy")
def _sweep(hessian, lift, slope, value, net, target, sweeps):
    """Coordinate descent until the support is stable; return whether all changes met the target."""
    k, unchanged = value.size, UNCHANGED * target
    for _ in range(sweeps):
        worst, moved = 0.0, False
        for j in range(k):
            old = value[j]
            if old == 0.0 and abs(slope[j]) <= net.l1[j]:
                continue
            if old != 0.0 and abs(slope[j] + math.copysign(net.l1[j], old)) <= unchanged:
                continue
            curvature = hessian[j, j] + lift[j]
            if curvature <= 0.0:
                continue
            reach = curvature * old - slope[j]
            new = minimiser(reach, curvature, net.l1[j], net.lower[j], net.upper[j])
            change = new - old
            if change != 0.0:
                worst = max(worst, abs(change) * curvature)
                moved = moved or old == 0.0 or new == 0.0
                value[j] = new
                vectors.add(change, hessian[j, :k], slope)
                slope[j] += lift[j] * change
        if worst <= target:
            return True
        if not moved:
            return False
    return False


@njit(nogil=True, allocates=False, error_model="numpy")
def _is_inside(value, net, j):
    """Whether a coordinate is away from zero and from its bounds."""
    return value[j] != 0.0 and net.lower[j] < value[j] < net.upper[j]


@njit(nogil=True, allocates=False, error_model="numpy")
def _factor(quadratic, lift, value, net, kept):
    """Factor the Hessian of the support; return its size, not positive if it is singular."""
    hessian, factor = quadratic.hessian, quadratic.factor
    order, placed = quadratic.order, quadratic.placed
    first = 0
    while first < kept and _is_inside(value, net, order[first]):
        first += 1
    placed[: value.size] = False
    size = 0
    for a in range(kept):
        j = order[a]
        if a < first or _is_inside(value, net, j):
            order[size] = j
            placed[j] = True
            size += 1
    former = size
    for j in range(value.size):
        if not placed[j] and _is_inside(value, net, j):
            order[size] = j
            size += 1
    if former == 0:
        _sort(order, size, value)
    # by columns: the rows of a column do not wait for each other
    for b in range(size):
        j, column = order[b], factor[b, :b]
        if b >= first:
            diagonal = hessian[j, j] + lift[j]
            pivot = diagonal * (1.0 + DIAGONAL_SHIFT) - vectors.dot(column, column)
            if not pivot > PIVOT * diagonal:
                return -1
            factor[b, b] = math.sqrt(pivot)
        for a in range(max(b + 1, first), size):
            below = hessian[j, order[a]] - vectors.dot(factor[a, :b], column)
            factor[a, b] = below / factor[b, b]
    return size


@njit(nogil=True, allocates=False, error_model="numpy")
def _sort(order, size, value):
    """Sort by falling absolute value: small entries leave first, and only later rows are lost."""
    for a in range(1, size):
        j, b = order[a], a
        while b > 0 and abs(value[order[b - 1]]) < abs(value[j]):
            order[b] = order[b - 1]
            b -= 1
        order[b] = j


@njit(nogil=True, allocates=False, error_model="numpy")
def solve(factor, size, right):
    """Solve with a lower Cholesky factor and its transpose, in place."""
    for a in range(size):
        right[a] = (right[a] - vectors.dot(factor[a, :a], right[:a])) / factor[a, a]
    for a in range(size - 1, -1, -1):
        right[a] /= factor[a, a]
        vectors.add(-right[a], factor[a, :a], right[:a])


@njit(nogil=True, allocates=False, error_model="numpy")
def _step_on_support(factor, support, size, slope, value, net, direction):
    """Newton's step on the support, to the minimum along it or to the first bound.

    The changes of the values are written into ``direction``; False where the step does not descend.
    """
    for a in range(size):
        j = support[a]
        direction[a] = -(slope[j] + math.copysign(net.l1[j], value[j]))
    solve(factor, size, direction)
    first = 0.0
    for a in range(size):
        j = support[a]
        first += (slope[j] + math.copysign(net.l1[j], value[j])) * direction[a]
    if not first < 0.0:
        return False
    step, stopper = _minimum_along(support, direction, size, first, value, net)
    step, blocking, bound = step_to_bound(net, value, support, direction, size, step)
    for a in range(size):
        j = support[a]
        end = value[j] + step * direction[a]
        if a == blocking:
            end = bound
        elif a == stopper and blocking < 0:
            end = 0.0
        direction[a] = end - value[j]
        value[j] = end
    return True


@njit(nogil=True, allocates=False, error_model="numpy")
def _minimum_along(support, direction, size, first, value, net):
    """The minimiser along the direction, and the coordinate that is zero there, or -1.

    The model is quadratic between the points where a coordinate changes its sign, and its slope
    jumps up there by twice the l1 strength times the speed of that coordinate.
    """
    jumps, last = 0.0, 0.0
    while True:
        at, arg = np.inf, -1
        for a in range(size):
            start = value[support[a]]
            if start * direction[a] < 0.0:
                crossing = -start / direction[a]
                if last < crossing < at:
                    at, arg = crossing, a
        if arg < 0 or first * (1.0 - at) + jumps >= 0.0:
            return 1.0 + jumps / first, -1
        jump = 2.0 * net.l1[support[arg]] * abs(direction[arg])
        if first * (1.0 - at) + jumps + jump >= 0.0:
            return at, arg
        jumps += jump
        last = at


@njit(nogil=True)
def model_minimum(
    columns, curvatures, cross, total, largest, far, slope, coef, net, unit, target, side
):
    """The minimum of model and penalty by coordinate descent on the change of the scores.

    Columns have unit weighted mean square, so that single precision suffices for the sweeps.
    """
    rows = active(columns, np.sqrt(curvatures))
    k, n_rows = coef.size, height(rows)
    square = np.empty(k)
    for j in range(k):
        square[j] = np.float64(column_square(rows, j))
        if total > 0.0:
            square[j] = max(square[j] - cross[j] * cross[j] / total, 0.0)
    diagonal = _added_diagonal(square, largest, far, net.l2)
    square += diagonal
    model = _ColumnModel(rows, cross, total, diagonal, slope, coef)
    value, q, moved, moved_sum = coef.copy(), slope.copy(), np.zeros(n_rows, np.float32), 0.0
    sweeps, last = 0, np.inf
    for _ in range(MAX_CYCLES):
        whole, since, size = True, 0, np.count_nonzero(value)
        enough = min(
            MAX_SUPPORT_SWEEPS,
            max(MIN_SUPPORT_SWEEPS, int(size / 48 * (1 + size / (3 * max(n_rows, 1))))),
        )
        while since <= enough or whole:
            worst = 0.0
            for j in range(k):
                old = value[j]
                if old == 0.0 and not whole:
                    continue
                q[j] = _slope_of(model, j, moved, moved_sum, value)
                reach = square[j] * old - q[j]
                new = minimiser(reach, square[j], net.l1[j], net.lower[j], net.upper[j])
                change = new - old
                if change != 0.0:
                    worst = max(worst, unit[j] * abs(change) * square[j])
                    column_operations.add(rows, j, change, moved)
                    moved_sum += cross[j] * change
                    value[j] = new
            since += 1
            if whole and worst <= target:
                left = 0.0
                for j in range(k):
                    here = _slope_of(model, j, moved, moved_sum, value)
                    off = violation(
                        here, value[j], square[j], net.l1[j], net.lower[j], net.upper[j]
                    )
                    left = max(left, unit[j] * off)
                if left <= target or left > SINGLE_PRECISION_REDUCTION * last:
                    return value
                last = left
                break  # small changes of single coordinates may add up: a Newton step on all
            whole = not whole and (worst <= target or since % FULL_SWEEP_EVERY == 0)
        sweeps += since
        if sweeps >= MAX_SWEEPS:
            break
        support = np.flatnonzero((value != 0.0) & (value > net.lower) & (value < net.upper))
        if support.size == 0 or support.size > side:
            continue
        for a in range(support.size):
            q[support[a]] = _slope_of(model, support[a], moved, moved_sum, value)
        inner, changes = gram_of(rows, support), np.empty(support.size)
        for a in range(support.size):
            if total > 0.0:
                for b in range(support.size):
                    inner[a, b] -= cross[support[a]] * cross[support[b]] / total
            inner[a, a] += diagonal[support[a]]
        if _newton_on_support(inner, support, q, value, net, changes):
            for a in range(support.size):
                if changes[a] != 0.0:
                    column_operations.add(rows, support[a], changes[a], moved)
                    moved_sum += cross[support[a]] * changes[a]
    return value


class _ColumnModel(NamedTuple):
    """Columns times the roots of the curvatures, their sums by curvature, the curvature of the
    intercept, the diagonal, and the gradient at ``coef``."""

    rows: Any
    cross: Any
    total: Any
    diagonal: Any
    slope: Any
    coef: Any


@njit(nogil=True)
def _newton_on_support(inner, support, slope, value, net, changes):
    """`_step_on_support` by the Hessian of the support; False too where that is singular."""
    try:
        factor = np.linalg.cholesky(inner)
    except Exception:
        return False
    return _step_on_support(factor, support, support.size, slope, value, net, changes)


@njit(nogil=True, allocates=False)
def _slope_of(model, j, moved, moved_sum, value):
    """The slope of the model in a coordinate; ``moved`` is the change of the scores times the roots
    of the curvatures, ``moved_sum`` its sum by curvature."""
    q = model.slope[j] + column_operations.dot(model.rows, j, moved)
    q += model.diagonal[j] * (value[j] - model.coef[j])
    return q - model.cross[j] * moved_sum / model.total if model.total > 0.0 else q


@njit(nogil=True)
def _added_diagonal(square, largest, far, ridge):
    """The shift of the model's diagonal: damping, ridge, and more for flat coordinates."""
    diagonal = ridge + largest * (MIN_DAMPING + DAMPING * far)
    for j in range(square.size):
        if square[j] < FLAT_CURVATURE * largest:
            diagonal[j] += DAMPING * largest
    return diagonal
