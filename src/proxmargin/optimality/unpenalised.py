"""Features without a penalty: their best coefficients, computed with the intercept.

Without a penalty on feature j a dual point q is feasible only if ``x_j'q = 0``, as ``1'q = 0`` for
a free intercept. The gradient of the loss at the best coefficients of these few features satisfies
that, whatever the other coefficients are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import (
    DIAGONAL_SHIFT,
    EPS,
    OBJECTIVE_ROUNDING,
    ROOT_STEPS,
    STALLED_SLOPE,
)
from proxmargin.data.inputs.targets import SHOWN
from proxmargin.functions.losses.intercept import Slope, halved_slope
from proxmargin.optimality.problem import (
    LEAST_SINGULAR_VALUE,
    Point,
    Problem,
    UnitColumns,
    unit_columns,
)
from proxmargin.runtime.types import Array

STEPS_TO_SEPARATE = 10  # between trials of longer coefficients, which may separate the classes
# lower bounds of a sample's curvature over the largest of the loss, used in turn: the last one
# leaves linear pieces of the loss, which have no curvature
CURVATURE_FLOORS = (0.0, 1e-9, 1e-5, 1e-2)
LEAST_SHIFT = 1e-25  # ridge over the largest curvature: bounds the step that is line-searched
NEGLIGIBLE_LOSS = 1e-8  # of separated classes, over that at zero coefficients or a mean of one


class DependentError(ValueError):
    """Unpenalised features are linearly dependent, or nearly so."""


def unpenalised_columns(problem: Problem) -> UnitColumns:
    """The columns of the unpenalised features, copied once a problem. Raises DependentError: they
    are dependent up to rounding, and no certificate holds for their coefficients."""
    return problem.remembered(_columns)


def _columns(problem: Problem) -> UnitColumns:
    columns = unit_columns(problem, problem.unpenalised)
    if columns.least < LEAST_SINGULAR_VALUE:
        raise DependentError(
            f"the {columns.unit.size} features without a penalty are linearly dependent, or all "
            f"but ({_listed(problem.unpenalised)}; least singular value {columns.least:.1e} of "
            "their scaled columns): leave out one that the others tell, or give it a "
            "penalty_factor > 0"
        )
    return columns


def _listed(index: NDArray[np.intp]) -> str:
    shown = ", ".join(map(str, index[:SHOWN]))
    return f"numbers {shown}{', ...' if index.size > SHOWN else ''}, counted from 0"


def are_separated(problem: Problem) -> bool:
    """Whether unpenalised features alone separate the classes: the loss of the null model is
    negligible, and no strength is needed to keep the other coefficients at zero."""
    return bool(problem.unpenalised.size) and problem.value(null_point(problem)) < NEGLIGIBLE_LOSS


def null_point(problem: Problem) -> Point:
    """Zero coefficients with the best intercept, and unpenalised features with their best
    coefficients: where a regularisation path starts."""
    return problem.remembered(_null_point) if problem.unpenalised.size else _null_point(problem)


def _null_point(problem: Problem) -> Point:
    origin = problem.origin()
    scores = np.zeros((problem.design.n_samples, problem.loss.n_outputs))
    best = problem.loss.best_intercept(scores, problem.intercept, origin.intercept)
    null = Point(origin.coef, best)
    if not problem.unpenalised.size:
        return null
    return with_optimal_unpenalised(problem, null, scores + best)[0]


def better_start(problem: Problem, point: Point) -> Point:
    """``point`` moved into the domain, or the null model if that has a lower objective."""
    start, null = problem.projected(point), null_point(problem)
    return start if problem.value(start) <= problem.value(null) else null


def smooth_critical_strength(problem: Problem) -> float:
    """The least l1 strength for which zero coefficients are optimal, of a smooth loss."""
    null = null_point(problem)
    shape = problem.design.n_samples, problem.loss.n_outputs
    bare = problem.design.scores(null.coef) if null.coef.any() else np.zeros(shape)
    _, dual = problem.loss.value_and_gradient(bare + null.intercept)
    return problem.penalty.critical_strength(-problem.design.adjoint(dual))


def with_optimal_unpenalised(problem: Problem, point: Point, scores: Array) -> tuple[Point, Array]:
    """The point with the best coefficients of the unpenalised features, and its scores: by Newton's
    method in these and the intercept, with bounds as an active set. ``scores``, (n_samples, 1), are
    of ``point`` with the best intercept."""
    columns, index, loss = unpenalised_columns(problem), problem.unpenalised, problem.loss
    start = point.coef[index, 0] * columns.unit
    at, here, intercept, last = start, scores, point.intercept, np.inf
    for step in range(ROOT_STEPS):
        if step % STEPS_TO_SEPARATE == STEPS_TO_SEPARATE - 1:
            separating = _separating(problem, columns, at, here - intercept, intercept)
            if separating is not None:
                at, intercept = separating
                break
        _, dual = loss.value_and_gradient(here)
        slope = columns.matrix.T @ dual[:, 0]
        outward = ((at <= columns.lower) & (slope > 0)) | ((at >= columns.upper) & (slope < 0))
        free = np.flatnonzero(~outward)
        size, rounded = _slope_sizes(problem, columns, here, dual)
        residual = float(np.abs(slope[free]).max(initial=0.0))
        stalled = residual <= STALLED_SLOPE * size and residual > 0.5 * last
        if stalled or residual <= EPS * (size + rounded):
            break
        last = residual
        # none in every fourth step, higher ones later
        last_floor = len(CURVATURE_FLOORS) - 1
        floor = CURVATURE_FLOORS[min(step // 4, last_floor)] if step % 4 else 0.0
        direction, shift = _newton(problem, columns, here, intercept, slope, free, floor)
        moved = (columns.matrix[:, free] @ direction + shift)[:, None]
        # where the loss is linear its curvature, and so the length of this step, means nothing: no
        # score moves by more than twice the largest one and a margin
        furthest = 2.0 * (1.0 + float(np.abs(here).max()))
        share = min(1.0, furthest / max(float(np.abs(moved).max()), furthest))
        direction, shift, moved = share * direction, share * shift, share * moved
        length = min(
            _length(problem, here, moved, intercept, shift),
            _max_step(at[free], direction, columns.lower[free], columns.upper[free]),
        )
        at = at.copy()
        at[free] = np.clip(at[free] + length * direction, columns.lower[free], columns.upper[free])
        bare = here + length * moved - (intercept + length * shift)
        intercept = loss.best_intercept(bare, problem.intercept, intercept + length * shift)
        here = bare + intercept
    if np.array_equal(at, start):
        return point, scores
    return _with_free_coefficients(problem, point, at / columns.unit, intercept)


def _separating(
    problem: Problem, columns: UnitColumns, at: Array, bare: Array, intercept: Array
) -> tuple[Array, Array] | None:
    """A multiple of the coefficients that makes the loss negligible, with its intercept; or None.
    Where unpenalised features separate the classes, the loss falls to zero along a ray, but by a
    constant factor only in each step of Newton's method."""
    if not np.all((columns.lower == -np.inf) & (columns.upper == np.inf)):
        return None
    along, loss, last, factor = columns.matrix @ at, problem.loss, np.inf, 1.0
    for _ in range(ROOT_STEPS):
        longer = bare + (factor - 1.0) * along[:, None]
        intercept = loss.best_intercept(longer, problem.intercept, intercept)
        value = loss.value(longer + intercept) + problem.intercept.value(intercept[None, :])
        if value <= OBJECTIVE_ROUNDING * problem.negligible:
            return factor * at, intercept
        if not value < 0.5 * last:
            return None
        last, factor = value, 2.0 * factor
    return None


