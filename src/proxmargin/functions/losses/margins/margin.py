"""Losses of one margin: the pointwise functions and their conjugates.

A margin is ``t = y z`` with y = +-1. The dual coordinate is ``a = -phi'(t) >= 0``; conjugates are
taken at ``-a``. These objects know neither data nor weights; `MarginSum` binds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.losses.scalars import scalars
from proxmargin.functions.losses.base import Array


class MarginLoss(ABC):
    """A convex, non-increasing function phi of the margin. Immutable.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.losses import Logistic, MarginLoss
    >>> phi = Logistic()
    >>> isinstance(phi, MarginLoss), phi.smoothness
    (True, 0.25)
    >>> t, a = np.array([0.3]), np.array([0.4])
    >>> bool(phi.value(t) + phi.conjugate(a) + a * t >= phi.fenchel_young(t, a) - 1e-12)
    True
    """

    is_portable: ClassVar[bool] = True
    """All fields are plain values or portable objects, so that a model file can store the loss."""

    @property
    def scalars(self) -> tuple[Any, ...] | None:
        """The loss as scalar functions for compiled kernels (`proxmargin.compiled.losses.scalars`).
        None for a loss that is given by array formulas only."""
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
        """Derivative of ``phi*(-a)`` in a: minus a margin t at which ``-phi'(t) = a``. For a in the
        domain; -inf or inf at ends at which the conjugate is not smooth."""

    has_quadratic_conjugate: bool = False
    """``phi*(-a) = -a + a^2 / (2 smoothness)`` on the whole domain."""

    is_hinge: bool = False
    """``phi*(-a) = -a`` on [0, 1]."""

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


@scalars
class RescaledScalars(NamedTuple):
    """The rescaled loss in compiled kernels, by the scalar functions of the loss within."""

    smoothness: float
    phi: Any
    height: float
    slope: float
    shift: float

    def value(self, t: float) -> Any:
        return self.height * self.phi.value(self.slope * t + self.shift)

    def descent(self, t: float) -> Any:
        return self.height * self.slope * self.phi.descent(self.slope * t + self.shift)

    def curvature(self, t: float) -> Any:
        curvature = self.phi.curvature(self.slope * t + self.shift)
        return self.height * self.slope * self.slope * curvature

    def fenchel_young(self, t: float, a: float) -> Any:
        inner = a / (self.height * self.slope)
        return self.height * self.phi.fenchel_young(self.slope * t + self.shift, inner)

    def zone(self) -> Any:
        return self.phi.zone() / self.slope

    def majorant(self, t: float) -> Any:
        curvature = self.phi.majorant(self.slope * t + self.shift)
        return self.height * self.slope * self.slope * curvature


@dataclass(frozen=True)
class Rescaled(MarginLoss):
    """``height * phi(slope * t + shift)``.

    With u = slope t + shift and c = a / (height slope), its conjugate at -a is
    ``height phi*(-c) + a shift / slope`` and its Fenchel-Young term ``height`` times that of
    (u, c).

    Parameters
    ----------
    phi : MarginLoss
    height, slope : float > 0
    shift : float

    Examples
    --------
    The hinge, smoothed by entropy over a width of 0.1:

    >>> from proxmargin.losses import Logistic, Rescaled
    >>> smoothed = Rescaled(Logistic(), height=0.1, slope=10.0, shift=-10.0)
    """

    phi: MarginLoss
    height: float = 1.0
    slope: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.phi, MarginLoss):
            raise ValueError(f"phi must be a MarginLoss object, got {self.phi!r}")
        for name, size in (("height", self.height), ("slope", self.slope)):
            if not (np.isfinite(size) and size > 0):
                raise ValueError(f"{name} must be a finite number > 0, got {size!r}")
        if not np.isfinite(self.shift):
            raise ValueError(f"shift must be a finite number, got {self.shift!r}")

    @property
    def scalars(self) -> RescaledScalars | None:
        inner = self.phi.scalars
        if inner is None:
            return None
        numbers = (float(self.height), float(self.slope), float(self.shift))
        return RescaledScalars(self.smoothness, inner, *numbers)

    @property
    def smoothness(self) -> float:
        return self.height * self.slope**2 * self.phi.smoothness

    @property
    def dual_bound(self) -> float:
        return self._steepness * self.phi.dual_bound

    @property
    def is_strictly_convex(self) -> bool:  # type: ignore[override]
        return self.phi.is_strictly_convex

    @property
    def has_linear_piece(self) -> bool:  # type: ignore[override]
        return self.phi.has_linear_piece

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple((kink - self.shift) / self.slope for kink in self.phi.kinks)

    def value(self, t: Array) -> Array:
        return self.height * self.phi.value(self._within(t))

    def descent(self, t: Array) -> Array:
        return self._steepness * self.phi.descent(self._within(t))

    def curvature(self, t: Array) -> Array:
        return self.height * self.slope**2 * self.phi.curvature(self._within(t))

    def conjugate(self, a: Array) -> Array:
        return self.height * self.phi.conjugate(a / self._steepness) + a * self.shift / self.slope

    def conjugate_slope(self, a: Array) -> Array:
        return (self.phi.conjugate_slope(a / self._steepness) + self.shift) / self.slope

    def fenchel_young(self, t: Array, a: Array) -> Array:
        return self.height * self.phi.fenchel_young(self._within(t), a / self._steepness)

    def prox(self, t: Array, step: float) -> Array:
        u = self.phi.prox(self._within(t), step * self.height * self.slope**2)
        return (u - self.shift) / self.slope

    @property
    def _steepness(self) -> float:
        return self.height * self.slope

    def _within(self, t: Array) -> Array:
        return self.slope * t + self.shift
