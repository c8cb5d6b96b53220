"""The interior point method for few samples and features: a whole minimisation in one call."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import SUMS, njit
from proxmargin.compiled.products.vectors import add, dot
from proxmargin.compiled.rounding import CONSTANT_VARIANCE, TINY
from proxmargin.compiled.solvers.decomposition import FINITE
from proxmargin.compiled.solvers.hinge_newton import cholesky
from proxmargin.compiled.solvers.quadratic_model import solve

BOUNDARY_FRACTION = 0.995  # of the longest step that keeps slacks and multipliers positive
MIN_STEP = 1e-10  # step length below which the method ends
FEASIBLE = 1e-8  # residuals over the first ones, up to which the equations hold
PROGRESS = 0.7  # ratio of products or residuals that counts as progress
PATIENCE = 4  # iterations without it, after which the method ends


@njit(nogil=True, error_model="numpy", fastmath=SUMS)
def box_minimum(design, shares, box, intercept, l2, tol, most):
    """Minimise ``l2/2 |w|^2 + ridge b^2 / 2 + pull rho + sum_i box_i(y_i (w'x_i + b) - rho)``.

    Mehrotra's predictor-corrector method, with systems over the features. ``box_i(t)`` is the
    maximum of ``a (target_i - t) - curvature_i a^2 / 2`` over ``0 <= a <= upper_i``.

    Parameters
    ----------
    design : matrix (n, p), centre (p,), scale (p,)
        The features are ``(matrix - centre) / scale``.
    shares : (n,)
    box : signs, upper, curvature, target (n,), pull
        ``upper`` is finite and positive everywhere, or infinite everywhere. No rho without pull.
    intercept : whether there is b, and its ridge
    tol : float
        Relative gap, by the complementary products.

    Returns
    -------
    coef : (p,)
    intercept : float
    dual : (n,)
        The a.
    gap : float
        Sum of the complementary products over the objective.
    steps : int
    """
    signs, upper, curvature, target, pull = box
    lines, means, length = _lines(design, shares, signs, intercept, pull != 0.0)
    q, n = lines.shape
    p = means.size
    bounded = np.isfinite(upper[0])
    # units in which the largest upper bound and the typical margin are one
    unit = upper.max() if bounded else 1.0 / curvature.max()
    length = max(length, TINY) / l2 if pull != 0.0 else 1.0
    upper, curvature = upper / unit, curvature * (unit / length)
    ridge, force = np.full(q, l2 * length / unit), np.zeros(q)
    ridge[p:] = 0.0
    if intercept[0]:
        ridge[p] = intercept[1] * length / unit
    if pull != 0.0:
        force[q - 1] = pull / unit
    x, scores, above = np.zeros(q), np.zeros(n), np.zeros(n)
    below, a, room = np.maximum(-target, 0.0) + 1.0, np.empty(n), np.ones(n)
    if bounded:
        above = np.maximum(target, 0.0) + 1.0
        a[:] = upper * (above / (below + above))
        room = upper - a
    else:
        a[:] = 1.0 / curvature
    turned, fallen, risen = np.zeros(n), np.zeros(n), np.zeros(n)  # changes of a, below, above
    theta, missing, moved, ratio = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    # one over a, below, room and above: few divisions, which are slow; the last two, of which there
    # are none without upper bounds, stay one then: zero times infinity would be no number
    over = np.ones((4, n))
    system, factor = np.empty((q, q)), np.zeros((q, q))
    residual, step = np.empty(q), np.empty(q)
    least, left, idle, steps, relative = np.inf, 1.0, 0, 0, np.inf
    while True:
        total = dot(a, below) + dot(room, above)
        value = dot(force, x)
        for j in range(q):
            value += 0.5 * ridge[j] * x[j] * x[j]
        for i in range(n):
            short = target[i] - scores[i]
            inside = 0.0
            if curvature[i] > 0.0:
                inside = min(max(short / curvature[i], 0.0), upper[i])
            elif short > 0.0 and bounded:
                inside = upper[i]
            value += inside * (short - 0.5 * curvature[i] * inside)
        relative = total / max(abs(value), TINY)
        if (relative <= tol and left <= FEASIBLE) or steps == most or idle > PATIENCE:
            break
        for line, number in enumerate((a, below, room, above)):
            if bounded or line < 2:
                over[line] = 1.0 / number
        by_a, by_below, by_room, by_above = over[0], over[1], over[2], over[3]
        for i in range(n):
            theta[i] = 1.0 / (below[i] * by_a[i] + above[i] * by_room[i] + curvature[i])
        for j in range(q):
            moved[:] = theta * lines[j]
            for k in range(j + 1):
                system[j, k] = dot(moved, lines[k])
            system[j, j] += ridge[j]
            residual[j] = ridge[j] * x[j] + force[j] - dot(lines[j], a)
        if not cholesky(system, 0.0, factor):
            break
        centre, size = 0.0, 0.0
        for is_corrector in (False, True):
            # complementary products that the step is to have
            for i in range(n):
                fallen[i] = centre - turned[i] * fallen[i] if is_corrector else 0.0
            for i in range(n):
                risen[i] = centre + turned[i] * risen[i] if is_corrector and bounded else 0.0
            for i in range(n):
                missing[i] = target[i] - scores[i] - curvature[i] * a[i]
                missing[i] += fallen[i] * by_a[i] - risen[i] * by_room[i]
            turned[:] = theta * missing
            for j in range(q):
                step[j] = dot(lines[j], turned) - residual[j]
            solve(factor, q, step)
            moved[:] = 0.0
            for j in range(q):
                add(step[j], lines[j], moved)
            for i in range(n):
                turned[i] = theta[i] * (missing[i] - moved[i])
            for i in range(n):
                fallen[i] = (fallen[i] - below[i] * turned[i]) * by_a[i] - below[i]
            for i in range(n):
                ratio[i] = min(turned[i] * by_a[i], fallen[i] * by_below[i])
            if bounded:
                for i in range(n):
                    risen[i] = (risen[i] + above[i] * turned[i]) * by_room[i] - above[i]
                for i in range(n):
                    ratio[i] = min(ratio[i], -turned[i] * by_room[i], risen[i] * by_above[i])
            fall = _least(ratio)
            # close to the solution whole steps converge quadratically
            share = max(BOUNDARY_FRACTION, 1.0 - relative)
            size = min(1.0, -share / fall) if fall < 0.0 else 1.0
            if not is_corrector:
                after = 0.0
                for i in range(n):
                    after += (a[i] + size * turned[i]) * (below[i] + size * fallen[i])
                    if bounded:
                        after += (room[i] - size * turned[i]) * (above[i] + size * risen[i])
                centre = min((after / total) ** 3, 1.0) * total / (2 * n if bounded else n)
        if not (size >= MIN_STEP and np.isfinite(step).all()):
            break
        x += size * step
        scores += size * moved
        a += size * turned
        below += size * fallen
        if bounded:
            room -= size * turned
            above += size * risen
        idle = 0 if total <= PROGRESS * least or size >= 1.0 - PROGRESS else idle + 1
        least, left, steps = min(total, least), left * (1.0 - size), steps + 1
    coef, shift = length * x[:p], 0.0
    if intercept[0]:
        shift = length * x[p] - dot(means, coef)
    return coef, shift, unit * a, relative, steps


@njit(nogil=True, allocates=False, fastmath=FINITE)
def _least(numbers):
    """The least of the numbers, at most zero."""
    least = 0.0
    for i in range(numbers.size):
        least = min(least, numbers[i])
    return least


@njit(nogil=True, error_model="numpy", fastmath=SUMS)
def _lines(design, shares, signs, intercept, has_threshold):
    """``diag(signs) [X, 1, -signs]`` by columns, with the features centred if the intercept is free
    to make up for it; their means; and the square of `Design.spread`."""
    (matrix, centre, scale), (has_intercept, ridge) = design, intercept
    n, p = matrix.shape
    lines = np.empty((p + has_intercept + has_threshold, n))
    means, variances = np.zeros(p), np.zeros(p)
    for j in range(p):
        line, mean = lines[j], 0.0
        for i in range(n):
            line[i] = (matrix[i, j] - centre[j]) / scale[j]
            mean += shares[i] * line[i]
        for i in range(n):
            variances[j] += shares[i] * (line[i] - mean) ** 2
        if variances[j] <= CONSTANT_VARIANCE * mean**2:
            variances[j] = 0.0
        if has_intercept and ridge == 0.0:
            means[j] = mean
        line -= means[j]
        line *= signs
    if has_intercept:
        lines[p] = signs
    if has_threshold:
        lines[len(lines) - 1] = -1.0
    varying = np.sort(variances[variances > 0.0])
    if not varying.size:
        return lines, means, 1.0
    return lines, means, varying.size * varying[(varying.size - 1) // 10]
