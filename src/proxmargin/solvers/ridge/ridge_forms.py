"""Forms of ridge Newton: the representation of coefficients, and the Newton systems."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace

import numpy as np

from proxmargin.compiled.rounding import EPS, TINY
from proxmargin.data.kernels.low_rank import LowRankFactor, factorise
from proxmargin.data.kernels.matrix import KernelDesign, kernel_matrix_of
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.shifted import Shifted
from proxmargin.optimality.problem import Centred, Point, Problem
from proxmargin.runtime.memory import cached_property, kept
from proxmargin.runtime.threads import affordable, factor_work, gram_work
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.shared.margin_model import (
    MarginNewtonState,
    curvature_in_shift,
    intercept_eliminated,
)
from proxmargin.solvers.shared.numerical import (
    MAX_SIDE,
    SMALL_SIDE,
    Inverse,
    conjugate_gradients,
    forcing,
    inverse_of,
)

# min(n_samples, n_features) up to which a Hessian is formed and factored
MAX_SPARSE_SIDE = 1500  # smaller, as products for CG are cheap compared with a factor
# Gram matrix of the samples, which all steps and problems on the same data share
GRAM_SAMPLES_PER_FEATURE = 1.5  # ratio up to which it is used for dense data
GRAM_MIN_RIDGE = 1e-8  # ridge over the largest curvature, below which it would lose digits
# first Hessian of few features: that of a sample, whose solution is the start
SAMPLES_PER_FEATURE = 60  # at least: the Hessian is off by twice the root of the inverse
LEAST_SAMPLES = 2000  # fewer take no time
LARGEST_EVERY = 20  # every so manieth sample at least
SAMPLE_ENTRIES = 6_000_000  # at most, of data that may be mapped from a file: a copy of 48 MB
SAMPLES_GROWTH = 4  # times as many
FEW_PER_FEATURE = 16  # samples, below which the Hessian of a sample is of no use
FLAT_CURVATURE = 1e-30  # over the largest curvature, below which a sample counts as linear


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeNewtonState(MarginNewtonState):
    """The state of Newton's method with a ridge. ``inner`` are the coefficients w; for wide data
    the a of ``w = X'a``, one a sample, with the g of ``gradient = X'g`` as ``slope``."""

    ridge: float = 0.0  # ridge of this stage of the homotopy, at least the final one
    stride: int = 1  # the Hessian of few features is that of every k-th sample
    # (k, k), of the loss, for few features: of this or an earlier point
    hessian: Array = field(default_factory=lambda: np.empty((0, 0)))
    # (k,), along a step d the intercept of the model changes by ``-mean' d``
    mean: Array = field(default_factory=lambda: np.empty(0))
    renews: bool = True  # the next step forms the Hessian of its point
    stop: Stop = field(default_factory=Stop)


class Form(ABC):
    """A representation of the coefficients, with a method for the Newton systems; the data are
    centred if that is worth its cost."""

    def __init__(self, data: Centred) -> None:
        self.design, self.centre = data

    def stride(self) -> int:
        """The samples of the first Hessian: every k-th one."""
        return 1

    def finer(self, stride: int) -> int:
        """The samples of a later one; all where a copy of some would be large."""
        fewer, entries = stride // SAMPLES_GROWTH, self.design.n_samples * self.design.n_features
        return fewer if fewer > 1 and entries <= fewer * SAMPLE_ENTRIES else 1

    def inner(self, problem: Problem, start: Point) -> Array:
        return start.coef[:, 0].copy()

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

    def multipliers(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array | None, float]:
        """A dual point other than the gradient of the loss, if there is one, and its gap."""
        return None, np.inf

    def with_hessian(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        """The state with the Hessian of its point, if that is formed."""
        return state

    @abstractmethod
    def newton(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float, Array]:
        """The Newton step of the coefficients, of the intercept, and of ``X w``."""


class FeatureForm(Form):
    """Few features: the Hessian is formed and factored, first that of some of the samples."""

    def stride(self) -> int:
        n, p = self.design.n_samples, self.design.n_features
        every = min(LARGEST_EVERY, n // max(LEAST_SAMPLES, SAMPLES_PER_FEATURE * p))
        every = max(1, every, math.ceil(n * p / SAMPLE_ENTRIES)) if every > 1 else 1
        return every if n >= FEW_PER_FEATURE * p * every else 1

    def with_hessian(self, problem: Problem, state: RidgeNewtonState) -> RidgeNewtonState:
        design, curvature = self.design, state.at.curvature
        if state.stride > 1:
            index, factors = _sample(problem, state.stride)
            design, curvature = design.rows(index), curvature[index] * factors
        hessian, mean = intercept_eliminated(problem, design, curvature)
        return state.but(hessian=hessian, mean=mean)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float, Array]:
        matrix = state.hessian.copy()
        np.einsum("ii->i", matrix)[:] += state.ridge
        direction = inverse_of(matrix, overwrite=True)(-(state.slope + state.ridge * state.inner))
        return direction, -float(state.mean @ direction), self.products(direction)


class SampleForm(Form):
    """Few samples: ``w = X'a``, with the Gram matrix of the samples in place of the data."""

    @cached_property
    def gram(self) -> Array:
        return self.design.outer_gram()

    def inner(self, problem: Problem, start: Point) -> Array:
        if start.dual is not None:
            return -start.dual[:, 0] / problem.penalty.l2
        if not start.coef.any():
            return np.zeros(self.design.n_samples)
        return inverse_of(self.gram)(self.design.scores(start.coef)[:, 0])

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

    def multipliers(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array | None, float]:
        """``-l2 a`` with the final ridge, made feasible, and its gap. With a weak ridge and
        separable data the gradient is ill-conditioned in the scores: margins are one up to
        rounding, while a keeps all its digits."""
        loss, l2 = problem.loss, problem.penalty.l2
        dual = loss.balanced(-l2 * state.inner[:, None], problem.intercept)
        return dual, loss.fenchel_young(state.at.scores[:, None], dual)

    def newton(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float, Array]:
        """The Newton step, d in a and m in b.

        With the residual ``r = L'(z) + l2 a``, ``l2 d = -r`` for samples without curvature. The
        others, J, solve ``(l2 D^-1 + K_JJ) d_J + m = -r_J / D - K_J. d`` with ``l2 sum(a + d) =
        l2_b (b + m)``, scaled symmetrically by the square roots of D.
        """
        at, l2 = state.at, state.ridge
        rest = at.dual + l2 * state.inner
        curved = at.curvature > FLAT_CURVATURE * at.curvature.max()
        root, step = np.sqrt(at.curvature[curved]), np.where(curved, 0.0, -rest / l2)
        wanted = -rest[curved] / root
        if step.any():
            wanted -= root * self.products(step)[curved]
        system = self.gram * root if curved.all() else self.gram[np.ix_(curved, curved)] * root
        system *= root[:, None]
        np.einsum("ii->i", system)[:] += l2
        solve = inverse_of(system, overwrite=True)
        by_score, by_shift = root * solve(np.column_stack([wanted, root])).T
        if not np.isfinite(curvature_in_shift(problem, at.curvature)):
            step[curved] = by_score
            return step, 0.0, self.products(step)
        own = problem.intercept.l2 / l2
        level = float(by_shift.sum()) + own
        surplus = float(by_score.sum() + (step + state.inner).sum()) - own * at.intercept
        move = surplus / level if level > 0 else 0.0
        step[curved] = by_score - move * by_shift
        return step, move, self.products(step)


