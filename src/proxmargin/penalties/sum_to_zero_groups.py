"""Norms of groups of coefficients whose rows sum to zero over the classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.penalties.base import Array, Penalty, Step
from proxmargin.penalties.groups import GroupNorm
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.penalties.sum_to_zero import rows_sum_to_zero
from proxmargin.traits import Trait

__all__ = ["SumToZeroGroups"]

# relative accuracy of the iterative dual norm of groups within classes; it is an upper bound, so
# that a dual point scaled by it is feasible
DUAL_NORM_TOLERANCE = 4e-12


@dataclass(frozen=True, eq=False)
class SumToZeroGroups(Penalty):
    """``strength sum_g omega_g |W_g|`` where every row of W sums to zero, infinite elsewhere.

    Parameters
    ----------
    inner : GroupNorm
        One group a feature, across the classes (`Groups.features`), or groups of features in each
        class.

    Notes
    -----
    ``<V, W>`` is invariant to a common shift of a row of the dual: the dual norm is the least over
    all shifts. With one group a feature that is ``min_s |V_j - s 1|_*``, attained at the mean
    (l2) or a median (sup norm) of the row; with groups of d features in each class it is the
    radius of the smallest ball of the dual norm that holds one point of R^d for each class. The
    prox is the norm's own at the shifts for which it sums to zero: for rows with the sup norm the
    shrinkage of Zhang, Liu, Wu and Zhu (2008).
    """

    inner: GroupNorm

    is_portable = False
    by_features = False
    sums_to_zero = True

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        return Trait.PROX_JACOBIAN if self.inner.has_balanced_jacobian else Trait.NONE

    def value(self, coef: Array) -> float:
        return self.inner.value(coef) if rows_sum_to_zero(coef) else np.inf

    def prox(self, coef: Array, step: Step) -> Array:
        prox, _ = self.inner.balanced_prox(coef, step)
        return prox

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        return self.inner.balanced_jacobian(coef, step)

    def conjugate(self, dual: Array) -> float:
        exact = self.inner.groups.across_classes
        inner = self.inner if exact else self.inner.times(1.0 + DUAL_NORM_TOLERANCE)
        return inner.conjugate(self._least(dual))

    def domain_scale(self, dual: Array) -> float:
        return self.inner.domain_scale(self._least(dual))

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        return self.inner.fenchel_young(coef, self._least(dual))

    def largest_product(self, sizes: Array, level: float) -> float:
        return self.inner.largest_product(sizes, level)

    def violations(self, coef: Array, dual: Array) -> Array:
        _, shifts = self.inner.balanced_prox(coef + dual, 1.0)
        return self.inner.violations(coef, dual - shifts)

    def critical_strength(self, dual: Array) -> float:
        return self.inner.critical_strength(self._least(dual))

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        raise TypeError("an intercept cannot carry a penalty of groups: use SumToZero")

    def times(self, factor: float) -> Self:
        return replace(self, inner=self.inner.times(factor))

    def restricted(self, index: NDArray[np.intp]) -> Self:
        return replace(self, inner=self.inner.restricted(index))

    def _least(self, dual: Array) -> Array:
        """The dual with each row shifted so that the dual norms are least."""
        return dual - self.inner.class_centres(dual)
