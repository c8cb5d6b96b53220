"""The elastic net; with l2 alone the ridge, and without strengths no penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.nets import Net
from proxmargin.functions.penalties.base import Penalty, Step
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.rows import largest_of_rows, sums_of_rows
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array

UNIFORM = Trait.SEPARABLE | Trait.PROX_JACOBIAN | Trait.NET | Trait.UNIFORM_NET  # of every net
RIDGE = UNIFORM | Trait.SMOOTH_CONJUGATE | Trait.QUADRATIC_CONJUGATE
STRONGLY_CONVEX = UNIFORM | Trait.SMOOTH_CONJUGATE


def ridge_product(sizes: Array, level: float, l2: float) -> float:
    """The largest ``<sizes, |W|>`` where ``(l2 / 2) |W|^2 <= level``: by Cauchy and Schwarz."""
    length = float(np.sqrt(np.einsum("ij,ij->", sizes, sizes)))  # sizes may be broadcast
    if length == 0:
        return 0.0
    return length * float(np.sqrt(2.0 * level / l2)) if l2 > 0 else np.inf


class UniformNet(Penalty):
    """The same strengths for all features, without bounds."""

    def net(self, n_features: int) -> Net:
        strengths = np.array([[self.l1], [self.l2], [-np.inf], [np.inf]])
        return Net(*np.repeat(strengths, n_features, axis=1))


@dataclass(frozen=True)
class Ridge(UniformNet):
    """``G(w) = (l2 / 2) |w|^2``, ``G*(v) = |v|^2 / (2 l2)``.

    With ``l2 = 0`` this is the zero function, the penalty of a free intercept: its conjugate is
    the indicator of ``v = 0``, which is the dual constraint that a free intercept brings.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import Ridge
    >>> Ridge(l2=0.5).value(np.array([[2.0]])), Ridge(l2=0.5).prox(np.array([[3.0]]), 1.0).tolist()
    (1.0, [[2.0]])
    """

    l2: float = 0.0

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        return RIDGE if self.l2 > 0 else UNIFORM

    @property
    def is_shift_invariant(self) -> bool:  # type: ignore[override]
        return self.l2 == 0

    def value(self, coef: Array) -> float:
        return 0.5 * self.l2 * float(np.vdot(coef, coef))

    def prox(self, coef: Array, step: Step) -> Array:
        return coef / (1.0 + step * self.l2)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        return ProxJacobian(np.full(coef.shape, 1.0 / (1.0 + step * self.l2)))

    def conjugate(self, dual: Array) -> float:
        if self.l2 > 0:
            return float(np.vdot(dual, dual)) / (2.0 * self.l2)
        return np.inf if np.any(dual) else 0.0

    def domain_scale(self, dual: Array) -> float:
        return 1.0 if self.l2 > 0 or not np.any(dual) else 0.0

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        if self.l2 > 0:
            residual = self.l2 * coef - dual
            return (residual * residual).sum(axis=1) / (2.0 * self.l2)
        # dual is zero up to rounding: the product bounds the effect of that rounding
        return np.abs(coef * dual).sum(axis=1)

    def largest_product(self, sizes: Array, level: float) -> float:
        return ridge_product(sizes, level, self.l2)

    def is_definite(self, shape: tuple[int, int]) -> bool:
        return self.l2 > 0

    def violations(self, coef: Array, dual: Array) -> Array:
        return np.abs(dual - self.l2 * coef).max(axis=1)

    def unpenalised(self, n_features: int) -> NDArray[np.intp]:
        return np.arange(0 if self.l2 > 0 else n_features)

    def critical_strength(self, dual: Array) -> float:
        return 0.0

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        return -(gradient + self.l2 * at) / (curvature + self.l2)

    def conjugate_gradient(self, dual: Array) -> Array:
        return dual / self.l2 if self.l2 > 0 else super().conjugate_gradient(dual)

    def times(self, factor: float) -> Ridge:
        return Ridge(factor * self.l2)

    def with_l1_times(self, factor: float) -> Ridge:
        return self

    def best_multiple(self, coef: Array, slope: float, curvature: float = 0.0) -> float:
        square = self.l2 * float(np.vdot(coef, coef)) + curvature
        return max(-slope / square, 0.0) if square > 0 else 0.0

    def feasible_sums(self, sums: Array, low: Array, high: Array) -> Array:
        return sums if self.l2 > 0 else np.zeros_like(sums)


@dataclass(frozen=True)
class Pinned(Penalty):
    """``G(w) = 0`` at ``w = 0``, infinite elsewhere; ``G* = 0``. A model without intercept.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import Pinned
    >>> Pinned().value(np.zeros((1, 1))), Pinned().prox(np.array([[2.0]]), 1.0).tolist()
    (0.0, [[0.0]])
    """

    traits = Trait.SEPARABLE | Trait.PROX_JACOBIAN | Trait.NET
    is_pinned = True

    def net(self, n_features: int) -> Net:
        return Net(*(np.zeros(n_features) for _ in range(4)))

    def value(self, coef: Array) -> float:
        return np.inf if np.any(coef) else 0.0

    def prox(self, coef: Array, step: Step) -> Array:
        return np.zeros_like(coef)

    def prox_jacobian(self, coef: Array, step: float) -> ProxJacobian:
        return ProxJacobian(np.zeros(coef.shape))

    def conjugate(self, dual: Array) -> float:
        return 0.0

    def domain_scale(self, dual: Array) -> float:
        return 1.0

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        return np.zeros(coef.shape[0])

    def largest_product(self, sizes: Array, level: float) -> float:
        return 0.0

    def violations(self, coef: Array, dual: Array) -> Array:
        return np.zeros(coef.shape[0])

    def critical_strength(self, dual: Array) -> float:
        return 0.0

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        return -at

    def times(self, factor: float) -> Pinned:
        return self


def soft_threshold(values: Array, threshold: Step) -> Array:
    """``sign(v) max(|v| - threshold, 0)``, entry by entry."""
    return values - values.clip(-threshold, threshold)


def _largest(values: Array) -> float:
    """Largest absolute entry, without a temporary of the same size."""
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))


@dataclass(frozen=True)
class ElasticNet(UniformNet):
    """``G(w) = l1 |w|_1 + (l2 / 2) |w|^2``.

    Parameters
    ----------
    l1, l2 : float >= 0
        Strengths. An estimator's ``alpha`` and ``l1_ratio`` give ``l1 = alpha * l1_ratio`` and
        ``l2 = alpha * (1 - l1_ratio)`` (`from_mixture`).

    Notes
    -----
    ``G*(v) = sum_j [|v_j| - l1]_+^2 / (2 l2)``; for ``l2 = 0`` the indicator of ``|v_j| <= l1``.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import ElasticNet
    >>> net = ElasticNet(l1=1.0, l2=0.5)
    >>> coef = np.array([[3.0], [-0.5]])
    >>> net.value(coef), net.prox(coef, 1.0).ravel().tolist()
    (5.8125, [1.3333333333333333, 0.0])
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
        if self.l2 > 0:
            return 1.0
        largest = _largest(dual)
        return 1.0 if largest <= self.l1 else self.l1 / largest

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

    def unpenalised(self, n_features: int) -> NDArray[np.intp]:
        return np.arange(0 if self.l1 > 0 or self.l2 > 0 else n_features)

    def critical_strength(self, dual: Array) -> float:
        return _largest(dual)

    def newton_direction(self, gradient: Array, curvature: Array, at: Array) -> Array:
        if self.l1 > 0:
            return super().newton_direction(gradient, curvature, at)
        return -(gradient + self.l2 * at) / (curvature + self.l2)

    def conjugate_gradient(self, dual: Array) -> Array:
        if self.l2 == 0:
            return super().conjugate_gradient(dual)
        return soft_threshold(dual, self.l1) / self.l2

    def times(self, factor: float) -> ElasticNet:
        return ElasticNet(factor * self.l1, factor * self.l2)

    def with_l1_times(self, factor: float) -> ElasticNet:
        return ElasticNet(factor * self.l1, self.l2)

    def best_multiple(self, coef: Array, slope: float, curvature: float = 0.0) -> float:
        square = self.l2 * float(np.vdot(coef, coef)) + curvature
        if square == 0:
            return 0.0
        return max(-(slope + self.l1 * float(np.abs(coef).sum())) / square, 0.0)
