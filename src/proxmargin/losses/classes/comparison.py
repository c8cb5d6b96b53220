"""The base of losses that compare the score of the own class with those of the others."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.losses import class_flows, class_forms
from proxmargin.losses.base import Array
from proxmargin.losses.classes.labelled import LabelledLoss
from proxmargin.losses.intercept import coupled_direction, minimise_shift
from proxmargin.penalties.base import Penalty
from proxmargin.rounding import DOMAIN_ROUNDING
from proxmargin.traits import Trait

__all__ = ["SmoothComparison", "compare_pessimistically"]

CURVATURE_FLOOR = 1e-3  # relative to the largest curvature, in Newton steps for the intercept
SETTLED_SLOPE = 1e-14  # derivative in an intercept that is the rounding of sums over the samples


def compare_pessimistically(scores: Array, codes: NDArray[np.intp], error: Array) -> Array:
    """The scores with the true classes lowered, and the other classes raised, by ``error``."""
    worse: Array = scores + error
    own = np.arange(codes.size), codes
    worse[own] -= 2.0 * np.broadcast_to(error, scores.shape)[own]
    return worse


class SmoothComparison(LabelledLoss):
    """``L(Z) = sum_i shares_i loss(z_i1 - z_iy, ..., z_iK - z_iy)``, smooth.

    A constant added to all scores of a sample changes nothing, so that rows of dual points sum
    to zero: ``q_i = s_i (a_i - (sum_k a_ik) e_y)`` with rates ``a_ik >= 0`` for the classes k
    other than the own, y.

    Takes the parameters of `LabelledLoss`.
    """

    traits = (
        Trait.SMOOTH | Trait.MANY_OUTPUTS | Trait.CONJUGATE_PROX | Trait.CONJUGATE_PROX_JACOBIAN
    )
    most_rate: float = np.inf
    """The largest total rate of a sample."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The largest eigenvalue of the Hessian of one sample of weight one."""

    @property
    @abstractmethod
    def form(self) -> Any:
        """The loss in kernels: a named tuple of `proxmargin.compiled.losses.class_forms`."""

    @abstractmethod
    def _slope_and_curvature(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        """Gradient (count,) and Hessian (count, count) in a shift of all scores."""

    def value(self, scores: Array) -> float:
        return self.value_and_gradient(scores)[0]

    def curvature_bound(self, row_weights: Array) -> float:
        return float(row_weights @ self.row_curvatures)

    @property
    def row_curvatures(self) -> Array:
        return self.curvature * self.shares

    def pessimistic(self, scores: Array, error: Array) -> Array:
        return compare_pessimistically(scores, self.codes, error)

    def domain_gauge(self, dual: Array) -> float:
        if np.isinf(self.most_rate):
            return 0.0
        return float(class_flows.largest_rate(dual, self.codes, self.shares)) / self.most_rate

    def in_domain(self, dual: Array) -> bool:
        """Whether ``dual`` is in the domain of the conjugate, up to rounding."""
        inside, largest = class_flows.clip_flows(dual, self.codes, self.shares, self.most_rate)
        room = DOMAIN_ROUNDING * max(largest, 1.0) * self.shares[:, None]
        return bool(np.all(np.abs(inside - dual) <= room))

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        """Clip the rates, then balance the flows into and out of every class.

        At the exact intercept this changes the dual point by rounding only.
        """
        inside, largest = class_flows.clip_flows(dual, self.codes, self.shares, self.most_rate)
        if intercept.is_shift_invariant and largest > 0:
            capacity = largest if np.isinf(self.most_rate) else self.most_rate
            class_flows.balance(inside, self.codes, self.shares, capacity)
        return inside

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        if intercept.is_shift_invariant:
            start, slope = self._shifted(scores, start)
            if slope <= SETTLED_SLOPE:
                return intercept.into_domain(start[None, :])[0]
        return minimise_shift(
            lambda shift: self._slope_and_curvature(scores, shift),
            intercept,
            start,
            CURVATURE_FLOOR * self.curvature,
            self.curvature,
            coupled_direction,
        )

    def _shifted(self, scores: Array, start: Array) -> tuple[Array, float]:
        """The best free intercept, by Newton's method from ``start``, and the slope left there."""
        moved, shift = np.ascontiguousarray((scores + start).T), start.astype(np.float64)
        buffers = np.empty(moved.shape), np.empty(moved.shape)
        _, slope = class_forms.best_shift(
            self.form, moved, self.codes, self.shares, shift, *buffers
        )
        return shift, float(slope)