class KernelForm(SampleForm):
    """A kernel matrix in place of data: the coefficients are a."""

    def inner(self, problem: Problem, start: Point) -> Array:
        return start.coef[:, 0].copy() if start.dual is None else super().inner(problem, start)

    def coef(self, inner: Array) -> Array:
        return inner


class ProductForm(KernelForm):
    """A kernel matrix of many samples, and a free intercept or none: conjugate gradients with
    products by the matrix. The preconditioner has a factor of low rank in its place, and the
    diagonal that this leaves."""

    @cached_property
    def factor(self) -> LowRankFactor:
        matrix = kernel_matrix_of(self.design)
        assert matrix is not None
        return factorise(matrix, rank=SMALL_SIDE)

    def products(self, inner: Array) -> Array:
        return self.design.scores(inner[:, None])[:, 0]

    def gap(self, state: RidgeNewtonState, l2: float) -> float:
        """Not computed: it takes a product, and that of the multipliers none."""
        return np.inf

    def newton(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float, Array]:
        """As with factors, in ``e = d / sqrt(D)``: ``(l2 I + D^1/2 K D^1/2) e + m D^1/2 = -r /
        D^1/2``, on the e with ``sum(d) = 0`` where the intercept is free."""
        at, l2 = state.at, state.ridge
        root = np.sqrt(np.maximum(at.curvature, EPS * at.curvature.max()))
        right = -(at.dual + l2 * state.inner) / root
        inverse = self._preconditioner(root, l2)
        normal = root if problem.fits_intercept else np.zeros_like(root)
        lean = inverse(normal)
        lean /= float(normal @ lean) or 1.0

        def product(scaled: Array) -> Array:
            image = l2 * scaled + root * self.products(root * scaled)
            return image - normal * float(lean @ image)

        scaled = conjugate_gradients(
            product,
            inverse,
            right - normal * float(lean @ right),
            forcing(math.sqrt(state.relative_gap)),
            state.stop.deadline,
        )
        products = self.products(root * scaled)
        move = float(lean @ (right - l2 * scaled - root * products))
        return root * scaled, move, products

    def _preconditioner(self, root: Array, l2: float) -> Inverse:
        """The inverse of ``l2 I + D^1/2 (G G' + diag(R)) D^1/2``, for ``root = D^1/2``."""
        scale = np.sqrt(l2 + root**2 * self.factor.residual)
        columns = self.factor.factor * (root / scale)[:, None]
        gram = columns.T @ columns
        np.einsum("ii->i", gram)[:] += 1.0
        solve = inverse_of(gram, overwrite=True)

        def inverse(right: Array) -> Array:
            scaled = right / scale
            return (scaled - columns @ solve(columns.T @ scaled)) / scale

        return inverse


