"""The hinge, with its kink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.losses.margins.margin import MarginLoss

__all__ = ["Hinge"]


@dataclass(frozen=True)
class Hinge(MarginLoss):
    """``[1 - t]_+``; its conjugate at -a is ``-a`` on [0, 1].

    Not smooth: gradient solvers refuse it; it is here as the limit of the huberized hinge and
    for its prox, conjugate and Fenchel-Young terms.
    """

    has_quadratic_conjugate = True  # with a smoothness that is infinite

    @property
    def smoothness(self) -> float:
        return np.inf

    @property
    def kinks(self) -> tuple[float, ...]:
        return (1.0,)

    @property
    def dual_bound(self) -> float:
        return 1.0

    def value(self, t: Array) -> Array:
        return np.maximum(1.0 - t, 0.0)

    def descent(self, t: Array) -> Array:
        return np.where(t < 1.0, 1.0, 0.0)

    def curvature(self, t: Array) -> Array:
        return np.zeros_like(t)

    def conjugate(self, a: Array) -> Array:
        return np.where((a >= 0) & (a <= 1), -a, np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        return np.full(np.shape(a), -1.0)

    def fenchel_young(self, t: Array, a: Array) -> Array:
        return (1.0 - a) * np.maximum(1.0 - t, 0.0) + a * np.maximum(t - 1.0, 0.0)

    def prox(self, t: Array, step: float) -> Array:
        return t + np.clip(1.0 - t, 0.0, step)
