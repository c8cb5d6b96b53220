"""The minimum of a quadratic model plus an elastic net: sweeps, and Newton steps on the support.

Columns have unit weighted mean square, so that single precision suffices for the sweeps.
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.columns import active, add, column_square, dot, gram_of, height
from proxmargin.compiled.solvers.nets import minimiser, step_to_bound, violation

__all__ = ["model_minimum", "quadratic_minimum"]

# regularisation of the Hessian's diagonal, relative to the curvature that a coordinate can have
MIN_DAMPING = 1e-6  # minimum: some ulps of the model's single precision
DAMPING = 1e-3  # initial value; it falls with the violation
FLAT_CURVATURE = 1e-4  # below it a coordinate has hardly a sample in the curved zone
FLAT_SHIFT = 1e-3  # additional shift of such a coordinate
# solution of the model: cycles of sweeps over the columns, then a Newton step on the support
FULL_SWEEP_EVERY = 5  # the other sweeps visit the support only
MIN_SUPPORT_SWEEPS = 4  # in a cycle, growing with the support: then a factor is worth its work
MAX_SUPPORT_SWEEPS = 30  # in a cycle
MAX_SWEEPS = 400  # in all cycles
MAX_CYCLES = 40
SINGLE_PRECISION_REDUCTION = 0.5  # reduction of the model's violation that float32 rounding allows


@njit(cache=True, nogil=True)
def _added_diagonal(square, largest, far, ridge):
    """The shift of the model's diagonal: damping, ridge, and more for flat coordinates."""
    diagonal = ridge + largest * (MIN_DAMPING + DAMPING * far)
    for j in range(square.size):
        if square[j] < FLAT_CURVATURE * largest:
            diagonal[j] += FLAT_SHIFT * largest
    return diagonal


@njit(cache=True, nogil=True)
def model_minimum(
    columns, curvatures, cross, total, largest, far, slope, coef, net, unit, target, side
):
    """The minimum of model and penalty by coordinate descent on the change of the scores."""
    rows = active(columns, np.sqrt(curvatures))
    k, n_rows = coef.size, height(rows)
    square = np.empty(k)
    for j in range(k):
        square[j] = np.float64(column_square(rows, j))
        if total > 0.0:
            square[j] = max(square[j] - cross[j] * cross[j] / total, 0.0)
    diagonal = _added_diagonal(square, largest, far, net.l2)
    square += diagonal
    value, q, rho, drift = coef.copy(), slope.copy(), np.zeros(n_rows, np.float32), 0.0
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
                q[j] = slope[j] + dot(rows, j, rho) + diagonal[j] * (old - coef[j])
                if total > 0.0:
                    q[j] -= cross[j] * drift / total
                reach = square[j] * old - q[j]
                new = minimiser(reach, square[j], net.l1[j], net.lower[j], net.upper[j])
                change = new - old
                if change != 0.0:
                    worst = max(worst, unit[j] * abs(change) * square[j])
                    add(rows, j, change, rho)
                    drift += cross[j] * change
                    value[j] = new
            since += 1
            if whole and worst <= target:
                left = _model_violation(
                    rows,
                    rho,
                    drift,
                    cross,
                    total,
                    diagonal,
                    square,
                    slope,
                    coef,
                    net,
                    unit,
                    value,
                )
                if left <= target or left > SINGLE_PRECISION_REDUCTION * last:
                    return value
                last = left
                break  # small changes of single coordinates may add up: a Newton step on all
            whole = not whole and (worst <= target or since % FULL_SWEEP_EVERY == 0)
        sweeps += since
        if sweeps >= MAX_SWEEPS:
            break
        support = _inside(value, net)
        if support.size == 0 or support.size > side:
            continue
        before = value.copy()
        for j in support:
            q[j] = slope[j] + dot(rows, j, rho) + diagonal[j] * (value[j] - coef[j])
            if total > 0.0:
                q[j] -= cross[j] * drift / total
        inner = gram_of(rows, support)
        for a in range(support.size):
            if total > 0.0:
                for b in range(support.size):
                    inner[a, b] -= cross[support[a]] * cross[support[b]] / total
            inner[a, a] += diagonal[support[a]]
        if _step_on_support(inner, q, support, value, net):
            for j in support:
                change = value[j] - before[j]
                if change != 0.0:
                    add(rows, j, change, rho)
                    drift += cross[j] * change
    return value


