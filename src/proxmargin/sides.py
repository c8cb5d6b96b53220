"""The primal and the dual side of a problem, each ``f(u) + g(u)`` with f smooth and g proxable.

The primal side minimises over coefficients and intercept: f is the loss of the scores, g the
penalties. The dual side minimises over dual points: f is the conjugate of the penalty, g that of
the loss, with the constraint of a free intercept ((9) and (10) of Ito et al. 2017). The
accelerated methods work on a `Side` without knowing which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from proxmargin.designs.standardized import StandardizedDesign, centred, rescaled, standardized
from proxmargin.losses.base import Array
from proxmargin.losses.dual_form import DualForm
from proxmargin.problem import Point, Problem
from proxmargin.rounding import TINY
from proxmargin.traits import Trait

__all__ = [
    "DualSide",
    "PrimalSide",
    "Response",
    "Side",
    "dual_side",
    "lives_on_the_dual",
    "primal_side",
    "scaled_side",
]


class Response(NamedTuple):
    """The result of the second product with the data.

    Attributes
    ----------
    product : array
        The part of the gradient of f that takes a product with the data.
    partner : array
        The corresponding point of the other side: a dual point, or coefficients.
    """

    product: Array
    partner: Array

    def moved(self, other: Response, weight: float) -> Response:
        """``self + weight (self - other)``, for responses that are linear in u."""
        return Response(
            self.product + weight * (self.product - other.product),
            self.partner + weight * (self.partner - other.partner),
        )


class Side(ABC):
    """A problem as ``f(u) + g(u)``; f reads u only through its image, an affine map of u.

    An image takes one product with the data, a response another one; everything else is cheap. The
    gradient at u is ``gradient(u, response(image(u)))``.
    """

    problem: Problem
    responds_linearly: bool = False
    """Responses are affine in u: those of combinations of known points need no product."""

    @abstractmethod
    def start(self, point: Point) -> Array:
        """The u to start from, given a primal point."""

    @abstractmethod
    def uniform(self, level: float) -> Array:
        """The u nearest to equal coordinates."""

    @abstractmethod
    def image(self, u: Array) -> Array:
        """The affine map of u that f reads: one product with the data."""

    @abstractmethod
    def response(self, image: Array) -> Response:
        """The affine map of u that f depends on: one product with the data."""

    @abstractmethod
    def gradient(self, u: Array, response: Response) -> Array:
        """The expensive part of the gradient of f: one product with the data."""

    @abstractmethod
    def prox(self, u: Array, step: float) -> Array:
        """``argmin_v g(v) + |v - u|^2 / (2 step)``."""

    @abstractmethod
    def smooth_value(self, u: Array, image: Array) -> float:
        """f(u)."""

    @abstractmethod
    def penalty_value(self, u: Array) -> float:
        """g(u), for a u that `prox` returned, which satisfies its constraints."""

    @abstractmethod
    def divergence(self, u: Array, image: Array, base: Array, partner: Array) -> float:
        """``f(u) - f(base) - <f'(base), u - base>``, without cancellation.

        ``partner`` is the partner of the response at ``base``.
        """

    @abstractmethod
    def curvature_bound(self) -> float:
        """A Lipschitz constant of the gradient of f; infinite if there is none."""

    @abstractmethod
    def first_curvature(self, image: Array) -> float:
        """A small first estimate of the curvature of f, from the image of the start."""

    @abstractmethod
    def point(self, u: Array, image: Array) -> Point:
        """The primal point of u."""

    def scores(self, image: Array, response: Response | None) -> Array | None:
        """The scores of `point`, if known."""
        return None

    def dual(self, u: Array) -> Array | None:
        """A dual point to certify with, if it is better than a gradient of the loss."""
        return None

    def value(self, u: Array, image: Array) -> float:
        """``f(u) + g(u)``."""
        return self.smooth_value(u, image) + self.penalty_value(u)


class PrimalSide(Side):
    """The loss of the scores, smooth, plus the penalties.

    ``u`` stacks the coefficients and, as its last row, the intercept: (n_features + 1, n_outputs).
    Its image is the scores.

    Parameters
    ----------
    problem : Problem
    coordinates : StandardizedDesign, optional
        The problem's design with another centre and scale: u then holds ``scale * coef`` and
        ``intercept + centre' coef``.
    """

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

    def point(self, u: Array, image: Array) -> Point:
        coef = u[:-1] / self.scale
        return Point(coef, u[-1] - self._shift(coef))

    def image(self, u: Array) -> Array:
        return self.design.scores(u[:-1]) + u[-1]

    def response(self, image: Array) -> Response:
        _, dual = self.loss.value_and_gradient(image)
        product = np.vstack([self.design.adjoint(dual), dual.sum(axis=0, keepdims=True)])
        return Response(product, dual)

    def gradient(self, u: Array, response: Response) -> Array:
        return response.product

    def prox(self, u: Array, step: float) -> Array:
        coef = self.problem.penalty.prox(u[:-1] / self.scale, step / self.scale**2)
        return np.vstack([self.scale * coef, self.problem.intercept.prox(u[-1:], step)])

    def smooth_value(self, u: Array, image: Array) -> float:
        return self.loss.value(image)

    def penalty_value(self, u: Array) -> float:
        # an intercept whose scores are centred is free up to a shift: its constraint, to which the
        # loss is invariant, holds as `prox` meets it, in the coordinates of u
        intercept = self.problem.intercept.value(u[-1:])
        return self.problem.penalty.value(u[:-1] / self.scale) + intercept

    def divergence(self, u: Array, image: Array, base: Array, partner: Array) -> float:
        return self.loss.fenchel_young(image, partner)

    def curvature_bound(self) -> float:
        """A Lipschitz constant from the norms of the samples ((8), (13) of Xu et al. 2015)."""
        rows = self.design.row_norms() + float(self.problem.fits_intercept)
        return max(self.loss.curvature_bound(rows), TINY)

    def printed_curvature_bound(self) -> float:
        """L_f of (8), or L_m of (13) without its factor K, of Xu et al. (2015)."""
        rows = self.design.row_norms() + float(self.problem.fits_intercept)
        return max(float(self.loss.row_curvatures @ rows), TINY)

    def first_curvature(self, image: Array) -> float:
        """The Lipschitz constant over the number of samples: small, as backtracking raises it."""
        return self.curvature_bound() / max(self.loss.sample_count, 1.0)

    def scores(self, image: Array, response: Response | None) -> Array:
        return image

    def _shift(self, coef: Array) -> Array:
        if not self.centre.any():
            return np.zeros(coef.shape[1])
        return self.centre @ coef


class DualSide(Side):
    """The conjugate of the penalty, smooth, plus the conjugate of the loss.

    ``u`` are the coordinates of a dual point q in the loss's `DualForm`, (n_samples,); its image
    stacks ``-X'q`` and, as last entry, ``-1'q``: (n_features + 1, 1).

    Parameters
    ----------
    problem : Problem
        With one column of scores.
    whole : bool
        Keep the conjugate of the loss in g, through its prox. Otherwise, as in Ito et al. (2017),
        its smooth part belongs to f and g is the indicator of its domain.
    floor : float
        See `Loss.dual_form`.
    """

    def __init__(self, problem: Problem, *, whole: bool, floor: float = 0.0) -> None:
        form = problem.loss.dual_form(problem.intercept, floor)
        if form is None:
            raise TypeError("the loss has no dual form")
        self.problem = problem
        self.form: DualForm = form
        self.whole = whole
        self.ridge = problem.intercept.l2  # the conjugate of an intercept with a ridge is part of f
        self.responds_linearly = Trait.QUADRATIC_CONJUGATE in problem.penalty.traits

    def start(self, point: Point) -> Array:
        """The dual point of the gradient at ``point``; for zero coefficients, the form's centre."""
        if not point.coef.any():
            return self.form.centre()
        scores = self.problem.design.scores(point.coef) + point.intercept
        _, gradient = self.problem.loss.value_and_gradient(scores)
        dual = self.problem.loss.balanced(gradient, self.problem.intercept)
        return self.form.project(self.form.coordinates(dual[:, 0]))

    def uniform(self, level: float) -> Array:
        return self.form.project(self.form.uniform(level))

    def image(self, u: Array) -> Array:
        dual = -self.form.dual_point(u)[:, None]
        return np.vstack([self.problem.design.adjoint(dual), dual.sum(axis=0, keepdims=True)])

    def response(self, image: Array) -> Response:
        coef = self.problem.penalty.conjugate_gradient(image[:-1])
        intercept = image[-1:] / self.ridge if self.ridge > 0 else np.zeros((1, 1))
        scores = self.problem.design.scores(coef) + intercept
        return Response(scores[:, 0], np.vstack([coef, intercept]))

    def gradient(self, u: Array, response: Response) -> Array:
        slope = -self.form.scale * response.product
        return slope if self.whole else slope + self.form.smooth_gradient(u)

    def prox(self, u: Array, step: float) -> Array:
        return (self.form.prox if self.whole else self.form.project)(u, step)

    def smooth_value(self, u: Array, image: Array) -> float:
        value = self.problem.penalty.conjugate(image[:-1])
        if self.ridge > 0:
            value += self.problem.intercept.conjugate(image[-1:])
        return value if self.whole else value + self.form.smooth_value(u)

    def penalty_value(self, u: Array) -> float:
        return self.form.value(u) if self.whole else 0.0

    def divergence(self, u: Array, image: Array, base: Array, partner: Array) -> float:
        # Fenchel-Young terms with the coefficients of the base: a Bregman divergence
        value = self.problem.penalty.conjugate_divergence(image[:-1], partner[:-1])
        if self.ridge > 0:
            value += self.problem.intercept.conjugate_divergence(image[-1:], partner[-1:])
        return value if self.whole else value + self.form.smooth_divergence(u, base)

    def curvature_bound(self) -> float:
        if not self.responds_linearly:
            return np.inf
        trace = float((self.form.scale**2) @ self._row_curvatures()) / self.problem.penalty.l2
        smooth = 0.0 if self.whole else self.form.smooth_curvature()
        return max(trace + smooth, TINY)

    def first_curvature(self, image: Array) -> float:
        """The largest diagonal entry of the penalty conjugate's part of the Hessian."""
        largest = float((self.form.scale**2 * self._row_curvatures()).max(initial=0.0))
        strength = self.problem.penalty.l2
        if strength == 0:  # a ball of radius r has the conjugate r |v|
            size = float(np.linalg.norm(image[:-1]))
            reach = float(np.linalg.norm(self.problem.penalty.conjugate_gradient(image[:-1])))
            strength = size / reach if size > 0 and reach > 0 else 1.0
        return max(largest / strength, TINY)

    def point(self, u: Array, image: Array) -> Point:
        coef = self.problem.penalty.conjugate_gradient(image[:-1])
        return Point(coef, np.zeros(1))

    def scores(self, image: Array, response: Response | None) -> Array | None:
        if response is None:
            return None
        return (response.product - response.partner[-1, 0])[:, None]

    def dual(self, u: Array) -> Array | None:
        if Trait.SMOOTH in self.problem.loss.traits:
            return None
        return self.form.dual_point(u)[:, None]

    def _row_curvatures(self) -> Array:
        extra = self.problem.penalty.l2 / self.ridge if self.ridge > 0 else 0.0
        return self.problem.design.row_norms() + extra


