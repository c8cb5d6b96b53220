"""MM-MPM with a ridge: Newton's method in the levels of the classes, where a spread may be zero.

``kappa n_o = min over mu_o >= 0 of n_o^2 / (2 mu_o) + kappa^2 mu_o / 2``. The objective minimised
over w, at ``w = (l2 I + sum_o S_o / mu_o)^-1 d`` with the difference d of the class means, is
smooth and convex in the two levels mu down to zero, and the dual point for a falling level is
feasible without a projection.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array
from proxmargin.problem import Problem
from proxmargin.solvers.linear_algebra import inverse_of
from proxmargin.solvers.minimax.class_spread import REFINEMENTS, FormedSpread, Inverse
from proxmargin.solvers.minimax.ellipsoids import spectrum, variances_of
from proxmargin.solvers.minimax.probability_state import (
    GAP_REDUCTION,
    Levels,
    ProbabilityState,
    gap_of,
    priced,
)

__all__ = ["level_step"]

# levels are in units of `FormedSpread.total_variance` over l2
SMALLEST_LEVEL_RATIO = 1e-3  # trust region of a step: ratio of a new level to the old one
LARGEST_LEVEL_RATIO = 10.0
CONCAVE_LEVEL_RATIO = 0.1  # of a falling level without positive curvature
LEVEL_MOVED = 0.5  # relative change of a level that counts as progress whatever the gap
LOW_LEVEL = 1e-5  # a falling level below this is replaced by its limit, zero
LEVEL_FLOOR = 1e-10  # smallest level: 1 / level still leaves digits to the Cholesky factor
# Newton steps for the level of one class if that of the other is zero
LIMIT_NEWTON_STEPS = 3
SMALLEST_LIMIT_RATIO = 0.5  # their trust region
LARGEST_LIMIT_RATIO = 2.0


def level_step(
    problem: Problem, state: ProbabilityState, levels: Levels, max_stalled: int
) -> ProbabilityState:
    """A Newton step in the levels; the coefficients are the minimiser at the current ones.

    Parameters
    ----------
    max_stalled : int
        Steps without a smaller gap, or a level that moves, after which the state is finished.
    """
    before = FormedSpread(problem, state.coef, state.scores, levels.covariances)
    l2 = problem.penalty.l2
    unit = before.total_variance() / l2
    values = np.maximum(levels.values, LEVEL_FLOOR * unit)
    solve = inverse_of(before.matrix(l2, 1.0 / values), overwrite=True)
    coef = before.refined(solve, l2, 1.0 / values, before.mean_difference())
    at = FormedSpread(problem, coef, before.scores_of(coef), levels.covariances)
    slope, hessian = _derivatives(at, values, solve)
    at, dual, gap = _better_of_limit(
        problem, at, values, (slope > 0) & (values <= LOW_LEVEL * unit)
    )
    following = _next_levels(values, slope, hessian, LOW_LEVEL * unit)
    moved = np.abs(np.maximum(following, LEVEL_FLOOR * unit) - values)
    still_moving = bool((moved > LEVEL_MOVED * values).any())
    idle = 0 if still_moving or gap < GAP_REDUCTION * state.gap else state.idle + 1
    after = state.but(
        n_iter=state.n_iter + 1,
        coef=at.coef,
        scores=at.scores,
        dual=dual,
        levels=levels._replace(values=following),
        gap=min(gap, state.gap),
        idle=idle,
        finished=idle >= max_stalled,
    )
    return priced(problem, after, gap)


def _derivatives(at: FormedSpread, levels: Array, solve: Inverse) -> tuple[Array, Array]:
    """Gradient (2,) and Hessian (2, 2) of the objective in the levels, minimised over w."""
    pulls = np.stack([at.covariance_product(k) / levels[k] ** 2 for k in range(2)], axis=1)
    slope = 0.5 * (at.kappa**2 - (at.sizes / levels) ** 2)
    return slope, np.diag(at.sizes**2 / levels**3) - pulls.T @ solve(pulls)


def _next_levels(levels: Array, slope: Array, hessian: Array, low: float) -> Array:
    """A Newton step in the two levels, in a trust region for the ratio of new to old.

    A low level that still falls is set to zero, and dropped from the equation of the other one.
    """
    falling = (slope > 0) & (levels <= low)
    concave = np.where(slope > 0, CONCAVE_LEVEL_RATIO, LARGEST_LEVEL_RATIO)
    wanted = np.where(falling, 0.0, levels * concave)
    rest = np.flatnonzero(~falling)
    part = hessian[np.ix_(rest, rest)]
    if rest.size and np.linalg.eigvalsh(part)[0] > 0:
        wanted[rest] = levels[rest] - np.linalg.solve(part, slope[rest])
    else:  # rounding of the curvature in one level is no reason to give up that in the other
        own = rest[np.diagonal(part) > 0]
        wanted[own] = levels[own] - slope[own] / hessian[own, own]
    moved: Array = np.clip(wanted, SMALLEST_LEVEL_RATIO * levels, LARGEST_LEVEL_RATIO * levels)
    return moved


def _better_of_limit(
    problem: Problem, at: FormedSpread, levels: Array, collapsed: NDArray[np.bool_]
) -> tuple[FormedSpread, Array, float]:
    """The point, its dual point and gap; those of the limit of ``collapsed`` levels if better."""
    dual = at.dual_at_levels(levels)
    gap = gap_of(problem, at.coef, at.scores, dual)
    if not collapsed.any():
        return at, dual, gap
    limit, limit_dual = _limit(problem, at, levels, collapsed)
    limit_gap = gap_of(problem, limit.coef, limit.scores, limit_dual)
    return (limit, limit_dual, limit_gap) if limit_gap < gap else (at, dual, gap)


def _limit(
    problem: Problem, at: FormedSpread, levels: Array, collapsed: NDArray[np.bool_]
) -> tuple[FormedSpread, Array]:
    """The limit of coefficients and dual point as the levels of some classes go to zero.

    w is orthogonal to the range of their covariances S. Their multipliers are the least-norm
    solution of the remaining stationarity conditions in that range: ``v = X g`` with
    ``S g = d - l2 w - sum of S_o w / mu_o over the others``.
    """
    form, l2 = at.form, problem.penalty.l2
    values, vectors = spectrum(at.matrix(0.0, collapsed.astype(float)), variances_of(problem))
    in_range = values > 0
    null, basis = vectors[:, ~in_range], vectors[:, in_range]
    limit, levels = _in_null_space(problem, at, levels, collapsed, null)
    u = limit.v / at.kappa
    for one, level, gone in zip(form.classes, levels, collapsed, strict=True):
        u[one] = 0.0 if gone else u[one] / level
    for _ in range(1 + REFINEMENTS):
        residual = -at.adjoint(form.dual_point(u)) - l2 * limit.coef
        regression = basis @ ((basis.T @ residual) / values[in_range])
        change = form.deviations(at.scores_of(regression)) / at.kappa
        for one, gone in zip(form.classes, collapsed, strict=True):
            u[one] += change[one] if gone else 0.0
    return limit, form.dual_point(form.project(u))


def _in_null_space(
    problem: Problem,
    at: FormedSpread,
    levels: Array,
    collapsed: NDArray[np.bool_],
    null: Array,
) -> tuple[FormedSpread, Array]:
    """Coefficients in the null space of some covariances, and the level of the other class.

    That level belonged to coefficients outside of the null space; Newton steps correct it.
    """
    l2, difference = problem.penalty.l2, at.mean_difference()
    if not null.shape[1]:
        zero = FormedSpread(problem, 0.0 * difference, 0.0 * at.scores, at.covariances)
        return zero, levels
    for _ in range(LIMIT_NEWTON_STEPS):
        weights = np.where(collapsed, 0.0, 1.0 / levels)
        inner = inverse_of(null.T @ at.matrix(l2, weights) @ null)
        solve = partial(_solve_within, null, inner)
        coef = at.refined(solve, l2, weights, difference)
        at = FormedSpread(problem, coef, at.scores_of(coef), at.covariances)
        levels = _corrected(at, levels, collapsed, solve)
    return at, levels


def _corrected(
    at: FormedSpread, levels: Array, collapsed: NDArray[np.bool_], solve: Inverse
) -> Array:
    """A Newton step in the levels that are not collapsed, each on its own."""
    corrected = levels.copy()
    for k in np.flatnonzero(~collapsed).tolist():
        size, level = at.sizes[k], levels[k]
        pull = at.covariance_product(k) / level**2
        bend = size**2 / level**3 - float(pull @ solve(pull))
        slope = 0.5 * (at.kappa**2 - (size / level) ** 2)
        if bend > 0:
            least, most = SMALLEST_LIMIT_RATIO * level, LARGEST_LIMIT_RATIO * level
            corrected[k] = np.clip(level - slope / bend, least, most)
    return corrected


def _solve_within(basis: Array, inner: Inverse, right: Array) -> Array:
    """``basis inner(basis' right)``: the solution of a system in the span of ``basis``."""
    solution: Array = basis @ inner(basis.T @ right)
    return solution
