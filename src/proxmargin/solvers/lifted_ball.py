"""The unit ball of an l_p norm, lifted for interior point methods.

With a bound t_j of the power of each coefficient, ``|x|_p <= 1`` is

    ``-t_j^(1/p) <= x_j <= t_j^(1/p),   t_j >= 0,   sum_j t_j <= 1``,

whose logarithms are the barrier of the epigraph of ``|x|^p`` (Nesterov 2012, "Towards non-symmetric
conic optimization"): it has no singularity at ``x_j = 0`` for any p. Slacks are in the order
``t^(1/p) - x``, ``t^(1/p) + x``, ``t``, ``1 - sum t``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.solvers.boundary import BOUNDARY_FRACTION, fastest_fall

__all__ = ["BallRight", "EliminatedBounds", "ball_slacks", "first_bounds", "length_inside"]

FIRST_POWERS = 0.5  # first sum of the bounds t; at most one
BACKTRACKING = 0.9  # factor on a step that would leave the curved part of the boundary


def first_bounds(count: int) -> Array:
    """The first bounds t."""
    return np.full(count, FIRST_POWERS / count)


def ball_slacks(coef: Array, bounds: Array, p: float) -> Array:
    """All slacks, (3 n_features + 1,); negative for constraints that are violated."""
    root = np.maximum(bounds, 0.0) ** (1.0 / p)
    return np.concatenate([root - coef, root + coef, bounds, [1.0 - float(bounds.sum())]])


def length_inside(
    slacks: Array,
    multipliers: Array,
    by: tuple[Array, Array],
    curved: Callable[[float], Array],
    shortest: float,
) -> float:
    """The longest step, at most one, that keeps a distance from the boundary.

    Parameters
    ----------
    slacks, multipliers : (n_pairs,)
        The pairs of the ball come last.
    by : pair of (n_pairs,)
        Their linearised changes.
    curved : callable
        Maps a step length to the slacks of the ball after the step.
    shortest : float
        Steps below this length are not worth taking.
    """
    fastest = fastest_fall((slacks, by[0]), (multipliers, by[1]))
    length = min(1.0, BOUNDARY_FRACTION / fastest) if fastest > 0 else 1.0
    least = (1.0 - BOUNDARY_FRACTION) * BACKTRACKING * slacks
    while length >= shortest:
        after = curved(length)
        if (after >= least[least.size - after.size :]).all():
            break
        length *= BACKTRACKING
    return length


class BallRight(NamedTuple):
    """The right-hand side of a Newton step, for target products of the complementary pairs.

    Attributes
    ----------
    coef, bounds : (n_features,)
    rest : float
        For the slack ``1 - sum t``.
    """

    coef: Array
    bounds: Array
    rest: float


class EliminatedBounds:
    """The Newton system of the lifted ball, with the bounds t and the multiplier of their sum
    eliminated.

    With ``root(t) = t^(1/p)``, m and k the multipliers of the two sides of a coefficient, and g
    the gradient of an objective, the equations of a coordinate are

        ``g + m - k = 0,   price - (m + k) root'(t) - floor = 0``,

    price being the multiplier of the sum of t, and floor those of t >= 0. Eliminating t leaves a
    ridge of strength `stiffness` for each coefficient, and one more right-hand side, `tilt`.

    Attributes
    ----------
    stiffness, tilt : (n_features,)
    lean : (n_features,)
        ``m - k``.
    """

    def __init__(self, bounds: Array, slacks: Array, multipliers: Array, p: float) -> None:
        above, below, floor, rest = _parts(slacks)
        m, k, f, price = _parts(multipliers)
        both, self.lean = m + k, m - k
        self.slope = bounds ** (1.0 / p - 1.0) / p
        self.missing = price - both * self.slope - f
        up, down = m / above, k / below
        curve = both * self.slope * (1.0 - 1.0 / p) / bounds + f / floor
        self.along = self.slope**2 * (up + down) + curve
        # (up + down) - slope^2 (up - down)^2 / along, rearranged to be free of cancellation
        self.stiffness = ((up + down) * curve + 4.0 * self.slope**2 * up * down) / self.along
        self.tilt = self.slope * (up - down) / self.along
        self.give = float(rest[0] / price[0])

    def right(self, push: Array, residual: Array) -> BallRight:
        """The right-hand side for pushes of the multipliers, and the residual ``g + m - k``."""
        above, below, floor, rest = _parts(push)
        bounds = self.slope * (above + below) + floor - self.missing
        return BallRight(below - above - residual + self.tilt * bounds, bounds, float(rest[0]))

    def price(self, right: BallRight, alone: Array, beside: Array) -> float:
        """The price of the sum of t, for coefficients ``alone - price beside``."""
        pulled = self.give * right.rest
        pulled += float((right.bounds / self.along).sum() + self.tilt @ alone)
        return pulled / (self.give + float((1.0 / self.along).sum() + self.tilt @ beside))

    def changes(self, right: BallRight, price: float, coef: Array) -> tuple[Array, Array]:
        """Changes of the bounds t and of the slacks for a change of the coefficients."""
        bounds = (right.bounds - price) / self.along + self.tilt * coef
        root = self.slope * bounds
        return bounds, np.concatenate([root - coef, root + coef, bounds, [-float(bounds.sum())]])


def _parts(pairs: Array) -> list[Array]:
    """Slacks or multipliers of the two sides of the coefficients, of t >= 0, and of the sum."""
    k = pairs.size // 3
    return np.split(pairs, [k, 2 * k, 3 * k])
