"""Newton's method for a smooth loss in a ball: a secular equation for each quadratic model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array
from proxmargin.designs.row_span import AllFeatures, Coordinates, in_short_coordinates, short_side
from proxmargin.loop.solver import CLAIM_FRACTION, GapState, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.problem import Point, Problem
from proxmargin.rounding import OBJECTIVE_ROUNDING
from proxmargin.runtime.pace import factor_work, gram_work
from proxmargin.solvers.linear_algebra import cholesky
from proxmargin.solvers.smooth.lp_ball_model import minimised_in_ball
from proxmargin.solvers.smooth.margin_model import (
    MarginExpansion,
    expanded,
    intercept_eliminated,
    line_search,
    next_share,
)
from proxmargin.traits import Trait

__all__ = ["BallNewton", "BallNewtonState"]

POLISH_SIDE = 400  # min(n_features, n_samples) up to which a polishing step is cheap
FACTORS_PER_STEP = 4.0  # mean number of Cholesky factors for the multiplier of a step
# the same for balls of other norms, whose models take an interior point method
FACTORS_PER_CURVED_STEP = 40.0
CURVED_TOLERANCE = 1e-14  # complementarity of the model, relative to its decrease
# regularisation of a singular Hessian
RELATIVE_SHIFT = 1e-15  # of its trace
SHIFT_GROWTH = 100.0  # factor while Cholesky fails
# secular equation: relative error of the norm of the model's minimiser, before it is scaled to the
# radius; an inexact Newton step saves a factor or two
SECULAR_TOLERANCE = 1e-14  # the tightest
SECULAR_FORCING = 0.1  # times min(relative gap, sqrt(last decrease of the objective))
LOOSEST_SECULAR_TOLERANCE = 1e-2  # far from the solution
MAX_SECULAR_STEPS = 60  # limit: bisections alone would exhaust the 53 bits of the multiplier
# convergence
GAP_REDUCTION = 0.8  # ratio to the smallest gap so far, below which a gap is progress
ZERO_OBJECTIVE = 1e-18  # absolute decrease that counts: certificates resolve no less


@dataclass(frozen=True, eq=False, kw_only=True)
class BallNewtonState(GapState):
    """The state of the ball-constrained Newton method.

    Attributes
    ----------
    coef : (k,)
        In the features, or in the row span if there are fewer samples.
    at : Expansion
        Expansion of the loss, with the best intercept (of centred features, if they are centred).
    gradient : (k,)
        Gradient of the loss in the coefficients.
    share : float
        Weight of the reweighted least-squares majoriser where the loss has no curvature.
    multiplier : float
        Multiplier of the ball in the last quadratic model.
    objective, gap : float
        The objective, and the smallest duality gap so far.
    idle : int
        Steps without progress.
    """

    coef: Array
    at: MarginExpansion
    gradient: Array
    share: float = 0.0
    multiplier: float = 0.0
    objective: float = np.inf
    gap: float = np.inf
    idle: int = 0


class _InBall(NamedTuple):
    """The step to the minimiser of a quadratic model in the ball, and its multiplier."""

    step: Array
    multiplier: float


@dataclass(frozen=True)
class BallNewton(Solver[BallNewtonState]):
    """Minimise a smooth loss of margins over ``|w|_p <= radius``.

    The quadratic model of the loss, with the intercept eliminated, is minimised over the ball. For
    p = 2 Newton's method solves the secular equation ``|x(mu)| = radius`` with
    ``(H + mu I) (x - w) = -(gradient + mu w)``, one Cholesky factor a trial; mu = 0 if the ball is
    inactive. The segment between w and x lies in the ball, and is searched exactly. Wide data are
    expressed in their row span.

    For other p an interior point method (`minimised_in_ball`) minimises the models, for few
    features.

    Parameters
    ----------
    max_side : int >= 1
        Largest min(n_features, n_samples): the Hessian takes 200 MB for 5000.
    max_curved_features : int >= 1
        Largest number of features if the norm is not Euclidean.
    max_stalled : int >= 1
        Steps without progress, as gap and objective have reached rounding, after which it ends.
    """

    max_side: int = 5000
    max_curved_features: int = 30
    max_stalled: int = 6

    name: ClassVar[str] = "ball-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.SINGLE_OUTPUT | Trait.BALL
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 300

    def __post_init__(self) -> None:
        at_least_one(self, "max_side", "max_curved_features", "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        if missing:
            return missing
        if problem.ball.p != 2 and problem.design.n_features > self.max_curved_features:
            return (
                f"it needs a ball of the Euclidean norm, p = 2, where there are more than "
                f"{self.max_curved_features} features, got p = {problem.ball.p:g}"
            )
        side = short_side(problem.design)
        if side > self.max_side:
            return (
                f"it forms a matrix of {side} by {side}: at most {self.max_side} features or"
                " samples, whichever are fewer, are taken"
            )
        return None

    def work(self, problem: Problem) -> float:
        design, side = problem.design, short_side(problem.design)
        long = max(design.n_samples, design.n_features)
        if not _is_euclidean(problem):
            side, long = design.n_features, design.n_samples
        factors = FACTORS_PER_STEP if _is_euclidean(problem) else FACTORS_PER_CURVED_STEP
        return gram_work(long, side, design.density) + factors * factor_work(side)

    def init(self, problem: Problem, start: Point, stop: Stop) -> BallNewtonState:
        coordinates = _coordinates(problem)
        coef = coordinates.of(start.coef[:, 0])
        coef = _into_ball(problem, coef)
        intercept = float(problem.centred.intercept(start)[0])
        scores = coordinates.design.scores(coef[:, None])[:, 0] + intercept
        at = expanded(problem, scores, intercept, 0.0)
        gradient, tol = _gradient(problem, at), CLAIM_FRACTION * stop.tol
        state = BallNewtonState(coef=coef, at=at, gradient=gradient, tol=tol)
        begun = self._with_gap(problem, state)
        # for large data the digits of a polishing step are not worth its cost
        small = short_side(problem.design) <= POLISH_SIDE
        return begun.but(unpolished=stop.polish and small, idle=0)

    def step(self, problem: Problem, state: BallNewtonState) -> BallNewtonState:
        design, at = _coordinates(problem).design, state.at
        matrix, mean = intercept_eliminated(problem, design, at.bend)
        # an error e of the step costs e^2 in the objective
        ahead = min(state.relative_gap, math.sqrt(abs(state.objective_change)))
        accuracy = float(
            np.clip(SECULAR_FORCING * ahead, SECULAR_TOLERANCE, LOOSEST_SECULAR_TOLERANCE)
        )
        found = _model_step(problem, matrix, state, accuracy)
        move = -float(mean @ found.step)
        moved = design.scores(found.step[:, None])[:, 0] + move
        length = min(line_search(problem, at, moved, move, 0.0, 0.0), 1.0)
        change = length * float(np.linalg.norm(found.step))
        share = next_share(state.share, length)
        scores, intercept = at.scores + length * moved, at.intercept + length * move
        there = expanded(problem, scores, intercept, share)
        reached = state.but(
            n_iter=state.n_iter + 1,
            coef=_into_ball(problem, state.coef + length * found.step),
            at=there,
            gradient=_gradient(problem, there),
            share=share,
            multiplier=found.multiplier,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
        )
        priced = self._with_gap(problem, reached)
        stuck = change == 0.0 and state.share == 0.0
        return priced.but(finished=priced.idle >= self.max_stalled or stuck)

    def _with_gap(self, problem: Problem, state: BallNewtonState) -> BallNewtonState:
        """The state with the objective and the gap of its point."""
        at, gradient = state.at, state.gradient
        lost = problem.penalty.conjugate(gradient[:, None]) + float(gradient @ state.coef)
        better = lost < GAP_REDUCTION * state.gap
        better |= state.objective - at.value > OBJECTIVE_ROUNDING * abs(at.value) + ZERO_OBJECTIVE
        return state.but(
            objective=at.value,
            gap=min(lost, state.gap),
            relative_gap=lost / max(abs(at.value), problem.negligible),
            idle=0 if better else state.idle + 1,
            objective_change=(state.objective - at.value) / (1.0 + abs(at.value)),
        ).claimed(final=True)

    def observe(self, problem: Problem, state: BallNewtonState, gap: Gap) -> BallNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: BallNewtonState) -> Point:
        coordinates = _coordinates(problem)
        coef = _into_ball(problem, coordinates.coef(state.coef))
        return problem.centred.point(coef[:, None], np.array([state.at.intercept]))

    def scores(self, problem: Problem, state: BallNewtonState) -> Array | None:
        # mapping coefficients back from the row span adds rounding that these scores do not have
        whole = isinstance(_coordinates(problem), AllFeatures)
        return state.at.scores[:, None] if whole else None


def _coordinates(problem: Problem) -> Coordinates:
    """The coordinates of the steps, for the centred data."""
    whole = problem.centred.design
    return (
        in_short_coordinates(whole) if _is_euclidean(problem) else problem.remembered(_all_features)
    )


def _all_features(problem: Problem) -> Coordinates:
    return AllFeatures(problem.centred.design)


def _gradient(problem: Problem, at: MarginExpansion) -> Array:
    """The gradient of the loss in the coefficients."""
    return _coordinates(problem).design.adjoint(at.dual[:, None])[:, 0]


def _is_euclidean(problem: Problem) -> bool:
    """Whether the norm of the ball is Euclidean."""
    return problem.ball.p == 2


def _into_ball(problem: Problem, coef: Array) -> Array:
    """``coef``, scaled back to the ball if rounding put it outside."""
    ball = problem.ball
    size = float(np.linalg.norm(coef, ball.p))
    return coef * (ball.radius / size) if size > ball.radius else coef


def _model_step(
    problem: Problem, matrix: Array, state: BallNewtonState, accuracy: float
) -> _InBall:
    """The step to the minimiser of the quadratic model in the ball."""
    ball = problem.ball
    if _is_euclidean(problem):
        at = state.gradient, state.coef, ball.radius
        return _minimise_in_ball(matrix, *at, state.multiplier, accuracy)
    share = max(CURVED_TOLERANCE, accuracy**2)
    step = minimised_in_ball(matrix, state.gradient, state.coef, ball.radius, ball.p, share)
    return _InBall(step, 0.0)


def _minimise_in_ball(
    matrix: Array,
    gradient: Array,
    at: Array,
    radius: float,
    guess: float,
    accuracy: float = SECULAR_TOLERANCE,
) -> _InBall:
    """Minimise ``gradient'd + d'Hd/2`` subject to ``|at + d| <= radius``.

    Newton's method on ``1/|x(mu)| = 1/radius``, x = at + d, which is concave in mu: iterates left
    of the root stay there, those right of it are safeguarded by a bracket. A singular H is shifted
    until Cholesky succeeds, which does not change the fixed points of the outer iteration; then
    x(0) exists and ``|x(mu)|`` falls to zero, so that the hard case of trust regions does not
    occur.
    """
    step, slant = np.zeros_like(at), float(np.linalg.norm(gradient))
    if slant == 0.0:
        return _InBall(step, guess)
    shift = RELATIVE_SHIFT * (float(np.trace(matrix)) + slant / radius)
    low, high = 0.0, float(np.linalg.norm(gradient - matrix @ at)) / radius
    mu = min(guess, high)
    for _ in range(MAX_SECULAR_STEPS):
        factor = cholesky(matrix, [shift + mu])
        if factor is None:
            shift *= SHIFT_GROWTH
            continue
        step = -factor.solve(gradient + mu * at)
        reached = at + step
        size = float(np.linalg.norm(reached))
        if mu == 0.0 and size <= radius:
            break
        if abs(size - radius) <= accuracy * radius:
            # scaling to the sphere leaves a tangential error, which enters the gap squared
            step = reached * (radius / size) - at
            break
        low, high = (mu, high) if size > radius else (low, mu)
        # d|x|/dmu = -|L^-1 x|^2 / |x|
        slope = float(np.sum(factor.solve_half(reached) ** 2))
        newton = mu + (size / radius - 1.0) * size**2 / slope if slope > 0 else 0.0
        inside = low < newton < high or (newton <= 0.0 == low)
        wanted = max(newton, 0.0) if inside else 0.5 * (low + high)
        if wanted == mu:
            break
        mu = wanted
    return _InBall(step, mu)
