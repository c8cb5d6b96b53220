"""The squared hinge of every pair of own and other class."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.losses import class_flows
from proxmargin.compiled.losses import pairwise as compiled
from proxmargin.compiled.losses.class_forms import PairwiseSquares
from proxmargin.losses.base import Array
from proxmargin.losses.classes.comparison import SmoothComparison
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.penalties.partition import Groups

__all__ = ["PairwiseSquaredHinge"]


class PairwiseSquaredHinge(SmoothComparison):
    """``L(Z) = sum_i shares_i sum_{k != y} [1 + z_ik - z_iy]_+^2``.

    (19) of Chierchia et al. (2015). The conjugate is ``sum_i s_i sum_{k != y} a_ik^2 / 4 - a_ik``
    for rates ``a_ik >= 0``.

    Parameters
    ----------
    codes, shares, count, total
        See `SmoothComparison`.
    """

    @property
    def curvature(self) -> float:
        return 2.0 * self.count  # of 2 sum_k (e_k - e_y)(e_k - e_y)'

    @property
    def form(self) -> PairwiseSquares:
        return PairwiseSquares(1.0)

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        gradient = np.empty(scores.shape)
        value = compiled.value_and_gradient(scores, self.codes, self.shares, gradient)
        return value, gradient

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

    def _slope_and_curvature(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        return compiled.slope_and_curvature(scores, self.codes, self.shares, shift)
