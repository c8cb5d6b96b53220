"""Newton's method for a smooth loss in a ball: a secular equation for each quadratic model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING, ROOT_STEPS
from proxmargin.data.designs.base import Array
from proxmargin.data.designs.views import (
    AllFeatures,
    Coordinates,
    in_short_coordinates,
    short_side,
)
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import factor_work, gram_work
from proxmargin.solvers.interior.ball import minimised_in_ball
from proxmargin.solvers.loop.solver import CLAIM_FRACTION, Stop, at_least_one
from proxmargin.solvers.shared.margin_model import (
    MarginNewton,
    MarginNewtonState,
    NewtonStep,
    expanded,
    intercept_eliminated,
)
from proxmargin.solvers.shared.numerical import (
    RELATIVE_SHIFT,
    SHIFT_GROWTH,
    SMALL_SIDE,
    cholesky,
)

FACTORS_PER_STEP = 4.0  # mean number of Cholesky factors for the multiplier of a step
# the same for balls of other norms, whose models take an interior point method
FACTORS_PER_CURVED_STEP = 40.0
# secular equation: relative error of the norm of the model's minimiser, before it is scaled to the
# radius; an inexact Newton step saves a factor or two
SECULAR_TOLERANCE = 1e-14  # the tightest
SECULAR_FORCING = 0.1  # times min(relative gap, sqrt(last decrease of the objective))
LOOSEST_SECULAR_TOLERANCE = 1e-2  # far from the solution


@dataclass(frozen=True)
class BallNewton(MarginNewton[MarginNewtonState]):
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
    """

    max_stalled: int = 6
    max_side: int = 5000
    max_curved_features: int = 30

    name: ClassVar[str] = "ball-newton"
    needs: ClassVar[Trait] = MarginNewton.needs | Trait.BALL
    max_iter: ClassVar[int] = 300
    longest: ClassVar[float] = 1.0  # the end of a step lies in the ball

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one(self, "max_side", "max_curved_features")

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

    def init(self, problem: Problem, start: Point, stop: Stop) -> MarginNewtonState:
        coordinates = _coordinates(problem)
        coef = _into_ball(problem, coordinates.of(start.coef[:, 0]))
        intercept = float(problem.centred.intercept(start)[0])
        scores = coordinates.design.scores(coef[:, None])[:, 0] + intercept
        at = expanded(problem, scores, intercept, 0.0)
        slope, tol = self.gradient(problem, at.dual), CLAIM_FRACTION * stop.tol
        begun = self.with_gap(problem, MarginNewtonState(inner=coef, at=at, slope=slope, tol=tol))
        # for large data the digits of a polishing step are not worth its cost
        small = short_side(problem.design) <= SMALL_SIDE
        return begun.but(unpolished=stop.polish and small, idle=0)

    def newton(self, problem: Problem, state: MarginNewtonState) -> NewtonStep:
        design, ball = _coordinates(problem).design, problem.ball
        matrix, mean = intercept_eliminated(problem, design, state.at.curvature)
        # an error e of the step costs e^2 in the objective
        ahead = min(state.relative_gap, math.sqrt(abs(state.objective_change)))
        accuracy = float(
            np.clip(SECULAR_FORCING * ahead, SECULAR_TOLERANCE, LOOSEST_SECULAR_TOLERANCE)
        )
        model = matrix, state.slope, state.inner, ball.radius
        if _is_euclidean(problem):
            step, multiplier = _minimise_in_ball(*model, state.multiplier, accuracy)
        else:
            step = minimised_in_ball(*model, ball.p, max(OBJECTIVE_ROUNDING, accuracy**2))
            multiplier = 0.0
        move = -float(mean @ step)
        moved = design.scores(step[:, None])[:, 0] + move
        return NewtonStep(step, move, moved, multiplier=multiplier)

    def gradient(self, problem: Problem, dual: Array) -> Array:
        return _coordinates(problem).design.adjoint(dual[:, None])[:, 0]

    def with_gap(self, problem: Problem, state: MarginNewtonState) -> MarginNewtonState:
        coef, value = _into_ball(problem, state.inner), state.at.value
        gap = problem.penalty.conjugate(state.slope[:, None]) + float(state.slope @ coef)
        relative_gap = gap / max(abs(value), problem.negligible)
        return self.with_progress(state, value, gap, relative_gap, inner=coef)

    def point(self, problem: Problem, state: MarginNewtonState) -> Point:
        coordinates = _coordinates(problem)
        coef = _into_ball(problem, coordinates.coef(state.inner))
        return problem.centred.point(coef[:, None], np.array([state.at.intercept]))

    def scores(self, problem: Problem, state: MarginNewtonState) -> Array | None:
        # mapping coefficients back from the row span adds rounding that these scores do not have
        whole = isinstance(_coordinates(problem), AllFeatures)
        return state.at.scores[:, None] if whole else None


def _coordinates(problem: Problem) -> Coordinates:
    """The coordinates of the steps, for the centred data."""
    whole = problem.centred.design
    return in_short_coordinates(whole) if _is_euclidean(problem) else AllFeatures(whole)


def _is_euclidean(problem: Problem) -> bool:
    """Whether the norm of the ball is Euclidean."""
    return problem.ball.p == 2


def _into_ball(problem: Problem, coef: Array) -> Array:
    """``coef``, scaled back to the ball if rounding put it outside."""
    ball = problem.ball
    size = float(np.linalg.norm(coef, ball.p))
    return coef * (ball.radius / size) if size > ball.radius else coef


def _minimise_in_ball(
    matrix: Array,
    gradient: Array,
    at: Array,
    radius: float,
    guess: float,
    accuracy: float = SECULAR_TOLERANCE,
) -> tuple[Array, float]:
    """The d that minimises ``gradient'd + d'Hd/2`` for ``|at + d| <= radius``, and the multiplier.

    Newton's method on ``1/|x(mu)| = 1/radius``, x = at + d, which is concave in mu: iterates left
    of the root stay there, those right of it are safeguarded by a bracket. A singular H is shifted
    until Cholesky succeeds, which does not change the fixed points of the outer iteration; then
    x(0) exists and ``|x(mu)|`` falls to zero, so that the hard case of trust regions does not
    occur.
    """
    step, slant = np.zeros_like(at), float(np.linalg.norm(gradient))
    if slant == 0.0:
        return step, guess
    shift = RELATIVE_SHIFT * (float(np.trace(matrix)) + slant / radius)
    low, high = 0.0, float(np.linalg.norm(gradient - matrix @ at)) / radius
    mu = min(guess, high)
    for _ in range(ROOT_STEPS):
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
    return step, mu
