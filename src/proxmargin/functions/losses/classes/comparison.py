"""Losses of the differences between the score of the own class and all others."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.losses import class_flows, class_forms
from proxmargin.compiled.losses import pairwise as compiled
from proxmargin.compiled.losses.class_forms import PairwiseSquares
from proxmargin.compiled.rounding import DOMAIN_ROUNDING, SLOPE_ROUNDING
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.losses.intercept import (
    CURVATURE_FLOOR,
    coupled_direction,
    minimise_shift,
)
from proxmargin.functions.losses.margins.margin import MarginLoss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.penalties.partition import Groups
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array


class LabelledLoss(Loss):
    """A loss that knows the class of each sample, ``codes`` in [0, count), and its share of the
    ``total`` weight."""

    compares_classes = True

    def __init__(self, codes: ArrayLike, shares: ArrayLike, count: int, total: float = 0.0) -> None:
        self.codes: NDArray[np.intp] = np.asarray(codes, dtype=np.intp)
        self.shares = np.asarray(shares, dtype=np.float64)
        self.count = self.n_outputs = count
        self.total = self.sample_count = total


def compare_pessimistically(scores: Array, codes: NDArray[np.intp], error: Array) -> Array:
    """The scores with the true classes lowered, and the other classes raised, by ``error``."""
    worse: Array = scores + error
    own = np.arange(codes.size), codes
    worse[own] -= 2.0 * np.broadcast_to(error, scores.shape)[own]
    return worse


class SmoothComparison(LabelledLoss):
    """``L(Z) = sum_i shares_i loss(z_i1 - z_iy, ..., z_iK - z_iy)``, smooth. A constant added to
    all scores of a sample changes nothing, so that rows of dual points sum to zero: ``q_i = s_i
    (a_i - (sum_k a_ik) e_y)`` with rates ``a_ik >= 0`` for the classes k other than the own, y.
    Takes the parameters of `LabelledLoss`."""

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

    def value(self, scores: Array) -> float:
        return self.value_and_gradient(scores)[0]

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        gradient, scores = np.empty(scores.shape), np.ascontiguousarray(scores)
        value = class_forms.value_and_gradient(self.form, scores, self.codes, self.shares, gradient)
        return value, gradient

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
        """Clip the rates, then balance the flows into and out of every class. At the exact
        intercept this changes the dual point by rounding only."""
        inside, largest = class_flows.clip_flows(dual, self.codes, self.shares, self.most_rate)
        if intercept.is_shift_invariant and largest > 0:
            capacity = largest if np.isinf(self.most_rate) else self.most_rate
            class_flows.balance(inside, self.codes, self.shares, capacity)
        return inside

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        if intercept.is_shift_invariant:
            start, slope = self._shifted(scores, start)
            if slope <= SLOPE_ROUNDING:
                return intercept.into_domain(start[None, :])[0]
        return minimise_shift(
            lambda shift: self._slope_and_curvature(scores, shift),
            intercept,
            start,
            CURVATURE_FLOOR * self.curvature,
            self.curvature,
            coupled_direction,
        )

    def _slope_and_curvature(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        """Gradient (count,) and Hessian (count, count) in a shift of all scores."""
        moved = np.ascontiguousarray((scores + shift).T)
        found: tuple[Array, Array] = class_forms.slope_and_curvature(
            self.form, moved, self.codes, self.shares
        )
        return found

    def _shifted(self, scores: Array, start: Array) -> tuple[Array, float]:
        """The best free intercept, by Newton's method from ``start``, and the slope left there."""
        moved, shift = np.ascontiguousarray((scores + start).T), start.astype(np.float64)
        buffers = np.empty(moved.shape), np.empty(moved.shape)
        _, slope = class_forms.best_shift(
            self.form, moved, self.codes, self.shares, shift, *buffers
        )
        return shift, float(slope)


def wrong_classes(
    phi: MarginLoss, codes: NDArray[np.intp], weights: Array, n_classes: int, sample_count: float
) -> MarginSum:
    """``L(Z) = sum_i weights_i sum_{k != codes_i} phi(-z_ik)``.

    Together with coefficients that sum to zero over the classes it is the all-together model of
    Xu et al. (2015, (3)). The paper prints ``phi(+z)``, which would push the scores of the wrong
    classes up; with the minus sign prediction is by the largest score.

    Parameters
    ----------
    codes : (n_samples,) integers in [0, n_classes)
    weights : (n_samples,) >= 0, summing to one
    sample_count : float
        Total sample weight before that normalisation.

    See Also
    --------
    proxmargin.MulticlassSVC : Models with losses of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Hinge, wrong_classes
    >>> loss = wrong_classes(Hinge(), np.array([0, 1]), np.array([0.5, 0.5]), 3, 2.0)
    >>> float(loss.value(np.zeros((2, 3))))  # two wrong classes with a loss of 1 each
    2.0
    """
    counts = np.repeat(weights[:, None], n_classes, axis=1)
    counts[np.arange(codes.size), codes] = 0.0
    return MarginSum(phi, np.full(counts.shape, -1.0), counts, sample_count)


class PairwiseSquaredHinge(SmoothComparison):
    """``L(Z) = sum_i shares_i sum_{k != y} [1 + z_ik - z_iy]_+^2``.

    (19) of Chierchia et al. (2015). The conjugate is ``sum_i s_i sum_{k != y} a_ik^2 / 4 - a_ik``
    for rates ``a_ik >= 0``.

    Parameters
    ----------
    codes, shares, count, total
        See `SmoothComparison`.

    See Also
    --------
    proxmargin.MulticlassSVC : Models with losses of all classes.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import PairwiseSquaredHinge
    >>> loss = PairwiseSquaredHinge(np.array([0, 2]), np.array([0.5, 0.5]), 3)
    >>> float(loss.value(np.zeros((2, 3))))  # two wrong classes with a loss of 1 each
    2.0
    """

    @property
    def curvature(self) -> float:
        return 2.0 * self.count  # of 2 sum_k (e_k - e_y)(e_k - e_y)'

    form = PairwiseSquares(1.0)

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        terms = compiled.fenchel_young_sum(scores, self.codes, self.shares, dual)
        return float(terms + class_flows.loose_rows(dual, scores))

    def conjugate(self, dual: Array) -> float:
        if not self.in_domain(dual):
            return np.inf
        return float(compiled.conjugate_sum(self.codes, self.shares, dual))

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """A scalar, piecewise linear equation for each sample."""
        nearest = np.empty(dual.shape)
        compiled.conjugate_prox(dual, self.codes, self.shares, step, nearest)
        return nearest

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        """``diag(d) - v v'`` with, for the m classes whose rates are positive, and the own one,

            ``d = theta, 1``,   ``v = (theta, 1) / sqrt(1 + m theta)``,   ``theta = 2c / (1 + 2c)``
        and ``c = share / step``.
        """
        own = np.arange(self.codes.size), self.codes
        live = self.conjugate_prox(dual, step) > 0
        theta = 2.0 * self.shares[:, None] / (step + 2.0 * self.shares[:, None])
        diagonal = np.where(live, theta, 0.0)
        diagonal[own] = self.shares > 0
        lengths = np.sqrt(1.0 + theta * live.sum(axis=1, keepdims=True))
        return ProxJacobian(diagonal, diagonal / lengths, Groups.features(len(dual)), sign=-1.0)