@njit(cache=True, nogil=True)
def _model_violation(
    rows, rho, drift, cross, total, diagonal, square, slope, coef, net, unit, value
):
    """The largest violation of optimality in the model at ``value``, in the units of the data."""
    worst = 0.0
    for j in range(value.size):
        q = slope[j] + dot(rows, j, rho) + diagonal[j] * (value[j] - coef[j])
        if total > 0.0:
            q -= cross[j] * drift / total
        off = violation(q, value[j], square[j], net.l1[j], net.lower[j], net.upper[j])
        worst = max(worst, unit[j] * off)
    return worst


@njit(cache=True, nogil=True)
def quadratic_minimum(hessian, slope, start, net, target):
    """``argmin_v  slope'(v - start) + (v - start)' hessian (v - start) / 2 + sum_j l1_j |v_j|``.

    Between the bounds; the ridge is part of the Hessian. By coordinate descent and steps on the
    support, until no violation is above ``target``.
    """
    k = start.size
    value, q = start.copy(), slope.copy()
    for _ in range(MAX_CYCLES):
        for _ in range(MAX_SUPPORT_SWEEPS):
            worst = 0.0
            for j in range(k):
                old = value[j]
                if old == 0.0 and abs(q[j]) <= net.l1[j]:
                    continue
                reach = hessian[j, j] * old - q[j]
                new = minimiser(reach, hessian[j, j], net.l1[j], net.lower[j], net.upper[j])
                change = new - old
                if change != 0.0:
                    worst = max(worst, abs(change) * hessian[j, j])
                    value[j] = new
                    q += change * hessian[j]
            if worst <= target:
                left = 0.0
                for j in range(k):
                    off = violation(
                        q[j], value[j], hessian[j, j], net.l1[j], net.lower[j], net.upper[j]
                    )
                    left = max(left, off)
                if left <= target:
                    return value
                break  # small changes of single coordinates may add up: a Newton step on all
        support = _inside(value, net)
        if support.size == 0:
            continue
        inner = np.empty((support.size, support.size))
        for a in range(support.size):
            inner[a] = hessian[support[a]][support]
        before = value.copy()
        if _step_on_support(inner, q, support, value, net):
            q += np.dot(hessian, value - before)
    return value


@njit(cache=True, nogil=True)
def _inside(value, net):
    """The coordinates away from zero and from their bounds."""
    return np.flatnonzero((value != 0.0) & (value > net.lower) & (value < net.upper))


@njit(cache=True, nogil=True)
def _step_on_support(inner, q, support, value, net):
    """Newton's step of the model on the support, to the minimum along it; whether it moved.

    A step that meets a bound ends there.

    Along the step the model is quadratic between the points where a coordinate changes its sign,
    and its slope jumps up there by twice the threshold times the speed of that coordinate.
    """
    size = support.size
    right = np.empty(size)
    for a in range(size):
        j = support[a]
        right[a] = -(q[j] + math.copysign(net.l1[j], value[j]))
    try:
        factor = np.linalg.cholesky(inner)
    except Exception:
        return False
    direction = _solved(factor, right)
    first = 0.0
    crossings = np.full(size, np.inf)
    for a in range(size):
        first -= right[a] * direction[a]
        at = value[support[a]]
        if at * direction[a] < 0.0:
            crossings[a] = -at / direction[a]
    if not first < 0.0:
        return False
    # the slope at t is first (1 - t) and the jumps so far
    slope_jump, step, stopper = 0.0, 1.0, -1
    for _ in range(size):
        a = int(np.argmin(crossings))  # few are needed, and a sort compiles for seconds
        at = crossings[a]
        before = first * (1.0 - at) + slope_jump
        if at == np.inf or before >= 0.0:
            break
        jump = 2.0 * net.l1[support[a]] * abs(direction[a])
        if before + jump >= 0.0:
            step, stopper = at, a
            break
        slope_jump += jump
        crossings[a] = np.inf
    if stopper < 0:
        step = 1.0 + slope_jump / first
    step, blocking, bound = step_to_bound(net, value, support, direction, size, step)
    for a in range(size):
        value[support[a]] += step * direction[a]
    if blocking >= 0:
        value[support[blocking]] = bound
    elif stopper >= 0:
        value[support[stopper]] = 0.0
    return True


@njit(cache=True, nogil=True)
def _solved(factor, right):
    """Solve with a lower Cholesky factor and its transpose."""
    x = right.copy()
    for a in range(x.size):
        for b in range(a):
            x[a] -= factor[a, b] * x[b]
        x[a] /= factor[a, a]
    for a in range(x.size - 1, -1, -1):
        x[a] /= factor[a, a]
        for b in range(a):
            x[b] -= factor[a, b] * x[a]
    return x
