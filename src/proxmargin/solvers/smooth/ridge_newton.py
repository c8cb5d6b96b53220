"""Newton's method for a smooth loss with a ridge: an exact intercept, an exact line search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificate import Gap
from proxmargin.designs.base import Array, Design
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.pace import affordable, factor_work, gram_work
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solver import SURE, PricedState, Solver
from proxmargin.solvers.linear_algebra import conjugate_gradients, inverse_of
from proxmargin.solvers.smooth.margin_model import (
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

__all__ = ["RidgeNewton", "RidgeNewtonState"]

# sides up to which Hessians are formed and factored; sparse products are cheap, factors are not
LARGEST_DENSE, LARGEST_SPARSE = 3000, 1500
# a factor takes as long as a product for each so many samples; to this share of the right-hand side
# products have to solve: multipliers that are less precise are no descent
FACTOR_PRODUCTS, PRECISE = 30, 1e-6
# conjugate gradients: least relative residual asked for, and most, and iterations at most
TIGHTEST, LOOSEST, CG_LIMIT = 1e-6, 0.1, 300
# weaker ridges than this share of the curvature are approached through stronger ones, each solved
# to this relative gap before the next
WEAK, RIDGE_FALL, NEAR = 1e-4, 0.1, 0.1
# inner products of samples serve up to so many of them for each feature: they are the same for all
# steps and all problems on these data; but not with weaker ridges than this share of the curvature
FEW_SAMPLES, WEAKEST = 1.5, 1e-8
# samples with less than this share of the largest curvature are taken as linear
FLAT = 1e-30
# steps without progress after which rounding is all that is left
PATIENCE = 8
# what counts as progress: of the gap, or of the objective
FALL, ROUNDING = 0.8, 1e-14
# there is nothing left to polish at this share of the objective
EXACT = 1e-20


@dataclass(frozen=True, eq=False)
class RidgeNewtonState(PricedState):
    """The state of Newton's method.

    Attributes
    ----------
    inner : (k,)
        The coefficients; for wide data the a of ``w = X'a``, one a sample.
    at : Expansion
        The loss there, with the best intercept (of the centred features, where they are).
    slope : (k,)
        Gradient of the loss in ``inner``, or what stands for it (`_Form.pulled`).
    share : float
        How much of the curvature of reweighted least squares stands in where the loss has none.
    ridge : float
        The strength of the ridge for now: a strong one first, where the final one is very weak.
    objective : float
        With that ridge.
    gap : float
        Least duality gap so far.
    idle : int
        Steps without progress.
    deadline : float
        After which no further product is begun for a step.
    """

    inner: Array = None  # type: ignore[assignment]
    at: Expansion = None  # type: ignore[assignment]
    slope: Array = None  # type: ignore[assignment]
    share: float = 0.0
    ridge: float = 0.0
    objective: float = np.inf
    gap: float = np.inf
    idle: int = 0
    deadline: float = np.inf


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
    and ``w = X' a``, which keeps its digits when the ridge is weak; ``X X'`` is formed once for all
    problems on the same data, and where the ridge is strong a few products with it replace the
    factor. Where neither are few the system is solved by conjugate gradients with its diagonal as
    preconditioner, as tightly as the step deserves. The step is searched exactly. Where no sample
    is in the curved zone of a loss with linear pieces, a share of the curvature of reweighted least
    squares replaces what is missing, and vanishes on the way.

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
        form = _form(problem, stop.deadline)
        inner = form.inner(start.coef[:, 0])
        intercept = float(start.intercept[0] + form.centre @ start.coef[:, 0])
        state = RidgeNewtonState(
            inner=inner,
            share=first_share(problem),
            ridge=_first_ridge(problem, form.design),
            tol=SURE * stop.tol,
            deadline=stop.deadline,
        )
        begun = _priced(problem, form, state, form.products(inner) + intercept, intercept)
        return begun.but(unpolished=stop.polish, idle=0)

    def step(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        form, l2, at, inner = _form(problem), state.ridge, state.at, state.inner
        step = form.newton(problem, state)
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
        scores, intercept = at.scores + length * step.moved, at.intercept + length * step.move
        return _priced(problem, form, reached, scores, intercept)

    def observe(self, problem: Problem, state: RidgeNewtonState, gap: Gap) -> RidgeNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: RidgeNewtonState) -> Point:
        form = _form(problem)
        coef = form.coef(state.inner)
        return Point(coef[:, None], np.array([state.at.intercept - float(form.centre @ coef)]))

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` of wide data, where it proves more than the gradient of the loss."""
        return _form(problem).dual(problem, state)


