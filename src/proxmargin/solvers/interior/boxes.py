"""Interior point steps, and the programs of a loss with a box on its dual and a ridge or a net."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.box_program import BOUNDARY_FRACTION, MIN_STEP
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.box_program import BoxProgram, Solve

BACKTRACKING = 0.9  # factor on a step that would leave a curved part of the boundary
SMALLEST = 1e-100  # of slacks and multipliers, over the first ones: ratios stay finite


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
    return (_moved(model, at, step, length) if length > 0.0 else at), length


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


class PenaltyStep(NamedTuple):
    """Changes of the variables and slacks of the penalty, and of the free parameters, scores and
    signed dual coordinates."""

    variables: Array
    slacks: Array
    free: Array
    scores: Array
    signed: Array


Factored = Callable[[Array | None], Solve | None]
"""The linear system of the loss with one ridge a feature, that of the program if None."""

PenaltyNewton = Callable[[Array, Array, Array], PenaltyStep]
"""Maps residuals of scores and free parameters, and target products over slacks, to the step."""


class PenaltyModel(ABC):
    program: BoxProgram  # the loss, with the free parameters that the penalty adds
    first: Iterate  # its own variables, of which coefficients come first, and pairs

    @abstractmethod
    def newton(self, at: Iterate, pulled: Array, factored: Factored) -> PenaltyNewton | None:
        """The linearised conditions at an iterate of its own, for ``pulled = X'v``."""

    def curved(self, variables: Array, slacks: Array) -> Array:
        return slacks

    @abstractmethod
    def coef_and_free(self, at: Iterate, free: Array, close: bool) -> tuple[Array, Array]:
        """Coefficients of all features, exact zeros if ``close`` to the solution, and the free
        parameters of the loss."""


class RidgeModel(PenaltyModel):
    """A ridge, which has no pairs."""

    def __init__(self, program: BoxProgram) -> None:
        self.program = program
        self.first = Iterate(np.zeros(program.design.n_features), np.empty(0), np.empty(0))

    def newton(self, at: Iterate, pulled: Array, factored: Factored) -> PenaltyNewton | None:
        solve, residual = factored(None), self.program.l2 * at.variables - pulled
        if solve is None:
            return None

        def step(r: Array, rf: Array, pressed: Array) -> PenaltyStep:
            coef, *rest = solve(r, residual, rf)
            return PenaltyStep(coef, pressed, *rest)

        return step

    def coef_and_free(self, at: Iterate, free: Array, close: bool) -> tuple[Array, Array]:
        return at.variables, free


class BoxModel(PrimalDualModel):
    """The program of a loss with a box on its dual, and a penalty. The variables are those of the
    penalty, the free parameters, and the scores. The slacks are dual coordinates a, ``u - a`` where
    there are upper bounds u, and those of the penalty; the multipliers of the first two are the
    slacks of the two sides of the kink."""

    def __init__(self, penalty: PenaltyModel) -> None:
        self.penalty, program = penalty, penalty.program
        n, own = program.upper.size, penalty.first.variables.size
        bounded = bool(np.isfinite(program.upper[0]))
        self.program = program
        self._pairs = (n, n * (1 + bounded))
        self._variables = (own, own + program.pull.size)
        below = np.maximum(-program.target, 0.0) + 1.0
        above = np.maximum(program.target, 0.0) + 1.0
        if bounded:
            a = program.upper * (above / (below + above))
            slacks, multipliers = [a, program.upper - a], [below, above]
        else:
            slacks, multipliers = [1.0 / program.curvature], [below]
        rest = np.zeros(program.pull.size + n)
        self.first = Iterate(
            np.concatenate([penalty.first.variables, rest]),
            np.concatenate([*slacks, penalty.first.slacks]),
            np.concatenate([*multipliers, penalty.first.multipliers]),
        )

    def of_pairs(self, pairs: Array) -> list[Array]:
        """The parts of a, of ``u - a`` (empty without upper bounds), and of the penalty."""
        first, second = self._pairs
        return [pairs[:first], pairs[first:second], pairs[second:]]

    def of_variables(self, variables: Array) -> list[Array]:
        """The parts of the penalty, of the free parameters, and of the scores."""
        first, second = self._variables
        return [variables[:first], variables[first:second], variables[second:]]

    def own(self, at: Iterate) -> Iterate:
        return Iterate(
            self.of_variables(at.variables)[0],
            self.of_pairs(at.slacks)[2],
            self.of_pairs(at.multipliers)[2],
        )

    def curved(self, variables: Array, slacks: Array) -> Array:
        own = slacks[self._pairs[1] :]
        own[:] = self.penalty.curved(variables[: self._variables[0]], own)
        return slacks

    def newton(self, at: Iterate) -> NewtonStep | None:
        program, signs = self.program, self.program.signs
        _, free, scores = self.of_variables(at.variables)
        a, room, _ = self.of_pairs(at.slacks)
        below, above, _ = self.of_pairs(at.multipliers)
        signed = signs * a
        missing = program.target - signs * scores - program.curvature * a
        rf = program.pull + program.ridge * free - program.borders.T @ signed
        stiff = below / a + program.curvature
        if room.size:
            stiff += above / room
        factored = partial(program.system, 1.0 / stiff)
        penalised = self.penalty.newton(self.own(at), program.adjoint(signed), factored)
        if penalised is None:
            return None

        def step(products: Array) -> tuple[Array, Array]:
            low, high, pressed = self.of_pairs(products / at.slacks)
            r = missing + low
            if high.size:
                r -= high
            by = penalised(signs * r, rf, pressed)
            change = signs * by.signed
            variables = np.concatenate([by.variables, by.free, by.scores])
            return variables, np.concatenate([change, -change[: room.size], by.slacks])

        return step


