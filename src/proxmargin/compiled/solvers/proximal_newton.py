"""Proximal Newton steps on a few columns of the data, many of them in one compiled call.

The columns have unit weighted mean square, so that single precision suffices for the quadratic
model of the loss: gradients, scores and steps are in double, and the Newton steps are inexact
anyway. The Hessian of the model is ``Z'DZ - h h'/total + lift`` with the curvature of the loss in
D, and the intercept eliminated by ``h = Z'D1``. Coordinate descent updates ``D^(1/2) Z (v - w)``;
of the Hessian only the block of the support is formed.
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.entropy import log_excess
from proxmargin.compiled.losses.margins import settle
from proxmargin.compiled.products.columns import (
    active,
    add,
    column_square,
    dot,
    forward,
    gram_of,
    height,
    pull,
)
from proxmargin.compiled.solvers.newton import curvature_weights, exact_step

__all__ = ["newton_steps", "pricing", "quadratic_minimum"]

# forcing terms: residual of the quadratic model over the violation of optimality
FORCING = 0.3
TIGHT_FORCING = 0.01  # where the active set has settled and Newton's method is quadratic
NEAR_SOLUTION = 0.01  # violation, of the l1 strength, below which the tight one is used
# regularisation of the Hessian's diagonal, relative to the curvature that a coordinate can have
MIN_DAMPING = 1e-6  # always: some ulp of the single precision of the model
DAMPING = 1e-3  # at the start; it falls with the violation
FLAT_CURVATURE = 1e-4  # a coordinate with less has hardly a sample in the curved zone
FLAT_SHIFT = 1e-3  # what such a coordinate gets in addition
# homotopy in the weight theta of the majoriser
SMALLEST_THETA = 1e-3  # below it the weight is zero
THETA_DECREASE = 0.3  # factor after a good step
# solution of the model: cycles of sweeps over the columns, then a Newton step on the support
FULL_SWEEP_EVERY = 5  # sweeps, of which the others visit the support only
MIN_SUPPORT_SWEEPS = 4  # in a cycle, growing with the support: then a factor is worth its work
MAX_SUPPORT_SWEEPS = 30  # in a cycle
MAX_SWEEPS = 400  # in all cycles
MAX_CYCLES = 40
SINGLE_PRECISION_REDUCTION = 0.5  # of the model's violation, that rounding in float32 allows
# convergence, by the largest violation of the optimality conditions
PATIENCE_STEPS = 25  # without a smaller violation: it has reached rounding
ROUNDING_VIOLATION = 1e-9  # of the l1 strength, at which one such step is enough
# exact line search
LINE_SEARCH_TOLERANCE = 0.3  # of the first slope
LINE_SEARCH_STEPS = 60  # at most: more bisections than a step has bits


@njit(cache=True, nogil=True)
def pricing(  # type: ignore[no-untyped-def]
    phi, scores, signs, weights, slope, coef, curvature, l1, l2, out
):
    """Violations of optimality, written into ``out``; the objective, and the duality gap.

    Features at zero whose gradient is below the threshold have a negative violation.

    Parameters
    ----------
    scores : (n_samples,)
        With the best intercept.
    slope : (n_features,)
        Gradient of the loss in the coefficients.
    coef, out : (n_features,)
    curvature : (n_features,)
        A bound on that of the loss, where coefficients are not zero.

    Returns
    -------
    worst : float
        Largest violation.
    objective, gap : float
        Without the penalty of the intercept.
    """
    worst, largest = 0.0, 0.0
    for j in range(coef.size):
        largest = max(largest, abs(slope[j]))
        off = _violation(slope[j] + l2 * coef[j], coef[j], curvature[j] + l2, l1)
        out[j] = off
        worst = max(worst, off)
    scale = 1.0 if l2 > 0.0 or largest <= l1 else l1 / largest
    objective, gap = 0.0, 0.0
    if scale < 1.0:
        near_scale = scale * log_excess(1.0 / scale - 1.0) if scale > 0.0 else 1.0
        for i in range(scores.size):
            value, lost = phi.value_and_shrunk_gap(signs[i] * scores[i], scale, near_scale)
            objective += weights[i] * value
            gap += weights[i] * lost
    else:
        for i in range(scores.size):
            objective += weights[i] * phi.value(signs[i] * scores[i])
    for j in range(coef.size):
        v, w = -scale * slope[j], coef[j]
        objective += l1 * abs(w) + 0.5 * l2 * w * w
        excess = v - min(max(v, -l1), l1)
        term = l1 * abs(w) - (v - excess) * w
        if l2 > 0.0:
            term += (l2 * w - excess) ** 2 / (2.0 * l2)
        gap += max(term, 0.0)
    return worst, objective, gap


@njit(cache=True, nogil=True)
def newton_steps(  # type: ignore[no-untyped-def]
    columns,
    unit,
    phi,
    signs,
    weights,
    l1,
    l2,
    has_intercept,
    intercept_l2,
    coef,
    scores,
    intercept,
    theta,
    target,
    limit,
    side,
):
    """At most ``limit`` steps; ``coef`` and ``scores`` are changed in place.

    Parameters
    ----------
    columns : matrix in Fortran order, or Compressed
        (n_samples, k), of unit weighted mean square.
    unit : (k,)
        Scales by which the columns of the data were divided.
    l1, l2 : float
        Of the penalty in the units of the data.
    coef : (k,)
        Of the columns as they are here.
    scores : (n_samples,), intercept included
    theta : float
        Weight of the majoriser where the loss has no curvature.
    target : float
        Violation of the optimality conditions, in the units of the data, at which to stop.
    side : int
        Columns of the largest support of which a matrix is formed; the coordinates of larger ones
        are swept only.

    Returns
    -------
    intercept, theta, steps, violation
    """
    n, k = scores.size, coef.size
    dual, bend, moved = np.empty(n), np.empty(n), np.empty(n)
    slope, cross = np.empty(k), np.empty(k)
    thresholds, ridge = l1 / unit, l2 / unit**2
    capped = phi.zone() < np.inf
    largest = phi.smoothness
    least, idle, steps = np.inf, 0, 0
    while True:
        intercept += settle(
            phi, scores, signs, weights, has_intercept, intercept_l2, intercept, dual
        )
        pull(columns, dual, slope)
        violation = 0.0
        for j in range(k):
            slope[j] += ridge[j] * coef[j]
            off = _violation(slope[j], coef[j], largest + ridge[j], thresholds[j])
            violation = max(violation, unit[j] * off)
        idle = 0 if violation < least else idle + 1
        least = min(least, violation)
        if idle > 0 and violation <= ROUNDING_VIOLATION * l1:
            idle = PATIENCE_STEPS
        if violation <= target or idle >= PATIENCE_STEPS or steps >= limit:
            return intercept, theta, steps, violation
        far = min(1.0, violation / l1) if l1 > 0.0 else 1.0
        used = _share_used(theta, far) if capped else 0.0
        curvature_weights(phi, scores, signs, weights, used, bend)
        total = bend.sum() + intercept_l2 if has_intercept else 0.0
        aim = (FORCING if far > NEAR_SOLUTION else TIGHT_FORCING) * violation
        pull(columns, bend, cross)
        direction = _model_minimum(
            columns,
            bend,
            cross,
            total,
            largest,
            far,
            slope,
            coef,
            thresholds,
            ridge,
            unit,
            aim,
            side,
        )
        direction -= coef
        shift = -np.dot(cross, direction) / total if total > 0.0 else 0.0
        forward(columns, direction, moved)
        moved += shift
        step = exact_step(
            phi,
            scores,
            moved,
            signs,
            weights,
            coef / unit,
            direction / unit,
            l1,
            l2,
            intercept_l2 * intercept * shift,
            intercept_l2 * shift * shift,
            LINE_SEARCH_TOLERANCE,
            LINE_SEARCH_STEPS,
        )
        for j in range(k):
            coef[j] += step * direction[j]
            if abs(coef[j]) <= 1e-9 * step * abs(direction[j]):
                coef[j] = 0.0
        intercept += step * shift
        scores += step * moved
        steps += 1
        if capped:
            theta = _next_theta(theta, used, step)
        if step == 0.0 and (not capped or used == _share_used(theta, far)):
            idle = PATIENCE_STEPS  # the next step would be the same


@njit(cache=True, nogil=True)
def _share_used(theta, far):  # type: ignore[no-untyped-def]
    """The weight of the majoriser in this step, at most the relative violation."""
    share = min(theta, far)
    return share if share >= SMALLEST_THETA else 0.0


@njit(cache=True, nogil=True)
def _next_theta(before, used, step):  # type: ignore[no-untyped-def]
    """The next weight of the majoriser: less after a good step, more after a short one."""
    if before == 0.0 and step >= 0.1:
        return 0.0
    if step >= 0.5:
        return THETA_DECREASE * used
    return used if step >= 0.1 else min(1.0, 3.0 * max(used, 3.0 * SMALLEST_THETA))


@njit(cache=True, nogil=True)
def _lifted(square, largest, far, ridge):  # type: ignore[no-untyped-def]
    """The shift of the model's diagonal: damping, ridge, and more for flat coordinates."""
    lift = ridge + largest * (MIN_DAMPING + DAMPING * far)
    for j in range(square.size):
        if square[j] < FLAT_CURVATURE * largest:
            lift[j] += FLAT_SHIFT * largest
    return lift


