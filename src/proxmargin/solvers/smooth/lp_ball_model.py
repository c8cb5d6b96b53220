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

MAX_ITERATIONS = 60  # limit of predictor-corrector steps
MIN_STEP = 1e-10  # step length below which the method ends
PRODUCT_ROUNDING = 1e-15  # complementarity that counts as rounding, where |slope|_1 is one


class _Iterate(NamedTuple):
    """An iterate: coefficients over the radius, bounds t of their powers, slacks and multipliers.

    The slacks are those of `proxmargin.solvers.lifted_ball`.
    """

    coef: Array
    powers: Array
    slacks: Array
    multipliers: Array

    @property
    def products(self) -> float:
        return float(self.slacks @ self.multipliers)


class _BallModel(NamedTuple):
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

    The Newton step if it stays in the ball. Otherwise an interior point method on the lifted ball,
    until the complementarity is at most ``accuracy`` times the decrease of the model.
    """
    step = -inverse_of(matrix)(gradient)
    if float(np.linalg.norm(at + step, p)) <= radius:
        return step
    slope = radius * (gradient - matrix @ at)
    unit = float(np.abs(slope).sum())
    if unit == 0.0:
        return -at
    model = _BallModel(radius**2 / unit * matrix, slope / unit, p)
    state, first = _first_iterate(model), model.value(at / radius)
    for _ in range(MAX_ITERATIONS):
        gained = first - model.value(state.coef)
        if state.products <= max(accuracy * gained, PRODUCT_ROUNDING):
            break
        reached, length = _newton_step(model, state)
        if not (length >= MIN_STEP and np.isfinite(reached.slacks).all()):
            break
        state = reached
    return radius * state.coef - at


def _first_iterate(model: _BallModel) -> _Iterate:
    """The first iterate: zero coefficients, equal complementary products."""
    k = model.slope.size
    coef, powers = np.zeros(k), first_bounds(k)
    slacks = model.slacks(coef, powers)
    return _Iterate(coef, powers, slacks, 1.0 / slacks.size / slacks)


def _newton_step(model: _BallModel, at: _Iterate) -> tuple[_Iterate, float]:
    """A predictor-corrector step of Mehrotra, and its length."""
    toward = _System(model, at)
    ahead = toward.step(np.zeros_like(at.slacks))
    tried = _after_step(model, at, ahead, _step_to_boundary(model, at, ahead))
    share = min((tried.products / at.products) ** 3, 1.0)
    target = share * at.products / at.slacks.size
    found = toward.step(target - ahead.slacks * ahead.multipliers)
    length = _step_to_boundary(model, at, found)
    return _after_step(model, at, found, length), length


class _System:
    """The Newton system at an iterate, with the bounds t eliminated."""

    def __init__(self, model: _BallModel, at: _Iterate) -> None:
        self.at = at
        self.bounds = EliminatedBounds(at.powers, at.slacks, at.multipliers, model.p)
        self.residual = model.slope + model.matrix @ at.coef + self.bounds.lean
        matrix = model.matrix.copy()
        np.einsum("ii->i", matrix)[:] += self.bounds.stiffness
        self.solve = inverse_of(matrix, overwrite=True)
        self.beside = self.solve(self.bounds.tilt)

    def step(self, products: Array) -> _Iterate:
        """The Newton step towards target products, which contain the second-order correction."""
        at, bounds = self.at, self.bounds
        push = products / at.slacks - at.multipliers
        right = bounds.right(push, self.residual)
        alone = self.solve(right.coef)
        price = bounds.price(right, alone, self.beside)
        coef = alone - price * self.beside
        powers, slacks = bounds.changes(right, price, coef)
        return _Iterate(coef, powers, slacks, push - at.multipliers / at.slacks * slacks)


def _after_step(model: _BallModel, at: _Iterate, by: _Iterate, step: float) -> _Iterate:
    """The iterate after a step; slacks are recomputed, not linearised."""
    coef, powers = at.coef + step * by.coef, at.powers + step * by.powers
    slacks = np.maximum(model.slacks(coef, powers), COMPLEMENTARITY_FLOOR)
    return _Iterate(
        coef,
        powers,
        slacks,
        np.maximum(at.multipliers + step * by.multipliers, COMPLEMENTARITY_FLOOR),
    )


def _step_to_boundary(model: _BallModel, at: _Iterate, by: _Iterate) -> float:
    """The longest step, at most one, that keeps a distance from the boundary."""

    def curved(length: float) -> Array:
        return model.slacks(at.coef + length * by.coef, at.powers + length * by.powers)

    changes = by.slacks, by.multipliers
    return length_inside(at.slacks, at.multipliers, changes, curved, MIN_STEP)