class NetModel(PenaltyModel):
    """``sum_j l1_j w_j + l2_j w_j^2 / 2 + sum_k max_{0 <= b <= u_k} b (target_k - m_k)``.

    The margins m are coefficients or their negatives. An l1 norm is ``l |w| = l w + max_{0 <= b <=
    2 l} -b w``, and a bound ``w <= u`` is ``max_{0 <= b} b (w - u)``. Features without a penalty
    are free parameters, and those that are fixed at zero are left out. Each box has the index of
    its coefficient (``owner``) and the sign of it; those of the l1 norm, ``bounded`` many, are the
    first, and the others have no upper bound. Coefficients of the size ``scale`` change the margins
    by one.
    """

    def __init__(self, program: BoxProgram, problem: Problem) -> None:
        net, design = problem.net, program.design
        fixed, limited = net.lower == net.upper, np.isfinite(net.lower) | np.isfinite(net.upper)
        has_penalty = (net.l1 > 0) | (net.l2 > 0) | limited
        self.size, self.lower, self.upper = design.n_features, net.lower, net.upper
        self.penalised = np.flatnonzero(has_penalty & ~fixed)
        self.unpenalised = np.flatnonzero(~has_penalty & ~fixed)
        self.l1, self.l2 = (part[self.penalised] / program.dual_unit for part in (net.l1, net.l2))
        lower, upper = net.lower[self.penalised], net.upper[self.penalised]
        kinks = np.flatnonzero(self.l1)
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        self.bounded = kinks.size
        self.owner = np.concatenate([kinks, low, high])
        self.sign = np.where(np.arange(self.owner.size) < kinks.size + low.size, 1.0, -1.0)
        self.target = np.concatenate([np.zeros(kinks.size), lower[low], -upper[high]])
        sizes = np.hypot(design.column_bounds()[self.penalised], np.sqrt(self.l2))
        self.scale = 1.0 / np.where(sizes > 0.0, sizes, 1.0)  # a constant feature has size zero
        self.program = program._replace(
            design=design.narrowed(self.penalised) if self.penalised.size < self.size else design,
            borders=np.hstack([program.borders, design.dense_columns(self.unpenalised)]),
            pull=np.append(program.pull, np.zeros(self.unpenalised.size)),
            ridge=np.append(program.ridge, np.zeros(self.unpenalised.size)),
        )
        self.first = self._first_iterate()

    def _first_iterate(self) -> Iterate:
        """Zero coefficients, close to the central path."""
        scale, half = self.scale[self.owner], self.l1[self.owner[: self.bounded]]
        kinks = np.minimum(2.0 * scale[: self.bounded], 1.0 / half)
        bounds = np.where(self.target < 0, -self.target, scale)[self.bounded :]
        return Iterate(
            np.zeros(self.penalised.size),
            np.concatenate([half, 1.0 / bounds, half]),
            np.concatenate([kinks, bounds, kinks]),
        )

    def coef_and_free(self, at: Iterate, free: Array, close: bool) -> tuple[Array, Array]:
        coef, known = np.zeros(self.size), free.size - self.unpenalised.size
        coef[self.penalised] = np.where(close & self._is_zero(at), 0.0, at.variables)
        coef[self.unpenalised] = free[known:]
        return np.clip(coef, self.lower, self.upper), free[:known]

    def _is_zero(self, at: Iterate) -> NDArray[np.bool_]:
        """Which coefficients count as zero at the present accuracy: their kinks are not active."""
        kinks, sizes = self.owner[: self.bounded], np.abs(at.variables) / self.scale
        low, high = at.slacks[: self.bounded], at.slacks[self.owner.size :]
        share = 0.5 * np.minimum(low, high) / self.l1[kinks]
        zero = np.zeros(sizes.size, dtype=bool)
        zero[kinks] = sizes[kinks] < share * float(sizes.max(initial=0.0))
        return zero

    def newton(self, at: Iterate, pulled: Array, factored: Factored) -> PenaltyNewton | None:
        """The boxes eliminated: ``b / theta + m = missing`` leaves a ridge of theta."""
        owner, sign, bounded, size = self.owner, self.sign, self.bounded, self.penalised.size
        slopes = at.multipliers / at.slacks
        slopes[:bounded] += slopes[owner.size :]
        theta = 1.0 / slopes[: owner.size]
        missing = self.target - sign * at.variables[owner]
        residual = self.l2 * at.variables + self.l1 - pulled
        residual -= np.bincount(owner, sign * at.slacks[: owner.size], size)
        solve = factored(self.l2 + np.bincount(owner, theta, size))
        if solve is None:
            return None

        def step(r: Array, rf: Array, pressed: Array) -> PenaltyStep:
            aim = missing + pressed[: owner.size]
            aim[:bounded] -= pressed[owner.size :]
            coef, *rest = solve(r, residual - np.bincount(owner, sign * theta * aim, size), rf)
            change = theta * (aim - sign * coef[owner])
            return PenaltyStep(coef, np.concatenate([change, -change[:bounded]]), *rest)

        return step
