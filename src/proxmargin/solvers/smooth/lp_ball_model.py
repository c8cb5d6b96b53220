"""Quadratic models over a ball of an l_p norm, by an interior point method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.solvers.boundary import COMPLEMENTARITY_FLOOR
from proxmargin.solvers.lifted_ball import (
    EliminatedBounds,
    ball_slacks,
    first_bounds,
    length_inside,
)
from proxmargin.solvers.linear_algebra import inverse_of

__all__ = ["minimised_in_ball"]

MAX_ITERATIONS = 60
MIN_STEP = 1e-10  # a shorter step ends the method: it does not move the point
PRODUCT_ROUNDING = 1e-15  # complementary products that are rounding; |slope|_1 is one


class _At(NamedTuple):
    """A point: coefficients over the radius, bounds t of their powers, both sides of the pairs.

    Slacks are those of `proxmargin.solvers.lifted_ball`.
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
        return ball_slacks(coef, powers, self.p)


def minimised_in_ball(
    matrix: Array, gradient: Array, at: Array, radius: float, p: float, accuracy: float
) -> Array:
    """The step d that minimises ``gradient'd + d'Hd / 2`` subject to ``|at + d|_p <= radius``.

    The Newton step, if that stays in the ball. Otherwise an interior point method on the lifted
    ball, until the complementary products are at most ``accuracy`` times the decrease of the model.
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
    coef, powers = np.zeros(k), first_bounds(k)
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
    """From the products that pairs are to have to Newton's step, ``_At`` of changes."""

    def __init__(self, model: _Model, at: _At) -> None:
        self.at = at
        self.bounds = EliminatedBounds(at.powers, at.slacks, at.multipliers, model.p)
        self.residual = model.slope + model.matrix @ at.coef + self.bounds.lean
        matrix = model.matrix.copy()
        np.einsum("ii->i", matrix)[:] += self.bounds.stiffness
        self.solve = inverse_of(matrix, overwrite=True)
        self.beside = self.solve(self.bounds.tilt)

    def step(self, products: Array) -> _At:
        """Products wanted contain what corrects for the products of changes."""
        at, bounds = self.at, self.bounds
        push = products / at.slacks - at.multipliers
        right = bounds.right(push, self.residual)
        alone = self.solve(right.coef)
        price = bounds.price(right, alone, self.beside)
        coef = alone - price * self.beside
        powers, slacks = bounds.changes(right, price, coef)
        return _At(coef, powers, slacks, push - at.multipliers / at.slacks * slacks)


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

    def curved(length: float) -> Array:
        return model.slacks(at.coef + length * by.coef, at.powers + length * by.powers)

    changes = by.slacks, by.multipliers
    return length_inside(at.slacks, at.multipliers, changes, curved, MIN_STEP)
