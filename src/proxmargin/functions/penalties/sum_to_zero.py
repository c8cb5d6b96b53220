"""Penalties of coefficients whose rows sum to zero over the classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.projections.rows import sum_to_zero_rows, sum_to_zero_shifts
from proxmargin.functions.penalties.base import MEMBERSHIP, Penalty, Step
from proxmargin.functions.penalties.groups import GroupNorm
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.penalties.partition import Groups
from proxmargin.functions.traits import Trait
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Array

# relative accuracy of the iterative dual norm of groups within classes; it is an upper bound, so
# that a dual point scaled by it is feasible
DUAL_NORM_TOLERANCE = 4e-12


def rows_sum_to_zero(coef: Array) -> bool:
    """Whether every row sums to zero, up to rounding; intercepts on data that are not centred lose
    digits in proportion to the means."""
    off = np.abs(coef.sum(axis=1)).max(initial=0.0)
    return bool(off <= MEMBERSHIP * max(1.0, np.abs(coef).max(initial=0.0)))


@dataclass(frozen=True)
class SumToZero(Penalty):
    """``G(W) = elastic net (W)`` where every row of W sums to zero, infinite elsewhere.

    Parameters
    ----------
    inner : ElasticNet, Ridge, or WeightedElasticNet with factors > 0 and without bounds
        With ``l1 = 0`` (and any l2, zero included) it is also the penalty of intercepts that
        sum to zero over the classes.

    Notes
    -----
    The prox of a row is (17) of Xu et al. (2015): ``soft(z - sigma, l1)`` with the sigma that
    makes the row sum to zero. For the conjugate only the deviations from a common shift of each
    row matter: with ``l2 = 0`` the domain is ``(max - min) / 2 <= l1`` for each row.

    See Also
    --------
    SumToZeroGroups : The same for norms of groups.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import ElasticNet, SumToZero
    >>> net = SumToZero(ElasticNet(l1=0.5))
    >>> net.prox(np.array([[3.0, -1.0, 0.0]]), 1.0).round(3).tolist()
    [[1.667, -1.333, -0.333]]
    """

    inner: Penalty

    traits = Trait.PROX_JACOBIAN
    sums_to_zero = True

    l1, l2, largest_product = forwarded("inner", "l1", "l2", "largest_product")

    @property
    def is_shift_invariant(self) -> bool:  # type: ignore[override]
        return self.inner.l1 == 0 and self.inner.l2 == 0

    def value(self, coef: Array) -> float:
        return self.inner.value(coef) if rows_sum_to_zero(coef) else np.inf

    def prox(self, coef: Array, step: Step) -> Array:
        l1, l2 = self._strengths(len(coef))
        shrink = 1.0 + step * l2
        thresholds = np.full((len(coef), 1), step * l1 / shrink)
        return sum_to_zero_rows(coef / shrink, thresholds)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        """``(I - 1 1' / m) / (1 + step l2)`` on the m live entries of each row."""
        l1, l2 = self._strengths(len(coef))
        live = ((self.prox(coef, step) != 0) | (l1 == 0)).astype(np.float64)
        shrink = 1.0 + step * l2
        counts = np.maximum(live.sum(axis=1, keepdims=True), 1.0)
        vectors = live / np.sqrt(counts * shrink)
        return ProxJacobian(live / shrink, vectors, Groups.features(len(coef)), sign=-1.0)

    def conjugate(self, dual: Array) -> float:
        l1, l2 = self._strengths(len(dual))
        if self.inner.l2 > 0:
            excess = sum_to_zero_rows(dual, np.full((len(dual), 1), l1))
            return float((excess * excess / (2.0 * l2)).sum())
        return np.inf if np.any(_half_ranges(dual) > l1) else 0.0

    def domain_scale(self, dual: Array) -> float:
        l1, half = self._strengths(len(dual))[0], _half_ranges(dual)
        l1 = np.broadcast_to(l1, half.shape)
        beyond = half > l1
        if self.inner.l2 > 0 or not beyond.any():
            return 1.0
        return float((l1[beyond] / half[beyond]).min())

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        # any shift of a row of the dual leaves <dual, coef> as it is; the best one is the root
        # for which soft(dual - sigma, l1) sums to zero
        return self.inner.fenchel_young(coef, dual - self._shifts(dual))

    def violations(self, coef: Array, dual: Array) -> Array:
        l1, l2 = self._strengths(len(dual))
        live = coef != 0
        needed = dual - l2 * coef - l1 * np.sign(coef)
        count = live.sum(axis=1, keepdims=True)
        shift = (needed * live).sum(axis=1, keepdims=True) / np.maximum(count, 1)
        off = np.where(live, np.abs(needed - shift), np.maximum(np.abs(dual - shift) - l1, 0.0))
        at_zero = np.maximum(_half_ranges(dual) - l1, 0.0)[:, 0]
        return np.where(count[:, 0] > 0, off.max(axis=1), at_zero)

    def critical_strength(self, dual: Array) -> float:
        factors = np.reshape(self.inner.factors, (-1, 1))
        return float((_half_ranges(dual) / factors).max(initial=0.0))

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        # a weighted deviation from the mean, centred again: a sum that is not zero to rounding
        # would be a direction of its own once a line search doubles its step
        pull = 1.0 / (curvature + self.inner.l2)
        residual = gradient + self.inner.l2 * at
        direction = -pull * (residual - (pull @ residual) / pull.sum())
        return direction - direction.mean()

    def times(self, factor: float) -> SumToZero:
        return SumToZero(self.inner.times(factor))

    def feasible_sums(self, sums: Array, low: Array, high: Array) -> Array:
        if self.inner.l2 > 0:
            return sums
        return np.full_like(sums, np.clip(sums.mean(), low.max(), high.min()))

    def restricted(self, index: NDArray[np.intp]) -> SumToZero:
        return SumToZero(self.inner.restricted(index))

    def _strengths(self, rows: int) -> tuple[Array | float, Array | float]:
        """l1 and l2 of each feature, (n_features, 1), or numbers where all features share them."""
        if Trait.UNIFORM_NET in self.inner.traits:
            return self.inner.l1, self.inner.l2
        net = self.inner.net(rows)
        return net.l1[:, None], net.l2[:, None]

    def _shifts(self, dual: Array) -> Array:
        """The roots of `sum_to_zero_shifts` at the l1 strengths: homogeneous in dual and l1."""
        if Trait.UNIFORM_NET in self.inner.traits or self.inner.l1 == 0:
            return sum_to_zero_shifts(dual, self.inner.l1)
        l1 = self._strengths(len(dual))[0]
        shifts: Array = l1 * sum_to_zero_shifts(dual / l1, 1.0)
        return shifts


def _half_ranges(dual: Array) -> Array:
    """Half the range of each row, (n_rows, 1): the least sup norm over shifts of the row."""
    halves: Array = 0.5 * np.ptp(dual, axis=1, keepdims=True)
    return halves


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

    See Also
    --------
    SumToZero : The same for elastic nets.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import GroupL2, Groups, SumToZeroGroups
    >>> norm = SumToZeroGroups(GroupL2(Groups.features(1), strength=1.0))
    >>> float(norm.value(np.array([[3.0, 0.0, -4.0]])))
    inf
    >>> round(float(norm.value(np.array([[3.0, 0.0, -3.0]]))), 3)
    4.243
    """

    inner: GroupNorm

    is_portable = False
    by_features = False
    sums_to_zero = True

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        norm = self.inner  # whose `balanced_jacobian` is known for these groups
        known = norm.groups.across_classes or not norm.is_polyhedral
        return Trait.PROX_JACOBIAN if known else Trait.NONE

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

    (largest_product,) = forwarded("inner", "largest_product")

    def violations(self, coef: Array, dual: Array) -> Array:
        _, shifts = self.inner.balanced_prox(coef + dual, 1.0)
        return self.inner.violations(coef, dual - shifts)

    def critical_strength(self, dual: Array) -> float:
        return self.inner.critical_strength(self._least(dual))

    def times(self, factor: float) -> Self:
        return replace(self, inner=self.inner.times(factor))

    def restricted(self, index: NDArray[np.intp]) -> Self:
        return replace(self, inner=self.inner.restricted(index))

    def _least(self, dual: Array) -> Array:
        """The dual with each row shifted so that the dual norms are least."""
        return dual - self.inner.class_centres(dual)
