"""Proximal Newton steps with an exact search along the step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from proxmargin.compiled import newton as compiled
from proxmargin.designs.base import Design, subtract_outer
from proxmargin.designs.standardized import centred
from proxmargin.losses.base import Array
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.pinned import Pinned
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import Solver, State
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["Curving", "ProximalNewton"]

# the quadratic model is solved to this share of the current violation; more tightly near the end
FORCING, TIGHT_FORCING, NEAR = 0.1, 0.003, 1e-2
# damping of the model, relative to the largest curvature that each coordinate can have
LEAST_DAMPING, MOST_DAMPING = 1e-12, 1e-3
# a coordinate with less than this share of its possible curvature gets some more
FLAT, LIFT = 1e-4, 1e-3
# homotopy from the curvature of reweighted least squares to that of the loss
THETA_END, THETA_FALL = 1e-3, 0.3
SWEEPS, CYCLES = 20, 30
# the search along a step ends when the slope has fallen to this share of its first value
SEARCH_SHARE, SEARCH_STEPS = 0.3, 60


@dataclass(frozen=True, eq=False)
class Curving(State):
    """The state of the proximal Newton method.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
        Of the centred features, where they are (`_design`).
    scores : (n_samples,)
    major : (n_features,)
        Largest curvature that each coordinate can have.
    theta : float
        Weight of the reweighted-least-squares curvature where the loss has none.
    """

    coef: Array = None  # type: ignore[assignment]
    intercept: float = 0.0
    scores: Array = None  # type: ignore[assignment]
    major: Array = None  # type: ignore[assignment]
    theta: float = 1.0
    objective: float = np.inf


class _Model(NamedTuple):
    """Hessian of the model with the intercept eliminated, and what recovers the intercept."""

    hessian: Array
    cross: Array
    bend: float


@dataclass(frozen=True)
class ProximalNewton(Solver[Curving]):
    """Minimise a quadratic model of the loss plus the elastic net, then search along the step.

    The model's Hessian is ``X' D X`` with the curvature of the loss in D, which only the samples
    in its curved zone have; elsewhere a share ``theta`` of the majoriser of reweighted least
    squares keeps the model bounded far from the solution, and vanishes on the way. The intercept
    is eliminated from the model, and minimised exactly before each step. The model is solved by
    coordinate descent on its Hessian and Newton steps on its support; the search along the step is
    exact, on the true objective. For piecewise quadratic losses the method ends after finitely
    many steps.

    It stores an (n_features, n_features) matrix: use it on a working set.
    """

    name: ClassVar[str] = "newton"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.SEPARABLE
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        known = isinstance(problem.loss, MarginSum) and isinstance(problem.penalty, ElasticNet)
        readable = None if known else "it needs a loss of margins and an elastic net penalty"
        return super().objection(problem) or readable

    def init(self, problem: Problem, start: Point, stop: Stop) -> Curving:
        loss, _ = _parts(problem)
        design = _design(problem)
        intercept = float((start.intercept + _centre(problem) @ start.coef)[0])
        scores = design.scores(start.coef) + intercept
        return Curving(
            coef=start.coef[:, 0].copy(),
            intercept=intercept,
            scores=scores[:, 0],
            major=loss.phi.smoothness * _squares(problem),
            theta=1.0,
            objective=problem.value(start),
        )

    def step(self, problem: Problem, state: Curving) -> Curving:
        loss, penalty = _parts(problem)
        scores, intercept = self._at_best_intercept(problem, state)
        _, dual = loss.value_and_gradient(scores[:, None])
        slope = _design(problem).adjoint(dual)[:, 0]
        violation = float(penalty.violations(state.coef[:, None], -slope[:, None]).max(initial=0))
        capped = loss.phi.shape is not None and np.isfinite(loss.phi.shape.cap)
        theta = self._cooled(state.theta, violation, penalty.l1) if capped else 0.0
        model = self._model(problem, state, scores, theta, violation)
        coef = self._solved(model, slope + penalty.l2 * state.coef, state.coef, penalty, violation)
        direction = coef - state.coef
        shift = -float(model.cross @ direction) / model.bend if model.bend > 0 else 0.0
        moved = _design(problem).scores(direction[:, None])[:, 0] + shift
        step = self._search(problem, state.coef, intercept, scores, direction, shift, moved)
        coef = state.coef + step * direction
        coef[np.abs(coef) <= 1e-9 * step * np.abs(direction)] = 0.0
        point = Point(coef[:, None], np.array([intercept + step * shift]))
        scores = scores + step * moved if step > 0 else scores
        objective = (
            loss.value(scores[:, None])
            + penalty.value(point.coef)
            + problem.intercept.value(point.intercept[None, :])
        )
        change = step * float(np.linalg.norm(direction))
        return replace(
            state,
            n_iter=state.n_iter + 1,
            coef=coef,
            intercept=float(point.intercept[0]),
            scores=scores,
            theta=self._next_theta(state.theta, theta, step),
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
            finished=change == 0.0 and theta == 0.0,
        )

    def point(self, problem: Problem, state: Curving) -> Point:
        coef = state.coef[:, None]
        return Point(coef, np.array([state.intercept]) - _centre(problem) @ coef)

    def scores(self, problem: Problem, state: Curving) -> Array:
        return state.scores[:, None]

    def _at_best_intercept(self, problem: Problem, state: Curving) -> tuple[Array, float]:
        bare = (state.scores - state.intercept)[:, None]
        start = np.array([state.intercept])
        best = float(problem.loss.best_intercept(bare, problem.intercept, start)[0])
        return bare[:, 0] + best, best

    def _cooled(self, theta: float, violation: float, l1: float) -> float:
        cooled = min(theta, violation / l1) if l1 > 0 else theta
        return cooled if cooled >= THETA_END else 0.0

    def _next_theta(self, before: float, used: float, step: float) -> float:
        """Less of the majoriser after a good step, more after a short one."""
        if before == 0.0 and step >= 0.1:
            return 0.0
        if step >= 0.5:
            return THETA_FALL * used
        return used if step >= 0.1 else min(1.0, 3.0 * max(used, 3.0 * THETA_END))

    def _model(
        self, problem: Problem, state: Curving, scores: Array, theta: float, violation: float
    ) -> _Model:
        loss, penalty = _parts(problem)
        bend = np.empty(scores.size)
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        compiled.curvature_weights(loss.phi.shape, scores, signs, weights, theta, bend)
        design = _design(problem)
        hessian = design.gram(bend, np.zeros(design.n_features))
        cross = design.adjoint(bend[:, None])[:, 0]
        total = float(bend.sum()) + problem.intercept.l2
        if isinstance(problem.intercept, Pinned):
            total = 0.0
        if total > 0:
            subtract_outer(hessian, cross, cross / total)
        diagonal = np.einsum("ii->i", hessian)
        far = min(1.0, violation / penalty.l1 if penalty.l1 > 0 else violation)
        diagonal += (LEAST_DAMPING + MOST_DAMPING * far) * state.major
        diagonal += np.where(diagonal < FLAT * state.major, LIFT * state.major, 0.0) + penalty.l2
        diagonal += np.where(diagonal > 0, 0.0, 1.0)  # a feature that is zero everywhere
        return _Model(hessian, cross, total)

    def _solved(
        self, model: _Model, slope: Array, start: Array, penalty: ElasticNet, violation: float
    ) -> Array:
        """Coordinate descent, and Newton steps on the support it settles on."""
        coef = start.copy()
        share = FORCING if violation > NEAR * penalty.l1 else TIGHT_FORCING
        target = share * violation
        slope = slope.copy()
        for _ in range(CYCLES):
            worst = compiled.model_sweeps(model.hessian, slope, coef, penalty.l1, SWEEPS, target)
            if worst <= target:
                break
            _support_step(model.hessian, slope, coef, penalty.l1)
        return coef

    def _search(
        self,
        problem: Problem,
        coef: Array,
        intercept: float,
        scores: Array,
        direction: Array,
        shift: float,
        moved: Array,
    ) -> float:
        """The step length at which the objective stops falling."""
        loss, penalty = _parts(problem)
        l2 = problem.intercept.l2
        step: float = compiled.exact_step(
            loss.phi.shape,
            scores,
            moved,
            loss.signs[:, 0],
            loss.weights[:, 0],
            coef,
            direction,
            penalty.l1,
            penalty.l2,
            l2 * intercept * shift,
            l2 * shift * shift,
            SEARCH_SHARE,
            SEARCH_STEPS,
        )
        return step


def _squares(problem: Problem) -> Array:
    """``sum_i weights_i x_ij^2`` for each feature."""
    loss, _ = _parts(problem)
    return _design(problem).column_squares(loss.weights[:, 0], np.zeros(problem.design.n_features))


def _design(problem: Problem) -> Design:
    """The data, centred where the intercept is free, which only moves the intercept.

    The Hessian without the intercept is a covariance: formed from data with large means it would
    have lost its digits.
    """
    if problem.intercept.is_shift_invariant:
        return centred(problem.design, problem.loss.shares)
    return problem.design


def _centre(problem: Problem) -> Array:
    if problem.intercept.is_shift_invariant:
        return centred(problem.design, problem.loss.shares).centre
    return np.zeros(problem.design.n_features)


def _parts(problem: Problem) -> tuple[MarginSum, ElasticNet]:
    """Loss and penalty, which `ProximalNewton.objection` has found to be of these types."""
    loss, penalty = problem.loss, problem.penalty
    assert isinstance(loss, MarginSum)
    assert isinstance(penalty, ElasticNet)
    return loss, penalty


def _support_step(hessian: Array, slope: Array, coef: Array, l1: float) -> None:
    """The Newton step of the model on the support, as far as no sign changes; in place."""
    support = np.flatnonzero(coef)
    if support.size == 0:
        return
    signs = np.sign(coef[support])
    try:
        factor = cho_factor(hessian[np.ix_(support, support)], lower=True, check_finite=False)
    except LinAlgError:
        return
    step = -cho_solve(factor, slope[support] + l1 * signs, check_finite=False)
    crossing = np.where(step * signs < 0, -coef[support] / np.where(step == 0, 1.0, step), np.inf)
    length = min(1.0, float(crossing.min()))
    change = length * step
    coef[support] += change
    if length < 1.0:
        coef[support[np.argmin(crossing)]] = 0.0
    slope += hessian[:, support] @ change
