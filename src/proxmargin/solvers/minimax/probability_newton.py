"""MM-MPM with a ridge: Newton's method in the coefficients, or in the levels of the classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array, subtract_outer
from proxmargin.loop.solver import CLAIM_FRACTION, PricedState, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.minimax import MinimaxProbability
from proxmargin.problem import Point, Problem
from proxmargin.solvers.line_search import increasing_root
from proxmargin.solvers.linear_algebra import conjugate_gradients, inverse_of
from proxmargin.solvers.minimax.ellipsoids import (
    coordinates_of,
    covariances,
    ellipsoid_loss,
    forms_covariances,
    is_ridge,
    spectrum,
    variances_of,
)
from proxmargin.traits import Trait

__all__ = ["ProbabilityNewton", "ProbabilityState"]

# Lanckriet's reweighted iteration, while the coefficients have no margin
REWEIGHTED_REGULARISATION = 1e-14  # over the diagonal: the pooled covariance may be singular
MAX_REWEIGHTED_STEPS = 100  # after which the search for a margin ends
MARGIN_GAP = 1e-14  # gap that proves w = 0 optimal, relative to |difference of means|^2 / l2
# Newton systems without a covariance matrix: CG, with a tolerance proportional to the gradient
CG_STEPS = 50  # iteration limit
LOOSEST_CG_TOLERANCE = 0.1  # relative residual
TIGHTEST_CG_TOLERANCE = 1e-8  # relative residual
# exact line search
LINE_SEARCH_STEPS = 100  # limit; bisections exhaust the 53 bits of a step long before
LINE_SEARCH_TOLERANCE = 1e-6  # ratio of slopes; tight, as an evaluation takes eight scalars
# convergence, by the duality gap
GAP_REDUCTION = 0.8  # ratio to the smallest gap so far, below which a gap is progress
STALLED_STEPS = 2  # without progress: a class has nearly equal scores, continue in the levels
# Newton's method in the levels; levels are in units of the mean variance over l2
REFINEMENTS = 2  # of a linear system, each with a residual from the data
SMALLEST_LEVEL_RATIO = 1e-3  # trust region of a step: ratio of a new level to the old one
LARGEST_LEVEL_RATIO = 10.0
LEVEL_MOVED = 0.5  # relative change of a level that counts as progress whatever the gap
LOW_LEVEL = 1e-5  # a falling level below this is replaced by its limit, zero
LEVEL_FLOOR = 1e-10  # smallest level: 1 / level still leaves digits to the Cholesky factor
ROUNDED_COEFFICIENT = 1e-8  # over |w|, below which a coefficient does not set the unit of levels
LIMIT_NEWTON_STEPS = 3  # for the level of one class if that of the other is zero


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbabilityState(PricedState):
    """The state of `ProbabilityNewton`.

    Attributes
    ----------
    coef : (k,)
        In the features, or in the row span if there are fewer samples.
    scores : (n_samples,)
    dual : (n_samples,)
        The better of two dual points: the gradient of the loss, and the multipliers of the last
        quadratic model.
    covariances : (2, k, k)
        Covariances of the two classes, if they are formed.
    levels : (2,)
        ``n_o / kappa`` of the classes as variables of their own, after Newton's method in the
        coefficients has stalled.
    gap : float
        Smallest gap so far.
    idle : int
        Steps without progress.
    """

    coef: Array
    scores: Array
    dual: Array | None = None
    covariances: Array | None = None
    levels: Array | None = None
    gap: float = np.inf
    idle: int = 0


@dataclass(frozen=True)
class ProbabilityNewton(Solver[ProbabilityState]):
    """MM-MPM with a ridge: Newton's method in the coefficients, with an exact line search.

    ``-w'd + kappa (n_+ + n_-) + (l2/2) |w|^2`` with ``n_o^2 = w'S_o w`` has the Hessian
    ``l2 I + kappa sum_o (S_o / n_o - g_o g_o' / n_o^3)``, ``g_o = S_o w``, which is at least l2.
    The objective along a step is known from eight scalars. While w has no margin it is replaced by
    ``(sum_o S_o / n_o)^-1 d``, Lanckriet's iteration for the largest kappa with a margin, until
    there is a margin or a dual point proves that there is none.

    If all samples of a class have the same score at the optimum, n_o has a kink there and Newton's
    method in w stalls. It then continues in the two levels mu of the variational form
    ``kappa n = min over mu of n^2 / (2 mu) + kappa^2 mu / 2``: the objective minimised over w is
    smooth and convex in them down to zero, ``w = (l2 I + sum_o S_o / mu_o)^-1 d``, and the dual
    point for a falling level is feasible without a projection.

    Parameters
    ----------
    max_stalled, max_stalled_levels : int >= 1
        Steps in w, and in the levels, without a smaller gap, which has reached rounding, after
        which the method ends. In the levels the gap can rise on the way.
    """

    max_stalled: int = 6
    max_stalled_levels: int = 8

    name: ClassVar[str] = "probability-newton"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled", "max_stalled_levels")

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, MinimaxProbability) and is_ridge(problem)
        return None if fits else "it needs the loss of minimax probability machines and a ridge"

    def init(self, problem: Problem, start: Point, stop: Stop) -> ProbabilityState:
        formed = forms_covariances(problem, stop.deadline)
        coordinates, loss = coordinates_of(problem), ellipsoid_loss(problem)
        design = coordinates.design
        coef = coordinates.of(start.coef[:, 0])
        if not coef.any():
            coef = -design.adjoint(loss.form.offset[:, None])[:, 0] / problem.penalty.l2
        return ProbabilityState(
            coef=coef,
            scores=design.scores(coef[:, None])[:, 0],
            covariances=np.stack(covariances(loss, design)) if formed else None,
            tol=CLAIM_FRACTION * stop.tol,
            unpolished=stop.polish,
        )

    def step(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        if not state.coef.any():
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        if state.levels is not None:
            return self._in_levels(problem, state, state.levels)
        value = ellipsoid_loss(problem).value(state.scores[:, None])
        if value >= 0:
            return self._without_margin(problem, state)
        multiple = problem.penalty.best_multiple(state.coef[:, None], value)
        return self._newton(
            problem, replace(state, coef=multiple * state.coef, scores=multiple * state.scores)
        )

    def observe(self, problem: Problem, state: ProbabilityState, gap: Gap) -> ProbabilityState:
        return state.observed()

    def point(self, problem: Problem, state: ProbabilityState) -> Point:
        return Point(coordinates_of(problem).coef(state.coef)[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: ProbabilityState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]

    def _newton(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        at, l2 = _Spread(problem, state), problem.penalty.l2
        gradient = at.pull(at.dual()) + l2 * state.coef
        direction = at.solved(l2, at.bent, -gradient)
        moved = at.design.scores(direction[:, None])[:, 0]
        length = at.step_length(direction, moved, l2)
        reached = replace(
            state, coef=state.coef + length * direction, scores=state.scores + length * moved
        )
        duals = _Spread(problem, reached).dual(), at.multipliers(moved)
        gaps = [_gap(problem, reached, dual) for dual in duals]
        best = int(np.argmin(gaps))
        idle = 0 if gaps[best] < GAP_REDUCTION * state.gap else state.idle + 1
        change = length * float(np.linalg.norm(direction))
        # a zero step is a stall too: with equal scores in a class the objective has a kink
        still = idle >= STALLED_STEPS or change == 0.0
        stuck = still and state.covariances is not None and at.kappa > 0
        there = reached.but(
            n_iter=state.n_iter + 1,
            levels=_Spread(problem, reached).sizes / at.kappa if stuck else None,
            dual=duals[best],
            gap=min(gaps[best], state.gap),
            idle=idle,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
            finished=not stuck and (change == 0.0 or idle >= self.max_stalled),
        )
        return _priced(problem, there, gaps[best])

    def _in_levels(
        self, problem: Problem, state: ProbabilityState, levels: Array
    ) -> ProbabilityState:
        """A Newton step in the levels; the coefficients are the minimiser at the current ones."""
        at, l2 = _Spread(problem, state), problem.penalty.l2
        unit = at.variance() / l2
        levels = np.maximum(levels, LEVEL_FLOOR * unit)
        solve = inverse_of(at.matrix(l2, 1.0 / levels), overwrite=True)
        coef = at.refined(solve, l2, 1.0 / levels, -at.pull(at.form.offset))
        scores = at.design.scores(coef[:, None])[:, 0]
        reached = replace(state, coef=coef, scores=scores)
        found = _Spread(problem, reached)
        dual = found.at_levels(levels)
        gap = _gap(problem, reached, dual)
        pulls = np.stack([found.image(k) / levels[k] ** 2 for k in range(2)], axis=1)
        slope = 0.5 * (at.kappa**2 - (found.sizes / levels) ** 2)
        bend = np.diag(found.sizes**2 / levels**3) - pulls.T @ solve(pulls)
        collapsed = (slope > 0) & (levels <= LOW_LEVEL * unit)
        if collapsed.any():
            limit, limit_dual = self._at_zero(problem, reached, levels, collapsed)
            limit_gap = _gap(problem, limit, limit_dual)
            if limit_gap < gap:
                reached, dual, gap = limit, limit_dual, limit_gap
        following = _next_levels(levels, slope, bend, LOW_LEVEL * unit)
        moved = np.abs(np.maximum(following, LEVEL_FLOOR * unit) - levels)
        on_the_way = bool((moved > LEVEL_MOVED * levels).any())
        idle = 0 if on_the_way or gap < GAP_REDUCTION * state.gap else state.idle + 1
        there = reached.but(
            n_iter=state.n_iter + 1,
            dual=dual,
            levels=following,
            gap=min(gap, state.gap),
            idle=idle,
            finished=idle >= self.max_stalled_levels,
        )
        return _priced(problem, there, gap)

    def _at_zero(
        self, problem: Problem, state: ProbabilityState, levels: Array, collapsed: NDArray[np.bool_]
    ) -> tuple[ProbabilityState, Array]:
        """The limit of coefficients and dual point as the levels of some classes go to zero.

        w is orthogonal to the range of their covariances S. Their multipliers are the least-norm
        solution of the remaining stationarity conditions in that range: ``v = X g`` with
        ``S g = d - l2 w - sum of S_o w / mu_o over the others``.
        """
        at, l2 = _Spread(problem, state), problem.penalty.l2
        values, vectors = spectrum(at.matrix(0.0, collapsed.astype(float)), variances_of(problem))
        real = values > 0
        outside, inside = vectors[:, ~real], vectors[:, real]
        reached, levels = self._outside(problem, state, levels, collapsed, outside)
        coef = reached.coef
        u = at.form.deviations(reached.scores) / at.kappa
        for one, level, gone in zip(at.form.classes, levels, collapsed, strict=True):
            u[one] = 0.0 if gone else u[one] / level
        for _ in range(1 + REFINEMENTS):
            left = -at.pull(at.form.dual_point(u)) - l2 * coef
            regression = inside @ ((inside.T @ left) / values[real])
            change = at.form.deviations(at.design.scores(regression[:, None])[:, 0]) / at.kappa
            for one, gone in zip(at.form.classes, collapsed, strict=True):
                u[one] += change[one] if gone else 0.0
        return reached, at.form.dual_point(at.form.project(u))

    def _outside(
        self,
        problem: Problem,
        state: ProbabilityState,
        levels: Array,
        collapsed: NDArray[np.bool_],
        outside: Array,
    ) -> tuple[ProbabilityState, Array]:
        """Coefficients in the null space of some covariances, and the level of the other class.

        That level belonged to coefficients outside of the null space; Newton steps correct it.
        """
        at, l2 = _Spread(problem, state), problem.penalty.l2
        apart = -at.pull(at.form.offset)
        if not outside.shape[1]:
            return replace(state, coef=0.0 * apart, scores=0.0 * state.scores), levels
        for _ in range(LIMIT_NEWTON_STEPS):
            others = np.where(collapsed, 0.0, 1.0 / levels)
            inner = inverse_of(outside.T @ at.matrix(l2, others) @ outside)
            solve = partial(_between, outside, inner)
            coef = at.refined(solve, l2, others, apart)
            state = replace(state, coef=coef, scores=at.design.scores(coef[:, None])[:, 0])
            found, changed = _Spread(problem, state), levels.copy()
            for k in np.flatnonzero(~collapsed).tolist():
                size, level = found.sizes[k], levels[k]
                pull = found.image(k) / level**2
                bend = size**2 / level**3 - float(pull @ solve(pull))
                slope = 0.5 * (at.kappa**2 - (size / level) ** 2)
                if bend > 0:
                    changed[k] = np.clip(level - slope / bend, 0.5 * level, 2.0 * level)
            levels = changed
        return state, levels

    def _without_margin(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        """A reweighted step towards a direction with a margin, or a proof that there is none."""
        at = _Spread(problem, state)
        apart = -at.pull(at.form.offset)
        coef = at.solved(REWEIGHTED_REGULARISATION * at.curvatures(), at.weighed, apart)
        scores = at.design.scores(coef[:, None])[:, 0]
        reached = replace(state, n_iter=state.n_iter + 1, coef=coef, scores=scores)
        u = at.weighed(at.form.deviations(scores)) / at.kappa
        if all(float(np.linalg.norm(u[one])) <= 1.0 for one in at.form.classes):
            nothing = replace(
                reached,
                coef=np.zeros_like(coef),
                scores=np.zeros_like(scores),
                dual=at.form.dual_point(at.form.project(u)),
                finished=True,
            )
            most = float(apart @ apart) / problem.penalty.l2
            if _gap(problem, nothing, nothing.dual) <= MARGIN_GAP * most:
                return nothing
        return replace(reached, idle=state.idle + 1, finished=state.idle >= MAX_REWEIGHTED_STEPS)


def _between(outer: Array, inner: Callable[[Array], Array], right: Array) -> Array:
    """``outer inner(outer' right)``."""
    between: Array = outer @ inner(outer.T @ right)
    return between


class _Spread:
    """The coefficients w, and the deviations ``v_i = r_i (x_i'w - mean)`` of the samples.

    Their norms over the classes are the standard deviations n_o; ``S_o w = X' (r v)_o``.
    """

    def __init__(self, problem: Problem, state: ProbabilityState) -> None:
        self.design, self.covariances = coordinates_of(problem).design, state.covariances
        self.form, self.kappa = ellipsoid_loss(problem).form, ellipsoid_loss(problem).kappa
        self.coef, self.v = state.coef, self.form.deviations(state.scores)
        self.sizes = np.array([np.linalg.norm(self.v[one]) for one in self.form.classes])

    def pull(self, dual: Array) -> Array:
        """``X'q``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def dual(self) -> Array:
        """The gradient of the loss in the scores."""
        return self.form.dual_point(self.weighed(self.v) / self.kappa if self.kappa else self.v)

    def weighed(self, e: Array) -> Array:
        """``kappa e_o / n_o`` for each class o whose scores vary; zero for others."""
        rate = np.zeros_like(e)
        for one, size in zip(self.form.classes, self.sizes, strict=True):
            if size > 0:
                rate[one] = e[one] * (self.kappa / size)
        return rate

    def bent(self, e: Array) -> Array:
        """The derivative of ``kappa v_o / n_o`` along e: of the part of e orthogonal to v."""
        rate = self.weighed(e)
        for one, size in zip(self.form.classes, self.sizes, strict=True):
            if size > 0:
                unit = self.v[one] / size
                rate[one] -= unit * float(unit @ rate[one])
        return rate

    def multipliers(self, moved: Array) -> Array:
        """The dual point of the quadratic model after a step, made feasible."""
        if self.kappa == 0:
            return self.dual()
        u = (self.weighed(self.v) + self.bent(self.form.deviations(moved))) / self.kappa
        return self.form.dual_point(self.form.project(u))

    def curvatures(self) -> Array:
        """Diagonal of ``kappa sum_o S_o / n_o``; without covariances its Rayleigh quotient at w."""
        if self.covariances is None:
            bend = self.kappa * float((self.sizes**2).sum() / self.sizes.max())
            return np.full(self.coef.size, bend / float(self.coef @ self.coef))
        curvatures = np.diag(self._hessian(0.0, self.weighed)).copy()
        return np.where(curvatures > 0, curvatures, curvatures.mean())

    def solved(self, l2: float | Array, rate: Callable[[Array], Array], right: Array) -> Array:
        """Solve ``(l2 I + X' r rate(v of .)) d = right``, where ``rate`` is `bent` or `weighed`."""
        if self.covariances is not None:
            return inverse_of(self._hessian(l2, rate), overwrite=True)(right)

        def product(direction: Array) -> Array:
            e = self.form.deviations(self.design.scores(direction[:, None])[:, 0])
            return l2 * direction + self.pull(self.form.roots * rate(e))

        share = float(np.linalg.norm(right) / np.linalg.norm(l2 * self.coef))
        share = min(LOOSEST_CG_TOLERANCE, max(TIGHTEST_CG_TOLERANCE, share))
        return conjugate_gradients(product, np.ones_like(right), right, share, CG_STEPS)

    def _hessian(self, l2: float | Array, rate: Callable[[Array], Array]) -> Array:
        matrix = self.matrix(l2, self._factors())
        if rate == self.bent:
            for k in range(2):
                if self.sizes[k] == 0:
                    continue
                unit = self.image(k) / self.sizes[k]
                subtract_outer(matrix, unit * (self.kappa / self.sizes[k]), unit)
        return matrix

    def matrix(self, l2: float | Array, factors: Array) -> Array:
        """``l2 I + sum_o factors_o S_o``."""
        assert self.covariances is not None
        matrix: Array = np.tensordot(factors, self.covariances, axes=1)
        np.einsum("ii->i", matrix)[:] += l2
        return matrix

    def refined(
        self, solve: Callable[[Array], Array], l2: float, factors: Array, right: Array
    ) -> Array:
        """Solve ``(l2 I + sum_o factors_o S_o) x = right`` by iterative refinement.

        Residuals are computed from the data: the condition number of the covariance is the square
        of theirs.
        """
        solution = solve(right)
        for _ in range(REFINEMENTS):
            e = self.form.deviations(self.design.scores(solution[:, None])[:, 0])
            for one, factor in zip(self.form.classes, factors, strict=True):
                e[one] *= factor
            solution += solve(right - l2 * solution - self.pull(self.form.roots * e))
        return solution

    def image(self, k: int) -> Array:
        """``S_o w`` of one class."""
        assert self.covariances is not None
        image: Array = self.covariances[k] @ self.coef
        return image

    def variance(self) -> float:
        """The mean variance of the features, weighted by w^2, times their number."""
        assert self.covariances is not None
        # rounding of w in features that it is orthogonal to would be the unit of a class without
        # variance along w
        floor = ROUNDED_COEFFICIENT**2 * float(self.coef @ self.coef)
        variances, squares = np.einsum("oii->i", self.covariances), self.coef**2 + floor
        return self.coef.size * float(variances @ squares) / float(squares.sum())

    def at_levels(self, levels: Array) -> Array:
        """The dual point ``u_o = v_o / (kappa mu_o)``, made feasible."""
        u = np.zeros_like(self.v)
        for one, level in zip(self.form.classes, levels, strict=True):
            u[one] = self.v[one] / (self.kappa * level)
        return self.form.dual_point(self.form.project(u))

    def _factors(self) -> Array:
        """``kappa / n_o``; zero for a class whose scores do not vary."""
        return np.divide(self.kappa, self.sizes, out=np.zeros(2), where=self.sizes > 0)

    def step_length(self, direction: Array, moved: Array, l2: float) -> float:
        """The step length that minimises the objective along ``w + t d``.

        ``f'(t) = (l2 w - means apart)'d + t l2 |d|^2 + kappa sum_o (v + t e)_o'e_o / |v + t e|_o``
        """
        e, bend = self.form.deviations(moved), l2 * float(direction @ direction)
        start = float(self.form.offset @ moved) + l2 * float(self.coef @ direction)
        parts = [
            (float(self.v[one] @ self.v[one]), float(self.v[one] @ e[one]), float(e[one] @ e[one]))
            for one in self.form.classes
        ]

        def slope(t: float) -> float:
            total = start + t * bend
            for a, b, c in parts:
                square = a + 2.0 * t * b + t * t * c
                total += self.kappa * (b + t * c) / np.sqrt(square) if square > 0 else 0.0
            return float(total)

        return increasing_root(slope, LINE_SEARCH_TOLERANCE, LINE_SEARCH_STEPS)


def _gap(problem: Problem, state: ProbabilityState, dual: Array | None) -> float:
    """The duality gap of the state's coefficients and a dual point."""
    if dual is None:
        return np.inf
    l2, design = problem.penalty.l2, coordinates_of(problem).design
    rest = l2 * state.coef + design.adjoint(dual[:, None])[:, 0]
    young = ellipsoid_loss(problem).fenchel_young(state.scores[:, None], dual[:, None])
    return young + float(rest @ rest) / (2.0 * l2)


def _priced(problem: Problem, state: ProbabilityState, gap: float) -> ProbabilityState:
    """The state with its relative gap, and a claim if that meets the tolerance."""
    value = ellipsoid_loss(problem).value(state.scores[:, None])
    value += 0.5 * problem.penalty.l2 * float(state.coef @ state.coef)
    return state.but(relative_gap=gap / max(abs(value), problem.negligible)).claimed(final=True)


def _next_levels(levels: Array, slope: Array, bend: Array, low: float) -> Array:
    """A Newton step in the two levels, in a trust region for the ratio of new to old.

    A low level that still falls is set to zero, and dropped from the equation of the other one.
    """
    falling = (slope > 0) & (levels <= low)
    wanted = np.where(falling, 0.0, levels * np.where(slope > 0, 0.1, LARGEST_LEVEL_RATIO))
    rest = np.flatnonzero(~falling)
    part = bend[np.ix_(rest, rest)]
    if rest.size and np.linalg.eigvalsh(part)[0] > 0:
        wanted[rest] = levels[rest] - np.linalg.solve(part, slope[rest])
    else:  # rounding of the curvature in one level is no reason to give up that in the other
        own = rest[np.diagonal(part) > 0]
        wanted[own] = levels[own] - slope[own] / bend[own, own]
    moved: Array = np.clip(wanted, SMALLEST_LEVEL_RATIO * levels, LARGEST_LEVEL_RATIO * levels)
    return moved
