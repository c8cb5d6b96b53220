"""Newton's method for a smooth loss with a ridge: an exact intercept, an exact line search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from proxmargin.certificate import Gap
from proxmargin.designs.base import Array, Design
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import SURE, PricedState, Solver
from proxmargin.solvers.margin_model import (
    Expansion,
    centre_of,
    curvature_in_shift,
    eliminated,
    expanded,
    first_share,
    line_search,
    loss_of,
    next_share,
    well_centred,
)
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["RidgeNewton", "RidgeNewtonState", "cholesky", "conjugate_gradients"]

# sides up to which Hessians are formed and factored; sparse products are cheap, factors are not
LARGEST_DENSE, LARGEST_SPARSE = 3000, 1500
# a Hessian is lifted by this share of its diagonal, and by more while it cannot be factored
LIFT, MORE_LIFT, LIFTS = 1e-15, 1e3, 5
# conjugate gradients: least relative residual asked for, and most, and iterations at most
TIGHTEST, LOOSEST, CG_LIMIT = 1e-6, 0.1, 300
# weaker ridges than this share of the curvature are approached through stronger ones, each solved
# to this relative gap before the next
WEAK, RIDGE_FALL, NEAR = 1e-4, 0.1, 0.1
# samples with less than this share of the largest curvature are taken as linear
FLAT = 1e-30
# steps without progress after which rounding is all that is left
PATIENCE = 8
# what counts as progress: of the gap, or of the objective
FALL, ROUNDING = 0.8, 1e-14


@dataclass(frozen=True, eq=False)
class RidgeNewtonState(PricedState):
    """The state of Newton's method.

    Attributes
    ----------
    inner : (k,)
        The coefficients; for wide data the a of ``w = X'a``, one a sample.
    at : Expansion
        The loss around the point, with the best intercept (of the centred features, where they
        are).
    pulled : (k,)
        Gradient of the loss in the inner coordinates.
    share : float
        How much of the curvature of reweighted least squares stands in where the loss has none.
    ridge : float
        The strength of the ridge for now: a strong one first, where the final one is very weak.
    objective, gap : float
        The objective, and the least duality gap so far, with this ridge.
    idle : int
        Steps without progress.
    """

    inner: Array = None  # type: ignore[assignment]
    at: Expansion = None  # type: ignore[assignment]
    pulled: Array = None  # type: ignore[assignment]
    share: float = 0.0
    ridge: float = 0.0
    objective: float = np.inf
    gap: float = np.inf
    idle: int = 0


class _Step(NamedTuple):
    """A direction in the inner coordinates (k,), and what intercept and scores do along it."""

    direction: Array
    move: float
    moved: Array


@dataclass(frozen=True)
class RidgeNewton(Solver[RidgeNewtonState]):
    """Newton's method on ``loss + (l2/2) |w|^2`` with the intercept minimised exactly.

    With the curvatures D of the samples, and the intercept eliminated, the Newton system

        ``(X' D X - h h' / sum(D) + l2 I) d = -gradient``,  ``h = X' D 1``

    is factored as it stands where features are few. Where samples are few it is solved for the
    dual point instead, ``(l2 D^-1 + X X') a + b = z - L'(z) / D`` over the samples with curvature
    and ``w = X' a``, which keeps its digits when the ridge is weak. Where neither are few it is
    solved by conjugate gradients with its diagonal as preconditioner, as tightly as the step
    deserves. The step is searched exactly. Where no sample is in the curved zone of a loss with
    linear pieces, a share of the curvature of reweighted least squares replaces what is missing,
    and vanishes on the way.

    At the exact intercept ``|gradient|^2 / (2 l2)`` is the duality gap.
    """

    name: ClassVar[str] = "ridge-newton"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 500

    def objection(self, problem: Problem) -> str | None:
        penalty = problem.penalty
        plain = isinstance(penalty, Ridge) or (isinstance(penalty, ElasticNet) and penalty.l1 == 0)
        known = isinstance(problem.loss, MarginSum) and plain and penalty.l2 > 0
        readable = None if known else "it needs a loss of margins and a ridge penalty (no l1 part)"
        return super().objection(problem) or readable

    def init(self, problem: Problem, start: Point, stop: Stop) -> RidgeNewtonState:
        form = _form(problem)
        inner = form.inner(start.coef[:, 0])
        intercept = float(start.intercept[0] + form.centre @ start.coef[:, 0])
        state = RidgeNewtonState(
            inner=inner,
            share=first_share(problem),
            ridge=_first_ridge(problem, form.design),
            tol=SURE * stop.tol,
        )
        scores = form.products(inner) + intercept
        return self._priced(problem, state, intercept, scores).but(unpolished=stop.polish, idle=0)

    def step(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        form, l2, inner, at = _form(problem), state.ridge, state.inner, state.at
        step = form.newton(problem, at, inner, state.pulled + l2 * inner, l2)
        bare, moved = at.scores - at.intercept, step.moved - step.move
        slope = l2 * form.inner_product(step.direction, inner, bare)
        bend = l2 * form.inner_product(step.direction, step.direction, moved)
        length = line_search(problem, at, step.moved, step.move, slope, bend)
        change = length * float(np.linalg.norm(step.direction))
        reached = state.but(
            n_iter=state.n_iter + 1,
            inner=inner + length * step.direction,
            share=next_share(state.share, length),
            point_change=change / (1.0 + float(np.linalg.norm(inner))),
        )
        intercept = at.intercept + length * step.move
        priced = self._priced(problem, reached, intercept, at.scores + length * step.moved)
        stuck = change == 0.0 and state.ridge == problem.penalty.l2 and state.share == 0.0
        return priced.but(finished=priced.idle >= PATIENCE or stuck)

    def _priced(
        self, problem: Problem, state: RidgeNewtonState, intercept: float, scores: Array
    ) -> RidgeNewtonState:
        """The best intercept, the loss around the point, the gap; the ridge that they allow."""
        form, l2, inner = _form(problem), state.ridge, state.inner
        at = expanded(problem, scores, intercept, state.share)
        pulled = form.pulled(at)
        gap = form.gap(problem, at, inner, pulled + l2 * inner, l2)
        length = form.inner_product(inner, inner, at.scores - at.intercept)
        objective = at.value + 0.5 * l2 * length
        final = l2 == problem.penalty.l2
        better = not final or gap < FALL * state.gap
        better |= state.objective - objective > ROUNDING * abs(objective)
        return state.but(
            at=at,
            pulled=pulled,
            ridge=max(problem.penalty.l2, RIDGE_FALL * l2) if gap <= NEAR * objective else l2,
            objective=objective,
            gap=min(gap, state.gap) if final else np.inf,
            relative_gap=gap / max(objective, problem.negligible),
            idle=0 if better else state.idle + 1,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        ).claimed(final)

    def observe(self, problem: Problem, state: RidgeNewtonState, gap: Gap) -> RidgeNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: RidgeNewtonState) -> Point:
        form = _form(problem)
        coef = form.coef(state.inner)
        intercept = state.at.intercept - float(form.centre @ coef)
        return Point(coef[:, None], np.array([intercept]))

    def scores(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return state.at.scores[:, None]

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return _form(problem).dual(problem, state)


def cholesky(matrix: Array) -> Callable[[Array], Array]:
    """Solve with a positive definite matrix, lifted in place as little as it takes to factor it."""
    diagonal = np.einsum("ii->i", matrix)
    scale = diagonal + np.where(diagonal > 0, 0.0, 1.0)
    lift = LIFT
    for _ in range(LIFTS):
        diagonal += lift * scale
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            lift *= MORE_LIFT
            continue
        return lambda right: cho_solve(factor, right, check_finite=False)
    return lambda right: (right.T / scale).T


class _Form(ABC):
    """One way to hold coefficients and to solve Newton systems.

    Attributes
    ----------
    design : Design
        The data, centred where that is worth it.
    centre : (n_features,)
    """

    def __init__(self, problem: Problem, design: Design) -> None:
        self.design, self.centre = design, centre_of(problem, design)

    def inner(self, coef: Array) -> Array:
        return coef.copy()

    def coef(self, inner: Array) -> Array:
        return inner

    def products(self, inner: Array) -> Array:
        """``X w``."""
        return self.design.scores(inner[:, None])[:, 0]

    def inner_product(self, left: Array, right: Array, products: Array) -> float:
        """``v'w`` of two coefficients; ``products`` are X times the second."""
        return float(left @ right)

    def pulled(self, at: Expansion) -> Array:
        """Gradient of the loss in the inner coordinates."""
        return self.design.adjoint(at.dual[:, None])[:, 0]

    def gap(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> float:
        """``|gradient|^2 / (2 l2)``."""
        return float(gradient @ gradient) / (2.0 * l2)

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return None

    @abstractmethod
    def newton(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> _Step:
        """The Newton step."""


class _Narrow(_Form):
    """Few features: their Hessian is formed and factored."""

    def newton(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> _Step:
        matrix, mean = eliminated(problem, self.design, at.bend)
        np.einsum("ii->i", matrix)[:] += l2
        direction = cholesky(matrix)(-gradient)
        move = -float(mean @ direction)
        return _Step(direction, move, self.products(direction) + move)


class _Wide(_Form):
    """Few samples: ``w = X'a``, and everything is told by the inner products of samples."""

    def inner(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros(self.design.n_samples)
        scores = self.design.scores(coef[:, None])[:, 0]
        return cholesky(self.design.outer_gram().copy())(scores)

    def coef(self, inner: Array) -> Array:
        return self.design.adjoint(inner[:, None])[:, 0]

    def products(self, inner: Array) -> Array:
        return self.design.outer_gram() @ inner

    def inner_product(self, left: Array, right: Array, products: Array) -> float:
        return float(left @ products)

    def pulled(self, at: Expansion) -> Array:
        return at.dual

    def gap(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> float:
        """With the gradient of the loss for a dual point, or ``-l2 a`` where that proves more.

        With a weak ridge and separable data the scores say little about the dual point: margins
        are one up to rounding, and a is what tells the samples apart.
        """
        return min(self._gap(gradient, l2), self._own_dual(problem, at, inner, l2)[1])

    def _gap(self, gradient: Array, l2: float) -> float:
        return max(float(gradient @ self.products(gradient)), 0.0) / (2.0 * l2)

    def _own_dual(
        self, problem: Problem, at: Expansion, inner: Array, l2: float
    ) -> tuple[Array, float]:
        """The dual point ``-l2 a``, and its gap."""
        loss = loss_of(problem)
        dual = loss.balanced(-l2 * inner[:, None], problem.intercept)
        return dual, loss.fenchel_young(at.scores[:, None], dual)

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        l2 = problem.penalty.l2
        dual, gap = self._own_dual(problem, state.at, state.inner, l2)
        return dual if gap < self._gap(state.pulled + l2 * state.inner, l2) else None

    def newton(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> _Step:
        target, intercept = self._target(problem, at, l2)
        direction, move = target - inner, intercept - at.intercept
        return _Step(direction, move, self.products(direction) + move)

    def _target(self, problem: Problem, at: Expansion, l2: float) -> tuple[Array, float]:
        """a and b of the minimiser of the quadratic model.

        ``l2 a = -L'(z)`` for samples without curvature, J are the others:
        ``(l2 D^-1 + K_JJ) a_J + b = z_J - L'(z)_J / D - K_J. a`` and ``l2 sum(a) = l2_b b``,
        scaled by the roots of D on both sides.
        """
        curved = at.bend > FLAT * at.bend.max()
        target = np.where(curved, 0.0, -at.dual / l2)
        root = np.sqrt(at.bend[curved])
        system = root[:, None] * self.design.outer_gram()[np.ix_(curved, curved)] * root
        np.einsum("ii->i", system)[:] += l2
        wanted = (at.scores - self.products(target))[curved] - at.dual[curved] / at.bend[curved]
        right = np.column_stack([root * wanted, root])
        by_score, by_shift = (root[:, None] * cholesky(system)(right)).T
        if not np.isfinite(curvature_in_shift(problem, at.bend)):
            target[curved] = by_score
            return target, 0.0
        level = float(by_shift.sum()) + problem.intercept.l2 / l2
        surplus = float(by_score.sum() + target.sum())
        intercept = surplus / level if level > 0 else at.intercept
        target[curved] = by_score - intercept * by_shift
        return target, intercept


class _Large(_Form):
    """Neither few samples nor few features: preconditioned conjugate gradients."""

    def newton(
        self, problem: Problem, at: Expansion, inner: Array, gradient: Array, l2: float
    ) -> _Step:
        design, bend = self.design, at.bend
        total = curvature_in_shift(problem, bend)
        cross = design.adjoint(bend[:, None])[:, 0]
        mean = cross / total if total > 0 else np.zeros_like(cross)
        diagonal = design.column_squares(bend, np.zeros_like(cross)) - cross * mean

        def product(direction: Array) -> Array:
            bent = bend * (self.products(direction) - float(mean @ direction))
            return l2 * direction + design.adjoint(bent[:, None])[:, 0]

        gap = float(gradient @ gradient) / (2.0 * l2)
        share = min(LOOSEST, max(TIGHTEST, float(np.sqrt(gap / max(at.value, 1e-300)))))
        inverse = 1.0 / (l2 + np.maximum(diagonal, 0.0))
        direction = conjugate_gradients(product, inverse, -gradient, share, CG_LIMIT)
        move = -float(mean @ direction)
        return _Step(direction, move, self.products(direction) + move)


def _form(problem: Problem) -> _Form:
    """The form for the problem's shape; the same one at every step."""
    return problem.remembered("ridge form", lambda: _new_form(problem))


def _new_form(problem: Problem) -> _Form:
    """By the sides of the data.

    Large sparse data are not centred: products with them would pay for it, and what centring
    saves is digits of a Hessian that is not formed.
    """
    raw = problem.design
    samples, features, dense = raw.n_samples, raw.n_features, raw.density == 1.0
    if min(samples, features) > (LARGEST_DENSE if dense else LARGEST_SPARSE):
        return _Large(problem, well_centred(problem) if dense else raw)
    return (_Narrow if features <= samples else _Wide)(problem, well_centred(problem))


def _first_ridge(problem: Problem, design: Design) -> float:
    """The final ridge, unless it is so weak that the kinks of the loss would make steps short.

    Without a ridge to speak of the optimum of separable data is where many samples just leave
    the loss: a weak ridge is approached through stronger ones, along the regularisation path.
    """
    loss, l2 = loss_of(problem), problem.penalty.l2
    if loss.phi.shape is not None and loss.phi.shape.logistic:
        return l2
    spread = design.column_squares(loss.weights[:, 0], np.zeros(design.n_features)).sum()
    return max(l2, WEAK * loss.phi.smoothness * float(spread))


def conjugate_gradients(
    product: Callable[[Array], Array], inverse: Array, right: Array, share: float, limit: int
) -> Array:
    """Solve ``A d = right`` until the residual has fallen to ``share`` of ``|right|``.

    Parameters
    ----------
    product : callable
        ``d -> A d`` for a positive definite A, (k,) -> (k,).
    inverse : (k,)
        The preconditioner.
    limit : int
        Iterations at most.
    """
    solution, residual = np.zeros_like(right), right.copy()
    steep = inverse * residual
    direction, slope = steep.copy(), float(residual @ steep)
    target = share * float(np.linalg.norm(right))
    for _ in range(limit):
        if float(np.linalg.norm(residual)) <= target:
            break
        curved = product(direction)
        bend = float(direction @ curved)
        if not bend > 0.0:
            break
        length = slope / bend
        solution += length * direction
        residual -= length * curved
        steep = inverse * residual
        before, slope = slope, float(residual @ steep)
        direction *= slope / before
        direction += steep
    return solution
