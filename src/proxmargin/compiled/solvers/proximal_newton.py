"""Proximal Newton steps on a few columns of the data, many of them in one compiled call.

The columns have unit weighted mean square, so that single precision suffices for the quadratic
model of the loss: gradients, scores and steps are in double, and the Newton steps are inexact
anyway. The Hessian of the model is ``Z'DZ - h h'/total + diagonal`` with the curvature of the loss
in D, and the intercept eliminated by ``h = Z'D1``. Coordinate descent updates
``D^(1/2) Z (v - w)``; of the Hessian only the block of the support is formed.
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
from proxmargin.compiled.solvers.nets import Net, gap_term, is_unshrunk, minimiser, violation
from proxmargin.compiled.solvers.newton import curvature_weights, exact_step

__all__ = ["landed", "newton_steps", "pricing", "quadratic_minimum"]

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
LANDED = 1e-9  # of its move: as near as that to zero or a bound, a coefficient is there
# exact line search
LINE_SEARCH_TOLERANCE = 0.3  # of the first slope
LINE_SEARCH_STEPS = 60  # at most: more bisections than a step has bits


@njit(cache=True, nogil=True)
def pricing(  # type: ignore[no-untyped-def]
    phi, scores, signs, weights, slope, coef, curvature, net, settles, out
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
    net : Net
    settles : bool
        Certificates find the best coefficients of features that nothing shrinks: what is missing
        is a parabola's. Otherwise the gap is finite only where their slopes are exactly zero.

    Returns
    -------
    worst : float
        Largest violation.
    objective, gap : float
        Without the penalty of the intercept.
    """
    worst, scale = 0.0, 1.0
    for j in range(coef.size):
        l1, l2, low, high = net.l1[j], net.l2[j], net.lower[j], net.upper[j]
        off = violation(slope[j] + l2 * coef[j], coef[j], curvature[j] + l2, l1, low, high)
        out[j] = off
        worst = max(worst, off)
        counts = l2 == 0.0 and not (settles and is_unshrunk(l1, l2, low, high))
        if counts and abs(slope[j]) > l1 and abs(high if slope[j] < 0.0 else low) == math.inf:
            scale = min(scale, l1 / abs(slope[j]))
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
        v, w, l1, l2 = -scale * slope[j], coef[j], net.l1[j], net.l2[j]
        objective += l1 * abs(w) + 0.5 * l2 * w * w
        if settles and is_unshrunk(l1, l2, net.lower[j], net.upper[j]):
            missing = max(out[j], 0.0)
            gap += 0.5 * missing**2 / curvature[j] if curvature[j] > 0.0 else missing
        else:
            gap += gap_term(v, w, l1, l2, net.lower[j], net.upper[j])
    return worst, objective, gap


