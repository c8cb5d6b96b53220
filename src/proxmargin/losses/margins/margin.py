"""Losses of one margin: the pointwise functions and their conjugates.

A margin is ``t = y z`` with y = +-1. The dual coordinate is ``a = -phi'(t) >= 0``; conjugates are
taken at ``-a``. These objects know neither data nor weights; `MarginSum` binds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from proxmargin.compiled.losses.margins import Shape
from proxmargin.losses.base import Array

__all__ = ["CappedQuadratic", "MarginLoss"]


class MarginLoss(ABC):
    """A convex, non-increasing function phi of the margin. Immutable."""

    @property
    @abstractmethod
    def shape(self) -> Shape | None:
        """What the compiled kernels need to evaluate this loss; None where they do not know it."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Lipschitz constant of the derivative; infinite for a loss with a kink."""

    @property
    @abstractmethod
    def dual_bound(self) -> float:
        """The dual coordinate lives in [0, dual_bound]."""

    @abstractmethod
    def value(self, t: Array) -> Array:
        """phi(t), entry by entry."""

    @abstractmethod
    def descent(self, t: Array) -> Array:
        """``-phi'(t)``, entry by entry; at a kink, one of the subgradients."""

    @abstractmethod
    def curvature(self, t: Array) -> Array:
        """phi''(t), entry by entry; zero at a kink."""

    @abstractmethod
    def conjugate(self, a: Array) -> Array:
        """``phi*(-a)``; infinite outside [0, dual_bound]."""

    @abstractmethod
    def conjugate_slope(self, a: Array) -> Array:
        """Derivative of ``phi*(-a)`` in a: minus a margin t at which ``-phi'(t) = a``.

        For a in the domain; -inf or inf at ends at which the conjugate is not smooth.
        """

    has_quadratic_conjugate: bool = False
    """``phi*(-a) = -a + a^2 / (2 smoothness)`` on the whole domain."""

    @abstractmethod
    def fenchel_young(self, t: Array, a: Array) -> Array:
        """``phi(t) + phi*(-a) + a t >= 0`` in closed form, for a in the domain."""

    @abstractmethod
    def prox(self, t: Array, step: float) -> Array:
        """``argmin_u phi(u) + (u - t)^2 / (2 step)``, entry by entry."""

    def conjugate_prox(self, a: Array, step: float) -> Array:
        """``argmin_b phi*(-b) + (b - a)^2 / (2 step)`` through Moreau's identity."""
        return a + step * self.prox(-a / step, 1.0 / step)


class CappedQuadratic(MarginLoss):
    """With u = 1 - t: 0 for u <= 0, ``(h/2) u^2`` up to ``cap``, then linear with slope ``h cap``.

    The huberized hinge and the squared hinge are two settings of it.
    """

    has_quadratic_conjugate = True

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @property
    def smoothness(self) -> float:
        return self.shape.curvature

    @property
    def dual_bound(self) -> float:
        return self.shape.curvature * self.shape.cap

    def value(self, t: Array) -> Array:
        _, h, cap = self.shape
        u = np.maximum(1.0 - t, 0.0)
        inside = np.minimum(u, cap)
        return h * inside * (u - 0.5 * inside)

    def descent(self, t: Array) -> Array:
        _, h, cap = self.shape
        return h * np.clip(1.0 - t, 0.0, cap)

    def curvature(self, t: Array) -> Array:
        _, h, cap = self.shape
        return np.where((t < 1.0) & (1.0 - t < cap), h, 0.0)

    def conjugate(self, a: Array) -> Array:
        value = -a + 0.5 * a**2 / self.shape.curvature
        return np.where((a >= 0) & (a <= self.dual_bound), value, np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        return a / self.shape.curvature - 1.0

    def fenchel_young(self, t: Array, a: Array) -> Array:
        _, h, cap = self.shape
        u = 1.0 - t
        beyond = np.maximum(u - cap, 0.0)  # past the cap; zero when there is none
        quadratic = (h * np.clip(u, 0.0, cap) - a) ** 2 / (2.0 * h)
        slack = np.where(beyond > 0, (h * np.minimum(cap, u) - a) * beyond, 0.0)
        return quadratic + a * np.maximum(-u, 0.0) + slack

    def prox(self, t: Array, step: float) -> Array:
        # u - t = step * descent(u), solved on each of the three linear pieces
        h = self.shape.curvature
        pulled = step * h * np.maximum(1.0 - t, 0.0) / (1.0 + step * h)
        return t + np.minimum(pulled, step * self.dual_bound)
