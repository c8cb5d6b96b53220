"""The dual points of a sum of losses of margins: a box, cut by a hyperplane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from proxmargin.compiled.rounding import EPS, ROOT_STEPS, SUM_ROUNDING
from proxmargin.functions.losses.base import DualForm
from proxmargin.functions.losses.margins.margin import MarginLoss
from proxmargin.functions.penalties.base import Array
from proxmargin.functions.projections import BoxHyperplane


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
        """``a_i(theta) = argmin_a phi*(-a) + (a - c_i + theta y_i)^2 / (2 step)``, c the a of u.

        A free intercept makes theta the root of ``sum_i w_i y_i a_i(theta) = 0``, which is
        decreasing: safeguarded Newton. The rounding error of that sum is removed from the heavier
        class.
        """
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
    """The same where ``phi*(-a) = -a + a^2 / (2 h)``: hinge, huberized and squared hinge.

    In u the conjugate is ``-sqrt(w)'u + |u|^2 / (2 h)`` on a box, and its prox is a projection.
    """

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
