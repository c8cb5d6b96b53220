"""Newton's method for a smooth loss with a ridge, with exact intercept and line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs.base import Array, Design
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import factor_work, gram_work
from proxmargin.solvers.loop.solver import CLAIM_FRACTION, Stop
from proxmargin.solvers.ridge.ridge_forms import (
    SAMPLES_GROWTH,
    RidgeNewtonState,
    SampleForm,
    form_of,
    sampled,
)
from proxmargin.solvers.shared.margin_model import MarginNewton, NewtonStep, expanded
from proxmargin.solvers.shared.numerical import MAX_SIDE

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
    few, conjugate gradients, preconditioned by the diagonal, solve the system inexactly.

    Of many samples of few features the first Hessian, and the start, are those of a sample. BFGS
    updates correct that Hessian; as the gap falls slowly, it is formed anew, of more samples.

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
            if problem.design.n_samples > MAX_SIDE:
                return f"it factorises a kernel matrix, of {MAX_SIDE} samples at most"
        return missing

    def work(self, problem: Problem) -> float:
        if not isinstance(problem.design, KernelDesign):  # otherwise the form is chosen by the time
            return super().work(problem)
        samples = problem.design.n_samples
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
            deadline=stop.deadline,
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
        full = form.full_step(problem, state)
        reached = self.moved(problem, state, *full) if full else super().step(problem, state)
        if reached.renews:
            return reached.but(hessian=np.empty((0, 0)))
        moved, change = reached.inner - state.inner, reached.slope - state.slope
        if not (rise := float(moved @ change)) > 0.0:
            return reached
        product = state.hessian @ moved  # BFGS
        hessian = state.hessian + np.outer(change, change / rise)
        hessian -= np.outer(product, product / max(float(moved @ product), TINY))
        return reached.but(hessian=hessian)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        form, bare = form_of(problem), state.at.scores - state.at.intercept
        direction, move = form.newton(problem, state)
        products = form.products(direction)
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
            gap,
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
