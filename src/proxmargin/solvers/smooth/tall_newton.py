"""Proximal Newton for many samples of few features, with an updated Hessian."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.compiled.losses.margins import settle
from proxmargin.compiled.solvers.newton import curvature_weights, exact_step
from proxmargin.compiled.solvers.proximal_newton import end_of_step, pricing
from proxmargin.compiled.solvers.quadratic_model import quadratic_minimum
from proxmargin.designs.base import Array, Design, subtract_outer
from proxmargin.designs.standardized import standardized
from proxmargin.loop.minimize import minimize
from proxmargin.loop.solver import CLAIM_FRACTION, PricedState, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.losses.shifted import Shifted
from proxmargin.problem import Point, Problem
from proxmargin.solvers.smooth.newton import ProximalNewton
from proxmargin.traits import Trait

__all__ = ["TallNewton", "TallState"]

# warm start from a subsample
SUBSAMPLE_FRACTION = 0.02  # of the samples, unless the next number is larger
SUBSAMPLE_PER_FEATURE = 10  # samples per feature at least
SUBSAMPLE_GAP = 1e-3  # relative duality gap
# forcing terms: residual of the quadratic model over the violation of optimality
FORCING = 0.1  # while the active set changes
TIGHT_FORCING = 0.003  # once the active set has settled and convergence is quadratic
NEAR_SOLUTION = 0.01  # violation over the l1 strength, below which the tight one is used
# regularisation of the Hessian's diagonal, relative to the largest curvature of a coordinate
MIN_DAMPING = 1e-12  # always: some thousand ulp
DAMPING = 1e-3  # at the start; it falls with the violation
FLAT_CURVATURE = 1e-4  # below it a coordinate has hardly a sample in the curved zone
FLAT_SHIFT = 1e-3  # additional regularisation of such a coordinate
# exact line search
LINE_SEARCH_TOLERANCE = 0.3  # slope at the end over the first slope
LINE_SEARCH_STEPS = 60  # limit: more bisections than a step has bits
# convergence, by the largest violation of the optimality conditions
VIOLATION_REDUCTION = 0.9  # ratio to the smallest violation so far, below which it is progress


@dataclass(frozen=True, eq=False, kw_only=True)
class TallState(PricedState):
    """The state of `TallNewton`.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
        Of the centred features, if they are centred.
    scores : (n_samples,)
        Scores including the offset.
    dual, slope : (n_samples,), (n_features,)
        Gradients of the loss in the scores and in the coefficients.
    violation, least, objective : float
        The largest violation of optimality, and its smallest value so far.
    bend : (n_samples,)
        Second derivatives of the loss with which ``matrix`` was computed.
    matrix : (n_features, n_features)
        ``X' diag(bend) X``.
    major : (n_features,)
        Upper bounds on the diagonal of the Hessian.
    idle : int
        Iterations without a smaller violation.
    """

    coef: Array
    intercept: float = 0.0
    scores: Array
    dual: Array
    slope: Array
    violation: float = np.inf
    least: float = np.inf
    objective: float = np.inf
    bend: Array | None = None
    matrix: Array | None = None
    major: Array
    idle: int = 0


@dataclass(frozen=True)
class TallNewton(Solver[TallState]):
    """Proximal Newton with the Hessian of all features, for many samples of few features.

    The steps are those of `ProximalNewton`, without a working set. For a piecewise quadratic loss
    the matrix ``X' D X`` changes only by the samples that enter or leave its quadratic zone, which
    are few after a warm start from a subsample. The matrix is then updated, and an iteration takes
    two products with the data. The logistic loss needs a new matrix each time, but few iterations.

    Parameters
    ----------
    max_features, samples_per_feature : int >= 1
        Largest number of features, and least number of samples per feature: for other shapes a
        working set is faster, and the Hessian of 1000 features takes 8 MB.
    max_stalled : int >= 1
        Iterations without a smaller violation, which has reached rounding, after which it ends.
    """

    max_features: int = 1000
    samples_per_feature: int = 20
    max_stalled: int = 5

    name: ClassVar[str] = "tall-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 300

    def __post_init__(self) -> None:
        at_least_one(self, "max_features", "samples_per_feature", "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        n, p = problem.design.n_samples, problem.design.n_features
        if p > self.max_features or n < self.samples_per_feature * p:
            return (
                f"it needs at most {self.max_features} features and at least "
                f"{self.samples_per_feature} samples a feature, and there are {n} samples of {p} "
                "features"
            )
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> TallState:
        loss, steps = problem.margins, 0
        if not start.coef.any():
            steps, start = _subsample_start(problem, start, stop, stop.iterations(self.max_iter))
        design = problem.centred.design
        intercept = float(problem.centred.intercept(start)[0])
        return self._priced(
            problem,
            TallState(
                n_iter=steps,
                coef=start.coef[:, 0].copy(),
                intercept=intercept,
                scores=design.scores(start.coef)[:, 0] + intercept + problem.offset,
                dual=np.zeros(design.n_samples),
                slope=np.zeros(design.n_features),
                major=loss.phi.smoothness * _squares(problem),
                tol=CLAIM_FRACTION * stop.tol,
            ),
        )

    def step(self, problem: Problem, state: TallState) -> TallState:
        loss, net = problem.margins, problem.net
        design = problem.centred.design
        bend = np.empty_like(state.scores)
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        curvature_weights(loss.phi.scalars, state.scores, signs, weights, 0.0, bend)
        matrix = _updated_gram(design, state, bend)
        cross = design.adjoint(bend[:, None])[:, 0]
        ridge = problem.intercept.l2
        total = float(bend.sum()) + ridge if problem.fits_intercept else 0.0
        direction = self._direction(problem, state, matrix, cross, total)
        shift = -float(cross @ direction) / total if total > 0 else 0.0
        moved = design.scores(direction[:, None])[:, 0] + shift
        step = exact_step(
            loss.phi.scalars,
            state.scores,
            moved,
            signs,
            weights,
            state.coef,
            direction,
            net.l1,
            net.l2,
            ridge * state.intercept * shift,
            ridge * shift * shift,
            LINE_SEARCH_TOLERANCE,
            LINE_SEARCH_STEPS,
        )
        step, coef = end_of_step(state.coef, direction, step, net)
        change = step * float(np.linalg.norm(direction))
        reached = state.but(
            n_iter=state.n_iter + 1,
            coef=coef,
            intercept=state.intercept + step * shift,
            scores=state.scores + step * moved,
            bend=bend,
            matrix=matrix,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
        )
        priced = self._priced(problem, reached)
        idle = 0 if priced.violation < VIOLATION_REDUCTION * state.least else state.idle + 1
        least = min(state.least, priced.violation)
        finished = idle >= self.max_stalled or change == 0.0
        return priced.but(least=least, idle=idle, finished=finished)

    def observe(self, problem: Problem, state: TallState, gap: Gap) -> TallState:
        """The state with recomputed scores and a tighter tolerance, if its claim was refuted."""
        if not state.claims:
            return state
        bare = problem.centred.design.scores(state.coef[:, None])[:, 0]
        scores = bare + state.intercept + problem.offset
        return state.observed().but(scores=scores)

    def point(self, problem: Problem, state: TallState) -> Point:
        coef = state.coef[:, None]
        return problem.centred.point(coef, np.array([state.intercept]))

    def _direction(
        self, problem: Problem, state: TallState, matrix: Array, cross: Array, total: float
    ) -> Array:
        """The step to the minimiser of the quadratic model, with the intercept eliminated."""
        hessian = matrix.copy()
        if total > 0:
            subtract_outer(hessian, cross, cross / total)
        diagonal = np.einsum("ii->i", hessian)
        net, level = problem.net, problem.level
        far = min(1.0, state.violation / level) if level > 0 else 1.0
        diagonal += (MIN_DAMPING + DAMPING * far) * state.major
        diagonal += (
            np.where(diagonal < FLAT_CURVATURE * state.major, FLAT_SHIFT * state.major, 0.0)
            + net.l2
        )
        diagonal += np.where(diagonal > 0, 0.0, 1.0)  # for features that are zero everywhere
        slope = state.slope + net.l2 * state.coef
        target = (FORCING if far > NEAR_SOLUTION else TIGHT_FORCING) * state.violation
        found: Array = quadratic_minimum(hessian, slope, state.coef, net, target)
        return found - state.coef

    def _priced(self, problem: Problem, state: TallState) -> TallState:
        """The state with the best intercept, and gradients, violations and gap there."""
        loss = problem.margins
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        scores, intercept, ridge = state.scores.copy(), state.intercept, problem.intercept.l2
        dual, free = np.empty(scores.size), problem.fits_intercept
        intercept += settle(loss.phi.scalars, scores, signs, weights, free, ridge, intercept, dual)
        slope = problem.centred.design.adjoint(dual[:, None])[:, 0]
        worst, objective, gap = pricing(
            loss.phi.scalars,
            scores,
            signs,
            weights,
            slope,
            state.coef,
            state.major,
            problem.net,
            problem.unshrunk.size > 0,
            np.empty_like(slope),
        )
        objective += 0.5 * ridge * intercept**2
        relative = gap / max(objective, problem.negligible)
        return state.but(
            scores=scores,
            intercept=intercept,
            dual=dual,
            slope=slope,
            violation=worst,
            relative_gap=relative,
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        ).claimed(final=True)


def _updated_gram(design: Design, state: TallState, bend: Array) -> Array:
    """``X' diag(bend) X``, as an update of the last one if few samples changed."""
    zero = np.zeros(design.n_features)
    if state.bend is None or state.matrix is None:
        return design.gram(bend, zero)
    change = bend - state.bend
    if 2 * np.count_nonzero(change) > np.count_nonzero(bend):
        return design.gram(bend, zero)
    matrix = state.matrix.copy()
    if change.any():
        matrix += design.gram(np.maximum(change, 0.0), zero)
        matrix -= design.gram(np.maximum(-change, 0.0), zero)
    return matrix