@njit(cache=True, nogil=True)
def _shrunk(reach, threshold):  # type: ignore[no-untyped-def]
    if reach > threshold:
        return reach - threshold
    return reach + threshold if reach < -threshold else 0.0


@njit(cache=True, nogil=True)
def _violation(slope, coef, curvature, threshold):  # type: ignore[no-untyped-def]
    """The violation of optimality of a coordinate: the length of its prox step times curvature.

    The distance of the slope from the subdifferential would not do close to zero: a coefficient
    that has just crossed it is up to twice the threshold off, however little there is to gain.
    """
    if coef == 0.0:
        return abs(slope) - threshold
    if curvature == 0.0:
        return abs(slope + math.copysign(threshold, coef))
    return abs(curvature * coef - _shrunk(curvature * coef - slope, threshold))


@njit(cache=True, nogil=True)
def _model_minimum(  # type: ignore[no-untyped-def]
    columns, bend, cross, total, largest, far, slope, coef, thresholds, ridge, unit, target, side
):
    """The minimum of model and penalty by coordinate descent on the change of the scores."""
    rows = active(columns, np.sqrt(bend))
    k, n_rows = coef.size, height(rows)
    square = np.empty(k)
    for j in range(k):
        square[j] = np.float64(column_square(rows, j))
        if total > 0.0:
            square[j] = max(square[j] - cross[j] * cross[j] / total, 0.0)
    lift = _lifted(square, largest, far, ridge)
    square += lift
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
                q[j] = slope[j] + dot(rows, j, rho) + lift[j] * (old - coef[j])
                if total > 0.0:
                    q[j] -= cross[j] * drift / total
                new = _shrunk(square[j] * old - q[j], thresholds[j]) / square[j]
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
                    lift,
                    square,
                    slope,
                    coef,
                    thresholds,
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
        support = np.flatnonzero(value)
        if support.size == 0 or support.size > side:
            continue
        before = value.copy()
        for j in support:  # type: ignore[assignment]
            q[j] = slope[j] + dot(rows, j, rho) + lift[j] * (value[j] - coef[j])
            if total > 0.0:
                q[j] -= cross[j] * drift / total
        inner = gram_of(rows, support)
        for a in range(support.size):
            if total > 0.0:
                for b in range(support.size):
                    inner[a, b] -= cross[support[a]] * cross[support[b]] / total
            inner[a, a] += lift[support[a]]
        if _step_on_support(inner, q, support, value, thresholds):
            for j in support:  # type: ignore[assignment]
                change = value[j] - before[j]
                if change != 0.0:
                    add(rows, j, change, rho)
                    drift += cross[j] * change
    return value


