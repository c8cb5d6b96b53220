"""A problem as ``f(u) + g(u)`` with f smooth and g proxable: the problem itself, or its dual.

`PrimalForm` minimises over coefficients and intercept: f is the loss of the scores, g the
penalties. `FenchelDual` minimises over dual points: f is the conjugate of the penalty, g that of
the loss, with the constraint of a free intercept ((9) and (10) of Ito et al. 2017). The
accelerated methods work on a `CompositeForm` without knowing which one it is.

f reads u only through an affine map of it. ``forward(u)`` is that map, one product with the data;
``backward(forward)`` takes another one, and everything else is cheap:

- ``gradient(u, backward)``: that of f
- ``prox(u, step)``: ``argmin_v g(v) + |v - u|^2 / (2 step)``
- ``smooth_value(u, forward)``: f(u)
- ``penalty_value(u)``: g(u), for a u that `prox` returned, which satisfies its constraints
- ``value(u, forward)``: ``f(u) + g(u)``
- ``divergence(u, forward, base, partner)``: ``f(u) - f(base) - <f'(base), u - base>``, without
  cancellation; ``partner`` is that of `Backward` at ``base``
- ``curvature_bound()``: a Lipschitz constant of the gradient of f; infinite if there is none
- ``first_curvature(forward)``: a small first estimate of it, from the start
- ``start(point)``: the u to start from, given a primal point; ``uniform(level)``: that nearest to
  equal coordinates
- ``point(u, forward)``: the primal point of u; ``scores(forward, backward)``: its scores, if known;
  ``dual(u)``: a dual point to certify with, if it is better than a gradient of the loss

Where ``is_linear_backward``, `Backward` is affine in u: combinations of known points need no
product.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs.views import StandardizedDesign, centred, rescaled, standardized
from proxmargin.functions.losses.base import DualForm
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array


class Backward(NamedTuple):
    """The part of the gradient of f that takes a product with the data, and the corresponding point
    of the other form: a dual point, or coefficients."""

    product: Array
    partner: Array

    def moved(self, other: Backward, weight: float) -> Backward:
        """``self + weight (self - other)``, where it is linear in u."""
        return Backward(
            self.product + weight * (self.product - other.product),
            self.partner + weight * (self.partner - other.partner),
        )


class PrimalForm:
    """The loss of the scores, smooth, plus the penalties.

    ``u`` stacks the coefficients and, as its last row, the intercept: (n_features + 1, n_outputs).
    Its forward map is the scores.

    With ``coordinates``, the problem's design with another centre and scale, u holds ``scale *
    coef`` and ``intercept + centre' coef``.
    """

    is_linear_backward = False

    def __init__(self, problem: Problem, coordinates: StandardizedDesign | None = None) -> None:
        self.problem = problem
        self.loss = problem.loss
        self.design = coordinates or problem.design
        self.centre = np.zeros(1) if coordinates is None else coordinates.centre
        self.scale = np.ones((1, 1))
        if coordinates is not None:
            # constant features have an infinite scale, but are zero: any finite scale will do
            finite = np.isfinite(coordinates.scale)
            self.scale = np.where(finite, coordinates.scale, 1.0)[:, None]

    def start(self, point: Point) -> Array:
        shifted = point.intercept + self._shift(point.coef)
        return np.vstack([self.scale * point.coef, shifted[None, :]])

    def uniform(self, level: float) -> Array:
        coef = np.full((self.design.n_features, self.loss.n_outputs), level)
        return self.start(Point(coef, coef[0]))

    def point(self, u: Array, forward: Array) -> Point:
        coef = u[:-1] / self.scale
        return Point(coef, u[-1] - self._shift(coef))

    def forward(self, u: Array) -> Array:
        return self.design.scores(u[:-1]) + u[-1]

    def backward(self, forward: Array) -> Backward:
        _, dual = self.loss.value_and_gradient(forward)
        product = np.vstack([self.design.adjoint(dual), dual.sum(axis=0, keepdims=True)])
        return Backward(product, dual)

    def gradient(self, u: Array, backward: Backward) -> Array:
        return backward.product

    def prox(self, u: Array, step: float) -> Array:
        coef = self.problem.penalty.prox(u[:-1] / self.scale, step / self.scale**2)
        return np.vstack([self.scale * coef, self.problem.intercept.prox(u[-1:], step)])

    def smooth_value(self, u: Array, forward: Array) -> float:
        return self.loss.value(forward)

    def penalty_value(self, u: Array) -> float:
        # an intercept whose scores are centred is free up to a shift: its constraint, to which the
        # loss is invariant, holds as `prox` meets it, in the coordinates of u
        intercept = self.problem.intercept.value(u[-1:])
        return self.problem.penalty.value(u[:-1] / self.scale) + intercept

    def value(self, u: Array, forward: Array) -> float:
        return self.smooth_value(u, forward) + self.penalty_value(u)

    def divergence(self, u: Array, forward: Array, base: Array, partner: Array) -> float:
        return self.loss.fenchel_young(forward, partner)

    def curvature_bound(self) -> float:
        """A Lipschitz constant from the norms of the samples ((8), (13) of Xu et al. 2015)."""
        rows = self.design.row_norms() + float(self.problem.fits_intercept)
        return max(self.loss.curvature_bound(rows), TINY)

    def printed_curvature_bound(self) -> float:
        """L_f of (8), or L_m of (13) without its factor K, of Xu et al. (2015)."""
        rows = self.design.row_norms() + float(self.problem.fits_intercept)
        return max(float(self.loss.row_curvatures @ rows), TINY)

    def first_curvature(self, forward: Array) -> float:
        """The Lipschitz constant over the number of samples: small, as backtracking raises it."""
        return self.curvature_bound() / max(self.loss.sample_count, 1.0)

    def scores(self, forward: Array, backward: Backward | None) -> Array:
        return forward

    def dual(self, u: Array) -> None:
        return None

    def _shift(self, coef: Array) -> Array:
        if not self.centre.any():
            return np.zeros(coef.shape[1])
        return self.centre @ coef


class FenchelDual:
    """The conjugate of the penalty, smooth, plus the conjugate of the loss.

    ``u`` are the coordinates of a dual point q in the loss's `DualForm`, (n_samples,); its forward
    stacks ``-X'q`` and, as last entry, ``-1'q``: (n_features + 1, 1).

    Problems have one column of scores. With ``whole`` the conjugate of the loss stays in g, through
    its prox; otherwise, as in Ito et al. (2017), its smooth part belongs to f and g is the
    indicator of its domain. ``floor`` is that of `Loss.dual_form`.
    """

    def __init__(self, problem: Problem, whole: bool, floor: float = 0.0) -> None:
        found = problem.loss.dual_form(problem.intercept, floor)
        if found is None:
            raise TypeError("the loss has no dual form")
        self.problem = problem
        self.dual_form: DualForm = found
        self.whole = whole
        self.ridge = problem.intercept.l2  # the conjugate of an intercept with a ridge is part of f
        self.is_linear_backward = Trait.QUADRATIC_CONJUGATE in problem.penalty.traits

    def start(self, point: Point) -> Array:
        """The dual point of the gradient at ``point``; for zero coefficients, the form's centre."""
        if not point.coef.any():
            return self.dual_form.centre()
        scores = self.problem.design.scores(point.coef) + point.intercept
        _, gradient = self.problem.loss.value_and_gradient(scores)
        dual = self.problem.loss.balanced(gradient, self.problem.intercept)
        return self.dual_form.project(self.dual_form.coordinates(dual[:, 0]))

    def uniform(self, level: float) -> Array:
        return self.dual_form.project(self.dual_form.uniform(level))

    def forward(self, u: Array) -> Array:
        dual = -self.dual_form.dual_point(u)[:, None]
        return np.vstack([self.problem.design.adjoint(dual), dual.sum(axis=0, keepdims=True)])

    def backward(self, forward: Array) -> Backward:
        coef = self.problem.penalty.conjugate_gradient(forward[:-1])
        intercept = forward[-1:] / self.ridge if self.ridge > 0 else np.zeros((1, 1))
        scores = self.problem.design.scores(coef) + intercept
        return Backward(scores[:, 0], np.vstack([coef, intercept]))

    def gradient(self, u: Array, backward: Backward) -> Array:
        slope = -self.dual_form.scale * backward.product
        return slope if self.whole else slope + self.dual_form.smooth_gradient(u)

    def prox(self, u: Array, step: float) -> Array:
        return (self.dual_form.prox if self.whole else self.dual_form.project)(u, step)

    def smooth_value(self, u: Array, forward: Array) -> float:
        value = self.problem.penalty.conjugate(forward[:-1])
        if self.ridge > 0:
            value += self.problem.intercept.conjugate(forward[-1:])
        return value if self.whole else value + self.dual_form.smooth_value(u)

    def penalty_value(self, u: Array) -> float:
        return self.dual_form.value(u) if self.whole else 0.0

    def value(self, u: Array, forward: Array) -> float:
        return self.smooth_value(u, forward) + self.penalty_value(u)

    def divergence(self, u: Array, forward: Array, base: Array, partner: Array) -> float:
        # Fenchel-Young terms with the coefficients of the base: a Bregman divergence
        value = self.problem.penalty.conjugate_divergence(forward[:-1], partner[:-1])
        if self.ridge > 0:
            value += self.problem.intercept.conjugate_divergence(forward[-1:], partner[-1:])
        return value if self.whole else value + self.dual_form.smooth_divergence(u, base)

    def curvature_bound(self) -> float:
        if not self.is_linear_backward:
            return np.inf
        trace = float((self.dual_form.scale**2) @ self._row_curvatures()) / self.problem.penalty.l2
        smooth = 0.0 if self.whole else self.dual_form.smooth_curvature()
        return max(trace + smooth, TINY)

    def first_curvature(self, forward: Array) -> float:
        """The largest diagonal entry of the penalty conjugate's part of the Hessian."""
        largest = float((self.dual_form.scale**2 * self._row_curvatures()).max(initial=0.0))
        strength = self.problem.penalty.l2
        if strength == 0:  # a ball of radius r has the conjugate r |v|
            size = float(np.linalg.norm(forward[:-1]))
            reach = float(np.linalg.norm(self.problem.penalty.conjugate_gradient(forward[:-1])))
            strength = size / reach if size > 0 and reach > 0 else 1.0
        return max(largest / strength, TINY)

    def point(self, u: Array, forward: Array) -> Point:
        coef = self.problem.penalty.conjugate_gradient(forward[:-1])
        return Point(coef, np.zeros(1))

    def scores(self, forward: Array, backward: Backward | None) -> Array | None:
        if backward is None:
            return None
        return (backward.product - backward.partner[-1, 0])[:, None]

    def dual(self, u: Array) -> Array | None:
        if Trait.SMOOTH in self.problem.loss.traits:
            return None
        return self.dual_form.dual_point(u)[:, None]

    def _row_curvatures(self) -> Array:
        extra = self.problem.penalty.l2 / self.ridge if self.ridge > 0 else 0.0
        return self.problem.design.row_norms() + extra