def _subsample_start(problem: Problem, start: Point, stop: Stop, limit: int) -> tuple[int, Point]:
    """The iterations and the end of a warm start, at most ``limit`` steps: the solution for every
    k-th sample of each class, at a loose gap."""
    loss = problem.margins
    n, p = problem.design.n_samples, problem.design.n_features
    wanted = max(SUBSAMPLE_PER_FEATURE * p, int(SUBSAMPLE_FRACTION * n))
    every = n // wanted
    if every < 2:
        return 0, start
    sides = (np.flatnonzero((loss.signs[:, 0] == s) & (loss.weights[:, 0] > 0)) for s in (-1, 1))
    index = np.sort(np.concatenate([side[::every] for side in sides]))
    part = MarginSum(loss.phi, loss.signs[index], loss.weights[index] / loss.weights[index].sum())
    some = replace(
        problem, loss=Shifted(part, problem.loss.offset[index]), design=problem.design.rows(index)
    )
    newton, rough = ProximalNewton(), stop.rough(SUBSAMPLE_GAP, limit)
    if newton.objection(some) is not None:
        return 0, start
    found = minimize(some, newton, stop=rough, start=newton.state_at(some, start, rough))
    return found.certificate.n_iter, found.point


def _squares(problem: Problem) -> Array:
    """Weighted mean square of each centred feature."""
    shares = problem.loss.shares
    if problem.intercept.is_shift_invariant:
        scale = standardized(problem.design, shares).scale  # known from the centring
        return np.where(np.isfinite(scale), scale, 0.0) ** 2
    return problem.design.column_squares(shares, np.zeros(problem.design.n_features))