class IterativeForm(Form):
    """Many samples and many features: preconditioned conjugate gradients."""

    def newton(self, problem: Problem, state: RidgeNewtonState) -> tuple[Array, float, Array]:
        design, curvature, l2 = self.design, state.at.curvature, state.ridge
        gradient = state.slope + l2 * state.inner
        total = curvature_in_shift(problem, curvature)
        cross = design.adjoint(curvature[:, None])[:, 0]
        mean = cross / total if total > 0 else np.zeros_like(cross)
        diagonal = design.column_squares(curvature, np.zeros_like(cross)) - cross * mean

        def product(direction: Array) -> Array:
            weighted = curvature * (self.products(direction) - float(mean @ direction))
            return l2 * direction + design.adjoint(weighted[:, None])[:, 0]

        roughly = np.sqrt(self.gap(state, l2) / max(state.at.value, TINY))
        scale = l2 + np.maximum(diagonal, 0.0)
        direction = conjugate_gradients(
            product, lambda d: d / scale, -gradient, forcing(float(roughly)), state.stop.deadline
        )
        return direction, -float(mean @ direction), self.products(direction)


def sampled(problem: Problem, every: int) -> Problem:
    """The problem of every k-th sample."""
    index, factors = _sample(problem, every)
    whole = problem.margins
    signs, weights = whole.signs[index], whole.weights[index] * factors[:, None]
    loss: Loss = MarginSum(whole.phi, signs, weights, whole.sample_count)
    if problem.loss.largest_offset > 0:
        loss = Shifted(loss, problem.loss.offset[index])
    return replace(problem, loss=loss, design=problem.design.rows(index))


@kept
def _sample(problem: Problem, every: int) -> tuple[Index, Array]:
    """A k-th of the samples, half of them of each class where it has as many, and the factors of
    their weights with which they have the weight of their class."""
    signs, weights = problem.margins.signs[:, 0], problem.margins.weights[:, 0]
    parts, factors = [], []
    for sign in (-1.0, 1.0):
        side = np.flatnonzero((signs == sign) & (weights > 0))
        part = side[:: max(1, min(every, round(2 * every * side.size / signs.size)))]
        parts.append(part)
        factors.append(np.full(part.size, weights[side].sum() / max(weights[part].sum(), TINY)))
    index = np.concatenate(parts)
    order = np.argsort(index)
    return index[order], np.concatenate(factors)[order]


@kept
def form_of(problem: Problem, *, deadline: float = np.inf) -> Form:
    """The form by the shape of the data, and by whether a factor would end before the deadline,
    chosen once a problem. Large sparse data are not centred: that would slow their products, and
    only a Hessian that is formed needs it for accuracy."""
    raw = problem.design
    if isinstance(raw, KernelDesign):
        return (KernelForm if raw.n_samples <= MAX_SIDE else ProductForm)(problem.centred)
    samples, features, dense = raw.n_samples, raw.n_features, raw.density == 1.0
    short, long = sorted((samples, features))
    work = gram_work(long, short, raw.density) + factor_work(short)
    if short > (MAX_SIDE if dense else MAX_SPARSE_SIDE) or not affordable(work, deadline):
        return IterativeForm(problem.centred if dense else Centred(raw, np.zeros(features)))
    few = samples <= features
    if dense and features < samples <= GRAM_SAMPLES_PER_FEATURE * features:
        # rounding of a singular Gram matrix would swamp a weak ridge
        largest = problem.margins.phi.smoothness * problem.slope_size**2
        few = problem.penalty.l2 >= GRAM_MIN_RIDGE * largest
    if few:
        return SampleForm(problem.centred)
    form = FeatureForm(Centred(raw, np.zeros(features)))
    if form.stride() > 1:  # means of a sample so small that centring gains at most two digits
        part = raw.rows(_sample(problem, form.stride())[0])
        mean, variance = part.mean_and_variance(np.full(part.n_samples, 1.0 / part.n_samples))
        if (np.abs(mean) <= 100.0 * np.sqrt(variance)).all():
            return form
    return FeatureForm(problem.centred)
