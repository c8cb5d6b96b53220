"""Coefficients in a ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.penalties.base import MEMBERSHIP, Penalty, Step
from proxmargin.functions.projections import lp_ball
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array

DIVERGENCE_RANGE = 0.1  # relative distance |x - z| up to which the divergence form is used


@dataclass(frozen=True)
class Ball(Penalty):
    """``G(w) = 0`` where ``|w|_p <= radius``, infinite elsewhere; ``G*(v) = radius |v|_q``.

    The norm is that of all coefficients together, 1/p + 1/q = 1: (8) and (10) of Ito, Takeda and
    Toh (2017).

    Parameters
    ----------
    p : float in (1, inf)
    radius : float > 0

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from proxmargin.penalties import Ball
    >>> Ball(p=2.0, radius=1.0).prox(np.array([[3.0], [4.0]]), 1.0)
    array([[0.6],
           [0.8]])
    """

    p: float = 2.0
    radius: float = 1.0

    by_features = False
    takes_steps = False
    traits = Trait.BALL | Trait.SMOOTH_CONJUGATE  # smooth away from zero

    def __post_init__(self) -> None:
        if not 1.0 < self.p < np.inf:
            raise ValueError(f"Ball: p must be a number in (1, inf), got {self.p!r}")
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"Ball: radius must be a finite number > 0, got {self.radius!r}")

    @property
    def q(self) -> float:
        """The exponent of the dual norm."""
        return self.p / (self.p - 1.0)

    def value(self, coef: Array) -> float:
        return 0.0 if _norm(coef, self.p) <= self.radius * (1.0 + DOMAIN_ROUNDING) else np.inf

    def prox(self, coef: Array, step: Step) -> Array:
        """The projection; features cannot have steps of their own (TypeError)."""
        if np.ptp(step) > 0:
            raise TypeError(
                "a Ball has no prox with one step a feature: solve in the units of the data, or"
                " on the dual side"
            )
        return lp_ball(coef.reshape(-1), self.radius, self.p).reshape(coef.shape)

    def conjugate(self, dual: Array) -> float:
        return self.radius * _norm(dual, self.q)

    def domain_scale(self, dual: Array) -> float:
        return 1.0

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """With x = coef / radius and y = dual / |dual|_q, ``radius |dual|_q`` times

            |x|^p / p + |y|^q / q - x y   +   |y|^q (1 - |x|_p^p) / p

        summed over the outputs; for p = 2 the first three are ``(x - y)^2 / 2``, and where x is
        next to ``z = |y|^(q-1)``, with the sign of y, they are the divergence of ``|.|^p / p``,
        ``|y|^q ((1 + d)^p - 1 - p d) / p`` with ``d = (x - z) / z``, which keeps its digits.
        """
        size = _norm(dual, self.q)
        if size == 0:
            return np.zeros(coef.shape[0])
        powers = np.abs(coef / self.radius) ** self.p
        slack = max(1.0 - float(powers.sum()), 0.0) / self.p
        shares = np.abs(dual / size) ** self.q
        terms: Array = (self._young(coef, dual) + self.radius * size * slack * shares).sum(axis=1)
        return terms

    def conjugate_divergence(self, dual: Array, coef: Array) -> float:
        """As in `Penalty`, without the slack of coefficients on the sphere: it is only rounding."""
        terms = self._young(coef, dual) if coef.any() else self.fenchel_young(coef, dual)
        return float(terms.sum())

    def _young(self, coef: Array, dual: Array) -> Array:
        """``radius |dual|_q (|x|^p / p + |y|^q / q - x y)``, entry by entry."""
        size = _norm(dual, self.q)
        if size == 0:
            return np.zeros_like(coef)
        x, y = coef / self.radius, dual / size
        powers, shares = np.abs(x) ** self.p, np.abs(y) ** self.q
        if self.p == 2:
            young = 0.5 * (x - y) ** 2
        else:
            young = np.maximum(powers / self.p + shares / self.q - x * y, 0.0)
            z = np.sign(y) * np.abs(y) ** (self.q - 1.0)
            near = np.abs(x - z) < DIVERGENCE_RANGE * np.abs(z)
            d = (x[near] - z[near]) / z[near]
            bregman = np.expm1(self.p * np.log1p(d)) - self.p * d
            young[near] = shares[near] * np.maximum(bregman, 0.0) / self.p
        scaled: Array = self.radius * size * young
        return scaled

    def largest_product(self, sizes: Array, level: float) -> float:
        return self.conjugate(sizes)

    def violations(self, coef: Array, dual: Array) -> Array:
        """Distance of dual from zero inside the ball, from the normal cone on the sphere."""
        if _norm(coef, self.p) < self.radius * (1.0 - MEMBERSHIP):
            return np.abs(dual).max(axis=1)
        normal = _power(coef, self.p)
        normal /= np.linalg.norm(normal)
        outward = max(float(np.vdot(normal, dual)), 0.0)
        return np.abs(dual - outward * normal).max(axis=1)

    def critical_strength(self, dual: Array) -> float:
        return 0.0

    def conjugate_gradient(self, dual: Array) -> Array:
        """``radius sign(v) |v|^(q-1) / |v|_q^(q-1)``, (25) of the paper; zero where v is."""
        scaled = _power(dual, self.q)
        size = _norm(scaled, self.p)
        return scaled * (self.radius / size) if size > 0 else scaled

    def best_multiple(self, coef: Array, slope: float, curvature: float = 0.0) -> float:
        size = _norm(coef, self.p)
        if slope >= 0 or size == 0:
            return 0.0
        longest = self.radius / size
        return min(longest, -slope / curvature) if curvature > 0 else longest


def _norm(values: Array, p: float) -> float:
    """``|values|_p``, also where powers would leave the range of floats."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return 0.0
    return largest * float(((np.abs(values) / largest) ** p).sum()) ** (1.0 / p)


def _power(values: Array, p: float) -> Array:
    """``sign(v) |v|^(p-1)`` of the values over their largest; zero if all are."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return np.zeros_like(values)
    scaled = values / largest
    return np.sign(scaled) * np.abs(scaled) ** (p - 1.0)
