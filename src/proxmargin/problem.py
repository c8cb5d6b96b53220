"""The one problem that every solver sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Design
from proxmargin.designs.standardized import StandardizedDesign, rescaled, standardized
from proxmargin.losses.base import Array, Loss
from proxmargin.penalties.base import Penalty
from proxmargin.penalties.pinned import Pinned
from proxmargin.traits import Trait

__all__ = ["Point", "PrimalSide", "Problem"]

# a step so short that a prox only moves what is outside the domain
TINY_STEP = 1e-300


class Point(NamedTuple):
    """Coefficients (n_features, n_outputs) and intercept (n_outputs,)."""

    coef: Array
    intercept: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """``minimise over (W, b)  loss(X W + b) + penalty(W) + intercept(b)``.

    Parameters
    ----------
    loss : Loss
        Targets and weights inside.
    penalty : Penalty
        Of the coefficients.
    design : Design
        The data, X.
    intercept : Penalty
        Of the intercept: `Ridge(0)` for a free one, `Pinned` for none, and their sum-to-zero
        form when classes are fitted together.
    """

    loss: Loss
    penalty: Penalty
    design: Design
    intercept: Penalty

    @property
    def traits(self) -> Trait:
        """What solvers can rely on: properties of the loss, and of the penalty."""
        return self.loss.traits | self.penalty.traits

    @property
    def fits_intercept(self) -> bool:
        return not isinstance(self.intercept, Pinned)

    def origin(self) -> Point:
        """Zero coefficients and intercept."""
        outputs = self.loss.n_outputs
        return Point(np.zeros((self.design.n_features, outputs)), np.zeros(outputs))

    def null_point(self) -> Point:
        """Zero coefficients with the best intercept: where a regularisation path starts."""
        origin = self.origin()
        scores = np.zeros((self.design.n_samples, self.loss.n_outputs))
        best = self.loss.best_intercept(scores, self.intercept, origin.intercept)
        return Point(origin.coef, best)

    def projected(self, point: Point) -> Point:
        """The nearest point on which penalty and intercept are finite."""
        return Point(
            self.penalty.prox(point.coef, TINY_STEP),
            self.intercept.prox(point.intercept[None, :], TINY_STEP)[0],
        )

    def better_start(self, point: Point) -> Point:
        """``point`` moved into the domain, unless the null model is better than that."""
        start, null = self.projected(point), self.null_point()
        return start if self.value(start) <= self.value(null) else null

    def value(self, point: Point) -> float:
        """The objective at ``point``."""
        bare = np.zeros((self.design.n_samples, self.loss.n_outputs))
        if point.coef.any():
            bare = self.design.scores(point.coef)
        scores = bare + point.intercept
        return (
            self.loss.value(scores)
            + self.penalty.value(point.coef)
            + self.intercept.value(point.intercept[None, :])
        )

    def critical_strength(self) -> float:
        """The least l1 strength for which zero coefficients are optimal."""
        scores = np.broadcast_to(
            self.null_point().intercept, (self.design.n_samples, self.loss.n_outputs)
        )
        _, dual = self.loss.value_and_gradient(np.ascontiguousarray(scores))
        return self.penalty.critical_strength(self.design.adjoint(dual))

    def on_columns(self, index: NDArray[np.intp]) -> Problem:
        """The same problem with only some of the features."""
        return replace(self, design=self.design.columns(index))

    @cached_property
    def primal_side(self) -> PrimalSide:
        """The problem in its own coordinates."""
        return PrimalSide(self)

    @cached_property
    def scaled_side(self) -> PrimalSide:
        """The problem in coordinates in which every feature has unit scale.

        Where the intercept is free the features are centred too, which only moves the intercept.
        The problem stays the same; its conditioning does not depend on units any more.
        """
        shares = self.loss.shares
        if self.intercept.is_shift_invariant:
            design = standardized(self.design, shares)
        else:
            design = rescaled(self.design, shares)
        return PrimalSide(self, design)


class PrimalSide:
    """The problem as ``f(u) + g(u)`` with f smooth and g proxable.

    ``u`` stacks the coefficients and, as its last row, the intercept: (n_features + 1, n_outputs).

    Parameters
    ----------
    problem : Problem
    coordinates : StandardizedDesign, optional
        The problem's design with other centre and scale: u then holds ``scale * coef`` and
        ``intercept + centre' coef``.
    """

    def __init__(self, problem: Problem, coordinates: StandardizedDesign | None = None) -> None:
        self.problem = problem
        self.loss = problem.loss
        self.design = coordinates or problem.design
        self.centre = np.zeros(1) if coordinates is None else coordinates.centre
        self.scale = np.ones((1, 1))
        if coordinates is not None:
            # constant features, whose scale is infinite, do not matter: any scale will do
            finite = np.isfinite(coordinates.scale)
            self.scale = np.where(finite, coordinates.scale, 1.0)[:, None]

    def pack(self, point: Point) -> Array:
        shifted = point.intercept + self._shift(point.coef)
        return np.vstack([self.scale * point.coef, shifted[None, :]])

    def unpack(self, u: Array) -> Point:
        coef = u[:-1] / self.scale
        return Point(coef, u[-1] - self._shift(coef))

    def scores(self, u: Array) -> Array:
        """One product with X."""
        return self.design.scores(u[:-1]) + u[-1]

    def pull_back(self, dual: Array) -> Array:
        """Gradient of f in u from its gradient in the scores: one product with X'."""
        return np.vstack([self.design.adjoint(dual), dual.sum(axis=0, keepdims=True)])

    def prox(self, u: Array, step: float) -> Array:
        coef = self.problem.penalty.prox(u[:-1] / self.scale, step / self.scale**2)
        return np.vstack([self.scale * coef, self.problem.intercept.prox(u[-1:], step)])

    def penalty_value(self, u: Array) -> float:
        """g(u); the constraints in it hold for whatever `prox` returned."""
        point = self.unpack(u)
        intercept = self.problem.intercept.value(point.intercept[None, :])
        return self.problem.penalty.value(point.coef) + intercept

    def curvature_bound(self) -> float:
        """A Lipschitz constant of f's gradient in u, from the row norms ((8), (13) of [X])."""
        rows = self.design.row_norms() + float(self.problem.fits_intercept)
        return max(self.loss.curvature_bound(rows), np.finfo(float).tiny)

    def _shift(self, coef: Array) -> Array:
        if not self.centre.any():
            return np.zeros(coef.shape[1])
        return self.centre @ coef
