"""Newton's method for a smooth loss with a ridge: an exact intercept, an exact line search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificate import Gap
from proxmargin.designs.base import Array, Design
from proxmargin.pace import affordable, factor_work, gram_work
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Centred, Point, Problem
from proxmargin.solver import CLAIM_FRACTION, PricedState, Solver
from proxmargin.solvers.linear_algebra import conjugate_gradients, inverse_of
from proxmargin.solvers.smooth.margin_model import (
    Expansion,
    curvature_in_shift,
    eliminated,
    expanded,
    first_share,
    line_search,
    next_share,
)
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["RidgeNewton", "RidgeNewtonState"]

# sides (the smaller of samples and features) up to which a Hessian is formed and factored
MAX_DENSE_SIDE = 3000
MAX_SPARSE_SIDE = 1500  # less: CG's products are cheap beside a factor
# form: the Gram matrix of the samples, which is shared by all steps and problems on the same data
GRAM_SAMPLES_PER_FEATURE = 1.5  # up to which it is used for dense data
GRAM_MIN_RIDGE = 1e-8  # of the largest curvature; with a weaker ridge it would lose digits
# Newton systems in the dual variables: a Cholesky factor or CG
FACTOR_SAMPLES = 30  # a factor takes as long as n / this products with the n x n Gram matrix
DUAL_CG_TOLERANCE = 1e-6  # relative residual: looser multipliers give no descent direction
# Newton systems by CG alone: as tight as sqrt(gap / loss), within these relative residuals
TIGHTEST_CG_TOLERANCE = 1e-6
LOOSEST_CG_TOLERANCE = 0.1
CG_STEPS = 300  # at most
# homotopy in the strength of the ridge, for losses with kinks in their slope
FIRST_RIDGE = 1e-4  # of the loss's curvature summed over features, if the final ridge is weaker
RIDGE_DECREASE = 0.1  # factor from one ridge to the next
RIDGE_GAP = 0.1  # relative gap at which a ridge is left
FLAT_CURVATURE = 1e-30  # of the largest curvature: below, a sample counts as linear
# convergence
GAP_REDUCTION = 0.8  # a smaller gap than this times the least one is progress
OBJECTIVE_ROUNDING = 1e-14  # relative decrease of the objective that is more than rounding
PATIENCE_STEPS = 8  # without progress: gap and objective have reached rounding
EXACT_GAP = 1e-20  # relative gap that leaves nothing to polish


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeNewtonState(PricedState):
    """The state of Newton's method.

    Attributes
    ----------
    inner : (k,)
        The coefficients w; for wide data the a of ``w = X'a``, one a sample.
    at : Expansion
        The loss there, with the best intercept (for the centred design, if it is centred).
    slope : (k,)
        Gradient of the loss in w, or for wide data the g of ``gradient = X'g`` (`_Form.pulled`).
    share : float
        Weight of the reweighted least-squares majoriser where the loss has no curvature.
    ridge : float
        The strength of the ridge at this stage of the homotopy, at least the final one.
    objective : float
        With that ridge.
    gap : float
        Least duality gap so far.
    idle : int
        Steps without progress.
    deadline : float
        After which CG starts no further product.
    """

    inner: Array
    at: Expansion
    slope: Array
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

    is factored where features are few. Where samples are few it is solved in the dual variables,
    ``(l2 D^-1 + X X') a + b = z - L'(z) / D`` over the samples with curvature and ``w = X' a``,
    which stays well-conditioned when the ridge is weak; ``X X'`` is formed once for all problems on
    the same data, and where the ridge is strong a few CG steps replace the factor. Where neither
    are few the system is solved inexactly by conjugate gradients, preconditioned by its diagonal.
    The line search is exact. Samples on a linear piece of the loss get a share of the reweighted
    least-squares majoriser as curvature, and the share goes to zero.

    At the exact intercept ``|gradient|^2 / (2 l2)`` is the duality gap.
    """

    name: ClassVar[str] = "ridge-newton"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 500

    def objection(self, problem: Problem) -> str | None:
        penalty = problem.penalty
        plain = isinstance(penalty, Ridge) or (isinstance(penalty, ElasticNet) and penalty.l1 == 0)
        known = plain and penalty.l2 > 0
        refusal = None if known else "it needs a ridge penalty (no l1 part)"
        return super().objection(problem) or refusal

    def init(self, problem: Problem, start: Point, stop: Stop) -> RidgeNewtonState:
        form = _form(problem, stop.deadline)
        inner = form.inner(start.coef[:, 0])
        intercept = float(start.intercept[0] + form.centre @ start.coef[:, 0])
        share = first_share(problem)
        at = expanded(problem, form.products(inner) + intercept, intercept, share)
        state = RidgeNewtonState(
            inner=inner,
            at=at,
            slope=form.pulled(at.dual),
            share=share,
            ridge=_first_ridge(problem, form.design),
            tol=CLAIM_FRACTION * stop.tol,
            deadline=stop.deadline,
        )
        return _priced(problem, form, state).but(unpolished=stop.polish, idle=0)

    def step(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        form, l2, at, inner = _form(problem), state.ridge, state.at, state.inner
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
            slope=form.pulled(there.dual),
            share=share,
            point_change=change / (1.0 + float(np.linalg.norm(inner))),
        )
        return _priced(problem, form, reached)

    def observe(self, problem: Problem, state: RidgeNewtonState, gap: Gap) -> RidgeNewtonState:
        return state.observed()

    def point(self, problem: Problem, state: RidgeNewtonState) -> Point:
        form = _form(problem)
        coef = form.coef(state.inner)
        return Point(coef[:, None], np.array([state.at.intercept - float(form.centre @ coef)]))

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` for wide data, where it gives a smaller gap than the gradient of the loss."""
        return _form(problem).dual(problem, state)


def _priced(problem: Problem, form: _Form, state: RidgeNewtonState) -> RidgeNewtonState:
    """The objective and the gap of the state's point, and the next ridge of the homotopy."""
    at, inner, ridge, final = state.at, state.inner, state.ridge, problem.penalty.l2
    square = form.inner_product(inner, inner, at.scores - at.intercept)
    objective, gap = at.value + 0.5 * ridge * square, form.gap(state, ridge)
    passing = ridge > final
    proved = form.proved(problem, state) if passing else gap
    least = max(at.value + 0.5 * final * square, problem.negligible)
    if not passing and gap > state.tol * least:
        proved = min(gap, form.proved(problem, state))
    better = passing or gap < GAP_REDUCTION * state.gap
    better |= state.objective - objective > OBJECTIVE_ROUNDING * abs(objective)
    idle = 0 if better else state.idle + 1
    still = state.n_iter > 0 and state.point_change == 0.0 and not passing and state.share == 0.0
    return state.but(
        ridge=max(final, RIDGE_DECREASE * ridge) if gap <= RIDGE_GAP * objective else ridge,
        objective=objective,
        gap=np.inf if passing else min(gap, state.gap),
        idle=idle,
        objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        finished=idle >= PATIENCE_STEPS or still,
        exact=proved <= EXACT_GAP * least,
        relative_gap=proved / least,
    ).claimed(final=True)  # `proved` is a gap of the problem with the final ridge


class _Form(ABC):
    """One way to hold coefficients and to solve Newton systems.

    Attributes
    ----------
    design : Design
        The data, centred where that is worth it.
    centre : (n_features,)
    """

    def __init__(self, data: Centred) -> None:
        self.design, self.centre = data

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
        """The gradient of the loss in the coefficients, in the coordinates of ``inner``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        """``|gradient|^2 / (2 l2)``."""
        gradient = state.slope + l2 * state.inner
        return float(gradient @ gradient) / (2.0 * l2)

    def proved(self, problem: Problem, state: RidgeNewtonState) -> float:
        """The gap with the final ridge, by the better of the dual points at hand."""
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
    """Few samples: ``w = X'a``, and all that is needed of the data is their Gram matrix."""

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
        """``-l2 a`` where it gives a smaller gap than the gradient of the loss.

        With a weak ridge and separable data the gradient is ill-conditioned in the scores: margins
        are one up to rounding, while a has all its digits.
        """
        dual, gap = self._multipliers(problem, state)
        return dual if gap < self.gap(state, problem.penalty.l2) else None

    def _multipliers(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """``-l2 a`` with the final ridge, projected to be feasible, and its gap."""
        loss, l2 = problem.margins, problem.penalty.l2
        dual = loss.balanced(-l2 * state.inner[:, None], problem.intercept)
        return dual, loss.fenchel_young(state.at.scores[:, None], dual)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> _Step:
        direction, move = self._increment(problem, state)
        return _Step(direction, move, self.products(direction) + move)

    def _increment(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """The Newton step d in a and m in b.

        With the residual ``r = L'(z) + l2 a``, ``l2 d = -r`` for samples without curvature. The
        others, J, solve ``(l2 D^-1 + K_JJ) d_J + m = -r_J / D - K_J. d`` with
        ``l2 sum(a + d) = l2_b (b + m)``, scaled symmetrically by the square roots of D.
        """
        at, l2 = state.at, state.ridge
        rest = at.dual + l2 * state.inner
        curved = at.bend > FLAT_CURVATURE * at.bend.max()
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
        """Solve with ``sqrt(D) K sqrt(D) + l2 I``, D = ``bend``, by CG or by a Cholesky factor.

        By CG where a bound on the condition number says that it takes less time: where the ridge
        is strong.
        """
        whole, root = self.design.outer_gram(), np.sqrt(bend)
        inner = whole if curved.all() else whole[np.ix_(curved, curved)]
        most = self.design.remembered(_gram_norm)
        condition = 1.0 + float(bend.max(initial=0.0)) * most / l2
        products = 0.5 * np.sqrt(condition) * np.log(2.0 / DUAL_CG_TOLERANCE)
        if products * FACTOR_SAMPLES > root.size:
            system = inner * root
            system *= root[:, None]
            np.einsum("ii->i", system)[:] += l2
            return inverse_of(system, overwrite=True)(right)

        def product(v: Array) -> Array:
            return root * (inner @ (root * v)) + l2 * v

        inverse = 1.0 / (bend * np.diag(inner) + l2)
        limit = 1 + int(products)
        found = [
            conjugate_gradients(product, inverse, r, DUAL_CG_TOLERANCE, limit) for r in right.T
        ]
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
        share = min(LOOSEST_CG_TOLERANCE, max(TIGHTEST_CG_TOLERANCE, float(roughly)))
        inverse = 1.0 / (l2 + np.maximum(diagonal, 0.0))
        direction = conjugate_gradients(
            product, inverse, -gradient, share, CG_STEPS, state.deadline
        )
        move = -float(mean @ direction)
        return _Step(direction, move, self.products(direction) + move)


def _gram_norm(design: Design) -> float:
    return float(np.linalg.norm(design.outer_gram()))


def _form(problem: Problem, deadline: float = np.inf) -> _Form:
    """The form for the shape of the data and the time left, chosen once a problem."""
    return problem.remembered(_new_form, deadline=deadline)


def _new_form(problem: Problem, deadline: float) -> _Form:
    """Choose by the sides of the data, and by whether a factor would end before the deadline.

    Large sparse data are not centred: it would slow their products, and centring is for the
    accuracy of a Hessian that is not formed here.
    """
    raw = problem.design
    samples, features, dense = raw.n_samples, raw.n_features, raw.density == 1.0
    short, long = sorted((samples, features))
    work = gram_work(long, short, raw.density) + factor_work(short)
    if short > (MAX_DENSE_SIDE if dense else MAX_SPARSE_SIDE) or not affordable(work, deadline):
        return _Large(problem.centred if dense else Centred(raw, np.zeros(features)))
    few = (
        samples
        <= (GRAM_SAMPLES_PER_FEATURE if dense and not _is_weak(problem, raw) else 1.0) * features
    )
    return (_Wide if few else _Narrow)(problem.centred)


def _is_weak(problem: Problem, design: Design) -> bool:
    """Whether the ridge is so weak that a singular Gram matrix would swamp it with rounding."""
    largest = problem.margins.phi.smoothness * problem.slope_size**2
    return problem.penalty.l2 < GRAM_MIN_RIDGE * largest


def _first_ridge(problem: Problem, design: Design) -> float:
    """The ridge to start from: the final one, or a stronger one where that is weak.

    With next to no ridge many samples of separable data sit at the kink of the loss's slope, where
    Newton steps are cut short; following the regularisation path avoids it.
    """
    loss, l2 = problem.margins, problem.penalty.l2
    if loss.phi.is_strictly_convex:
        return l2
    spread = design.column_squares(loss.weights[:, 0], np.zeros(design.n_features)).sum()
    return max(l2, FIRST_RIDGE * loss.phi.smoothness * float(spread))
