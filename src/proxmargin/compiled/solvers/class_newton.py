"""Proximal Newton steps for smooth losses of all classes, in single coefficients of some columns.

An unknown is the coefficient of a column for a class; unknowns are ordered by class. The Hessian of
the loss in two of them is ``sum_i x_ij x_il h_i``, h_i the second derivative of sample i in the
scores of their classes. A free intercept is eliminated from the quadratic model; as a constant
common to all classes changes nothing, that of the last class stays where it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import is_array, njit, overload
from proxmargin.compiled.losses.class_forms import curvatures, evaluated, intercept_system
from proxmargin.compiled.products.columns import add, dot
from proxmargin.compiled.rounding import ARMIJO_FRACTION, HALVINGS, MIN_DAMPING, RISE_ROUNDING
from proxmargin.compiled.solvers.nets import Net, gap_term, violation
from proxmargin.compiled.solvers.newton import (
    NEAR_SOLUTION,
    PATIENCE_STEPS,
    ROUNDING_VIOLATION,
    SLOW_CHORD,
    TIGHT_FORCING,
)
from proxmargin.compiled.solvers.quadratic_model import Quadratic, quadratic_minimum

FORCING = 0.1  # residual of the quadratic model over the violation of optimality


class Unknowns(NamedTuple):
    """The coefficients that may move."""

    # (m,) integers
    columns: Any
    classes: Any
    # (n_classes + 1,) integers; those of class k are ``starts[k]`` up to ``starts[k + 1]``
    starts: Any
    unit: Any  # (m,); scales by which the columns of the data were divided


class Elimination(NamedTuple):
    """The intercept's part of the quadratic model."""

    system: Any  # (n_classes - 1, n_classes - 1); second derivatives in two intercepts
    # (n_classes - 1, m); second derivatives in an intercept and an unknown; and the inverse of the
    # system times these. Zero without an intercept.
    cross: Any
    pulled: Any


@njit(nogil=True)
def newton_steps(
    columns,
    form,
    smoothness,
    codes,
    shares,
    unknowns,
    net,
    has_intercept,
    coef,
    scores,
    intercept,
    target,
    level,
    limit,
):
    """At most ``limit`` steps; ``coef``, ``scores`` and ``intercept`` are changed in place.

    A model serves further steps as long as they converge fast.

    Parameters
    ----------
    columns : lines of an array, or Compressed
        Of unit weighted mean square.
    form : named tuple
        See `proxmargin.compiled.losses.class_forms`.
    smoothness : float
        Largest second derivative of the loss in a score, for samples of weight one.
    unknowns : Unknowns
    net : Net
        Of the unknowns, in the units of the data.
    coef : (m,)
        Of the columns as they are here.
    scores : (n_classes, n_samples)
    target : float
        Violation of the optimality conditions, in the units of the data, at which to stop.
    level : float
        Scale of violations: a typical l1 strength.

    Returns
    -------
    steps, violation
    """
    classes, m, unit = scores.shape[0], coef.size, unknowns.unit
    rates, dual, moved = np.empty(scores.shape), np.empty(scores.shape), np.empty(scores.shape)
    slope, intercept_slopes, shift = np.empty(m), np.zeros(classes), np.zeros(classes)
    own = Net(net.l1 / unit, net.l2 / unit**2, net.lower * unit, net.upper * unit)
    order, placed = np.empty(m, np.int64), np.empty(m, np.bool_)
    quadratic = Quadratic(np.empty((m, m)), np.empty((m, m)), order, placed, np.empty(m))
    joint = Elimination(np.eye(classes - 1), np.zeros((classes - 1, m)), np.zeros((classes - 1, m)))
    lift, typical, widest = own.l2.copy(), unit.mean(), unit.max()
    loss, penalty = evaluated(form, scores, codes, shares, rates, dual), _penalty(own, coef)
    kept, steps, idle, fresh, last, least = 0, 0, 0, False, np.inf, np.inf
    while True:
        worst = _slopes(columns, dual, unknowns, own, smoothness, coef, slope)
        for k in range(classes):
            intercept_slopes[k] = dual[k].sum() if has_intercept else 0.0
            worst = max(worst, typical * abs(intercept_slopes[k]))
        idle = 0 if worst < least else idle + 1
        least = min(least, worst)
        if idle > 0 and worst <= ROUNDING_VIOLATION * level:
            idle = PATIENCE_STEPS
        if worst <= target or steps >= limit or idle >= PATIENCE_STEPS:
            return steps, worst
        fresh = steps == 0 or idle > 0 or (worst > SLOW_CHORD * last and not fresh)
        last = worst
        if fresh:
            joint = _model(
                columns, form, rates, dual, codes, shares, unknowns, has_intercept, joint, quadratic
            )
            largest, kept = 0.0, 0
            for a in range(m):
                largest = max(largest, quadratic.hessian[a, a])
            for a in range(m):
                lift[a] = own.l2[a] + MIN_DAMPING * largest
        forcing = FORCING if worst > NEAR_SOLUTION * level else TIGHT_FORCING
        ends, reduced = coef.copy(), slope.copy()
        for a in range(m):
            for k in range(classes - 1):
                reduced[a] -= joint.pulled[k, a] * intercept_slopes[k]
        aim = forcing * worst / widest
        kept = quadratic_minimum(quadratic, lift, reduced, ends, own, aim, kept)
        if has_intercept:
            _shifts(joint, intercept_slopes, coef, ends, shift)
        for k in range(classes):
            for i in range(scores.shape[1]):
                moved[k, i] = shift[k]
        for a in range(m):
            if ends[a] != coef[a]:
                add(columns, unknowns.columns[a], ends[a] - coef[a], moved[unknowns.classes[a]])
        size, loss, penalty = _search(
            form, codes, shares, own, coef, ends, scores, moved, rates, dual, loss, penalty
        )
        for k in range(classes):
            intercept[k] += size * shift[k]
        steps += 1


