"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, rel_entr, xlog1py, xlogy

from proxmargin.compiled.margins import Shape
from proxmargin.losses.base import Array
from proxmargin.losses.margin import MarginLoss

__all__ = ["Logistic"]


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """``log(1 + exp(-t))``; its conjugate at -a is the negative entropy of (a, 1 - a)."""

    @property
    def shape(self) -> Shape:
        return Shape(logistic=True, curvature=0.25, cap=np.inf)

    @property
    def smoothness(self) -> float:
        return 0.25

    @property
    def dual_bound(self) -> float:
        return 1.0

    def value(self, t: Array) -> Array:
        return np.logaddexp(0.0, -t)

    def descent(self, t: Array) -> Array:
        result: Array = expit(-t)
        return result

    def curvature(self, t: Array) -> Array:
        result: Array = expit(t) * expit(-t)
        return result

    def conjugate(self, a: Array) -> Array:
        inside = (a >= 0) & (a <= 1)
        clipped = np.clip(a, 0.0, 1.0)
        return np.where(inside, xlogy(clipped, clipped) + xlog1py(1.0 - clipped, -clipped), np.inf)

    def fenchel_young(self, t: Array, a: Array) -> Array:
        # the divergence of (a, 1 - a) from (p, 1 - p), p = -phi'(t); the masses cancel exactly
        entropy = rel_entr(a, expit(-t)) + rel_entr(1.0 - a, expit(t))
        return np.maximum(entropy, 0.0)

    def prox(self, t: Array, step: float) -> Array:
        """Newton on ``u - t = step * expit(-u)``, whose root lies in [t, t + step]."""
        low, high = np.array(t, dtype=float), np.asarray(t + step, dtype=float)
        u = 0.5 * (low + high)
        for _ in range(100):
            p = expit(-u)
            excess = u - t - step * p
            low, high = np.where(excess < 0, u, low), np.where(excess > 0, u, high)
            moved = u - excess / (1.0 + step * p * (1.0 - p))
            safe = np.where((moved > low) & (moved < high), moved, 0.5 * (low + high))
            if np.all(np.abs(safe - u) <= 1e-16 * (1.0 + np.abs(u))):
                break
            u = safe
        return u
