"""Losses of one margin: the pointwise functions, their conjugates, and the dual of their sum.

A margin is ``t = y z`` with y = +-1. The dual coordinate is ``a = -phi'(t) >= 0``; conjugates are
taken at ``-a``. These objects know neither data nor weights; `MarginSum` binds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.losses.scalars import scalars
from proxmargin.compiled.rounding import EPS, ROOT_STEPS, SUM_ROUNDING
from proxmargin.functions.losses.base import DualForm
from proxmargin.functions.projections import BoxHyperplane
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Array


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
        if inner is None or self.phi.is_hinge:  # which solvers have no compiled use for
            return None
        numbers = (float(self.height), float(self.slope), float(self.shift))
        return RescaledScalars(self.smoothness, inner, *numbers)

    @property
    def smoothness(self) -> float:
        return self.height * self.slope**2 * self.phi.smoothness

    @property
    def dual_bound(self) -> float:
        return self._steepness * self.phi.dual_bound

    is_strictly_convex, has_linear_piece = forwarded(
        "phi", "is_strictly_convex", "has_linear_piece"
    )

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


class MarginDual(DualForm):
    """``L*(u) = sum_i w_i phi*(-a_i)`` with ``a_i = u_i / sqrt(w_i)`` in [0, bound], of a smooth
    loss.

    The dual point is ``q_i = -y_i w_i a_i = -y_i sqrt(w_i) u_i``. A free intercept adds the
    hyperplane ``sum_i q_i = 0``. Losses whose conjugate is not quadratic are taken through their
    prox and their derivatives.

    The smooth set keeps the distance ``floor * bound``, with a floor in [0, 1/2), from the ends of
    [0, bound] at which phi* is not smooth: both for the logistic loss, 0 for distance-weighted
    discrimination, none for the others. Where the hyperplane would leave nothing of that set,
    because one class is much heavier, the distance is as much shorter as it takes.
    """

    def __init__(
        self, phi: MarginLoss, signs: Array, weights: Array, *, free: bool, floor: float = 0.0
    ) -> None:
        if not 0.0 <= floor < 0.5:
            raise ValueError(f"floor must be a number in [0, 1/2), got {floor!r}")
        self.phi = phi
        self.signs = signs
        self.weights = weights
        self.free = free
        self.roots = np.sqrt(weights)
        self.offset = np.zeros(signs.size)
        self.scale = -signs * self.roots
        self.low, self.high = self._smooth_range(floor)
        self.set = BoxHyperplane(signs * self.roots, 0.0, *self._box()) if free else None
        # where the smooth range reaches an end at which phi* is not smooth, one step inside
        top = phi.dual_bound
        self.inner = max(self.low, EPS * min(top, 1.0)), min(self.high, top * (1.0 - EPS))

    def uniform(self, level: float) -> Array:
        return level * self.roots

    def centre(self) -> Array:
        """The middle of the box, with the heavier class scaled down so that both sums are equal."""
        top = self.phi.dual_bound
        middle = 0.5 * top if np.isfinite(top) else 1.0
        return self._balanced(np.full(self.signs.size, middle)) * self.roots

    def value(self, u: Array) -> float:
        return float(self.weights @ self.phi.conjugate(self._inside(u)))

    def prox(self, u: Array, step: float) -> Array:
        """``a_i(theta) = argmin_a phi*(-a) + (a - c_i + theta y_i)^2 / (2 step)``, c the a of u. A
        free intercept makes theta the root of ``sum_i w_i y_i a_i(theta) = 0``, which is
        decreasing: safeguarded Newton. The rounding error of that sum is removed from the heavier
        class."""
        start = self._a(u)

        def at(theta: float) -> tuple[Array, Array]:
            # Moreau: the margins t at which a = -phi'(t); da/dc = phi''(t) / (phi''(t) + step)
            t = self.phi.prox((theta * self.signs - start) / step, 1.0 / step)
            curvature = self.phi.curvature(t)
            return self.phi.descent(t), curvature / (curvature + step)

        a = self._balanced(_rooted(at, self.signs, self.weights)) if self.free else at(0.0)[0]
        return a * self.roots

    def project(self, u: Array, step: float = 1.0) -> Array:
        return np.clip(u, *self._box()) if self.set is None else self.set.nearest(u, step)

    def smooth_value(self, u: Array) -> float:
        """The conjugate, continued beyond its smooth range by parabolas of the same slope and
        curvature: extrapolated points lie outside the set."""
        a = self._a(u)
        held, slope, curvature = self._expansion(a)
        beyond = a - held
        terms = self.phi.conjugate(held) + beyond * (slope + 0.5 * curvature * beyond)
        return float(self.weights @ terms)

    def smooth_gradient(self, u: Array) -> Array:
        a = self._a(u)
        held, slope, curvature = self._expansion(a)
        return self.roots * (slope + curvature * (a - held))

    def smooth_divergence(self, u: Array, base: Array) -> float:
        # the Fenchel-Young terms of a against the margins that the base stands for, and what the
        # parabola at a base outside the set adds
        a, b = self._inside(u), self._a(base)
        held, slope, curvature = self._expansion(b)
        short = held - b
        terms = self.phi.fenchel_young(-slope, a) + curvature * short * (a - held + 0.5 * short)
        return float(self.weights @ np.where(a == b, 0.0, terms))

    def smooth_curvature(self) -> float:
        """``max 1 / phi''(t)``, t the margins of the ends of the range; phi*'' is monotone
        between an end at which it grows and the middle."""
        ends = np.array([self.low, self.high])[self._rough_ends()]
        if not ends.size:
            ends = np.array([0.5 * self.phi.dual_bound])
        if np.any((ends <= 0) | (ends >= self.phi.dual_bound)):
            return np.inf
        return float((1.0 / self.phi.curvature(-self.phi.conjugate_slope(ends))).max())

    def _expansion(self, a: Array) -> tuple[Array, Array, Array]:
        """The nearest points of the smooth range, with slope and curvature of phi* there."""
        held = np.clip(a, *self.inner)
        # the second derivative may jump at an end of the domain: take it from inside
        inside = -self.phi.conjugate_slope(held * (1.0 - 2.0**-30))
        return held, self.phi.conjugate_slope(held), 1.0 / self.phi.curvature(inside)

    def _box(self) -> tuple[Array, Array]:
        low, live = self.low * self.roots, self.roots > 0
        return low, np.multiply(self.high, self.roots, out=np.zeros_like(low), where=live)

    def _a(self, u: Array) -> Array:
        return np.divide(u, self.roots, out=np.zeros_like(u), where=self.roots > 0)

    def _inside(self, u: Array) -> Array:
        """The a of a point of the set, clipped: the square roots round."""
        return np.clip(self._a(u), 0.0, self.phi.dual_bound)

    def _balanced(self, a: Array) -> Array:
        """Scale the heavier class down to the sum of the lighter one, if dual points sum to 0."""
        if not self.free:
            return a
        mass = self.weights * a
        up = self.signs > 0
        sums = np.array([mass[~up].sum(), mass[up].sum()])
        factors = np.divide(sums.min(), sums, out=np.ones(2), where=sums > 0)
        return a * factors[up.astype(np.intp)]

    def _rough_ends(self) -> Array:
        """The ends of [0, bound] at which the slope of phi* is infinite."""
        ends = np.array([0.0, self.phi.dual_bound])
        return np.isinf(self.phi.conjugate_slope(ends))

    def _smooth_range(self, floor: float) -> tuple[float, float]:
        top = self.phi.dual_bound
        if self.free:
            up = float(self.weights[self.signs > 0].sum())
            floor = min(floor, 0.5 * min(up, float(self.weights.sum()) - up))
        at_zero, at_top = self._rough_ends()
        return floor * top if at_zero else 0.0, top - floor * top if at_top else top


class QuadraticMarginDual(MarginDual):
    """The same where ``phi*(-a) = -a + a^2 / (2 h)``: hinge, huberized and squared hinge. In u the
    conjugate is ``-sqrt(w)'u + |u|^2 / (2 h)`` on a box, and its prox is a projection."""

    def prox(self, u: Array, step: float) -> Array:
        shrink = 1.0 + step / self.phi.smoothness
        return self.project((u + step * self.roots) / shrink, step / shrink)

    def smooth_value(self, u: Array) -> float:
        return float(u @ u) / (2.0 * self.phi.smoothness) - float(self.roots @ u)

    def smooth_gradient(self, u: Array) -> Array:
        return u / self.phi.smoothness - self.roots

    def smooth_divergence(self, u: Array, base: Array) -> float:
        moved = u - base
        return float(moved @ moved) / (2.0 * self.phi.smoothness)

    def smooth_curvature(self) -> float:
        return 1.0 / self.phi.smoothness

    def _smooth_range(self, floor: float) -> tuple[float, float]:
        return 0.0, self.phi.dual_bound


def _rooted(at: Callable[[float], tuple[Array, Array]], signs: Array, weights: Array) -> Array:
    """``a(theta)`` at the root of the non-increasing ``sum_i weights_i signs_i a_i(theta)``; ``at``
    gives a and minus ``signs * da / dtheta`` (>= 0) at theta, (n_samples,) both."""
    low, high, theta, reach = -np.inf, np.inf, 0.0, 1.0
    a, slopes = at(theta)
    for _ in range(ROOT_STEPS):
        terms = weights * signs * a
        excess, slope = float(terms.sum()), float(weights @ slopes)
        if abs(excess) <= SUM_ROUNDING * float(np.abs(terms).sum()):
            break
        low, high = (theta, high) if excess > 0 else (low, theta)
        newton = theta + excess / slope if slope > 0 else np.copysign(np.inf, excess)
        if np.isfinite(high - low):
            theta = newton if low < newton < high else 0.5 * (low + high)
        else:
            # no bracket yet: at least as far as Newton, at most twice as far as the last time
            reach = 2.0 * max(reach, min(abs(newton - theta), 1e3 * reach))
            theta += np.copysign(min(abs(newton - theta), reach), excess)
        if theta in (low, high):
            break
        a, slopes = at(theta)
    return a
