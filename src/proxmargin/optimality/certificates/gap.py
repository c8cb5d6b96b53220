"""A duality gap, and what it was computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from proxmargin.compiled.rounding import SUM_ROUNDING, TINY
from proxmargin.functions.losses.base import Array
from proxmargin.optimality.problem import Point

Number = TypeVar("Number", float, Array)
NEGATIVE_TOLERANCE = 1e-10  # objective over the negligible one, below which it is rounded zero
ROUNDING_FACTOR = 1.5  # gap over its rounding below which the gap counts as rounding


def lower_bound(primal: Number, gap: Number) -> Number:
    """``primal - gap``, less a bound on the rounding of that subtraction."""
    return primal - gap - SUM_ROUNDING * (abs(primal) + abs(gap))


@dataclass(frozen=True, eq=False)
class Gap:
    """The duality gap of a point, and what it was computed from.

    Attributes
    ----------
    point : Point
        The certified point: the given coefficients with their best intercept.
    primal, dual, gap, relative_gap, kkt_residual : float
        ``dual`` is a lower bound of the optimum and ``gap = primal - dual``;
        ``kkt_residual`` is the largest of ``violations`` and that of the intercept; see
        `proxmargin.optimality.certificates.certificate.Certificate`.
    violations : (n_features,)
        ``|v - g|`` of each feature, g the point of the subdifferential of the penalty nearest to
        ``v = -X'q`` for the dual point q before it is scaled; the largest of several outputs.
    dual_point : (n_samples, n_outputs)
        The feasible dual point of the bound.
    negligible : float
        The scale of relative gaps where the objective is zero (`Problem.negligible`).
    rounding : float
        The part of the gap that bounds the rounding of products with the data.
    is_refined : bool
        Products were compensated: the rounding cannot be reduced further.
    """

    point: Point
    primal: float
    gap: float
    kkt_residual: float
    violations: Array
    dual_point: Array
    negligible: float
    rounding: float
    is_refined: bool

    @cached_property
    def dual(self) -> float:
        """The `lower_bound` of the optimum."""
        return lower_bound(self.primal, self.gap)

    @property
    def is_finite(self) -> bool:
        """The point is finite, and the gap is not NaN; it may be infinite."""
        coef, intercept = self.point.coef, self.point.intercept
        finite = np.isfinite(coef).all() and np.isfinite(intercept).all()
        return bool(finite) and not math.isnan(self.gap)

    @property
    def relative_gap(self) -> float:
        return self.gap / self.scale

    @cached_property
    def scale(self) -> float:
        """The denominator of relative gaps."""
        scale = max(abs(self.primal), abs(self.dual) if math.isfinite(self.dual) else 0.0)
        return max(scale, TINY if self.is_negative else self.negligible)

    def is_rounding(self, tol: float) -> bool:
        """Whether rounding beyond ``tol`` > 0 is most of the gap, with compensated products."""
        exceeds = 0.0 < tol * self.scale < self.rounding
        return exceeds and self.is_mostly_rounding and self.is_refined

    @property
    def is_mostly_rounding(self) -> bool:
        """Whether the rounding bound is most of the gap; false if neither is finite."""
        return self.gap < ROUNDING_FACTOR * self.rounding

    @property
    def is_negative(self) -> bool:
        """Whether the objective is below zero beyond rounding: a homogeneous loss has a margin."""
        return self.primal < -NEGATIVE_TOLERANCE * self.negligible
