"""The logistic loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, xlog1py, xlogy

from proxmargin.compiled.losses.margins import Shape
from proxmargin.losses.base import Array
from proxmargin.losses.margins.margin import MarginLoss

__all__ = ["Logistic"]

# far more than the prox needs: each of its steps gains a unit, then doubles the digits
NEWTON_STEPS = 100
# of the three terms whose sum is to vanish
ROUNDING = 1e-15


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

    def conjugate_slope(self, a: Array) -> Array:
        result: Array = logit(a)
        return result

    def fenchel_young(self, t: Array, a: Array) -> Array:
        # the divergence of (a, 1 - a) from the shares p = -phi'(t) and 1 - p
        return _relative_entropy(a, expit(-t), -self.value(-t)) + _relative_entropy(
            1.0 - a, expit(t), -self.value(t)
        )

    def prox(self, t: Array, step: float) -> Array:
        """Newton on ``u - t = step * expit(-u)``, whose root lies in [t, t + step].

        The difference is concave for u > 0 and convex for u < 0, so that Newton's iterates from a
        point between 0 and the root approach it from one side.
        """
        u = _towards_root(t, step)
        for _ in range(NEWTON_STEPS):
            p = expit(-u)
            rest = u - t - step * p
            if np.all(np.abs(rest) <= ROUNDING * (np.abs(u) + np.abs(t) + step * p)):
                break
            u = u - rest / (1.0 + step * p * (1.0 - p))
        return u


def _towards_root(t: Array, step: float) -> Array:
    """A point between 0 and the root of ``u - t = step / (1 + e^u)``, near it if step is large.

    For a root u > 0 replace u on the left by its bound ``log(1 + step)``, and ``1 + e^u`` by e^u
    with twice the size; a negative root is minus the one for ``-t - step``.
    """
    negative = t + 0.5 * step < 0
    t = np.where(negative, -t - step, t)
    guess = np.log(np.maximum(0.5 * step / np.maximum(np.log1p(step) - t, 1e-3), 1.0))
    guess = np.maximum(guess, np.maximum(t, 0.0))
    return np.where(negative, -guess, guess)


def _relative_entropy(a: Array, p: Array, log_p: Array) -> Array:
    """``a log(a / p) + p - a >= 0``, ``0 log 0 = 0``, also where p is too small for a float."""
    near = np.abs(p - a) <= 0.5 * a
    x = np.divide(p - a, a, out=np.zeros_like(p), where=near & (a > 0))
    terms = np.where(near, a * (x - np.log1p(x)), xlogy(a, a) - a * log_p + (p - a))
    return np.maximum(terms, 0.0)