@njit(cache=True, nogil=True)
def _model_violation(  # type: ignore[no-untyped-def]
    rows, rho, drift, cross, total, lift, square, slope, coef, thresholds, unit, value
):
    """The largest violation of optimality in the model at ``value``, in the units of the data."""
    worst = 0.0
    for j in range(value.size):
        q = slope[j] + dot(rows, j, rho) + lift[j] * (value[j] - coef[j])
        if total > 0.0:
            q -= cross[j] * drift / total
        worst = max(worst, unit[j] * _violation(q, value[j], square[j], thresholds[j]))
    return worst


@njit(cache=True, nogil=True)
def quadratic_minimum(hessian, slope, start, l1, target):  # type: ignore[no-untyped-def]
    """``argmin_v  slope'(v - start) + (v - start)' hessian (v - start) / 2 + l1 |v|_1``.

    By coordinate descent and steps on the support, until no violation is above ``target``.
    """
    k = start.size
    thresholds = np.full(k, l1)
    value, q = start.copy(), slope.copy()
    for _ in range(MAX_CYCLES):
        for _ in range(MAX_SUPPORT_SWEEPS):
            worst = 0.0
            for j in range(k):
                old = value[j]
                if old == 0.0 and abs(q[j]) <= l1:
                    continue
                new = _shrunk(hessian[j, j] * old - q[j], l1) / hessian[j, j]
                change = new - old
                if change != 0.0:
                    worst = max(worst, abs(change) * hessian[j, j])
                    value[j] = new
                    q += change * hessian[j]
            if worst <= target:
                left = 0.0
                for j in range(k):
                    left = max(left, _violation(q[j], value[j], hessian[j, j], l1))
                if left <= target:
                    return value
                break  # small changes of single coordinates may add up: a Newton step on all
        support = np.flatnonzero(value)
        if support.size == 0:
            continue
        inner = np.empty((support.size, support.size))
        for a in range(support.size):
            inner[a] = hessian[support[a]][support]
        before = value.copy()
        if _step_on_support(inner, q, support, value, thresholds):
            q += np.dot(hessian, value - before)
    return value


@njit(cache=True, nogil=True)
def _step_on_support(inner, q, support, value, thresholds):  # type: ignore[no-untyped-def]
    """Newton's step of the model on the support, to the minimum along it; whether it moved.

    Along the step the model is quadratic between the points where a coordinate changes its sign,
    and its slope jumps up there by twice the threshold times the speed of that coordinate.
    """
    size = support.size
    right = np.empty(size)
    for a in range(size):
        j = support[a]
        right[a] = -(q[j] + math.copysign(thresholds[j], value[j]))
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
        a = int(np.argmin(crossings))  # few are asked for, and a sort compiles for seconds
        at = crossings[a]
        before = first * (1.0 - at) + slope_jump
        if at == np.inf or before >= 0.0:
            break
        jump = 2.0 * thresholds[support[a]] * abs(direction[a])
        if before + jump >= 0.0:
            step, stopper = at, a
            break
        slope_jump += jump
        crossings[a] = np.inf
    if stopper < 0:
        step = 1.0 + slope_jump / first
    for a in range(size):
        value[support[a]] += step * direction[a]
    if stopper >= 0:
        value[support[stopper]] = 0.0
    return True


@njit(cache=True, nogil=True)
def _solved(factor, right):  # type: ignore[no-untyped-def]
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
