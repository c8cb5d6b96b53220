"""Features without a penalty: their coefficients are settled with the intercept.

Without a penalty on the features U a dual point is feasible only if ``X_U'theta = 0``, as
``1'theta = 0`` for a free intercept. Like the intercept their coefficients are minimised for the
other ones, to a tolerance in proportion to the violation, by Newton's method. They are members of
the quadratic model too, so that a step moves them along.

What is left of ``r = X_U'theta`` is then projected away in the metric of the curvatures,

    theta' = theta - D X_U c,      (X_U' D X_U) c = r,

with columns centred by D if the intercept is free. To first order that is the dual point at the
settled coefficients, and the Fenchel-Young term of the loss grows by about ``c'X_U' D X_U c / 2``:
by the square of r. ``D_i`` is at most the curvature and at most the distance of ``theta_i`` from
the ends of its interval, so that theta' is feasible while ``|X_U c| < 1``. The metric and its
factor are kept as long as they serve: any positive D gives a dual point, and its feasibility and
its term are computed for the present one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.paths.vectors import add, dot

__all__ = [
    "END",
    "MEAN",
    "MOVE",
    "NORM",
    "ROWS",
    "SAMPLE_ROWS",
    "SLOPE",
    "UNIT",
    "UnpenalisedColumns",
    "newton_direction",
    "project",
    "residual",
]

PIVOT = 1e-13  # pivot relative to the diagonal entry below which a column depends on others
LONGEST_MOVE = 2.0  # largest move of a score in a Newton step, in units of the margin
LARGEST_TILT = 0.45  # largest relative change of a distance by one projection
ROUNDS = 2  # most projections: the second one removes rounding of the first
# rows of `UnpenalisedColumns.rows` and of `UnpenalisedColumns.samples`; one array each, because
# every array in a state takes time in each call of a kernel that is not inlined
NORM, UNIT, MEAN, END, AVERAGE, SLOPE, MOVE, ROWS = range(8)
METRIC, TILT, SAMPLE_ROWS = range(3)


class UnpenalisedColumns(NamedTuple):
    """The columns of k unpenalised features, and what their steps need.

    Attributes
    ----------
    feature : (k,) integers
    columns : (k, n_samples)
        Centred by a constant if the intercept is free, and of unit mean square.
    least : float
        The least singular value of the columns, weighted by the shares of the samples.
    most : float
        The upper bound of dual coordinates; it may be infinite.
    factor : (k, k)
        Lower Cholesky factor of the columns' Gram matrix in the metric D.
    rows : (ROWS, k)
        NORM: Euclidean norms of the columns. UNIT, MEAN: a column is the scaled feature less its
        mean, over its unit. END: largest absolute value of the scaled feature and of its mean, over
        the unit. AVERAGE: the means of the columns by D. SLOPE: inner products of the columns with
        the dual point. MOVE: the last step of their coefficients.
    samples : (SAMPLE_ROWS, n_samples)
        METRIC: the diagonal of D. TILT: a combination of the columns, or the move of the dual
        point.
    """

    feature: Any
    columns: Any
    least: float
    most: float
    factor: Any
    rows: Any
    samples: Any


@njit(cache=True, nogil=True, allocates=False)
def residual(unpenalised, theta):
    """Set the slopes ``X_U'theta``; return the largest one."""
    slope, largest = unpenalised.rows[SLOPE], 0.0
    for u in range(slope.size):
        slope[u] = dot(unpenalised.columns[u], theta)
        largest = max(largest, abs(slope[u]))
    return largest