def _slope_sizes(
    problem: Problem, columns: UnitColumns, scores: Array, dual: Array
) -> tuple[float, float]:
    """The largest sum of the absolute terms of a slope, and what a relative error of the scores is
    multiplied by in it: the larger one where dual coordinates are small differences of scores."""
    curvatures = problem.loss.curvatures(scores) * (np.abs(scores) + problem.loss.largest_offset)
    terms = np.abs(columns.matrix).T @ np.hstack([np.abs(dual), curvatures])
    size, rounded = terms.max(axis=0, initial=0.0)
    return float(size), float(rounded)


def _with_free_coefficients(
    problem: Problem, point: Point, best: Array, intercept: Array
) -> tuple[Point, Array]:
    """The point with these coefficients, and scores by the design."""
    coef = point.coef.copy()
    coef[problem.unpenalised, 0] = best
    bare = problem.design.scores(coef)
    intercept = problem.loss.best_intercept(bare, problem.intercept, point.intercept)
    return point._replace(coef=coef, intercept=intercept), bare + intercept


def _newton(
    problem: Problem,
    columns: UnitColumns,
    scores: Array,
    intercept: Array,
    slope: Array,
    free: NDArray[np.intp],
    floor: float,
) -> tuple[Array, Array]:
    """The Newton step of the free coefficients, (k,), and of the intercept, (1,)."""
    curvature, most = problem.loss.curvatures(scores)[:, 0], problem.loss.row_curvatures
    curvature = np.maximum(curvature, floor * most)
    matrix = columns.matrix[:, free]
    hessian = matrix.T @ (curvature[:, None] * matrix)
    total = float(curvature.sum()) + problem.intercept.l2 if problem.fits_intercept else 0.0
    cross = curvature @ matrix
    mean = cross / total if total > 0 else np.zeros_like(cross)
    hessian -= np.outer(cross, mean)
    shift = DIAGONAL_SHIFT * float(np.trace(hessian)) / max(free.size, 1)
    hessian[np.diag_indices_from(hessian)] += max(shift, LEAST_SHIFT * float(most.sum()))
    direction = -np.asarray(np.linalg.lstsq(hessian, slope[free], rcond=None)[0], np.float64)
    return direction, np.array([-float(mean @ direction)])


def _length(problem: Problem, scores: Array, moved: Array, intercept: Array, shift: Array) -> float:
    """A step length at which the slope has at least halved and the objective is no larger; beyond a
    kink it may be."""
    ridge = problem.intercept.l2
    start = problem.loss.value(scores) + 0.5 * ridge * float(intercept @ intercept)

    def along(step: float) -> Slope:
        value, dual = problem.loss.value_and_gradient(scores + step * moved)
        at = intercept + step * shift
        slope = float(np.vdot(dual, moved)) + ridge * float(at @ shift)
        rises = value + 0.5 * ridge * float(at @ at) > (1.0 + OBJECTIVE_ROUNDING) * start
        return Slope(np.inf if rises else slope, np.array([step]), dual, dual)

    first = along(0.0).slope
    if not first < 0.0:
        return 0.0
    found = halved_slope(along, first, 0.0)
    return float(found.point[0]) if found.slope < np.inf else 0.0


def _max_step(at: Array, direction: Array, lower: Array, upper: Array) -> float:
    """The largest step length that keeps the coefficients between their bounds."""
    bound = np.where(direction > 0, upper, lower)
    limited = (direction != 0) & np.isfinite(bound)
    return float(((bound - at)[limited] / direction[limited]).min(initial=np.inf))
