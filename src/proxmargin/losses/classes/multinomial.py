"""The multinomial logistic loss, plain or with a margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.losses import class_flows
from proxmargin.compiled.losses import multinomial as compiled
from proxmargin.compiled.losses.class_forms import Softmax
from proxmargin.losses.base import Array
from proxmargin.losses.classes.comparison import SmoothComparison
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.penalties.partition import Groups

__all__ = ["Multinomial"]


class Multinomial(SmoothComparison):
    """``L(Z) = sum_i shares_i log(1 + sum_{k != y} exp(margin + z_ik - z_iy))``.

    Parameters
    ----------
    codes, shares, count, total
        See `SmoothComparison`.
    margin : float, default 0.0
        0 is multinomial logistic regression, 1 is (20) of Chierchia et al. (2015).

    Notes
    -----
    The rates and what they leave of one are probabilities a, and the conjugate is
    ``sum_i s_i (sum_k a_ik log a_ik - margin (1 - a_iy))``.
    """

    most_rate = 1.0

    def __init__(
        self,
        codes: NDArray[np.intp],
        shares: Array,
        count: int,
        total: float,
        margin: float = 0.0,
    ) -> None:
        super().__init__(codes, shares, count, total)
        self.margin = margin

    @property
    def curvature(self) -> float:
        return 0.5  # of diag(p) - p p', where two classes share the probability

    @property
    def form(self) -> Softmax:
        return Softmax(float(self.margin))

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        gradient = np.empty(scores.shape)
        value = compiled.value_and_gradient(scores, self.codes, self.shares, self.margin, gradient)
        return value, gradient

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        divergence = compiled.relative_entropy_sum(
            scores, self.codes, self.shares, self.margin, dual
        )
        return float(divergence + class_flows.loose_rows(dual, scores))

    def conjugate(self, dual: Array) -> float:
        if not self.in_domain(dual):
            return np.inf
        return float(compiled.entropy_sum(self.codes, self.shares, self.margin, dual))

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        """A scalar equation for each sample."""
        nearest, _ = self._nearest(dual, step)
        return nearest

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        """``c (diag(g) - g g' / sum(g))`` with ``c = share / step`` and ``g = p / (1 + c p)``."""
        _, slopes = self._nearest(dual, step)
        ratios = self.shares[:, None] / step
        sums = slopes.sum(axis=1, keepdims=True)
        vectors = slopes * np.sqrt(np.divide(ratios, sums, out=np.zeros_like(sums), where=sums > 0))
        return ProxJacobian(ratios * slopes, vectors, Groups.features(len(dual)), sign=-1.0)

    def _nearest(self, dual: Array, step: float) -> tuple[Array, Array]:
        nearest, slopes = np.empty(dual.shape), np.empty(dual.shape)
        compiled.conjugate_prox(dual, self.codes, self.shares, self.margin, step, nearest, slopes)
        return nearest, slopes

    def _slope_and_curvature(self, scores: Array, shift: Array) -> tuple[Array, Array]:
        return compiled.slope_and_curvature(scores, self.codes, self.shares, self.margin, shift)
