"""What rounding adds to a duality gap, term by term; and points at which it costs least."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from proxmargin.compiled.rounding import FURTHER_TERMS, UNIT, Enclosed, gamma
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import unpenalised_columns
from proxmargin.runtime.types import Array

RELEASED_SLOPE = 1e-9  # pulled-back dual of an unpenalised feature, per unit, above rounding
FAR_BEYOND = 1e30  # multiple of a rounding error that is outside any domain


def rounding_of_sums(
    problem: Problem, intercept: Array, scores: Enclosed, error: Array, c: Array
) -> float:
    """What it costs that the dual point q does not sum to zero, as a free intercept b requires: its
    sums are ``-c``, with at most this ``error``, (n_outputs,) each.

    The sum s is rounding: floating-point numbers need not sum to zero exactly. Let (w*, b*) be an
    optimum, z* its scores and ``v = -X'q``. By the Fenchel-Young inequality

        ``L(z*) + G(w*) >= <z*, q> - L*(q) + <v, w*> - G*(v) = <b*, s> - L*(q) - G*(v)``,

    and the objective of (w, b) is ``<b, s> - L*(q) - G*(v)`` plus the brackets of loss and penalty.
    So the suboptimality is at most these brackets plus ``<b - b*, s> <= (|b| + |b*|) |s|``.

    This much is proved. The optimal intercept is not known: ``|b*|`` is taken to be at most one
    unit of the margins, ``sum_j |x_ij w_j| + |b|`` of the sample where that is largest, and the
    largest offset. That was found to hold once relative gaps are below 1e-6 (a law of the tests).
    Far from the optimum it may not, and a certificate may then be too small by ``|b*| |s|``, with
    ``|s|`` of some unit roundoffs of ``|q|_1``. `Certificate` states it.
    """
    sizes = scores.sizes if scores.sizes.ndim == 1 else scores.sizes.max(axis=0)
    reach = np.abs(intercept) + sizes
    reach += problem.loss.largest_offset + (not problem.loss.is_homogeneous)
    if problem.intercept.sums_to_zero:  # scores are invariant to a constant common to all classes
        c = c - c.mean()
    return float(reach @ (error + np.abs(c)))


def rounding_of_intercept(problem: Problem, point: Point, scores: Enclosed) -> float:
    """What the rounding of the published intercept b adds to its ridge. With centred features b is
    ``b_c - mean'w``, and the ridge is on b_c; the absolute terms of that sum are at most the
    largest ones of a score."""
    b, sizes = np.abs(point.intercept), np.atleast_2d(scores.sizes).max(axis=0)
    error = gamma(len(point.coef) + FURTHER_TERMS) * sizes
    return float(problem.intercept.l2 * np.sum((b + 0.5 * error) * error))


def zero_unpenalised_dual(
    problem: Problem, point: Point, scores: Enclosed, pulled: Array, error: Array
) -> float:
    """Set the pulled-back dual of unpenalised features to zero, and bound what that adds to the
    gap.

    At their best coefficients it is zero up to rounding, as the column sums of the dual are for a
    free intercept. The gap increases by at most that rounding times a bound of the optimal
    coefficients. An entry above rounding is kept: it is outside the domain of the conjugate.
    """
    index = problem.unpenalised
    net, v = problem.net, pulled[index, 0]
    off = np.where(v > 0, np.where(net.upper[index] == np.inf, v, 0.0), 0.0)
    off = np.where(v < 0, np.where(net.lower[index] == -np.inf, v, 0.0), off)
    columns = unpenalised_columns(problem)
    unit = columns.unit
    if np.any(np.abs(off) > RELEASED_SLOPE * unit):
        return 0.0
    pulled[index, 0] -= off
    errors = np.broadcast_to(error, pulled.shape)[index, 0]
    furthest = 1.0 + problem.loss.largest_offset + float(np.max(np.abs(scores.values)))
    reach = 2.0 * np.abs(point.coef[index, 0]) + furthest / (columns.least * unit)
    span = net.upper[index] - net.lower[index]
    reach = np.where(span < np.inf, span, reach)
    return float(reach @ (np.abs(off) + errors))


def rounding_of_dual(problem: Problem, point: Point, level: float, error: Array) -> float:
    """A bound on ``<v' - v, w - w*>`` for the rounding of the pulled-back dual, at most ``error``
    (n_features, n_outputs), w* the optimum. The objective and the negated dual value are at most
    ``level``."""
    if problem.unpenalised.size:  # `zero_unpenalised_dual` bounds their error
        error = np.array(np.broadcast_to(error, point.coef.shape))
        error[problem.unpenalised] = 0.0
    if problem.loss.is_homogeneous:  # the penalty at the optimum is as large as its margin
        level = 2.0 * max(level, problem.penalty.value(point.coef))
    return 2.0 * problem.penalty.largest_product(error, level) if error.any() else 0.0


def safe_multiple(
    problem: Problem, point: Point, scores: Enclosed, least: float = 0.0
) -> tuple[float, float]:
    """The factor ``1 + s`` on a point that minimises the worst-case objective, and its gain; one
    and zero where no gain is as large as ``least``.

    Rounding moves margins off a kink. On one side that costs the slope of the loss, which may be
    any multiple of the optimum; on the other the dual coordinates of those samples, whose sum is at
    most twice the optimum. The worst case is convex in s, which is bisected over the powers of two.
    Smooth losses gain nothing, and neither do zero coefficients, whose margins are not rounded.
    """
    loss, penalty, (coef, intercept, *_) = problem.loss, problem.penalty, point
    if Trait.SMOOTH in loss.traits or loss.is_homogeneous or not coef.any():
        return 1.0, 0.0
    error = scores.error + 3.0 * UNIT * scores.sizes

    @cache
    def worst(multiple: float) -> float:
        value = loss.value(loss.pessimistic(multiple * scores.values, multiple * error))
        shifted = problem.intercept.value(multiple * intercept[None, :])
        return value + penalty.value(multiple * coef) + shifted

    def rises(exponent: int) -> bool:
        return worst(1.0 + 2.0**exponent) <= worst(1.0 + 2.0 ** (exponent + 1))

    low, high = -52, 0  # 1 + 2^-53 is 1 in float64
    if least > 0.0:
        # by convexity the factor 1 + s gains at most s times the value at zero: at most `least`
        # up to s = 2^(below + 1)
        below = math.frexp(least / max(worst(0.0), least))[1] - 2
        if below >= low and rises(below):
            return 1.0, 0.0
        low = max(low, below + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if rises(middle) else (middle + 1, high)
    gain = worst(1.0) - worst(1.0 + 2.0**low)
    return (1.0 + 2.0**low, gain) if gain > 0 else (1.0, 0.0)


def is_dual_rounding(problem: Problem, gap: Gap, tol: float, most: float) -> bool:
    """Whether rounding the dual point to float64 costs more than the relative gap ``tol``, and the
    gap is at most so many times that cost."""
    cost = _cost(problem, gap)
    return gap.gap <= most * cost and tol * gap.scale < cost


def _cost(problem: Problem, gap: Gap) -> float:
    """Expected gap of the optimal dual point rounded to float64; zero if unknown.

    Entries of X'q that should cancel are off by ``e_j^2 = sum_i ulp(q_i)^2 x_ij^2 / 12`` in mean
    square, as rounding errors are uniform. With a ridge that costs ``sum_j e_j^2 / (2 l2)``.
    Without one the dual point is scaled into the domain of the conjugate, and its value falls by
    the share by which the largest error exceeds the strength.
    """
    design, penalty = problem.design, problem.penalty
    if isinstance(design, KernelDesign):
        return 0.0
    squares, centre = np.spacing(np.abs(gap.dual_point)) ** 2 / 12.0, np.zeros(design.n_features)
    errors = np.column_stack([design.column_squares(each, centre) for each in squares.T])
    if penalty.l2 > 0:
        return float(errors.sum()) / (2.0 * penalty.l2)
    scale = penalty.domain_scale(FAR_BEYOND * np.sqrt(errors))
    return abs(gap.primal) / (FAR_BEYOND * scale) if 0.0 < scale < 1.0 else 0.0
