"""Newton's method for a smooth loss with a ridge, with exact intercept and line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array, Design
from proxmargin.loop.solver import CLAIM_FRACTION, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.problem import Point, Problem
from proxmargin.rounding import OBJECTIVE_ROUNDING
from proxmargin.solvers.smooth.margin_model import expanded, first_share, line_search, next_share
from proxmargin.solvers.smooth.ridge_forms import Form, RidgeNewtonState, form_of
from proxmargin.traits import Trait

__all__ = ["RidgeNewton", "RidgeNewtonState"]

# homotopy in the strength of the ridge, for losses whose slope has kinks
FIRST_RIDGE = 1e-4  # over the loss's curvature summed over features, if the final one is weaker
RIDGE_DECREASE = 0.1  # factor from one ridge to the next
RIDGE_GAP = 0.1  # relative gap at which a ridge is left
# convergence
GAP_REDUCTION = 0.8  # ratio to the smallest gap so far, below which a gap is progress
EXACT_GAP = 1e-20  # relative gap at which polishing gains nothing


@dataclass(frozen=True)
class RidgeNewton(Solver[RidgeNewtonState]):
    """Newton's method on ``loss + (l2/2) |w|^2`` with the intercept minimised exactly.

    With the curvatures D of the samples, and the intercept eliminated, the Newton system

        ``(X' D X - h h' / sum(D) + l2 I) d = -gradient``,  ``h = X' D 1``

    is factored if features are few. If samples are few it is solved in the dual variables,
    ``(l2 D^-1 + X X') a + b = z - L'(z) / D`` over the samples with curvature and ``w = X' a``,
    which stays well-conditioned when the ridge is weak. ``X X'`` is formed once for all problems on
    the same data, and with a strong ridge a few CG steps replace the factor. If neither are few,
    conjugate gradients, preconditioned by the diagonal, solve the system inexactly. The line search
    is exact. Samples on a linear piece of the loss get a share of the reweighted least-squares
    majoriser as curvature, and the share goes to zero.

    At the exact intercept ``|gradient|^2 / (2 l2)`` is the duality gap.

    Parameters
    ----------
    max_stalled : int >= 1
        Steps without progress, as gap and objective have reached rounding, after which it ends.
    """

    max_stalled: int = 8

    name: ClassVar[str] = "ridge-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 500

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        refusal = None if problem.has_ridge_alone else "it needs a ridge penalty (no l1 part)"
        return super().objection(problem) or refusal

    def init(self, problem: Problem, start: Point, stop: Stop) -> RidgeNewtonState:
        form = form_of(problem, stop.deadline)
        inner = form.inner(start.coef[:, 0])
        intercept = float(start.intercept[0] + form.centre @ start.coef[:, 0])
        share = first_share(problem)
        at = expanded(problem, form.products(inner) + intercept, intercept, share)
        state = RidgeNewtonState(
            inner=inner,
            at=at,
            slope=form.gradient(at.dual),
            share=share,
            ridge=_first_ridge(problem, form.design, start),
            tol=CLAIM_FRACTION * stop.tol,
            deadline=stop.deadline,
        )
        return self._with_gap(problem, form, state).but(unpolished=stop.polish, idle=0)

    def step(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        form, l2, at, inner = form_of(problem), state.ridge, state.at, state.inner
        step = form.newton(problem, state)
        bare, moved = at.scores - at.intercept, step.moved - step.move
        slope = l2 * form.inner_product(step.direction, inner, bare)
        bend = l2 * form.inner_product(step.direction, step.direction, moved)
        length = line_search(problem, at, step.moved, step.move, slope, bend)
        change = length * float(np.linalg.norm(step.direction))
        scores, intercept = at.scores + length * step.moved, at.intercept + length * step.move
        share = next_share(state.share, length)
        there = expanded(problem, scores, intercept, share)
        reached = state.but(
            n_iter=state.n_iter + 1,
            inner=inner + length * step.direction,
            at=there,
            slope=form.gradient(there.dual),
            share=share,
            point_change=change / (1.0 + float(np.linalg.norm(inner))),
        )
        return self._with_gap(problem, form, reached)

    def observe(self, problem: Problem, state: RidgeNewtonState, gap: Gap) -> RidgeNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: RidgeNewtonState) -> Point:
        form = form_of(problem)
        coef = form.coef(state.inner)
        return Point(coef[:, None], np.array([state.at.intercept - float(form.centre @ coef)]))

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` for wide data, if it gives a smaller gap than the gradient of the loss."""
        return form_of(problem).dual(problem, state)

    def _with_gap(self, problem: Problem, form: Form, state: RidgeNewtonState) -> RidgeNewtonState:
        """The state with the objective and gap of its point, and the next ridge of the homotopy."""
        at, inner, ridge, final = state.at, state.inner, state.ridge, problem.penalty.l2
        square = form.inner_product(inner, inner, at.scores - at.intercept)
        objective, gap = at.value + 0.5 * ridge * square, form.gap(state, ridge)
        passing = ridge > final
        proved = form.final_gap(problem, state) if passing else gap
        least = max(at.value + 0.5 * final * square, problem.negligible)
        if not passing and gap > state.tol * least:
            proved = min(gap, form.final_gap(problem, state))
        better = passing or gap < GAP_REDUCTION * state.gap
        better |= state.objective - objective > OBJECTIVE_ROUNDING * abs(objective)
        idle = 0 if better else state.idle + 1
        still = (
            state.n_iter > 0 and state.point_change == 0.0 and not passing and state.share == 0.0
        )
        return state.but(
            ridge=max(final, RIDGE_DECREASE * ridge) if gap <= RIDGE_GAP * objective else ridge,
            objective=objective,
            gap=np.inf if passing else min(gap, state.gap),
            idle=idle,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
            finished=idle >= self.max_stalled or still,
            exact=proved <= EXACT_GAP * least,
            relative_gap=proved / least,
        ).claimed(final=True)  # `proved` is a gap of the problem with the final ridge


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
