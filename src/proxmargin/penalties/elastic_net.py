"""The elastic net: an l1 part that selects and a ridge part that shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.penalties.base import Array, Penalty, Step
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.penalties.ridge import UNIFORM, ridge_product
from proxmargin.rows import largest_of_rows, sums_of_rows
from proxmargin.traits import Trait

__all__ = ["ElasticNet", "soft_threshold"]

STRONGLY_CONVEX = UNIFORM | Trait.SMOOTH_CONJUGATE


def soft_threshold(values: Array, threshold: Step) -> Array:
    """``sign(v) max(|v| - threshold, 0)``, entry by entry."""
    return values - values.clip(-threshold, threshold)


def _largest(values: Array) -> float:
    """Largest absolute entry, without a temporary of the same size."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


@dataclass(frozen=True)
class ElasticNet(Penalty):
    """``G(w) = l1 |w|_1 + (l2 / 2) |w|^2``.

    Parameters
    ----------
    l1, l2 : float >= 0
        Strengths. An estimator's ``alpha`` and ``l1_ratio`` give ``l1 = alpha * l1_ratio`` and
        ``l2 = alpha * (1 - l1_ratio)`` (`from_mixture`).

    Notes
    -----
    ``G*(v) = sum_j [|v_j| - l1]_+^2 / (2 l2)``; for ``l2 = 0`` the indicator of ``|v_j| <= l1``.
    """

    l1: float
    l2: float = 0.0

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        return STRONGLY_CONVEX if self.l2 > 0 else UNIFORM

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"ElasticNet: {name} must be a finite number >= 0, got {value!r}")

    @classmethod
    def from_mixture(cls, alpha: float, l1_ratio: float) -> ElasticNet:
        """The elastic net of total strength ``alpha`` with the share ``l1_ratio`` on l1."""
        return cls(l1=alpha * l1_ratio, l2=alpha * (1.0 - l1_ratio))

    def value(self, coef: Array) -> float:
        return self.l1 * float(np.abs(coef).sum()) + 0.5 * self.l2 * float(np.vdot(coef, coef))

    def prox(self, coef: Array, step: Step) -> Array:
        return soft_threshold(coef, step * self.l1) / (1.0 + step * self.l2)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        return ProxJacobian((np.abs(coef) > step * self.l1) / (1.0 + step * self.l2))

    def conjugate(self, dual: Array) -> float:
        excess = np.maximum(np.abs(dual) - self.l1, 0.0)
        if self.l2 > 0:
            return float(np.vdot(excess, excess)) / (2.0 * self.l2)
        return np.inf if np.any(excess > 0) else 0.0

    def domain_scale(self, dual: Array) -> float:
        largest = _largest(dual)
        return 1.0 if self.l2 > 0 or largest <= self.l1 else self.l1 / largest

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        if self.l2 > 0:
            excess = soft_threshold(dual, self.l1)
            capped = dual - excess  # in [-l1, l1]
            difference = self.l2 * coef - excess
            terms = self.l1 * np.abs(coef) - capped * coef + difference**2 / (2.0 * self.l2)
        else:
            terms = self.l1 * np.abs(coef) - dual * coef
        return sums_of_rows(np.maximum(terms, 0.0))

    def largest_product(self, sizes: Array, level: float) -> float:
        if self.l1 == 0:
            return ridge_product(sizes, level, self.l2)
        by_l1 = level * float(sizes.max(initial=0.0)) / self.l1
        return min(by_l1, ridge_product(sizes, level, self.l2)) if self.l2 > 0 else by_l1

    def is_definite(self, shape: tuple[int, int]) -> bool:
        return self.l1 > 0 or self.l2 > 0

    def violations(self, coef: Array, dual: Array) -> Array:
        at_zero = np.maximum(np.abs(dual) - self.l1, 0.0)
        away = np.abs(dual - self.l2 * coef - self.l1 * np.sign(coef))
        return largest_of_rows(np.where(coef == 0, at_zero, away))

    def keeps_at_zero(self, dual: Array, radii: Array) -> NDArray[np.bool_]:
        kept: NDArray[np.bool_] = largest_of_rows(np.abs(dual)) + radii < self.l1
        return kept

    def unpenalised(self, n_features: int) -> NDArray[np.intp]:
        return np.arange(0 if self.l1 > 0 or self.l2 > 0 else n_features)

    def critical_strength(self, dual: Array) -> float:
        return _largest(dual)

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        if self.l1 > 0:
            raise TypeError("an intercept cannot carry an l1 penalty: use Ridge")
        return -(gradient + self.l2 * at) / (curvature + self.l2)

    def conjugate_gradient(self, dual: Array) -> Array:
        if self.l2 == 0:
            return super().conjugate_gradient(dual)
        return soft_threshold(dual, self.l1) / self.l2

    def times(self, factor: float) -> ElasticNet:
        return ElasticNet(factor * self.l1, factor * self.l2)

    def with_l1_times(self, factor: float) -> ElasticNet:
        return ElasticNet(factor * self.l1, self.l2)

    def best_multiple(self, coef: Array, slope: float, bend: float = 0.0) -> float:
        square = self.l2 * float(np.vdot(coef, coef)) + bend
        if square == 0:
            return 0.0
        return max(-(slope + self.l1 * float(np.abs(coef).sum())) / square, 0.0)
