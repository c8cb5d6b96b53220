"""Features without a penalty: their coefficients are optimised with the intercept.

Without a penalty on the features U a dual point is feasible only if ``X_U'theta = 0``, as
``1'theta = 0`` for a free intercept. Like the intercept their coefficients are minimised for the
other ones, to a tolerance in proportion to the violation, by Newton's method. They are members of
the quadratic model too, so that a step moves them along.

What is left of ``r = X_U'theta`` is then projected away in the metric of the curvatures,

    theta' = theta - D X_U c,      (X_U' D X_U) c = r,

with columns centred by D if the intercept is free. To first order that is the dual point at the
best coefficients, and the Fenchel-Young term of the loss grows by about ``c'X_U' D X_U c / 2``: by
the square of r. ``D_i`` is at most the curvature and at most the distance of ``theta_i`` from the
ends of its interval, so that theta' is feasible while ``|X_U c| < 1``. The metric and its factor
are kept as long as they serve: any positive D gives a dual point, and its feasibility and its term
are computed for the present one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.products.vectors import add, dot
from proxmargin.compiled.solvers.quadratic_model import PIVOT, solve

LONGEST_MOVE = 2.0  # largest move of a score in a Newton step, in units of the margin
LARGEST_MOVE = 0.45  # of a dual coordinate by one projection, relative to its interval


class UnpenalisedColumns(NamedTuple):
    """The columns of k unpenalised features, and what their steps need."""

    feature: Any  # (k,) integers
    # (k, n_samples); centred by a constant if the intercept is free, and of unit mean square
    columns: Any
    least: float  # the least singular value of the columns, weighted by the shares of the samples
    most: float  # the upper bound of dual coordinates; it may be infinite
    factor: Any  # (k, k); lower Cholesky factor of the columns' Gram matrix in the metric D
    norms: Any  # (k,); Euclidean norms of the columns
    # (k,); a column is the scaled feature less its mean, over its unit
    unit: Any
    mean: Any
    bounds: Any  # (k,); largest absolute value of the scaled feature and of its mean, over the unit
    centre: Any  # (k,); the means of the columns by D
    correlation: Any  # (k,); inner products of the columns with the dual point
    step: Any  # (k,); the last step of their coefficients
    metric: Any  # (n_samples,); the diagonal of D
    combined: Any  # (n_samples,); a combination of the columns, or the move of the dual point


@njit(nogil=True, allocates=False)
def set_correlations(unpenalised, dual):
    """Set the correlations ``X_U'theta``; return the largest one."""
    correlation, largest = unpenalised.correlation, 0.0
    for u in range(correlation.size):
        correlation[u] = dot(unpenalised.columns[u], dual)
        largest = max(largest, abs(correlation[u]))
    return largest


@njit(nogil=True, allocates=False)
def newton_direction(unpenalised, curvature, free, kept):
    """Set the Newton step at the present correlations, and its combination of columns.

    Returns the step of the intercept that goes with it. Steps are shortened to `LONGEST_MOVE`.

    Parameters
    ----------
    kept : bool
        Whether the metric of an earlier dual point is used: a chord step.
    """
    step, combined = unpenalised.step, unpenalised.combined
    if not kept:
        for i in range(curvature.size):
            unpenalised.metric[i] = curvature[i]
        _factor(unpenalised, free)
    _solve(unpenalised)
    offset, largest = dot(unpenalised.centre, step), 0.0
    for i in range(combined.size):
        largest = max(largest, abs(combined[i] - offset))
    share = LONGEST_MOVE / largest if largest > LONGEST_MOVE else 1.0
    for u in range(step.size):
        step[u] *= share
    return -share * offset


@njit(nogil=True, allocates=False, error_model="numpy")
def project(unpenalised, dual, curvature, weights, free, kept):
    """Project the dual point in place; rounding is left of the correlations.

    Parameters
    ----------
    kept : bool
        Whether the metric of an earlier dual point is used.

    Returns
    -------
    projected : float
        Bound on the sum of the squared moves, each over the curvature of its sample; infinite if
        the projection is not feasible.
    largest_move : float
        Bound on the largest move, relative to the distance to an end of the interval.
    """
    metric, moves = unpenalised.metric, unpenalised.combined
    if not kept:
        for i in range(dual.size):
            metric[i] = max(min(curvature[i], _distance(unpenalised, dual, weights, i)), 0.0)
        _factor(unpenalised, free)
    relative, length = rounding(dual.size) * math.sqrt(dot(dual, dual)), 0.0
    largest_move = 0.0
    for _ in range(2):  # the second time for the rounding of the first
        _solve(unpenalised)
        offset, squares, largest = dot(unpenalised.centre, unpenalised.step), 0.0, 0.0
        for i in range(dual.size):
            move = metric[i] * (moves[i] - offset)
            moves[i] = move
            if move != 0.0:
                squares += move * move / curvature[i]
                largest = max(largest, abs(move) / _distance(unpenalised, dual, weights, i))
        if not largest <= LARGEST_MOVE:
            return math.inf, largest_move
        add(-1.0, moves, dual)
        length, largest_move, is_zero = length + math.sqrt(squares), largest_move + largest, True
        set_correlations(unpenalised, dual)
        for u in range(unpenalised.feature.size):
            is_zero = is_zero and abs(unpenalised.correlation[u]) <= relative * unpenalised.norms[u]
        if is_zero:
            break
    return length * length, largest_move


@njit(nogil=True, allocates=False, error_model="numpy")
def _distance(unpenalised, dual, weights, i):
    """The distance of a dual coordinate to the nearer end of its interval."""
    near = abs(dual[i])
    return min(near, weights[i] * unpenalised.most - near) if weights[i] > 0.0 else 0.0


@njit(nogil=True, allocates=False)
def _factor(unpenalised, free):
    """Factor the Gram matrix of the columns, centred if ``free``, in the metric."""
    factor, centre, columns = unpenalised.factor, unpenalised.centre, unpenalised.columns
    metric, weighted = unpenalised.metric, unpenalised.combined
    total = 0.0
    for i in range(metric.size):
        total += metric[i]
    for u in range(centre.size):
        mean = dot(columns[u], metric) / total if free and total > 0.0 else 0.0
        centre[u] = mean
        for i in range(metric.size):
            weighted[i] = metric[i] * (columns[u, i] - mean)  # sum zero: others need no centring
        for v in range(u + 1):
            factor[u, v] = dot(weighted, columns[v])
    for u in range(centre.size):
        for v in range(u):
            factor[u, v] = (factor[u, v] - dot(factor[u, :v], factor[v, :v])) / factor[v, v]
        diagonal = factor[u, u]
        pivot = diagonal - dot(factor[u, :u], factor[u, :u])
        # a dependent column takes no part
        factor[u, u] = math.sqrt(pivot) if pivot > PIVOT * diagonal else math.inf


@njit(nogil=True, allocates=False)
def _solve(unpenalised):
    """Solve for the step with the correlations, and combine the columns by it."""
    step, combined = unpenalised.step, unpenalised.combined
    for u in range(step.size):
        step[u] = unpenalised.correlation[u]
    solve(unpenalised.factor, step.size, step)
    combined[:] = 0.0
    for u in range(step.size):
        add(step[u], unpenalised.columns[u], combined)