def _priced(
    problem: Problem, form: _Form, state: RidgeNewtonState, scores: Array, intercept: float
) -> RidgeNewtonState:
    """The best intercept, the loss around it and the gap; and on to the ridge that they allow."""
    inner, ridge, final = state.inner, state.ridge, problem.penalty.l2
    at = expanded(problem, scores, intercept, state.share)
    reached = state.but(at=at, slope=form.pulled(at.dual))
    square = form.inner_product(inner, inner, at.scores - at.intercept)
    objective, gap = at.value + 0.5 * ridge * square, form.gap(reached, ridge)
    passing = ridge > final
    proved = form.proved(problem, reached) if passing else gap
    least = max(at.value + 0.5 * final * square, problem.negligible)
    if not passing and gap > state.tol * least:
        proved = min(gap, form.proved(problem, reached))
    better = passing or gap < FALL * state.gap
    better |= state.objective - objective > ROUNDING * abs(objective)
    idle = 0 if better else state.idle + 1
    still = state.n_iter > 0 and state.point_change == 0.0 and not passing and state.share == 0.0
    return reached.but(
        ridge=max(final, RIDGE_FALL * ridge) if gap <= NEAR * objective else ridge,
        objective=objective,
        gap=np.inf if passing else min(gap, state.gap),
        idle=idle,
        objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        finished=idle >= PATIENCE or still,
        exact=proved <= EXACT * least,
        relative_gap=proved / least,
    ).claimed(final=True)  # what is proved is proved of the final ridge


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

    def pulled(self, dual: Array) -> Array:
        """The gradient of the loss in the coefficients, or coordinates of it like ``inner``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        """``|gradient|^2 / (2 l2)``."""
        gradient = state.slope + l2 * state.inner
        return float(gradient @ gradient) / (2.0 * l2)

    def proved(self, problem: Problem, state: RidgeNewtonState) -> float:
        """The gap with the final ridge, by the best dual point that is known."""
        return self.gap(state, problem.penalty.l2)

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return None

    @abstractmethod
    def newton(self, problem: Problem, state: RidgeNewtonState) -> _Step:
        """The Newton step."""


class _Narrow(_Form):
    """Few features: their Hessian is formed and factored."""

    def newton(self, problem: Problem, state: RidgeNewtonState) -> _Step:
        matrix, mean = eliminated(problem, self.design, state.at.bend)
        np.einsum("ii->i", matrix)[:] += state.ridge
        direction = inverse_of(matrix, overwrite=True)(-(state.slope + state.ridge * state.inner))
        move = -float(mean @ direction)
        return _Step(direction, move, self.products(direction) + move)


class _Wide(_Form):
    """Few samples: ``w = X'a``, and everything is told by the inner products of samples."""

    def inner(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros(self.design.n_samples)
        scores = self.design.scores(coef[:, None])[:, 0]
        return inverse_of(self.design.outer_gram())(scores)

    def coef(self, inner: Array) -> Array:
        return self.design.adjoint(inner[:, None])[:, 0]

    def products(self, inner: Array) -> Array:
        return self.design.outer_gram() @ inner

    def inner_product(self, left: Array, right: Array, products: Array) -> float:
        return float(left @ products)

    def pulled(self, dual: Array) -> Array:
        return dual

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        rest = state.slope + l2 * state.inner
        return max(float(rest @ self.products(rest)), 0.0) / (2.0 * l2)

    def proved(self, problem: Problem, state: RidgeNewtonState) -> float:
        return min(self.gap(state, problem.penalty.l2), self._multipliers(problem, state)[1])

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` where it proves more than the gradient of the loss.

        With a weak ridge and separable data the scores say little about the dual point: margins
        are one up to rounding, and a is what tells the samples apart.
        """
        dual, gap = self._multipliers(problem, state)
        return dual if gap < self.gap(state, problem.penalty.l2) else None

    def _multipliers(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """``-l2 a`` with the final ridge, made feasible, and the gap that it proves."""
        loss, l2 = loss_of(problem), problem.penalty.l2
        dual = loss.balanced(-l2 * state.inner[:, None], problem.intercept)
        return dual, loss.fenchel_young(state.at.scores[:, None], dual)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> _Step:
        direction, move = self._increment(problem, state)
        return _Step(direction, move, self.products(direction) + move)

    def _increment(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """From a and b to those of the minimiser of the quadratic model, d and m.

        With the rest ``r = L'(z) + l2 a``, ``l2 d = -r`` for samples without curvature. J are the
        others: ``(l2 D^-1 + K_JJ) d_J + m = -r_J / D - K_J. d`` and
        ``l2 sum(a + d) = l2_b (b + m)``, scaled by the roots of D on both sides.
        """
        at, l2 = state.at, state.ridge
        rest = at.dual + l2 * state.inner
        curved = at.bend > FLAT * at.bend.max()
        bend = at.bend[curved]
        root = np.sqrt(bend)
        step = np.where(curved, 0.0, -rest / l2)
        wanted = -rest[curved] / bend
        if step.any():
            wanted -= self.products(step)[curved]
        right = root[:, None] * np.column_stack([wanted, np.ones_like(wanted)])
        by_score, by_shift = (root[:, None] * self._solved(curved, bend, right, l2)).T
        if not np.isfinite(curvature_in_shift(problem, at.bend)):
            step[curved] = by_score
            return step, 0.0
        own = problem.intercept.l2 / l2
        level = float(by_shift.sum()) + own
        surplus = float(by_score.sum() + (step + state.inner).sum()) - own * at.intercept
        move = surplus / level if level > 0 else 0.0
        step[curved] = by_score - move * by_shift
        return step, move

    def _solved(self, curved: NDArray[np.bool_], bend: Array, right: Array, l2: float) -> Array:
        """Solve with ``root K root + l2``, the root of ``bend``: by a factor or by products.

        With a strong ridge the diagonal is most of the system, and a bound on its condition says
        that few products will do.
        """
        whole, root = self.design.outer_gram(), np.sqrt(bend)
        inner = whole if curved.all() else whole[np.ix_(curved, curved)]
        most = self.design.remembered("size of inner products", lambda: np.linalg.norm(whole))
        condition = 1.0 + float(bend.max(initial=0.0)) * float(most) / l2
        products = 0.5 * np.sqrt(condition) * np.log(2.0 / PRECISE)
        if products * FACTOR_PRODUCTS > root.size:
            system = inner * root
            system *= root[:, None]
            np.einsum("ii->i", system)[:] += l2
            return inverse_of(system, overwrite=True)(right)

        def product(v: Array) -> Array:
            return root * (inner @ (root * v)) + l2 * v

        inverse = 1.0 / (bend * np.diag(inner) + l2)
        limit = 1 + int(products)
        found = [conjugate_gradients(product, inverse, r, PRECISE, limit) for r in right.T]
        return np.column_stack(found)


class _Large(_Form):
    """Neither few samples nor few features: preconditioned conjugate gradients."""

    def newton(self, problem: Problem, state: RidgeNewtonState) -> _Step:
        design, bend, l2 = self.design, state.at.bend, state.ridge
        gradient = state.slope + l2 * state.inner
        total = curvature_in_shift(problem, bend)
        cross = design.adjoint(bend[:, None])[:, 0]
        mean = cross / total if total > 0 else np.zeros_like(cross)
        diagonal = design.column_squares(bend, np.zeros_like(cross)) - cross * mean

        def product(direction: Array) -> Array:
            bent = bend * (self.products(direction) - float(mean @ direction))
            return l2 * direction + design.adjoint(bent[:, None])[:, 0]

        roughly = np.sqrt(self.gap(state, l2) / max(state.at.value, 1e-300))
        share = min(LOOSEST, max(TIGHTEST, float(roughly)))
        inverse = 1.0 / (l2 + np.maximum(diagonal, 0.0))
        direction = conjugate_gradients(
            product, inverse, -gradient, share, CG_LIMIT, state.deadline
        )
        move = -float(mean @ direction)
        return _Step(direction, move, self.products(direction) + move)


def _form(problem: Problem, deadline: float = np.inf) -> _Form:
    """The form for the problem's shape, and the time that is left; the same one at every step."""
    return problem.remembered("ridge form", lambda: _new_form(problem, deadline))


def _new_form(problem: Problem, deadline: float) -> _Form:
    """By the sides of the data: no systems whose factor would take too long.

    Large sparse data are not centred: products with them would pay for it, and what centring
    saves is digits of a Hessian that is not formed.
    """
    raw = problem.design
    samples, features, dense = raw.n_samples, raw.n_features, raw.density == 1.0
    short, long = sorted((samples, features))
    work = gram_work(long, short, raw.density) + factor_work(short)
    if short > (LARGEST_DENSE if dense else LARGEST_SPARSE) or not affordable(work, deadline):
        return _Large(problem, well_centred(problem) if dense else raw)
    few = samples <= (FEW_SAMPLES if dense and not _is_weak(problem, raw) else 1.0) * features
    return (_Wide if few else _Narrow)(problem, well_centred(problem))


def _is_weak(problem: Problem, design: Design) -> bool:
    """Whether inner products of more samples than features would lose digits of the ridge."""
    largest = loss_of(problem).phi.smoothness * problem.slope_size**2
    return problem.penalty.l2 < WEAKEST * largest


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
