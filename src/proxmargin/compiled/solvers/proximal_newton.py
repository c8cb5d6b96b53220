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
from proxmargin.compiled.losses.exponentials import log_excess
from proxmargin.compiled.losses.margins import optimal_intercept_and_gradient
from proxmargin.compiled.products.columns import forward, pull
from proxmargin.compiled.solvers.nets import Net, gap_term, is_unpenalised, largest_step, violation
from proxmargin.compiled.solvers.newton import (
    NEAR_SOLUTION,
    PATIENCE_STEPS,
    ROUNDING_VIOLATION,
    SEARCH_TOLERANCE,
    TIGHT_FORCING,
    ZERO_COEFFICIENT,
    curvature_weights,
    exact_step,
    next_weight,
    used_weight,
)
from proxmargin.compiled.solvers.quadratic_model import model_minimum

FORCING = 0.3  # residual of the quadratic model over the violation of optimality


@njit(nogil=True)
def violations_and_gap(
    phi, scores, signs, weights, slope, coef, curvature, net, has_unpenalised, out
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
    has_unpenalised : bool
        Certificates optimise the unpenalised coefficients: their missing decrease is estimated by
        a parabola. Otherwise the gap is finite only where their slopes are exactly zero.

    Returns
    -------
    worst : float
        Largest violation.
    objective, gap : float
        Without the penalty of the intercept.
    """
    # of many features it is arbitrary which exceed their threshold: no branch depends on that
    worst, scale = 0.0, 1.0
    for j in range(coef.size):
        l1, l2, low, high = net.l1[j], net.l2[j], net.lower[j], net.upper[j]
        if coef[j] == 0.0:
            off = violation(slope[j], 0.0, 0.0, l1, low, high)
        else:
            off = violation(slope[j] + l2 * coef[j], coef[j], curvature[j] + l2, l1, low, high)
        out[j] = off
        worst = max(worst, off)
        beyond = l2 == 0.0 and scale * abs(slope[j]) > l1  # seldom, as the scale falls
        counts = beyond and not (has_unpenalised and is_unpenalised(l1, l2, low, high))
        if counts and abs(high if slope[j] < 0.0 else low) == math.inf:
            scale = l1 / abs(slope[j])
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
        if w == 0.0 and l2 > 0.0:
            excess = v - min(max(v, -l1), l1)
            if l2 * net.lower[j] <= excess <= l2 * net.upper[j]:
                gap += excess**2 / (2.0 * l2)
                continue
        elif w == 0.0 and abs(v) <= l1:  # adds nothing
            continue
        objective += l1 * abs(w) + 0.5 * l2 * w * w
        if has_unpenalised and is_unpenalised(l1, l2, net.lower[j], net.upper[j]):
            missing = max(out[j], 0.0)
            gap += 0.5 * missing**2 / curvature[j] if curvature[j] > 0.0 else missing
        else:
            gap += gap_term(v, w, l1, l2, net.lower[j], net.upper[j])
    return worst, objective, gap


@njit(nogil=True)
def newton_steps(
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
    weight,
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
        Scale of violations: a typical l1 strength, or zero.
    coef : (k,)
        Of the columns as they are here.
    scores : (n_samples,), intercept included
    weight : float
        Of the majoriser where the loss has no curvature.
    target : float
        Violation of the optimality conditions, in the units of the data, at which to stop.
    side : int
        Columns of the largest support of which a matrix is formed; the coordinates of larger ones
        are swept only.

    Returns
    -------
    intercept, weight, steps, violation
    """
    n, k = scores.size, coef.size
    dual, curvatures, moved = np.empty(n), np.empty(n), np.empty(n)
    slope, cross = np.empty(k), np.empty(k)
    own = Net(net.l1 / unit, net.l2 / unit**2, net.lower * unit, net.upper * unit)
    capped = phi.zone() < np.inf
    largest = phi.smoothness
    least, idle, steps = np.inf, 0, 0
    while True:
        intercept += optimal_intercept_and_gradient(
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
            return intercept, weight, steps, worst
        far = min(1.0, worst / level) if level > 0.0 else 1.0
        used = used_weight(weight, far) if capped else 0.0
        curvature_weights(phi, scores, signs, weights, used, curvatures)
        total = curvatures.sum() + intercept_l2 if has_intercept else 0.0
        aim = (FORCING if far > NEAR_SOLUTION else TIGHT_FORCING) * worst
        pull(columns, curvatures, cross)
        direction = model_minimum(
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
            SEARCH_TOLERANCE,
        )
        step, ended = end_of_step(coef, direction, step, own)
        for j in range(coef.size):
            coef[j] = ended[j]
        intercept += step * shift
        scores += step * moved
        steps += 1
        if capped:
            weight = next_weight(used, step)
        if step == 0.0 and (not capped or used == used_weight(weight, far)):
            idle = PATIENCE_STEPS  # the next step would be the same


@njit(nogil=True)
def end_of_step(coef, direction, step, net):
    """The step length, cut at the bounds, and the coefficients at its end.

    A coefficient that only rounding keeps from zero, or from a bound, is put there.
    """
    step = min(step, largest_step(net, coef, direction, coef.size))
    ends = coef + step * direction
    for j in range(coef.size):
        near = ZERO_COEFFICIENT * abs(step * direction[j])
        if abs(ends[j]) <= near:
            ends[j] = 0.0
        elif ends[j] >= net.upper[j] - near:
            ends[j] = net.upper[j]
        elif ends[j] <= net.lower[j] + near:
            ends[j] = net.lower[j]
    return step, ends
