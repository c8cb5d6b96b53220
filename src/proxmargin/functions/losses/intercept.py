"""The exact intercept: a convex problem in as many variables as outputs, without touching X.

The certificate relies on it: at the minimiser the dual point ``L'(scores)`` meets the constraint
that a free intercept puts on the dual, by optimality and without a projection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from proxmargin.compiled.rounding import ROOT_STEPS, SLOPE_ROUNDING, STALLED_SLOPE, SUM_ROUNDING
from proxmargin.functions.penalties.base import Penalty
from proxmargin.runtime.types import Array

# gradients and slopes are relative to the sample weights, which sum to one
CURVATURE_FLOOR = 1e-3  # of Newton steps, relative to the largest curvature


class Slope(NamedTuple):
    """Slope, gradient and curvature at one point of the line search."""

    slope: float
    point: Array
    gradient: Array
    curvature: Array


class Expansion(NamedTuple):
    """Gradient and second derivative of the loss at an intercept."""

    gradient: Array
    curvature: Array
    at: Array


def outputwise_direction(intercept: Penalty, local: Expansion, floor: float) -> Array:
    """The Newton step where the second derivative is one number an output."""
    curvature = np.maximum(local.curvature, floor)
    return intercept.newton_direction(local.gradient, curvature, local.at)


def coupled_direction(intercept: Penalty, local: Expansion, floor: float) -> Array:
    """The Newton step where the second derivative is a matrix; its eigenvalues get the floor."""
    values, vectors = np.linalg.eigh(local.curvature)
    residual = local.gradient + intercept.l2 * local.at
    lifted = np.maximum(values, floor) + intercept.l2
    return -vectors @ ((vectors.T @ residual) / lifted)


def minimise_shift(
    derivatives: Callable[[Array], tuple[Array, Array]],
    intercept: Penalty,
    start: Array,
    curvature_floor: float,
    size: float = 1.0,
    newton_direction: Callable[[Penalty, Expansion, float], Array] = outputwise_direction,
) -> Array:
    """Newton from ``start`` with a derivative line search on ``b -> f(b) + intercept(b)``.

    ``derivatives`` are the gradient, (n_outputs,), and second derivative of f at b, by default its
    diagonal, whose entries are at least ``curvature_floor``: every sample may sit on a linear
    piece. Gradients are zero relative to ``size``, the largest derivative of f. The
    ``newton_direction`` is from the intercept's penalty, an `Expansion` and a floor for curvatures.

    The pieces are convex, so a step is good when the slope along it has at least halved; it is
    found by doubling while the slope is still negative, then bisection. Piecewise quadratic losses
    end after finitely many steps.
    """
    at = intercept.into_domain(start[None, :])[0]
    gradient, curvature = derivatives(at)
    residual = _residual(intercept, at, gradient)
    for step in range(ROOT_STEPS):
        if residual <= SUM_ROUNDING * size:
            break
        # outputs on linear pieces: mostly long steps, a shorter one now and then
        floor = curvature_floor * 10.0 ** (step % 4)
        direction = newton_direction(intercept, Expansion(gradient, curvature, at), floor)

        def along(step: float, at: Array = at, direction: Array = direction) -> Slope:
            point = at + step * direction
            gradient, curvature = derivatives(point)
            slope = float((gradient + intercept.l2 * point) @ direction)
            return Slope(slope, point, gradient, curvature)

        start_slope = float((gradient + intercept.l2 * at) @ direction)
        found = halved_slope(along, start_slope, SLOPE_ROUNDING**2 * size)
        reached = _residual(intercept, found.point, found.gradient)
        if residual <= STALLED_SLOPE * size and reached > 0.5 * residual:
            break  # the gradient is the rounding of sums over the samples
        at, gradient, curvature, residual = found.point, found.gradient, found.curvature, reached
    # steps keep to the domain up to rounding, which would add up
    return intercept.into_domain(at[None, :])[0]


def _residual(intercept: Penalty, at: Array, gradient: Array) -> float:
    return float(intercept.violations(at[None, :], -gradient[None, :])[0])


def halved_slope(along: Callable[[float], Slope], start_slope: float, tiny: float) -> Slope:
    """A step along which the (increasing) slope has at least halved: doubling, then bisection."""
    low, high, step = 0.0, np.inf, 1.0
    found = along(step)
    for _ in range(ROOT_STEPS):
        if abs(found.slope) <= max(0.5 * abs(start_slope), tiny):
            break
        low, high = (step, high) if found.slope < 0 else (low, step)
        step = 2.0 * step if high == np.inf else 0.5 * (low + high)
        if step in (low, high):
            break
        found = along(step)
    return found
