"""MM-FDA and MM-MPM with a ridge: Newton's method in the coefficients, or in the levels.

A block o is a class of MM-MPM, or both classes of MM-FDA. ``kappa n_o = min over mu_o >= 0 of n_o^2
/ (2 mu_o) + kappa^2 mu_o / 2``. The objective minimised over w, at ``w = (l2 I + sum_o S_o /
mu_o)^-1 d`` with the difference d of the class means, is smooth and convex in the levels mu down to
zero, where a block has no spread, and the dual point for a falling level is feasible without a
projection.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import DIAGONAL_SHIFT, OBJECTIVE_ROUNDING
from proxmargin.data.designs.views import short_side
from proxmargin.functions.losses.minimax import EllipsoidLoss
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import eigen_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import (
    CLAIM_FRACTION,
    GAP_REDUCTION,
    GapState,
    Solver,
    Stop,
    at_least_one,
)
from proxmargin.solvers.minimax.ellipsoids import (
    REFINEMENTS,
    BlockSpread,
    Inverse,
    coordinates_of,
    covariances,
    ellipsoid_loss,
    spectrum,
    variances_of,
)
from proxmargin.solvers.shared.numerical import LARGEST_SIDE, inverse_of

# Lanckriet's reweighted iteration, while the coefficients have no margin
MAX_REWEIGHTED_STEPS = 100  # after which the search for a margin ends
# Newton's method in the coefficients
STALLED_STEPS = 2  # without progress: a block has nearly equal scores, continue in the levels
# levels are in units of `BlockSpread.total_variance` over l2
SMALLEST_LEVEL_RATIO = 1e-3  # trust region of a step: ratio of a new level to the old one
LARGEST_LEVEL_RATIO = 10.0
LOW_LEVEL = 1e-5  # a falling level below this is replaced by its limit, zero
LEVEL_FLOOR = 1e-10  # smallest level: 1 / level still leaves digits to the Cholesky factor
# Newton steps for the level of one block if that of the other is zero
LIMIT_NEWTON_STEPS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class MinimaxState(GapState):
    coef: Array  # (k,), in the features, or in the row span if there are fewer samples
    scores: Array  # (n_samples,)
    # (n_samples,), the gradient of the loss, or the dual point of the levels
    dual: Array | None = None
    covariances: Array  # (n_blocks, k, k), of the blocks
    # (n_blocks,), ``n_o / kappa`` after Newton's method in the coefficients has stalled
    levels: Array | None = None
    gap: float = np.inf  # smallest gap so far
    idle: int = 0  # steps without progress


@dataclass(frozen=True)
class MinimaxNewton(Solver[MinimaxState]):
    """Newton's method in the coefficients, with an exact line search.

    ``-w'd + kappa sum_o n_o + (l2/2) |w|^2`` with ``n_o^2 = w'S_o w`` has the Hessian
    ``l2 I + kappa sum_o (S_o / n_o - g_o g_o' / n_o^3)``, ``g_o = S_o w``, which is at least l2.
    The objective along a step is known from eight scalars. While w has no margin it is replaced by
    ``(sum_o S_o / n_o)^-1 d``, Lanckriet's iteration for the largest kappa with a margin, until
    there is a margin or a dual point proves that there is none.

    If no score differs within a block at the optimum, n_o has a kink there and Newton's
    method in w stalls. It then continues in the levels mu of the variational form
    ``kappa n = min over mu of n^2 / (2 mu) + kappa^2 mu / 2``.

    Parameters
    ----------
    max_stalled, max_stalled_levels : int >= 1
        Steps in w, and in the levels, without a smaller gap, which has reached rounding, after
        which the method ends. In the levels the gap can rise on the way.
    """

    max_stalled: int = 6
    max_stalled_levels: int = 8

    name: ClassVar[str] = "minimax-newton"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled", "max_stalled_levels")

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, EllipsoidLoss) and problem.has_ridge_alone
        if not fits:
            return "it needs a minimax loss and a ridge"
        side = short_side(problem.design)
        if side > LARGEST_SIDE:
            return f"it factors covariances of at most {LARGEST_SIDE} samples or features: {side}"
        return None

    def work(self, problem: Problem) -> float:
        design, side = problem.design, short_side(problem.design)
        long = max(design.n_samples, design.n_features)
        return gram_work(long, side, design.density) + eigen_work(side)

    def init(self, problem: Problem, start: Point, stop: Stop) -> MinimaxState:
        coordinates, loss = coordinates_of(problem), ellipsoid_loss(problem)
        design = coordinates.design
        coef = coordinates.of(start.coef[:, 0])
        if not coef.any():
            coef = -design.adjoint(loss.form.offset[:, None])[:, 0] / problem.penalty.l2
        return MinimaxState(
            coef=coef,
            scores=design.scores(coef[:, None])[:, 0],
            covariances=covariances(loss, design),
            tol=CLAIM_FRACTION * stop.tol,
            unpolished=stop.polish,
        )

    def step(self, problem: Problem, state: MinimaxState) -> MinimaxState:
        if not state.coef.any():
            return state.but(n_iter=state.n_iter + 1, finished=True)
        if state.levels is not None:
            return _level_step(problem, state, state.levels, self.max_stalled_levels)
        value = ellipsoid_loss(problem).value(state.scores[:, None])
        if value >= 0:
            return _reweighted_step(problem, state)
        multiple = problem.penalty.best_multiple(state.coef[:, None], value)
        scaled = replace(state, coef=multiple * state.coef, scores=multiple * state.scores)
        return _newton_step(problem, scaled, self.max_stalled)

    def point(self, problem: Problem, state: MinimaxState) -> Point:
        return Point(coordinates_of(problem).coef(state.coef)[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: MinimaxState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]


def _newton_step(problem: Problem, state: MinimaxState, max_stalled: int) -> MinimaxState:
    """A Newton step in the coefficients. After `STALLED_STEPS` without progress it hands over to
    the levels; without a standard deviation in the loss the state is finished after
    ``max_stalled``."""
    at, l2 = _spread(problem, state), problem.penalty.l2
    gradient = at.adjoint(at.dual()) + l2 * state.coef
    direction = at.solve_hessian(l2, -gradient)
    moved = at.scores_of(direction)
    length = at.step_length(direction, moved, l2)
    coef, scores = state.coef + length * direction, state.scores + length * moved
    reached = BlockSpread(problem, coef, scores, state.covariances)
    dual = reached.dual()
    gap = _gap_of(problem, coef, scores, dual)
    idle = 0 if gap < GAP_REDUCTION * state.gap else state.idle + 1
    change = length * float(np.linalg.norm(direction))
    # a zero step is a stall too: with equal scores in a block the objective has a kink
    stalled = idle >= STALLED_STEPS or change == 0.0
    levels = reached.sizes / at.kappa if stalled and at.kappa > 0 else None
    after = state.but(
        n_iter=state.n_iter + 1,
        coef=coef,
        scores=scores,
        levels=levels,
        dual=dual,
        gap=min(gap, state.gap),
        idle=idle,
        point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
        finished=levels is None and (change == 0.0 or idle >= max_stalled),
    )
    return _with_gap(problem, after, gap)


def _reweighted_step(problem: Problem, state: MinimaxState) -> MinimaxState:
    """A reweighted step towards a direction with a margin, or a proof that there is none."""
    at = _spread(problem, state)
    difference = at.mean_difference()
    coef = at.solve_weighted(DIAGONAL_SHIFT * at.curvatures(), difference)
    scores = at.scores_of(coef)
    reached = state.but(n_iter=state.n_iter + 1, coef=coef, scores=scores)
    u = at.weighted(at.form.deviations(scores)) / at.kappa
    if all(float(np.linalg.norm(u[one])) <= 1.0 for one in at.form.blocks):
        zero = np.zeros_like(coef), np.zeros_like(scores)
        dual = at.form.dual_point(at.form.project(u))
        most = float(difference @ difference) / problem.penalty.l2
        if _gap_of(problem, *zero, dual) <= OBJECTIVE_ROUNDING * most:
            return reached.but(coef=zero[0], scores=zero[1], dual=dual, finished=True)
    return reached.but(idle=state.idle + 1, finished=state.idle >= MAX_REWEIGHTED_STEPS)


def _spread(problem: Problem, state: MinimaxState) -> BlockSpread:
    return BlockSpread(problem, state.coef, state.scores, state.covariances)


def _level_step(
    problem: Problem, state: MinimaxState, levels: Array, max_stalled: int
) -> MinimaxState:
    """A Newton step in the levels; the coefficients are the minimiser at the current ones. Finished
    after ``max_stalled`` steps without a smaller gap, or a level that moves."""
    before = BlockSpread(problem, state.coef, state.scores, state.covariances)
    l2 = problem.penalty.l2
    unit = before.total_variance() / l2
    values = np.maximum(levels, LEVEL_FLOOR * unit)
    solve = inverse_of(before.matrix(l2, 1.0 / values), overwrite=True)
    coef = before.refined(solve, l2, 1.0 / values, before.mean_difference())
    at = BlockSpread(problem, coef, before.scores_of(coef), state.covariances)
    slope, hessian = _derivatives(at, values, solve)
    at, dual, gap = _better_of_limit(
        problem, at, values, (slope > 0) & (values <= LOW_LEVEL * unit)
    )
    following = _next_levels(values, slope, hessian, LOW_LEVEL * unit)
    moved = np.abs(np.maximum(following, LEVEL_FLOOR * unit) - values)
    still_moving = bool((moved > 0.5 * values).any())  # that is progress whatever the gap
    idle = 0 if still_moving or gap < GAP_REDUCTION * state.gap else state.idle + 1
    after = state.but(
        n_iter=state.n_iter + 1,
        coef=at.coef,
        scores=at.scores,
        dual=dual,
        levels=following,
        gap=min(gap, state.gap),
        idle=idle,
        finished=idle >= max_stalled,
    )
    return _with_gap(problem, after, gap)


def _derivatives(at: BlockSpread, levels: Array, solve: Inverse) -> tuple[Array, Array]:
    """Gradient and Hessian of the objective in the levels, minimised over w."""
    pulls = np.stack([at.covariance_product(k) / levels[k] ** 2 for k in range(levels.size)], 1)
    slope = 0.5 * (at.kappa**2 - (at.sizes / levels) ** 2)
    return slope, np.diag(at.sizes**2 / levels**3) - pulls.T @ solve(pulls)


def _next_levels(levels: Array, slope: Array, hessian: Array, low: float) -> Array:
    """A Newton step in the levels, in a trust region for the ratio of new to old. A low level
    that still falls is set to zero, and dropped from the equation of the other one, if any."""
    falling = (slope > 0) & (levels <= low)
    concave = np.where(slope > 0, 1.0 / LARGEST_LEVEL_RATIO, LARGEST_LEVEL_RATIO)
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
    problem: Problem, at: BlockSpread, levels: Array, collapsed: NDArray[np.bool_]
) -> tuple[BlockSpread, Array, float]:
    """The point, its dual point and gap; those of the limit of ``collapsed`` levels if better."""
    dual = at.dual_at_levels(levels)
    gap = _gap_of(problem, at.coef, at.scores, dual)
    if not collapsed.any():
        return at, dual, gap
    limit, limit_dual = _limit(problem, at, levels, collapsed)
    limit_gap = _gap_of(problem, limit.coef, limit.scores, limit_dual)
    return (limit, limit_dual, limit_gap) if limit_gap < gap else (at, dual, gap)


def _limit(
    problem: Problem, at: BlockSpread, levels: Array, collapsed: NDArray[np.bool_]
) -> tuple[BlockSpread, Array]:
    """The limit of coefficients and dual point as the levels of some blocks go to zero.

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
    for one, level, gone in zip(form.blocks, levels, collapsed, strict=True):
        u[one] = 0.0 if gone else u[one] / level
    for _ in range(1 + REFINEMENTS):
        residual = -at.adjoint(form.dual_point(u)) - l2 * limit.coef
        regression = basis @ ((basis.T @ residual) / values[in_range])
        change = form.deviations(at.scores_of(regression)) / at.kappa
        for one, gone in zip(form.blocks, collapsed, strict=True):
            u[one] += change[one] if gone else 0.0
    return limit, form.dual_point(form.project(u))


def _in_null_space(
    problem: Problem,
    at: BlockSpread,
    levels: Array,
    collapsed: NDArray[np.bool_],
    null: Array,
) -> tuple[BlockSpread, Array]:
    """Coefficients in the null space of some covariances, and the level of the other block. That
    level belonged to coefficients outside of the null space; Newton steps correct it."""
    l2, difference = problem.penalty.l2, at.mean_difference()
    if not null.shape[1]:
        zero = BlockSpread(problem, 0.0 * difference, 0.0 * at.scores, at.covariances)
        return zero, levels
    for _ in range(LIMIT_NEWTON_STEPS):
        weights = np.where(collapsed, 0.0, 1.0 / levels)
        inner = inverse_of(null.T @ at.matrix(l2, weights) @ null)
        solve = partial(_solve_within, null, inner)
        coef = at.refined(solve, l2, weights, difference)
        at = BlockSpread(problem, coef, at.scores_of(coef), at.covariances)
        levels = _corrected(at, levels, collapsed, solve)
    return at, levels


def _corrected(
    at: BlockSpread, levels: Array, collapsed: NDArray[np.bool_], solve: Inverse
) -> Array:
    """A Newton step in the levels that are not collapsed, each on its own."""
    corrected = levels.copy()
    for k in np.flatnonzero(~collapsed).tolist():
        size, level = at.sizes[k], levels[k]
        pull = at.covariance_product(k) / level**2
        curvature = size**2 / level**3 - float(pull @ solve(pull))
        slope = 0.5 * (at.kappa**2 - (size / level) ** 2)
        if curvature > 0:
            corrected[k] = np.clip(level - slope / curvature, 0.5 * level, 2.0 * level)
    return corrected


def _solve_within(basis: Array, inner: Inverse, right: Array) -> Array:
    """``basis inner(basis' right)``: the solution of a system in the span of ``basis``."""
    solution: Array = basis @ inner(basis.T @ right)
    return solution


def _gap_of(problem: Problem, coef: Array, scores: Array, dual: Array) -> float:
    """The duality gap of coefficients, (k,), with their scores, and a dual point, (n_samples,)."""
    l2, design = problem.penalty.l2, coordinates_of(problem).design
    residual = l2 * coef + design.adjoint(dual[:, None])[:, 0]
    young = ellipsoid_loss(problem).fenchel_young(scores[:, None], dual[:, None])
    return young + float(residual @ residual) / (2.0 * l2)


def _with_gap(problem: Problem, state: MinimaxState, gap: float) -> MinimaxState:
    """The state with its relative gap, and a claim if that meets the tolerance."""
    value = ellipsoid_loss(problem).value(state.scores[:, None])
    value += 0.5 * problem.penalty.l2 * float(state.coef @ state.coef)
    return state.but(relative_gap=gap / max(abs(value), problem.negligible)).claimed(final=True)