def primal_side(problem: Problem) -> PrimalSide:
    """The primal side in the coordinates of the problem."""
    return problem.remembered(PrimalSide)


def scaled_side(problem: Problem) -> PrimalSide:
    """The primal side with features scaled to unit variance.

    With a free intercept the features are centred too, to which the problem is invariant. The
    condition number then does not depend on the units of the features. Under a penalty without a
    prox of one step a feature they are only centred.
    """
    return problem.remembered(_scaled_side)


def _scaled_side(problem: Problem) -> PrimalSide:
    if not problem.penalty.takes_steps:
        free = problem.intercept.is_shift_invariant
        return PrimalSide(problem, centred(problem.design, problem.loss.shares) if free else None)
    change = standardized if problem.intercept.is_shift_invariant else rescaled
    return PrimalSide(problem, change(problem.design, problem.loss.shares))


def dual_side(problem: Problem, *, whole: bool, floor: float = 0.0) -> DualSide:
    """The dual side; see `DualSide` for ``whole`` and ``floor``."""
    return problem.remembered(_dual_side, whole, floor)


def _dual_side(problem: Problem, whole: bool, floor: float) -> DualSide:
    return DualSide(problem, whole=whole, floor=floor)


def lives_on_the_dual(problem: Problem) -> bool:
    """Whether the accelerated methods take the dual side: if it exists and is faster.

    It is faster if the loss has kinks or the penalty no l1 part. With a smooth loss and a penalty
    that selects features the primal side is faster, as its iterates are sparse.
    """
    loss, penalty = problem.loss.traits, problem.penalty.traits
    possible = Trait.DUAL_FORM in loss and Trait.SMOOTH_CONJUGATE in penalty
    selects = Trait.SEPARABLE in penalty and Trait.QUADRATIC_CONJUGATE not in penalty
    return possible and not (Trait.SMOOTH in loss and selects)