@njit(nogil=True, allocates=False)
def _penalty(net, coef):
    """The penalty."""
    total = 0.0
    for a in range(coef.size):
        total += net.l1[a] * abs(coef[a]) + 0.5 * net.l2[a] * coef[a] * coef[a]
    return total


@njit(nogil=True)
def _slopes(columns, dual, unknowns, net, smoothness, coef, slope):
    """Slopes of loss and ridge; the largest violation of optimality, in the units of the data."""
    worst = 0.0
    for a in range(coef.size):
        slope[a] = dot(columns, unknowns.columns[a], dual[unknowns.classes[a]])
        slope[a] += net.l2[a] * coef[a]
        bound = smoothness + net.l2[a]
        off = violation(slope[a], coef[a], bound, net.l1[a], net.lower[a], net.upper[a])
        worst = max(worst, unknowns.unit[a] * off)
    return worst


@njit(nogil=True)
def _model(columns, form, rates, dual, codes, shares, unknowns, has_intercept, joint, quadratic):
    """Form the Hessian of the unknowns, with the intercept eliminated."""
    _form_hessian(columns, form, rates, dual, codes, shares, unknowns, quadratic.hessian)
    if not has_intercept:
        return joint
    size, curvature = rates.shape[0] - 1, np.empty(rates.shape[1])
    cross, starts = joint.cross, unknowns.starts
    for k in range(size + 1):
        for other in range(size):
            curvatures(form, rates, dual, codes, shares, k, other, curvature)
            for a in range(starts[k], starts[k + 1]):
                cross[other, a] = dot(columns, unknowns.columns[a], curvature)
    system = intercept_system(form, rates, dual, codes, shares)
    pulled = np.ascontiguousarray(np.linalg.solve(system, cross))
    for a in range(cross.shape[1]):
        for k in range(size):
            for b in range(cross.shape[1]):
                quadratic.hessian[a, b] -= pulled[k, a] * cross[k, b]
    return Elimination(system, cross, pulled)


def _form_hessian(
    columns: Any, form: Any, rates: Any, dual: Any, codes: Any, shares: Any, unknowns: Any, out: Any
) -> Any:
    """Write the Hessian of the loss in the unknowns into ``out``."""


@overload(_form_hessian)
def _form_hessian_of(columns, form, rates, dual, codes, shares, unknowns, out):
    if is_array(columns):
        return lambda columns, form, rates, dual, codes, shares, unknowns, out: _dense(
            columns, form, rates, dual, codes, shares, unknowns, out
        )
    return lambda columns, form, rates, dual, codes, shares, unknowns, out: _compressed(
        columns, form, rates, dual, codes, shares, unknowns, out
    )


@njit(nogil=True)
def _dense(columns, form, rates, dual, codes, shares, unknowns, hessian):
    """One product of matrices for each pair of classes."""
    n, m, starts = columns.shape[1], unknowns.columns.size, unknowns.starts
    picked, weighted, curvature = np.empty((m, n)), np.empty((m, n)), np.empty(n)
    for a in range(m):
        for i in range(n):
            picked[a, i] = columns[unknowns.columns[a], i]
    for k in range(rates.shape[0]):
        first, last = starts[k], starts[k + 1]
        for other in range(k + 1):
            left, right = starts[other], starts[other + 1]
            if first == last or left == right:
                continue
            curvatures(form, rates, dual, codes, shares, k, other, curvature)
            for b in range(left, right):
                for i in range(n):
                    weighted[b, i] = picked[b, i] * curvature[i]
            block = np.dot(picked[first:last], weighted[left:right].T)
            for a in range(first, last):
                for b in range(left, right):
                    hessian[a, b] = block[a - first, b - left]
                    hessian[b, a] = block[a - first, b - left]