@njit(cache=True, nogil=True, allocates=False)
def newton_direction(unpenalised, curved, free, kept):
    """Set ``move`` to the Newton step at the present slopes; its combination of columns to
    ``tilt``.

    Returns the step of the intercept that goes with it. Steps are shortened to `LONGEST_MOVE`.

    Parameters
    ----------
    kept : bool
        Whether the metric of an earlier dual point is used: a chord step.
    """
    move, tilt = unpenalised.rows[MOVE], unpenalised.samples[TILT]
    if not kept:
        for i in range(curved.size):
            unpenalised.samples[METRIC, i] = curved[i]
        _factor(unpenalised, free)
    _solve(unpenalised)
    offset, largest = _offset(unpenalised), 0.0
    for i in range(tilt.size):
        largest = max(largest, abs(tilt[i] - offset))
    share = LONGEST_MOVE / largest if largest > LONGEST_MOVE else 1.0
    for u in range(move.size):
        move[u] *= share
    for i in range(tilt.size):
        tilt[i] *= share
    return -share * offset


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def project(unpenalised, theta, curved, weights, free, kept):
    """Project the dual point in place; ``slope`` is what rounding leaves of the inner products.

    Parameters
    ----------
    kept : bool
        Whether the metric of an earlier dual point is used.

    Returns
    -------
    slip : float
        Bound on the sum of the squared moves, each over the curvature of its sample; infinite if
        the projection is not feasible.
    tilt : float
        Bound on the largest move, relative to the distance to an end of the interval.
    """
    metric, moves = unpenalised.samples[METRIC], unpenalised.samples[TILT]
    if not kept:
        for i in range(theta.size):
            metric[i] = max(min(curved[i], _room(unpenalised, theta, weights, i)), 0.0)
        _factor(unpenalised, free)
    relative, length, tilt = rounding(theta.size) * math.sqrt(dot(theta, theta)), 0.0, 0.0
    for _ in range(ROUNDS):
        _solve(unpenalised)
        offset, squares, largest = _offset(unpenalised), 0.0, 0.0
        for i in range(theta.size):
            move = metric[i] * (moves[i] - offset)
            moves[i] = move
            if move != 0.0:
                squares += move * move / curved[i]
                largest = max(largest, abs(move) / _room(unpenalised, theta, weights, i))
        if not largest <= LARGEST_TILT:
            return math.inf, tilt
        add(-1.0, moves, theta)
        length, tilt, settled = length + math.sqrt(squares), tilt + largest, True
        residual(unpenalised, theta)
        for u in range(unpenalised.feature.size):
            enough = relative * unpenalised.rows[NORM, u]
            settled = settled and abs(unpenalised.rows[SLOPE, u]) <= enough
        if settled:
            break
    return length * length, tilt


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def _room(unpenalised, theta, weights, i):
    """The distance of a dual coordinate to the nearer end of its interval."""
    near = abs(theta[i])
    return min(near, weights[i] * unpenalised.most - near) if weights[i] > 0.0 else 0.0


@njit(cache=True, nogil=True, allocates=False)
def _offset(unpenalised):
    """The mean of the combination in ``tilt``, by the metric; zero without intercept."""
    return dot(unpenalised.rows[AVERAGE], unpenalised.rows[MOVE])


@njit(cache=True, nogil=True, allocates=False)
def _factor(unpenalised, free):
    """Factor the Gram matrix of the columns, centred if ``free``, in the metric."""
    factor, average, columns = unpenalised.factor, unpenalised.rows[AVERAGE], unpenalised.columns
    metric, weighted = unpenalised.samples[METRIC], unpenalised.samples[TILT]
    total = 0.0
    for i in range(metric.size):
        total += metric[i]
    for u in range(average.size):
        mean = dot(columns[u], metric) / total if free and total > 0.0 else 0.0
        average[u] = mean
        for i in range(metric.size):
            weighted[i] = metric[i] * (columns[u, i] - mean)  # sum zero: others need no centring
        for v in range(u + 1):
            factor[u, v] = dot(weighted, columns[v])
    for u in range(average.size):
        for v in range(u):
            factor[u, v] = (factor[u, v] - dot(factor[u, :v], factor[v, :v])) / factor[v, v]
        diagonal = factor[u, u]
        pivot = diagonal - dot(factor[u, :u], factor[u, :u])
        # a dependent column takes no part
        factor[u, u] = math.sqrt(pivot) if pivot > PIVOT * diagonal else math.inf


@njit(cache=True, nogil=True, allocates=False)
def _solve(unpenalised):
    """Solve for ``move`` with the slopes, and set ``tilt`` to its combination of columns."""
    factor, move, tilt = unpenalised.factor, unpenalised.rows[MOVE], unpenalised.samples[TILT]
    for u in range(move.size):
        move[u] = (unpenalised.rows[SLOPE, u] - dot(factor[u, :u], move[:u])) / factor[u, u]
    for u in range(move.size - 1, -1, -1):
        move[u] /= factor[u, u]
        add(-move[u], factor[u, :u], move[:u])
    tilt[:] = 0.0
    for u in range(move.size):
        add(move[u], unpenalised.columns[u], tilt)
