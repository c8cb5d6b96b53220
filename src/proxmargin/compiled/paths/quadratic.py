"""The minimum of a quadratic model plus an elastic net, on a few features.

Coordinate descent in Gram form finds the signs, Newton steps on the support the values. The
Cholesky factor of the support's Hessian is kept between calls as long as the Hessian is the same:
rows of features that stay in the support remain, others are appended.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.vectors import add, dot
from proxmargin.compiled.solvers.nets import minimiser, step_to_bound

__all__ = ["Quadratic", "quadratic_minimum"]

MAX_CYCLES = 80  # maximum number of cycles, each sweeps and a Newton step
FIRST_SWEEPS = 3  # sweeps after the first Newton step of a call
SWEEPS = 8  # sweeps after each later one
SLIGHT = 0.1  # share of the target below which a coordinate is left where it is
PIVOT = 1e-13  # pivot of the factor, relative to the diagonal entry, that is rounding
DIAGONAL_SHIFT = 1e-12  # relative increase of the diagonal against singular pivots


class Quadratic(NamedTuple):
    """Arrays for models of up to m features.

    Attributes
    ----------
    hessian : (m, m)
    factor : (m, m)
        Lower Cholesky factor of the support's Hessian, in the order ``order``.
    order : (m,) integers
    placed : (m,) bool
    direction, right : (m,)
    """

    hessian: Any
    factor: Any
    order: Any
    placed: Any
    direction: Any
    right: Any


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def quadratic_minimum(quadratic, lift, slope, value, net, target, kept):
    """Minimise ``slope'd + d'(H + diag(lift)) d / 2`` plus the l1 norm, between bounds.

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
    for cycle in range(MAX_CYCLES):
        if cycle > 0:
            sweeps = SWEEPS if cycle > 1 else FIRST_SWEEPS
            if _sweep(quadratic.hessian, lift, slope, value, net, target, sweeps):
                return kept
        size = _factor(quadratic, lift, value, net, kept)
        kept = max(size, 0)
        if kept > 0:
            _step_on_support(quadratic, kept, lift, slope, value, net)
    return kept


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _sweep(hessian, lift, slope, value, net, target, sweeps):
    """Coordinate descent until the support is stable; return whether all changes met the target."""
    k, slight = value.size, SLIGHT * target
    for _ in range(sweeps):
        worst, moved = 0.0, False
        for j in range(k):
            old = value[j]
            if old == 0.0 and abs(slope[j]) <= net.l1[j]:
                continue
            if old != 0.0 and abs(slope[j] + math.copysign(net.l1[j], old)) <= slight:
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
                add(change, hessian[j, :k], slope)
                slope[j] += lift[j] * change
        if worst <= target:
            return True
        if not moved:
            return False
    return False


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _is_inside(value, lower, upper):
    return value != 0.0 and lower < value < upper


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _factor(quadratic, lift, value, net, kept):
    """Factor the Hessian of the support; return its size, not positive if it is singular."""
    hessian, factor, order, placed = (
        quadratic.hessian,
        quadratic.factor,
        quadratic.order,
        quadratic.placed,
    )
    first = 0
    while first < kept and _is_inside(
        value[order[first]], net.lower[order[first]], net.upper[order[first]]
    ):
        first += 1
    placed[: value.size] = False
    size = 0
    for a in range(kept):
        j = order[a]
        if a < first or _is_inside(value[j], net.lower[j], net.upper[j]):
            order[size] = j
            placed[j] = True
            size += 1
    former = size
    for j in range(value.size):
        if not placed[j] and _is_inside(value[j], net.lower[j], net.upper[j]):
            order[size] = j
            size += 1
    if former == 0:
        _sort(order, size, value)
    # by columns: the rows of a column do not wait for each other
    for b in range(size):
        j, column = order[b], factor[b, :b]
        if b >= first:
            diagonal = hessian[j, j] + lift[j]
            pivot = diagonal * (1.0 + DIAGONAL_SHIFT) - dot(column, column)
            if not pivot > PIVOT * diagonal:
                return -1
            factor[b, b] = math.sqrt(pivot)
        for a in range(max(b + 1, first), size):
            factor[a, b] = (hessian[j, order[a]] - dot(factor[a, :b], column)) / factor[b, b]
    return size


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _sort(order, size, value):
    """Sort by falling absolute value: small entries leave first, and only later rows are lost."""
    for a in range(1, size):
        j, b = order[a], a
        while b > 0 and abs(value[order[b - 1]]) < abs(value[j]):
            order[b] = order[b - 1]
            b -= 1
        order[b] = j


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _solve(factor, size, right):
    """Solve with the lower factor and its transpose, in place."""
    for a in range(size):
        right[a] = (right[a] - dot(factor[a, :a], right[:a])) / factor[a, a]
    for a in range(size - 1, -1, -1):
        right[a] /= factor[a, a]
        add(-right[a], factor[a, :a], right[:a])


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _step_on_support(quadratic, size, lift, slope, value, net):
    """Newton's step on the support, to the minimum along it or to the first bound.

    Along it the model is quadratic between the points where a coordinate changes its sign, and its
    slope jumps up there by twice the l1 strength times the speed of that coordinate.
    """
    order, direction, right = quadratic.order, quadratic.direction, quadratic.right
    for a in range(size):
        j = order[a]
        right[a] = -(slope[j] + math.copysign(net.l1[j], value[j]))
        direction[a] = right[a]
    _solve(quadratic.factor, size, direction)
    first = 0.0
    for a in range(size):
        first -= right[a] * direction[a]
    if not first < 0.0:
        return
    step, stopper = _length(order, direction, size, first, value, net)
    step, blocking, bound = step_to_bound(net, value, order, direction, size, step)
    for a in range(size):
        j = order[a]
        end = value[j] + step * direction[a]
        if a == blocking:
            end = bound
        elif a == stopper and blocking < 0:
            end = 0.0
        change = end - value[j]
        value[j] = end
        add(change, quadratic.hessian[j, : value.size], slope)
        slope[j] += lift[j] * change


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _length(order, direction, size, first, value, net):
    """The minimiser along the direction, and the coordinate that is zero there, or -1."""
    jumps, last = 0.0, 0.0
    while True:
        at, arg = np.inf, -1
        for a in range(size):
            start = value[order[a]]
            if start * direction[a] < 0.0:
                crossing = -start / direction[a]
                if last < crossing < at:
                    at, arg = crossing, a
        if arg < 0 or first * (1.0 - at) + jumps >= 0.0:
            return 1.0 + jumps / first, -1
        jump = 2.0 * net.l1[order[arg]] * abs(direction[arg])
        if first * (1.0 - at) + jumps + jump >= 0.0:
            return at, arg
        jumps += jump
        last = at