@njit(nogil=True)
def _compressed(columns, form, rates, dual, codes, shares, unknowns, hessian):
    """By rows first, then the outer product of each row with itself."""
    n, m, classes = columns.n_rows, unknowns.columns.size, rates.shape[0]
    first = np.zeros(n + 1, np.int64)
    for j in unknowns.columns:
        for at in range(columns.indptr[j], columns.indptr[j + 1]):
            first[columns.indices[at] + 1] += 1
    first = np.cumsum(first)
    place, unknown, value = first[:-1].copy(), np.empty(first[n], np.int64), np.empty(first[n])
    for a in range(m):
        j = unknowns.columns[a]
        for at in range(columns.indptr[j], columns.indptr[j + 1]):
            i = columns.indices[at]
            unknown[place[i]], value[place[i]] = a, columns.data[at]
            place[i] += 1
    curvature = np.empty((classes, classes, n))
    for k in range(classes):
        for other in range(k + 1):
            curvatures(form, rates, dual, codes, shares, k, other, curvature[k, other])
    for a in range(m):
        for b in range(m):
            hessian[a, b] = 0.0
    for i in range(n):
        for one in range(first[i], first[i + 1]):
            a = unknown[one]
            for two in range(first[i], one + 1):  # unknowns of a row are in increasing order
                b = unknown[two]
                second = curvature[unknowns.classes[a], unknowns.classes[b], i]
                hessian[a, b] += value[one] * value[two] * second
    for a in range(m):
        for b in range(a):
            hessian[b, a] = hessian[a, b]


@njit(nogil=True)
def _shifts(joint, intercept_slopes, coef, ends, shift):
    """The move of the intercept, into ``shift``, that is best for a move of the unknowns."""
    size = shift.size - 1
    right = intercept_slopes[:size].copy()
    for a in range(coef.size):
        for k in range(size):
            right[k] += joint.cross[k, a] * (ends[a] - coef[a])
    right = np.linalg.solve(joint.system, right)
    for k in range(size):
        shift[k] = -right[k]


@njit(nogil=True)
def _search(form, codes, shares, net, coef, ends, scores, moved, rates, dual, loss, penalty):
    """Halve the step to ``ends`` until it descends, and take it; ``rates`` and ``dual`` are then
    those of its end.

    Returns
    -------
    size, loss, penalty
    """
    promised, start, trial = _penalty(net, ends) - penalty, coef.copy(), np.empty(scores.shape)
    for k in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            promised += dual[k, i] * moved[k, i]
    size, reached, spent = 1.0, loss, penalty
    for halving in range(HALVINGS):
        size *= 0.5 if halving > 0 else 1.0
        for a in range(coef.size):
            coef[a] = ends[a] if halving == 0 else start[a] + size * (ends[a] - start[a])
        for k in range(scores.shape[0]):
            for i in range(scores.shape[1]):
                trial[k, i] = scores[k, i] + size * moved[k, i]
        reached, spent = evaluated(form, trial, codes, shares, rates, dual), _penalty(net, coef)
        allowed = ARMIJO_FRACTION * size * promised + RISE_ROUNDING * (loss + penalty)
        if reached + spent <= loss + penalty + allowed:
            break
    for k in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            scores[k, i] = trial[k, i]
    return size, reached, spent


@njit(nogil=True)
def scores_of(columns, unknowns, coef, intercept, offset, scores):
    """Compute ``scores`` anew, as updates accumulate rounding.

    Parameters
    ----------
    offset : (n_samples, n_classes)
    """
    for k in range(scores.shape[0]):
        for i in range(scores.shape[1]):
            scores[k, i] = offset[i, k] + intercept[k]
    for a in range(coef.size):
        if coef[a] != 0.0:
            add(columns, unknowns.columns[a], coef[a], scores[unknowns.classes[a]])


@njit(nogil=True, allocates=False)
def class_violations(slope, coef, curvature, net, out):
    """Violations of optimality of all coefficients, written into ``out``, and the penalty's part
    of the gap.

    Coefficients at zero whose gradient is below the threshold have a negative violation.

    Parameters
    ----------
    slope, coef, out : (n_features, n_classes)
        ``slope`` is the gradient of the loss.
    curvature : (n_features,)
        A bound on that of the loss, where coefficients are not zero.
    net : Net

    Returns
    -------
    worst : float
        Largest violation.
    scale : float
        Factor on the dual point that brings it into the domain of the conjugate.
    penalty, gap : float
        The penalty, and its Fenchel-Young terms with the scaled dual point.
    """
    worst, scale = 0.0, 1.0
    for j in range(coef.shape[0]):
        l1, l2, low, high = net.l1[j], net.l2[j], net.lower[j], net.upper[j]
        for k in range(coef.shape[1]):
            v, w = slope[j, k], coef[j, k]
            out[j, k] = violation(v + l2 * w, w, curvature[j] + l2, l1, low, high)
            worst = max(worst, out[j, k])
            beyond = l2 == 0.0 and scale * abs(v) > l1
            if beyond and abs(high if v < 0.0 else low) == math.inf:
                scale = l1 / abs(v)
    penalty, gap = 0.0, 0.0
    for j in range(coef.shape[0]):
        l1, l2 = net.l1[j], net.l2[j]
        for k in range(coef.shape[1]):
            v, w = -scale * slope[j, k], coef[j, k]
            if w != 0.0 or abs(v) > l1:
                penalty += l1 * abs(w) + 0.5 * l2 * w * w
                gap += gap_term(v, w, l1, l2, net.lower[j], net.upper[j])
    return worst, scale, penalty, gap
