"""The indicator of zero, for coefficients or intercepts that a model does not have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.compiled.solvers.nets import Net
from proxmargin.penalties.base import Array, Penalty, Step
from proxmargin.penalties.jacobian import ProxJacobian
from proxmargin.traits import Trait

__all__ = ["Pinned"]


@dataclass(frozen=True)
class Pinned(Penalty):
    """``G(w) = 0`` at ``w = 0``, infinite elsewhere; ``G* = 0``. A model without intercept."""

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
