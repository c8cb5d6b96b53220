"""Forms of ridge Newton: the representation of coefficients, and the Newton systems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array, Design
from proxmargin.loop.solver import GapState
from proxmargin.problem import Centred, Problem
from proxmargin.rounding import TINY
from proxmargin.runtime.memoisation import cached_property
from proxmargin.runtime.pace import affordable, factor_work, gram_work
from proxmargin.solvers.linear_algebra import conjugate_gradients, inverse_of
from proxmargin.solvers.smooth.margin_model import (
    MarginExpansion,
    curvature_in_shift,
    intercept_eliminated,
)

__all__ = ["Form", "NewtonStep", "RidgeNewtonState", "form_of"]

# min(n_samples, n_features) up to which a Hessian is formed and factored
MAX_DENSE_SIDE = 3000
MAX_SPARSE_SIDE = 1500  # smaller, as products for CG are cheap compared with a factor
# Gram matrix of the samples, which all steps and problems on the same data share
GRAM_SAMPLES_PER_FEATURE = 1.5  # ratio up to which it is used for dense data
GRAM_MIN_RIDGE = 1e-8  # ridge over the largest curvature, below which it would lose digits
# Newton systems in the dual variables: a Cholesky factor or CG
FACTOR_SAMPLES = 30  # a factor takes as long as n / this products with the n x n Gram matrix
DUAL_CG_TOLERANCE = 1e-6  # relative residual: looser multipliers give no descent direction
# Newton systems by CG alone: relative residual sqrt(gap / loss), within these bounds
TIGHTEST_CG_TOLERANCE = 1e-6
LOOSEST_CG_TOLERANCE = 0.1
CG_STEPS = 300  # iteration limit
# curvature of a sample
FLAT_CURVATURE = 1e-30  # over the largest curvature, below which a sample counts as linear


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeNewtonState(GapState):
    """The state of Newton's method.

    Attributes
    ----------
    inner : (k,)
        The coefficients w; for wide data the a of ``w = X'a``, one a sample.
    at : Expansion
        Expansion of the loss, with the best intercept (for the centred design, if it is centred).
    slope : (k,)
        Gradient of the loss in w, or for wide data the g of ``gradient = X'g`` (`Form.pulled`).
    share : float
        Weight of the reweighted least-squares majoriser where the loss has no curvature.
    ridge : float
        Ridge of this stage of the homotopy, at least the final one.
    objective : float
        Objective with that ridge.
    gap : float
        Smallest duality gap so far.
    idle : int
        Steps without progress.
    deadline : float
        CG starts no further product after it.
    """

    inner: Array
    at: MarginExpansion
    slope: Array
    share: float = 0.0
    ridge: float = 0.0
    objective: float = np.inf
    gap: float = np.inf
    idle: int = 0
    deadline: float = np.inf


class NewtonStep(NamedTuple):
    """A direction in the inner coordinates (k,), with its changes of intercept and scores."""

    direction: Array
    move: float
    moved: Array


class Form(ABC):
    """A representation of the coefficients, with a method for the Newton systems.

    Attributes
    ----------
    design : Design
        The data, centred if that is worth its cost.
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
        """``v'w`` of two coefficients; ``products`` is ``X w`` of the second."""
        return float(left @ right)

    def gradient(self, dual: Array) -> Array:
        """The gradient of the loss in the coefficients, in the representation of ``inner``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        """``|gradient|^2 / (2 l2)``."""
        gradient = state.slope + l2 * state.inner
        return float(gradient @ gradient) / (2.0 * l2)

    def final_gap(self, problem: Problem, state: RidgeNewtonState) -> float:
        """The gap with the final ridge, for the better of the available dual points."""
        return self.gap(state, problem.penalty.l2)

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        return None

    @abstractmethod
    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        """The Newton step."""


class Narrow(Form):
    """Few features: the Hessian is formed and factored."""

    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        matrix, mean = intercept_eliminated(problem, self.design, state.at.bend)
        np.einsum("ii->i", matrix)[:] += state.ridge
        direction = inverse_of(matrix, overwrite=True)(-(state.slope + state.ridge * state.inner))
        move = -float(mean @ direction)
        return NewtonStep(direction, move, self.products(direction) + move)


class Wide(Form):
    """Few samples: ``w = X'a``, with the Gram matrix of the samples in place of the data."""

    @cached_property
    def gram(self) -> Array:
        return self.design.outer_gram()

    def inner(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros(self.design.n_samples)
        scores = self.design.scores(coef[:, None])[:, 0]
        return inverse_of(self.gram)(scores)

    def coef(self, inner: Array) -> Array:
        return self.design.adjoint(inner[:, None])[:, 0]

    def products(self, inner: Array) -> Array:
        return self.gram @ inner

    def inner_product(self, left: Array, right: Array, products: Array) -> float:
        return float(left @ products)

    def gradient(self, dual: Array) -> Array:
        return dual

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        rest = state.slope + l2 * state.inner
        return max(float(rest @ self.products(rest)), 0.0) / (2.0 * l2)

    def final_gap(self, problem: Problem, state: RidgeNewtonState) -> float:
        return min(self.gap(state, problem.penalty.l2), self._multipliers(problem, state)[1])

    def dual(self, problem: Problem, state: RidgeNewtonState) -> Array | None:
        """``-l2 a`` if it gives a smaller gap than the gradient of the loss.

        With a weak ridge and separable data the gradient is ill-conditioned in the scores: margins
        are one up to rounding, while a keeps all its digits.
        """
        dual, gap = self._multipliers(problem, state)
        return dual if gap < self.gap(state, problem.penalty.l2) else None

    def _multipliers(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """``-l2 a`` with the final ridge, made feasible, and its gap."""
        loss, l2 = problem.loss, problem.penalty.l2
        dual = loss.balanced(-l2 * state.inner[:, None], problem.intercept)
        return dual, loss.fenchel_young(state.at.scores[:, None], dual)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        direction, move = self._increment(problem, state)
        return NewtonStep(direction, move, self.products(direction) + move)

    def _increment(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float]:
        """The Newton step, d in a and m in b.

        With the residual ``r = L'(z) + l2 a``, ``l2 d = -r`` for samples without curvature. The
        others, J, solve ``(l2 D^-1 + K_JJ) d_J + m = -r_J / D - K_J. d`` with ``l2 sum(a + d) =
        l2_b (b + m)``, scaled symmetrically by the square roots of D.
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
        by_score, by_shift = (root[:, None] * self._solve_kernel_system(curved, bend, right, l2)).T
        if not np.isfinite(curvature_in_shift(problem, at.bend)):
            step[curved] = by_score
            return step, 0.0
        own = problem.intercept.l2 / l2
        level = float(by_shift.sum()) + own
        surplus = float(by_score.sum() + (step + state.inner).sum()) - own * at.intercept
        move = surplus / level if level > 0 else 0.0
        step[curved] = by_score - move * by_shift
        return step, move

    def _solve_kernel_system(
        self, curved: NDArray[np.bool_], bend: Array, right: Array, l2: float
    ) -> Array:
        """Solve with ``sqrt(D) K sqrt(D) + l2 I``, D = ``bend``, by CG or by a Cholesky factor.

        By CG if a bound on the condition number shows that it takes less time, as with a strong
        ridge.
        """
        whole, root = self.gram, np.sqrt(bend)
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


class Large(Form):
    """Many samples and many features: preconditioned conjugate gradients."""

    def newton(self, problem: Problem, state: RidgeNewtonState) -> NewtonStep:
        design, bend, l2 = self.design, state.at.bend, state.ridge
        gradient = state.slope + l2 * state.inner
        total = curvature_in_shift(problem, bend)
        cross = design.adjoint(bend[:, None])[:, 0]
        mean = cross / total if total > 0 else np.zeros_like(cross)
        diagonal = design.column_squares(bend, np.zeros_like(cross)) - cross * mean

        def product(direction: Array) -> Array:
            bent = bend * (self.products(direction) - float(mean @ direction))
            return l2 * direction + design.adjoint(bent[:, None])[:, 0]

        roughly = np.sqrt(self.gap(state, l2) / max(state.at.value, TINY))
        share = min(LOOSEST_CG_TOLERANCE, max(TIGHTEST_CG_TOLERANCE, float(roughly)))
        inverse = 1.0 / (l2 + np.maximum(diagonal, 0.0))
        direction = conjugate_gradients(
            product, inverse, -gradient, share, CG_STEPS, state.deadline
        )
        move = -float(mean @ direction)
        return NewtonStep(direction, move, self.products(direction) + move)


def _gram_norm(design: Design) -> float:
    return float(np.linalg.norm(design.outer_gram()))


def form_of(problem: Problem, deadline: float = np.inf) -> Form:
    """The form for the shape of the data and the remaining time, chosen once a problem."""
    return problem.remembered(_new_form, deadline=deadline)


def _new_form(problem: Problem, deadline: float) -> Form:
    """The form by the shape of the data, and by whether a factor would end before the deadline.

    Large sparse data are not centred: that would slow their products, and only a Hessian that is
    formed needs it for accuracy.
    """
    raw = problem.design
    samples, features, dense = raw.n_samples, raw.n_features, raw.density == 1.0
    short, long = sorted((samples, features))
    work = gram_work(long, short, raw.density) + factor_work(short)
    if short > (MAX_DENSE_SIDE if dense else MAX_SPARSE_SIDE) or not affordable(work, deadline):
        return Large(problem.centred if dense else Centred(raw, np.zeros(features)))
    few = samples <= features or (
        dense and samples <= GRAM_SAMPLES_PER_FEATURE * features and not _is_weak(problem, raw)
    )
    return (Wide if few else Narrow)(problem.centred)


def _is_weak(problem: Problem, design: Design) -> bool:
    """Whether rounding of a singular Gram matrix would swamp the ridge."""
    largest = problem.margins.phi.smoothness * problem.slope_size**2
    return problem.penalty.l2 < GRAM_MIN_RIDGE * largest
