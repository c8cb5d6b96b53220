"""The squared hinge of every pair of own and other class."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled import class_flows
from proxmargin.compiled import pairwise as compiled
from proxmargin.losses.base import Array
from proxmargin.losses.comparison import SmoothComparison

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

    def _slope_and_curvature(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        return compiled.slope_and_curvature(scores, self.codes, self.shares, shift)
