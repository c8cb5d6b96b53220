"""Quadratic models over a ball of an l_p norm, by an interior point method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.solvers.linear_algebra import inverse_of

__all__ = ["minimised_in_ball"]

BOUNDARY_FRACTION = 0.995  # of the way to the boundary that a step may go
BACKTRACKING = 0.9  # factor on a step that the curved part of the boundary cuts short
FIRST_POWERS = 0.5  # sum of the powers t at the start; at most one
MAX_ITERATIONS = 60
MIN_STEP = 1e-10  # a shorter step ends the method: it does not move the point
PRODUCT_ROUNDING = 1e-15  # complementary products that are rounding; |slope|_1 is one
COMPLEMENTARITY_FLOOR = 1e-100  # of slacks and multipliers: their ratios stay finite


class _At(NamedTuple):
    """A point: coefficients over the radius, bounds t of their powers, both sides of the pairs.

    Slacks are those of ``t^(1/p) - x``, ``t^(1/p) + x``, ``t`` and ``1 - sum(t)``.
    """

    coef: Array
    powers: Array
    slacks: Array
    multipliers: Array

    @property
    def products(self) -> float:
        return float(self.slacks @ self.multipliers)


class _Model(NamedTuple):
    """``slope'x + x'Hx / 2`` over ``|x|_p <= 1``."""

    matrix: Array
    slope: Array
    p: float

    def value(self, coef: Array) -> float:
        return float(self.slope @ coef + 0.5 * coef @ (self.matrix @ coef))

    def slacks(self, coef: Array, powers: Array) -> Array:
        root = np.maximum(powers, 0.0) ** (1.0 / self.p)
        return np.concatenate([root - coef, root + coef, powers, [1.0 - float(powers.sum())]])


def minimised_in_ball(
    matrix: Array, gradient: Array, at: Array, radius: float, p: float, accuracy: float
) -> Array:
    """The step d that minimises ``gradient'd + d'Hd / 2`` subject to ``|at + d|_p <= radius``.

    The Newton step, if that stays in the ball. Otherwise an interior point method with the barrier
    of `ball_interior_point`, which has no singularity at zero coefficients, until the complementary
    products are at most ``accuracy`` times the decrease of the model.
    """
    step = -inverse_of(matrix)(gradient)
    if float(np.linalg.norm(at + step, p)) <= radius:
        return step
    slope = radius * (gradient - matrix @ at)
    unit = float(np.abs(slope).sum())
    if unit == 0.0:
        return -at
    model = _Model(radius**2 / unit * matrix, slope / unit, p)
    state, first = _begun(model), model.value(at / radius)
    for _ in range(MAX_ITERATIONS):
        gained = first - model.value(state.coef)
        if state.products <= max(accuracy * gained, PRODUCT_ROUNDING):
            break
        reached, length = _stepped(model, state)
        if not (length >= MIN_STEP and np.isfinite(reached.slacks).all()):
            break
        state = reached
    return radius * state.coef - at


def _begun(model: _Model) -> _At:
    """At zero, with equal products."""
    k = model.slope.size
    coef, powers = np.zeros(k), np.full(k, FIRST_POWERS / k)
    slacks = model.slacks(coef, powers)
    return _At(coef, powers, slacks, 1.0 / slacks.size / slacks)


def _stepped(model: _Model, at: _At) -> tuple[_At, float]:
    """Mehrotra's predictor and corrector, and how far it goes."""
    toward = _System(model, at)
    ahead = toward.step(np.zeros_like(at.slacks))
    tried = _moved(model, at, ahead, _longest(model, at, ahead))
    share = min((tried.products / at.products) ** 3, 1.0)
    target = share * at.products / at.slacks.size
    found = toward.step(target - ahead.slacks * ahead.multipliers)
    length = _longest(model, at, found)
    return _moved(model, at, found, length), length


class _System:
    """From the products that pairs are to have to Newton's step, ``_At`` of changes.

    Of the multipliers m and l of the two sides of a coefficient, ``price`` of the sum of the
    powers and f of their signs, with ``root`` the slope of ``t^(1/p)``, the equations are

        ``slope + H x + m - l = 0,   price - (m + l) root - f = 0``.
    """

    def __init__(self, model: _Model, at: _At) -> None:
        k, p = at.coef.size, model.p
        self.at, self.cuts = at, [k, 2 * k, 3 * k]
        above, below, powers, _ = np.split(at.slacks, self.cuts)
        m, n, f, price = np.split(at.multipliers, self.cuts)
        self.root = at.powers ** (1.0 / p - 1.0) / p
        self.slopes = model.slope + model.matrix @ at.coef + m - n
        self.rest = price - (m + n) * self.root - f
        up, down = m / above, n / below
        curve = (m + n) * self.root * (1.0 - 1.0 / p) / at.powers + f / powers
        self.along = self.root**2 * (up + down) + curve
        # of (up + down) - root^2 (up - down)^2 / along nothing may cancel
        stiffness = ((up + down) * curve + 4.0 * self.root**2 * up * down) / self.along
        self.tilt = self.root * (up - down) / self.along
        matrix = model.matrix.copy()
        np.einsum("ii->i", matrix)[:] += stiffness
        self.solve = inverse_of(matrix, overwrite=True)
        self.beside = self.solve(self.tilt)
        self.give = float(at.slacks[-1] / at.multipliers[-1])
        self.bend = self.give + float((1.0 / self.along).sum() + self.tilt @ self.beside)

    def step(self, products: Array) -> _At:
        """Products wanted contain what corrects for the products of changes."""
        at = self.at
        push = products / at.slacks - at.multipliers
        above, below, powers, rest = np.split(push, self.cuts)
        bt = self.root * (above + below) + powers - self.rest
        alone = self.solve(below - above - self.slopes + self.tilt * bt)
        right = self.give * float(rest[0]) + float((bt / self.along).sum() + self.tilt @ alone)
        price = right / self.bend
        coef = alone - price * self.beside
        moved = (bt - price) / self.along + self.tilt * coef
        bound = self.root * moved
        slacks = np.concatenate([bound - coef, bound + coef, moved, [-float(moved.sum())]])
        return _At(coef, moved, slacks, push - at.multipliers / at.slacks * slacks)


def _moved(model: _Model, at: _At, by: _At, step: float) -> _At:
    """After a step; slacks are those of the coefficients, not of their tangents."""
    coef, powers = at.coef + step * by.coef, at.powers + step * by.powers
    slacks = np.maximum(model.slacks(coef, powers), COMPLEMENTARITY_FLOOR)
    return _At(
        coef,
        powers,
        slacks,
        np.maximum(at.multipliers + step * by.multipliers, COMPLEMENTARITY_FLOOR),
    )


def _longest(model: _Model, at: _At, by: _At) -> float:
    """The length of a step up to one that keeps clear of the boundary."""
    falls = by.slacks / at.slacks, by.multipliers / at.multipliers
    fastest = -min(float(fall.min()) for fall in falls)
    length = min(1.0, BOUNDARY_FRACTION / fastest) if fastest > 0 else 1.0
    least = (1.0 - BOUNDARY_FRACTION) * BACKTRACKING * at.slacks
    while length >= MIN_STEP:
        slacks = model.slacks(at.coef + length * by.coef, at.powers + length * by.powers)
        if (slacks >= least).all():
            return length
        length *= BACKTRACKING
    return 0.0
