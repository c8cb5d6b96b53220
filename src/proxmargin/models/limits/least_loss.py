"""The least loss that any coefficients attain: budgets for the loss cannot be below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.optimize import minimize

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.views import (
    StandardizedDesign,
    in_short_coordinates,
    rescaled,
    standardized,
)
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.penalties.elastic_net import ElasticNet
from proxmargin.functions.traits import Trait
from proxmargin.models.limits.binary_data import CLEAR_RANK
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.types import Array
from proxmargin.solvers.programs.gauge_columns import Atoms, gauge_columns
from proxmargin.solvers.programs.linear_program import (
    HingeProgram,
    HingeRows,
    first_rows,
    hinge_rows,
)
from proxmargin.solvers.programs.restricted_program import Basis, Vertex, solved
from proxmargin.solvers.shared.numerical import LARGEST_SIDE

Ids = NDArray[np.intp]
LBFGS_STEPS = 5000  # iteration limit
MAX_RELATIVE_ERROR = 3e-5  # |gradient| (1 + |point|) over the loss at which L-BFGS is accepted
WIDTHS = (0.3, 0.05, 0.01)  # of the smoothed losses, in turn, in units of the margin
MAX_BASIS = 1000  # features up to which an orthonormal basis of their span is computed


def _basis_columns(n_features: int, outputs: int, sums_to_zero: bool) -> Atoms:
    """A basis of the coefficients in both signs, at cost zero. It consists of single entries or,
    where rows sum to zero, of differences to the last entry of a row."""
    parts = np.arange(2 * n_features * (outputs - sums_to_zero))
    features, column = np.divmod(parts // 2, max(outputs - sums_to_zero, 1))
    entries, owners = features * outputs + column, parts
    signs = np.where(parts % 2 > 0, -1.0, 1.0)
    if sums_to_zero:
        entries = np.concatenate([entries, (features + 1) * outputs - 1])
        owners, signs = np.tile(parts, 2), np.concatenate([signs, -signs])
    return Atoms(parts, np.zeros(parts.size), signs, entries, owners)


class Least(NamedTuple):
    """The infimum of a loss, zero if unknown, and a point close to it if one was found."""

    loss: float
    point: Point | None = None


def least_point(problem: Problem, enough: float = 0.0, deadline: float = np.inf) -> Least:
    """The infimum of a loss over all coefficients and intercepts; zero if unknown.

    It is zero if the samples, extended by the intercept's one, are linearly independent: any scores
    can be attained. Otherwise it is computed in the span of the samples: for hinges by a linear
    program with row generation; for smooth losses by L-BFGS, whose value is an upper bound and is
    accepted if the gradient is small enough. The search ends at a smooth loss of at most
    ``enough``, and at the ``deadline`` on the clock of `proxmargin.compiled.clock`; a point is
    returned if the value is accepted, or that small. The penalty is ignored, except for a
    constraint that coefficients sum to zero.

    Raises TypeError: the loss is neither made of hinges nor smooth.
    """
    loss = problem.loss.without_budget
    rows = hinge_rows(loss)
    if rows is None and Trait.SMOOTH not in loss.traits:
        raise TypeError(f"the least value of {loss!r} is not known")
    if _are_independent(problem):
        return Least(0.0)
    if rows is not None:
        return _least_of_hinges(problem, rows, deadline)
    coordinates = in_short_coordinates(problem.design)
    short = replace(problem, loss=loss, design=coordinates.design)
    even = _well_conditioned(short)
    least, found = _least_smooth(replace(short, design=even.design), enough, deadline)
    if found is None:
        return Least(least)
    coef = np.column_stack([coordinates.coef(column) for column in even.coef(found).T])
    return Least(least, _with_intercept(replace(problem, loss=loss), coef))


class Enclosure(NamedTuple):
    """Bounds of the infimum of a loss, and a point that attains the upper one."""

    lower: float
    upper: float
    point: Point | None


def enclosed_least(problem: Problem, enough: float, deadline: float) -> Enclosure:
    """Bounds of the infimum of a loss of hinges, computed until they lie on one side of ``enough``.

    A loss that can be smoothed (`Loss.smoothed`) is minimised by L-BFGS at decreasing widths, until
    a point has a loss of at most ``enough`` or the lower bound exceeds it. A smooth value counts as
    the minimum if its gradient is small, as in `least_point`. Other losses take its linear program.
    """
    loss = problem.loss.without_budget
    rows = hinge_rows(loss)
    if loss.smoothed(WIDTHS[0]) is None and rows is not None:
        return _enclosed_of_hinges(problem, rows, deadline)
    design = _scaled(problem)
    lower, upper, best, at, unit = 0.0, np.inf, None, None, 1.0
    for width in WIDTHS:
        smooth = loss.smoothed(width)
        if smooth is None or clock() >= deadline:
            break
        own = replace(problem, loss=smooth.loss, design=design)
        at = None if at is None else at * (unit / smooth.unit)
        unit = smooth.unit
        judge = _value_in_units(loss, unit)
        found = _minimise_smooth(own, at, judge, enough, deadline, MAX_RELATIVE_ERROR)
        at = found.point
        if found.judged < upper:
            upper, best = found.judged, unit * found.point
        if found.is_settled:
            lower = max(lower, unit * found.value - smooth.slack)
        if upper <= enough or lower > enough:
            break
    if best is None:
        return Enclosure(lower, upper, None)
    coef = best[: design.n_features] / design.scale[:, None]
    intercept = best[design.n_features :].sum(axis=0) - design.centre @ coef
    return Enclosure(lower, upper, Point(coef, intercept))


def _value_in_units(loss: Loss, unit: float) -> Callable[[Array], float]:
    return lambda scores: loss.value(unit * scores)


def _with_intercept(problem: Problem, coef: Array) -> Point:
    """Coefficients projected into the domain of the penalty, with their best intercept."""
    nothing = null_point(problem).intercept
    coef = problem.projected(Point(coef, nothing)).coef
    scores = problem.design.scores(coef)
    return Point(coef, problem.loss.best_intercept(scores, problem.intercept, nothing))


class _Basis(NamedTuple):
    """A design of well-conditioned features, and the map of its coefficients to the given ones."""

    design: Design
    coef: Callable[[Array], Array]


def _well_conditioned(problem: Problem) -> _Basis:
    """A well-conditioned basis for L-BFGS: orthonormal, or at least of unit variance. It spans the
    same scores, up to a constant that the intercept absorbs."""
    design, scaled = problem.design, _scaled(problem)
    if design.n_features > MAX_BASIS:
        return _Basis(scaled, lambda coef: coef / scaled.scale[:, None])
    basis, triangle, pivots = linalg.qr(
        scaled.scores(np.eye(design.n_features)), mode="economic", pivoting=True
    )
    sizes = np.abs(triangle.diagonal())
    rank = int(np.count_nonzero(sizes > CLEAR_RANK * sizes.max(initial=0.0)))

    def back(inner: Array) -> Array:
        coef = np.zeros((design.n_features, inner.shape[1]))
        coef[pivots[:rank]] = linalg.solve_triangular(triangle[:rank, :rank], inner)
        return coef / scaled.scale[:, None]

    return _Basis(DenseDesign(basis[:, :rank]), back)


def _scaled(problem: Problem) -> StandardizedDesign:
    """Features of unit variance, which span the same scores up to a constant that the intercept
    absorbs; of unit mean square where there is none."""
    change = standardized if problem.fits_intercept else rescaled
    return change(problem.design, problem.loss.shares)


class _EndedError(Exception):
    """The search has ended: the gradient is small enough if its argument is true; else the loss has
    reached ``enough``, or the deadline has passed."""


def _least_smooth(problem: Problem, enough: float, deadline: float) -> tuple[float, Array | None]:
    """The minimum and its point by L-BFGS; zero and None if the gradient stays large."""
    found = _minimise_smooth(problem, None, problem.loss.value, enough, deadline)
    if found.judged <= enough or found.is_settled:
        return found.judged, found.point[: problem.design.n_features]
    return 0.0, None


class _Descent(NamedTuple):
    """The result of L-BFGS."""

    # (n_features + 1, n_outputs); the coefficients with the least judged value, and the intercept
    # as the last row if there is one
    point: Array
    judged: float  # value of that point
    value: float  # the least of the smooth loss
    is_settled: bool  # the gradient at the end is small enough


def _minimise_smooth(
    problem: Problem,
    start: Array | None,
    judge: Callable[[Array], float],
    enough: float,
    deadline: float,
    accuracy: float = 0.0,
) -> _Descent:
    """Minimise a smooth loss by L-BFGS, until ``judge`` of the scores is at most ``enough``. Or
    until ``|gradient| (1 + |point|)`` is at most ``accuracy`` times the loss."""
    design, null = problem.design, null_point(problem)
    free = int(problem.fits_intercept)
    shape = design.n_features + free, null.intercept.size
    if start is None:
        start = np.vstack([np.zeros((design.n_features, shape[1])), *([null.intercept] * free)])
    best, judged, value = start, np.inf, np.inf

    def loss_and_gradient(flat: Array) -> tuple[float, Array]:
        nonlocal best, judged, value
        point = flat.reshape(shape)
        coef, intercept = point[: design.n_features], point[design.n_features :]
        scores = design.scores(coef) + intercept.sum(axis=0)
        here, dual = problem.loss.value_and_gradient(scores)
        seen = judge(scores)
        value = min(value, here)
        if seen < judged:
            judged, best = seen, point.copy()
        if judged <= enough or clock() >= deadline:
            raise _EndedError(False)
        slopes = [design.adjoint(dual), *([dual.sum(axis=0)] if free else [])]
        slope = np.vstack(slopes).ravel()
        if _error(slope, flat) <= accuracy * here:
            raise _EndedError(True)
        return here, slope

    limits: Any = {
        "maxiter": LBFGS_STEPS,
        "maxfun": 2 * LBFGS_STEPS,
        "ftol": 0.0,
        "gtol": 1e-14,
    }
    try:
        found = minimize(
            loss_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options=limits
        )
    except _EndedError as end:
        return _Descent(best, judged, value, *end.args)
    settled = _error(found.jac, found.x) <= MAX_RELATIVE_ERROR * value
    return _Descent(best, judged, value, settled)


def _error(slope: Array, point: Array) -> float:
    """Estimate of the distance to the infimum: ``|gradient| (1 + |point|)``."""
    return float(np.linalg.norm(slope)) * (1.0 + float(np.linalg.norm(point)))


def _are_independent(problem: Problem) -> bool:
    """Whether the samples, each extended by a one for the intercept, are linearly independent."""
    design, ones = problem.design, float(problem.fits_intercept)
    if not design.n_samples <= min(design.n_features + ones, LARGEST_SIDE):
        return False
    squares = np.linalg.eigvalsh(design.outer_gram() + ones)
    return bool(squares[0] > CLEAR_RANK * squares[-1])


def _enclosed_of_hinges(problem: Problem, rows: HingeRows, deadline: float) -> Enclosure:
    least = _least_of_hinges(problem, rows, deadline)
    if least.point is None:
        return Enclosure(0.0, np.inf, None)
    scores = problem.design.scores(least.point.coef) + least.point.intercept
    upper = problem.loss.without_budget.value(scores)
    return Enclosure(least.loss * (1.0 - MAX_RELATIVE_ERROR), upper, least.point)


def _least_of_hinges(problem: Problem, rows: HingeRows, deadline: float) -> Least:
    """The least loss of hinges by a linear program in the span of the samples."""
    bare = replace(problem, loss=problem.loss.without_budget)
    coordinates = in_short_coordinates(problem.design)
    unit = gauge_columns(ElasticNet(1.0))
    assert unit is not None
    program = HingeProgram(replace(bare, design=coordinates.design), rows, unit)
    value, found = _minimise_program(program, deadline)
    if found is None:
        return Least(value)
    coef = np.column_stack([coordinates.coef(column) for column in found.T])
    return Least(value, _with_intercept(bare, coef))


def _minimise_program(program: HingeProgram, deadline: float) -> tuple[float, Array | None]:
    """The optimal value and the coefficients; zero and None if the program is not solved."""
    problem, outputs = program.problem, program.outputs
    columns = _basis_columns(problem.design.n_features, outputs, problem.penalty.sums_to_zero)
    known = first_rows(program.rows, np.zeros(program.rows.goals.shape))
    basis: Basis | None = None
    while True:
        vertex: Vertex = solved(program.restricted(known, columns), basis, deadline=deadline)
        if not vertex.optimal:
            return 0.0, None  # zero is always a lower bound
        point = program.point(columns, vertex)
        scores = program.problem.design.scores(point.coef) + point.intercept
        new = program.rows.violated(program.rows.shortfalls(scores), known, DOMAIN_ROUNDING)
        if not new.size:
            hinges = vertex.columns[program.free : program.ahead]
            return float(program.rows.costs @ hinges), point.coef
        known, basis = np.concatenate([known, new]), vertex.basis.extended(0, new.size)