@njit(cache=True, nogil=True)
def newton_steps(  # type: ignore[no-untyped-def]
    columns,
    unit,
    phi,
    signs,
    weights,
    net,
    level,
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
    net : Net
        Of the k features, in the units of the data.
    level : float
        What violations are small in comparison to: a typical l1 strength, or zero.
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
    dual, curvatures, moved = np.empty(n), np.empty(n), np.empty(n)
    slope, cross = np.empty(k), np.empty(k)
    own = Net(net.l1 / unit, net.l2 / unit**2, net.lower * unit, net.upper * unit)
    capped = phi.zone() < np.inf
    largest = phi.smoothness
    least, idle, steps = np.inf, 0, 0
    while True:
        intercept += settle(
            phi, scores, signs, weights, has_intercept, intercept_l2, intercept, dual
        )
        pull(columns, dual, slope)
        worst = 0.0
        for j in range(k):
            slope[j] += own.l2[j] * coef[j]
            bound = largest + own.l2[j]
            off = violation(slope[j], coef[j], bound, own.l1[j], own.lower[j], own.upper[j])
            worst = max(worst, unit[j] * off)
        idle = 0 if worst < least else idle + 1
        least = min(least, worst)
        if idle > 0 and worst <= ROUNDING_VIOLATION * level:
            idle = PATIENCE_STEPS
        if worst <= target or idle >= PATIENCE_STEPS or steps >= limit:
            return intercept, theta, steps, worst
        far = min(1.0, worst / level) if level > 0.0 else 1.0
        used = _share_used(theta, far) if capped else 0.0
        curvature_weights(phi, scores, signs, weights, used, curvatures)
        total = curvatures.sum() + intercept_l2 if has_intercept else 0.0
        aim = (FORCING if far > NEAR_SOLUTION else TIGHT_FORCING) * worst
        pull(columns, curvatures, cross)
        direction = _model_minimum(
            columns, curvatures, cross, total, largest, far, slope, coef, own, unit, aim, side
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
            net.l1,
            net.l2,
            intercept_l2 * intercept * shift,
            intercept_l2 * shift * shift,
            LINE_SEARCH_TOLERANCE,
            LINE_SEARCH_STEPS,
        )
        step, coef[:] = landed(coef, direction, step, own)
        intercept += step * shift
        scores += step * moved
        steps += 1
        if capped:
            theta = _next_theta(theta, used, step)
        if step == 0.0 and (not capped or used == _share_used(theta, far)):
            idle = PATIENCE_STEPS  # the next step would be the same


@njit(cache=True, nogil=True)
def landed(coef, direction, step, net):  # type: ignore[no-untyped-def]
    """The step, or as much of it as the bounds allow, and where it ends.

    A coefficient that only rounding keeps from zero, or from a bound, is put there.
    """
    step = min(step, _room(coef, direction, net))
    ends = coef + step * direction
    for j in range(coef.size):
        near = LANDED * abs(step * direction[j])
        if abs(ends[j]) <= near:
            ends[j] = 0.0
        elif ends[j] >= net.upper[j] - near:
            ends[j] = net.upper[j]
        elif ends[j] <= net.lower[j] + near:
            ends[j] = net.lower[j]
    return step, ends


@njit(cache=True, nogil=True)
def _room(coef, direction, net):  # type: ignore[no-untyped-def]
    """How often the direction can be taken between the bounds."""
    room = math.inf
    for j in range(coef.size):
        bound = net.upper[j] if direction[j] > 0.0 else net.lower[j]
        if direction[j] != 0.0 and abs(bound) < math.inf:
            room = min(room, (bound - coef[j]) / direction[j])
    return max(room, 0.0)


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
def _added_diagonal(square, largest, far, ridge):  # type: ignore[no-untyped-def]
    """The shift of the model's diagonal: damping, ridge, and more for flat coordinates."""
    diagonal = ridge + largest * (MIN_DAMPING + DAMPING * far)
    for j in range(square.size):
        if square[j] < FLAT_CURVATURE * largest:
            diagonal[j] += FLAT_SHIFT * largest
    return diagonal


@njit(cache=True, nogil=True)
def _model_minimum(  # type: ignore[no-untyped-def]
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
def _model_violation(  # type: ignore[no-untyped-def]
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
def quadratic_minimum(hessian, slope, start, net, target):  # type: ignore[no-untyped-def]
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
def _inside(value, net):  # type: ignore[no-untyped-def]
    """The coordinates away from zero and from their bounds."""
    return np.flatnonzero((value != 0.0) & (value > net.lower) & (value < net.upper))


@njit(cache=True, nogil=True)
def _step_on_support(inner, q, support, value, net):  # type: ignore[no-untyped-def]
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
        a = int(np.argmin(crossings))  # few are asked for, and a sort compiles for seconds
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
    walled = -1
    for a in range(size):
        j = support[a]
        bound = net.upper[j] if direction[a] > 0.0 else net.lower[j]
        if abs(bound) < math.inf and abs(step * direction[a]) > abs(bound - value[j]):
            step, walled = (bound - value[j]) / direction[a], a
    for a in range(size):
        value[support[a]] += step * direction[a]
    if walled >= 0:
        j = support[walled]
        value[j] = net.upper[j] if direction[walled] > 0.0 else net.lower[j]
    elif stopper >= 0:
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
