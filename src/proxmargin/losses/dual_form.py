"""Dual points of a loss in coordinates in which its conjugate is easy to minimise over.

The dual of a problem minimises ``L*(q) + G*(-X'q)`` over the dual points q that the intercept
allows. A `DualForm` writes them as ``q = offset + scale * u``, one number a sample, so that the
domain of L* becomes a set of u onto which projections are known, and offers L* in the two ways
in which first-order methods take it: whole, through its prox, or as a smooth function on a set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from proxmargin.penalties.base import Array

__all__ = ["DualForm"]


class DualForm(ABC):
    """The conjugate of a loss with the intercept's constraint on dual points.

    All arrays are (n_samples,).

    Attributes
    ----------
    offset, scale : (n_samples,)
        The dual point of u is ``offset + scale * u``. Coordinates of scale zero do not matter.
    """

    offset: Array
    scale: Array

    def dual_point(self, u: Array) -> Array:
        """``offset + scale * u``."""
        return self.offset + self.scale * u

    def coordinates(self, dual: Array) -> Array:
        """The u of a dual point, zero where the scale is."""
        moved = dual - self.offset
        return np.divide(moved, self.scale, out=np.zeros_like(moved), where=self.scale != 0)

    @abstractmethod
    def centre(self) -> Array:
        """A point in the middle of the set: where the methods of Ito et al. (2017) start."""

    def uniform(self, level: float) -> Array:
        """The u, in the set or not, of dual variables that are all equal to ``level``."""
        return np.full_like(self.scale, level)

    @abstractmethod
    def value(self, u: Array) -> float:
        """``L*`` at the dual point of u, for u in the set."""

    @abstractmethod
    def prox(self, u: Array, step: float) -> Array:
        """``argmin_v  L*(v) + |v - u|^2 / (2 step)`` over the set, exactly inside it."""

    @abstractmethod
    def project(self, u: Array, step: float = 1.0) -> Array:
        """The nearest point of the set on which `smooth_value` is smooth.

        ``step`` is the length of the proximal step that led to u; it only serves to guess the
        multiplier.
        """

    @abstractmethod
    def smooth_value(self, u: Array) -> float:
        """``L*`` as a function that is smooth on the set `project` projects onto."""

    @abstractmethod
    def smooth_gradient(self, u: Array) -> Array:
        """Gradient of `smooth_value`."""

    @abstractmethod
    def smooth_divergence(self, u: Array, base: Array) -> float:
        """``s(u) - s(base) - <s'(base), u - base>`` of `smooth_value`, without cancellation."""

    @abstractmethod
    def smooth_curvature(self) -> float:
        """A Lipschitz constant of `smooth_gradient` on the set; may be zero or infinite."""
