"""Losses of one margin: the pointwise functions and their conjugates.

A margin is ``t = y z`` with y = +-1. The dual coordinate is ``a = -phi'(t) >= 0``; conjugates are
taken at ``-a``. These objects know neither data nor weights; `MarginSum` binds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from proxmargin.losses.base import Array

__all__ = ["MarginLoss"]


class MarginLoss(ABC):
    """A convex, non-increasing function phi of the margin. Immutable."""

    is_portable: ClassVar[bool] = True
    """All fields are plain values or portable objects, so that a model file can store the loss."""

    @property
    def scalars(self) -> tuple[Any, ...] | None:
        """The loss as scalar functions for compiled kernels (`proxmargin.compiled.losses.scalars`).

        None for a loss that is given by array formulas only.
        """
        return None

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

    @property
    def is_hinge(self) -> bool:
        """``phi*(-a) = -a`` on [0, 1]."""
        linear = self.has_quadratic_conjugate and np.isinf(self.smoothness)
        return bool(linear and self.dual_bound == 1.0)

    is_strictly_convex: bool = False
    """The curvature is positive everywhere, so that Newton's model is bounded everywhere."""

    has_linear_piece: bool = True
    """phi has a sloped linear piece: there Newton's model is unbounded and needs a majorant."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """Margins at which the derivative jumps or has a kink."""
        return ()

    @property
    def zone(self) -> float:
        """Width of the curved zone below a margin of 1; infinite where phi has no narrow one."""
        return np.inf

    def widened(self, zone: float) -> MarginLoss:
        """A similar loss with a wider curved zone, whose solution is a warm start for this one."""
        return self

    @abstractmethod
    def fenchel_young(self, t: Array, a: Array) -> Array:
        """``phi(t) + phi*(-a) + a t >= 0`` in closed form, for a in the domain."""

    @abstractmethod
    def prox(self, t: Array, step: float) -> Array:
        """``argmin_u phi(u) + (u - t)^2 / (2 step)``, entry by entry."""

    def conjugate_prox(self, a: Array, step: float) -> Array:
        """``argmin_b phi*(-b) + (b - a)^2 / (2 step)`` through Moreau's identity."""
        return a + step * self.prox(-a / step, 1.0 / step)
