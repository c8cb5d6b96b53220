"""Mehrotra's predictor-corrector step, with Gondzio's centrality corrections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.functions.losses.base import Array

BOUNDARY_FRACTION = 0.995  # of the longest step that keeps slacks and multipliers positive
BACKTRACKING = 0.9  # factor on a step that would leave a curved part of the boundary
MIN_STEP = 1e-10  # step length below which the method ends
SMALLEST = 1e-100  # of slacks and multipliers, over the first ones: ratios stay finite
# Gondzio's centrality corrections
TRIAL_EXTENSION = 0.3  # added to the step length for the trial step
PRODUCT_RANGE = (0.1, 10.0)  # products over their targets that need no correction
MIN_GAIN = 0.05  # gain in step length over the extension, for which a correction is kept


class Iterate(NamedTuple):
    """Variables, and pairs of slacks and multipliers, which are positive; or a step of each."""

    variables: Array
    slacks: Array
    multipliers: Array

    @property
    def complementarity(self) -> float:
        """Sum of the products of all pairs."""
        return float(self.slacks @ self.multipliers)


NewtonStep = Callable[[Array], tuple[Array, Array]]
"""Maps target products of the pairs to the changes of variables and slacks."""


class PrimalDualModel(ABC):
    """The optimality conditions of a convex program."""

    first: Iterate  # where to begin: inside the boundary, whatever its residuals
    # centrality corrections in an iteration, at most: they pay if a factor costs more than them
    corrections: ClassVar[int] = 2

    @abstractmethod
    def newton(self, at: Iterate) -> NewtonStep | None:
        """The linearised conditions at an iterate, factored; None if that failed."""

    def curved(self, variables: Array, slacks: Array) -> Array:
        """The slacks, with those recomputed that are no linear function of the variables."""
        return slacks


def predictor_corrector(model: PrimalDualModel, at: Iterate) -> tuple[Iterate, float]:
    """The next iterate, and the length of the step to it; zero if there is none."""
    newton = model.newton(at)
    if newton is None:
        return at, 0.0

    def toward(products: Array) -> tuple[Iterate, float]:
        variables, slacks = newton(products)
        multipliers = (products - at.multipliers * slacks) / at.slacks - at.multipliers
        step = Iterate(variables, slacks, multipliers)
        return step, _length_inside(model, at, step)

    predictor, length = toward(np.zeros_like(at.slacks))
    reached = _moved(model, at, predictor, length).complementarity / at.complementarity
    mu, sigma = at.complementarity / at.slacks.size, min(reached**3, 1.0)
    products = sigma * mu - predictor.slacks * predictor.multipliers
    step, length = toward(products)
    for _ in range(model.corrections):
        if not 0.0 < length < 1.0:
            break
        trial = min(1.0, length + TRIAL_EXTENSION)
        products = products + _centrality_correction(at, step, trial, sigma * mu)
        other, reached = toward(products)
        if reached < length + MIN_GAIN * TRIAL_EXTENSION:
            break
        step, length = other, reached
    return (_moved(model, at, step, length) if length > 0.0 else at), length


def _centrality_correction(at: Iterate, step: Iterate, length: float, target: float) -> Array:
    """What moves products into the range around their targets; large ones in part."""
    products = (at.slacks + length * step.slacks) * (at.multipliers + length * step.multipliers)
    low, high = PRODUCT_RANGE
    inside = np.clip(products, low * target, high * target)
    return np.maximum(inside - products, -high * target)


def _moved(model: PrimalDualModel, at: Iterate, step: Iterate, length: float) -> Iterate:
    variables, slacks, multipliers = (a + length * b for a, b in zip(at, step, strict=True))
    return Iterate(
        variables,
        np.maximum(model.curved(variables, slacks), SMALLEST * model.first.slacks),
        np.maximum(multipliers, SMALLEST * model.first.multipliers),
    )


def _length_inside(model: PrimalDualModel, at: Iterate, step: Iterate) -> float:
    """The longest step, at most one, that keeps a distance from the boundary; zero if none does."""
    falls = min(np.min(step.slacks / at.slacks), np.min(step.multipliers / at.multipliers))
    if not np.isfinite(falls):
        return 0.0
    length = min(1.0, -BOUNDARY_FRACTION / falls) if falls < 0 else 1.0
    least = (1.0 - BOUNDARY_FRACTION) * BACKTRACKING * at.slacks
    while length >= MIN_STEP:
        slacks = at.slacks + length * step.slacks
        if np.all(model.curved(at.variables + length * step.variables, slacks) >= least):
            return length
        length *= BACKTRACKING
    return 0.0