CompositeForm = PrimalForm | FenchelDual


def primal_form(problem: Problem) -> PrimalForm:
    """The primal form in the coordinates of the problem."""
    return problem.remembered(PrimalForm)


def scaled_form(problem: Problem) -> PrimalForm:
    """The primal form with features scaled to unit variance, and centred with a free intercept, so
    that the condition number does not depend on their units. Under a penalty without a prox of one
    step a feature they are only centred."""
    return problem.remembered(_scaled_form)


def _scaled_form(problem: Problem) -> PrimalForm:
    if not problem.penalty.takes_steps:
        free = problem.intercept.is_shift_invariant
        return PrimalForm(problem, centred(problem.design, problem.loss.shares) if free else None)
    change = standardized if problem.intercept.is_shift_invariant else rescaled
    return PrimalForm(problem, change(problem.design, problem.loss.shares))


def fenchel_dual(problem: Problem, *, whole: bool, floor: float = 0.0) -> FenchelDual:
    """The dual form; see `FenchelDual` for ``whole`` and ``floor``."""
    return problem.remembered(FenchelDual, whole, floor)


def lives_on_the_dual(problem: Problem) -> bool:
    """Whether the accelerated methods take the dual form: if it exists and is faster.

    It is faster if the loss has kinks or the penalty no l1 part. With a smooth loss and a penalty
    that selects features the primal form is faster, as its iterates are sparse, and in a ball of
    p < 2 of fewer features than samples, where steps on the dual are small.
    """
    loss, penalty = problem.loss.traits, problem.penalty.traits
    possible = Trait.DUAL_FORM in loss and Trait.SMOOTH_CONJUGATE in penalty
    selects = Trait.SEPARABLE in penalty and Trait.QUADRATIC_CONJUGATE not in penalty
    small_ball = Trait.BALL in problem.traits and problem.ball.p < 2
    small_ball = small_ball and problem.design.n_features < problem.design.n_samples
    return possible and not (Trait.SMOOTH in loss and (selects or small_ball))
