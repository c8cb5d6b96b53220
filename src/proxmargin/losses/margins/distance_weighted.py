"""The loss of distance-weighted discrimination, by its threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.losses.margins.margin import MarginLoss
from proxmargin.magnitudes import LARGEST
from proxmargin.rounding import ROOT_STEPS, SUM_ROUNDING

__all__ = ["DistanceWeighted"]


@dataclass(frozen=True)
class DistanceWeighted(MarginLoss):
    """``1/t`` for t >= q, and its tangent ``(2 q - t) / q^2`` below; its conjugate at -a is
    ``-2 sqrt(a)`` on [0, 1/q^2].

    Parameters
    ----------
    threshold : float > 0
        The q above, in units of the scores. Ito, Takeda and Toh (2017) write ``q^2 = m nu`` with
        a nu that is not confined to (0, 1].
    """

    threshold: float

    def __post_init__(self) -> None:
        if not 1.0 / LARGEST <= self.threshold <= LARGEST:
            raise ValueError(
                f"threshold must be a number > 0 (from {1.0 / LARGEST:g} to {LARGEST:g}),"
                f" got {self.threshold!r}"
            )

    @property
    def smoothness(self) -> float:
        return 2.0 / float(self.threshold) ** 3

    @property
    def kinks(self) -> tuple[float, ...]:
        return (float(self.threshold),)

    @property
    def dual_bound(self) -> float:
        q = np.float64(self.threshold)
        return float(1.0 / (q * q))  # as `descent` rounds it

    def value(self, t: Array) -> Array:
        below = np.maximum(self.threshold - t, 0.0)
        return 1.0 / np.maximum(t, self.threshold) + below * self.dual_bound

    def descent(self, t: Array) -> Array:
        beyond = np.maximum(t, self.threshold)
        return 1.0 / (beyond * beyond)

    def curvature(self, t: Array) -> Array:
        return np.where(t > self.threshold, 2.0 / np.maximum(t, self.threshold) ** 3, 0.0)

    def conjugate(self, a: Array) -> Array:
        inside = (a >= 0) & (a <= self.dual_bound)
        return np.where(inside, -2.0 * np.sqrt(np.maximum(a, 0.0)), np.inf)

    def conjugate_slope(self, a: Array) -> Array:
        root = np.sqrt(np.asarray(a, dtype=np.float64))
        return np.divide(-1.0, root, out=np.full_like(root, -np.inf), where=root > 0)

    def fenchel_young(self, t: Array, a: Array) -> Array:
        beyond, root = np.maximum(t, self.threshold), np.sqrt(a)
        far = (1.0 / np.sqrt(beyond) - root * np.sqrt(beyond)) ** 2
        top = 1.0 / self.threshold
        near = (self.dual_bound - a) / (top + root) * (2.0 - t * (top + root))
        return np.where(t >= self.threshold, far, np.maximum(near, 0.0))

    def prox(self, t: Array, step: float) -> Array:
        """``t + step / q^2`` up to the threshold, beyond it the root of ``u^3 - t u^2 = step``.

        Newton on ``u - t - step / u^2``, which is increasing and concave, from below the root.
        """
        linear = t + step * self.dual_bound
        u = np.maximum(_below_root(np.asarray(t, dtype=np.float64), step), self.threshold)
        for _ in range(ROOT_STEPS):
            pull = step / (u * u)
            moved = u - (u - t - pull) / (1.0 + 2.0 * pull / u)
            settled = np.all(np.abs(moved - u) <= SUM_ROUNDING * u)
            u = np.maximum(moved, self.threshold)
            if settled:
                break
        return np.where(linear <= self.threshold, linear, u)


def _below_root(t: Array, step: float) -> Array:
    """A number of at least half the positive root of ``u^2 (u - t) = step``, and at most it.

    For ``t >= 0`` the root is in [max(t, c), t + c] with ``c = step^(1/3)``; for t < 0 it is in
    [r / sqrt(2), r] with ``r = min(c, sqrt(step / |t|))``.
    """
    cube = np.cbrt(step)
    down = np.maximum(-t, step / (cube * cube))  # where this is larger than -t, r is cube
    return np.where(t >= 0, np.maximum(t, cube), np.sqrt(0.5 * step / down))
