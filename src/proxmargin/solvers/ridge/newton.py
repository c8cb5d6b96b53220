"""Newton's method for a smooth loss with a ridge or in a ball, with exact intercept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING, ROOT_STEPS
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.views import AllFeatures, Coordinates, in_short_coordinates, short_side
from proxmargin.data.kernels.matrix import VALUE_WORK, KernelDesign
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import factor_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.ball import minimised_in_ball
from proxmargin.solvers.loop.solver import CLAIM_FRACTION, Stop, at_least_one
from proxmargin.solvers.ridge.ridge_forms import (
    SAMPLES_GROWTH,
    RidgeNewtonState,
    SampleForm,
    form_of,
    sampled,
)
from proxmargin.solvers.shared.margin_model import (
    MarginNewton,
    MarginNewtonState,
    NewtonStep,
    expanded,
    intercept_eliminated,
)
from proxmargin.solvers.shared.numerical import (
    MAX_SIDE,
    RELATIVE_SHIFT,
    SHIFT_GROWTH,
    SMALL_SIDE,
    cholesky,
)

# homotopy in the strength of the ridge, for losses whose slope has kinks
FIRST_RIDGE = 1e-4  # over the loss's curvature summed over features, if the final one is weaker
RIDGE_DECREASE = 0.1  # factor from one ridge to the next
RIDGE_GAP = 0.1  # relative gap at which a ridge is left
EXACT_GAP = 1e-20  # relative gap at which polishing gains nothing
# Hessians of some of the samples
SAMPLED_REDUCTION = 0.1  # of the gap in a step, at least; else they are of more


@dataclass(frozen=True)
class RidgeNewton(MarginNewton[RidgeNewtonState]):
    """Newton's method on ``loss + (l2/2) |w|^2`` with the intercept minimised exactly.

    With the curvatures D of the samples, and the intercept eliminated, the Newton system

        ``(X' D X - h h' / sum(D) + l2 I) d = -gradient``,  ``h = X' D 1``

    is factored if features are few. If samples are few it is solved in the dual variables,
    ``(l2 D^-1 + X X') a + b = z - L'(z) / D`` over the samples with curvature and ``w = X' a``,
    which stays well-conditioned when the ridge is weak. ``X X'`` is formed once for all problems on
    the same data; of a kernel matrix, which is ``X X'``, the coefficients are a. If neither are
    few, conjugate gradients solve the system inexactly, preconditioned by the diagonal; of a kernel
    matrix of many samples that in the dual variables, preconditioned by a factor of low rank.

    Of many samples of few features the first Hessian, and the start, are those of a sample, which
    serve several steps; as the gap falls slowly, it is formed anew, of more samples.

    At the exact intercept ``|gradient|^2 / (2 l2)`` is the duality gap.
    """

    name: ClassVar[str] = "ridge-newton"
    max_iter: ClassVar[int] = 500

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        if missing is None and not problem.has_ridge_alone:
            return "it needs a ridge penalty (no l1 part)"
        if missing is None and isinstance(problem.design, KernelDesign):
            if not problem.margins.phi.is_strictly_convex:
                return "it needs, for a kernel matrix, a loss that is curved everywhere"
            if problem.design.n_samples > MAX_SIDE and not problem.has_unpenalised_intercept:
                return f"it needs a free intercept for a kernel matrix of over {MAX_SIDE} samples"
        return missing

    def work(self, problem: Problem) -> float:
        if not isinstance(problem.design, KernelDesign):  # otherwise the form is chosen by the time
            return super().work(problem)
        samples = problem.design.n_samples
        if samples > MAX_SIDE:
            return VALUE_WORK * samples**2  # of a product
        return gram_work(samples, samples, 1.0) + factor_work(samples)

    def init(self, problem: Problem, start: Point, stop: Stop) -> RidgeNewtonState:
        form = form_of(problem, deadline=stop.deadline)
        if form.stride() >= SAMPLES_GROWTH and start.dual is None and not start.coef.any():
            start = self._rough_solution(sampled(problem, form.stride()), start, stop)
        inner = form.inner(problem, start)
        intercept = float(start.intercept[0] + form.centre @ start.coef[:, 0])
        majoriser = 1.0 if problem.margins.phi.has_linear_piece else 0.0
        at = expanded(problem, form.products(inner) + intercept, intercept, majoriser)
        state = RidgeNewtonState(
            inner=inner,
            at=at,
            slope=form.gradient(at.dual),
            majoriser=majoriser,
            ridge=_first_ridge(problem, form.design, start),
            tol=CLAIM_FRACTION * stop.tol,
            stride=form.stride(),
            stop=stop,
        )
        polish = stop.polish and form.stride() == 1  # of a sample, a step has no more digits
        return self.with_gap(problem, state).but(unpolished=polish, idle=0, renews=True)

    def _rough_solution(self, problem: Problem, start: Point, stop: Stop) -> Point:
        """The solution for a sample, as exact as the sample determines it."""
        state = self.init(problem, start, stop)
        noise = problem.design.n_features / problem.design.n_samples
        for _ in range(self.max_iter):
            if state.ridge <= problem.penalty.l2 and state.objective_change <= noise:
                break
            state = self.step(problem, state)
        return self.point(problem, state)

    def onward(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        """The first state for a problem with another ridge, from the solution of this one."""
        fresh = state.but(n_iter=0, ridge=problem.penalty.l2, objective=np.inf, gap=np.inf)
        first = self.with_gap(problem, fresh.but(renews=False))
        return first.but(unpolished=first.stride == 1, idle=0, renews=True)

    def step(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        form = form_of(problem)
        if state.renews:
            state = form.with_hessian(problem, state)
        reached = super().step(problem, state)
        return reached.but(hessian=np.empty((0, 0))) if reached.renews else reached

    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        form, bare = form_of(problem), state.at.scores - state.at.intercept
        direction, move, products = form.newton(problem, state)
        slope = state.ridge * form.inner_product(direction, state.inner, bare)
        curvature = state.ridge * form.inner_product(direction, direction, products)
        return NewtonStep(direction, move, products + move, slope, curvature)

    def gradient(self, problem: Problem, dual: Array) -> Array:
        return form_of(problem).gradient(dual)

    def with_gap(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        """The state with its gap, and the next ridge of the homotopy."""
        form, at, inner = form_of(problem), state.at, state.inner
        ridge, final = state.ridge, problem.penalty.l2
        square = form.inner_product(inner, inner, at.scores - at.intercept)
        objective, gap = at.value + 0.5 * ridge * square, form.gap(state, ridge)
        least = max(at.value + 0.5 * final * square, problem.negligible)
        passing, proved = ridge > final, gap
        if passing:
            proved = form.gap(state, final)
        if passing or gap > state.tol * least:
            proved = min(proved, form.multipliers(problem, state)[1])
        relative_gap = proved / least  # of the problem with the final ridge
        slow = relative_gap > SAMPLED_REDUCTION * state.relative_gap
        grows = slow and state.renews
        return self.with_progress(
            state,
            objective,
            proved,
            relative_gap,
            stride=form.finer(state.stride) if grows else state.stride,
            renews=slow or state.stride == 1,
            passing=passing,
            ridge=max(final, RIDGE_DECREASE * ridge) if gap <= RIDGE_GAP * objective else ridge,
            exact=proved <= EXACT_GAP * least,
        )

    def point(self, problem: Problem, state: RidgeNewtonState) -> Point:
        form = form_of(problem)
        coef = form.coef(state.inner)
        return Point(coef[:, None], np.array([state.at.intercept - float(form.centre @ coef)]))

    def scores(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return state.at.scores[:, None] if isinstance(problem.design, KernelDesign) else None

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` for wide data, if it gives a smaller gap than the gradient of the loss. Of a
        kernel matrix it is not made feasible here: `certify_represented` takes the scores for its
        product, and counts what the change adds to their error."""
        if isinstance(problem.design, KernelDesign):
            return -problem.penalty.l2 * state.inner[:, None]
        form = form_of(problem)
        dual, gap = form.multipliers(problem, state)
        if dual is None or gap < form.gap(state, problem.penalty.l2):
            return dual
        return state.at.dual[:, None]

    def weights_of(self, problem: Problem, state: RidgeNewtonState) -> Array:
        """The weights a of ``w = X'a``, (n_samples,), where there are few samples."""
        return state.inner

    def is_in_samples(self, problem: Problem) -> bool:
        """Whether the samples are so few that only their inner products are used."""
        return isinstance(form_of(problem), SampleForm)


def _first_ridge(problem: Problem, design: Design, start: Point) -> float:
    """The first ridge of the homotopy: the final one, or a stronger one if that is weak.

    With a very weak ridge many samples of separable data sit at the kink of the loss's slope, where
    line searches shorten Newton steps; following the regularisation path avoids that. A start with
    coefficients is taken to be on the path: most of its samples are on the right side of the kink.
    """
    loss, l2 = problem.margins, problem.penalty.l2
    if loss.phi.is_strictly_convex or start.coef.any():
        return l2
    spread = design.column_squares(loss.weights[:, 0], np.zeros(design.n_features)).sum()
    return max(l2, FIRST_RIDGE * loss.phi.smoothness * float(spread))


FACTORS_PER_STEP = 4.0  # mean number of Cholesky factors for the multiplier of a step
# the same for balls of other norms, whose models take an interior point method
FACTORS_PER_CURVED_STEP = 40.0
# secular equation: relative error of the norm of the model's minimiser, before it is scaled to the
# radius; an inexact Newton step saves a factor or two
SECULAR_TOLERANCE = 1e-14  # the tightest
SECULAR_FORCING = 1.0  # times min(relative gap, sqrt(last decrease of the objective))
LOOSEST_SECULAR_TOLERANCE = 0.1  # far from the solution


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
