"""The ball of an l_p norm, lifted for interior point methods.

With a bound t_j of the power of each coefficient, ``|w|_p <= radius`` is

    ``-radius t_j^(1/p) <= w_j <= radius t_j^(1/p),   t_j >= 0,   sum_j t_j <= 1``,

whose logarithms are the barrier of the epigraph of ``|w|^p`` (Nesterov 2012, "Towards non-symmetric
conic optimization"): it has no singularity at ``w_j = 0`` for any p.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.compiled.solvers.box_program import MIN_STEP
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.box_program import BoxProgram, Solve
from proxmargin.solvers.interior.boxes import (
    Factored,
    Iterate,
    NewtonStep,
    PenaltyModel,
    PenaltyNewton,
    PenaltyStep,
    PrimalDualModel,
    predictor_corrector,
)
from proxmargin.solvers.shared.numerical import inverse_of

MAX_ITERATIONS = 60  # limit of predictor-corrector steps for a quadratic model


class _LiftedBall(NamedTuple):
    """The ball. Variables are w, then t; slacks are in the order of the inequalities above, with
    ``radius t^(1/p) - w`` first."""

    radius: float
    p: float

    def first(self, count: int, product: float) -> Iterate:
        """Zero coefficients and bounds t of sum 1/2, with these complementary products."""
        variables = np.concatenate([np.zeros(count), np.full(count, 0.5 / count)])
        slacks = self.slacks(variables)
        return Iterate(variables, slacks, product / slacks)

    def slacks(self, variables: Array) -> Array:
        """All slacks, (3 n_features + 1,); negative for constraints that are violated."""
        coef, powers = _halves(variables)
        root = self.radius * np.maximum(powers, 0.0) ** (1.0 / self.p)
        return np.concatenate([root - coef, root + coef, powers, [1.0 - float(powers.sum())]])

    def newton(self, at: Iterate, gradient: Array, factored: Factored) -> PenaltyNewton | None:
        """The linearised conditions, with the bounds t and the multiplier of their sum eliminated.

        With ``root(t) = radius t^(1/p)``, m and k the multipliers of the two sides of a
        coefficient, and the gradient g of an objective, the equations of a coordinate are

            ``g + m - k = 0,   total - (m + k) root'(t) - f = 0``,

        total being the multiplier of the sum of t, and f those of t >= 0. Eliminating t leaves a
        ridge for each coefficient, and one more right-hand side.
        """
        _, powers = _halves(at.variables)
        upper, lower, positive, rest = _parts(at.slacks)
        m, k, f, total = _parts(at.multipliers)
        slope = self.radius * powers ** (1.0 / self.p - 1.0) / self.p
        up, down = m / upper, k / lower
        barrier = (m + k) * slope * (1.0 - 1.0 / self.p) / powers + f / positive
        curvature = slope**2 * (up + down) + barrier
        border = slope * (up - down) / curvature
        # (up + down) - slope^2 (up - down)^2 / curvature, rearranged to be free of cancellation
        solve = factored(((up + down) * barrier + 4.0 * slope**2 * up * down) / curvature)
        if solve is None:
            return None
        along = solve(0.0, -border, 0.0)
        compliance = float(rest[0] / total[0])
        of_sum = compliance + float((1.0 / curvature).sum() + border @ along[0])

        def step(r: Array, rf: Array, pressed: Array) -> PenaltyStep:
            above, below, own, last = _parts(pressed)
            right = slope * (above + below) + own - total
            alone = solve(r, gradient + above - below - border * right, rf)
            missing = compliance * float(last[0] - total[0])
            missing += float((right / curvature).sum() + border @ alone[0])
            multiplier = missing / of_sum
            coef, *others = (a - multiplier * b for a, b in zip(alone, along, strict=True))
            moved = (right - multiplier) / curvature + border * coef
            root = slope * moved
            slacks = np.concatenate([root - coef, root + coef, moved, [-float(moved.sum())]])
            return PenaltyStep(np.concatenate([coef, moved]), slacks, *others)

        return step


def _halves(variables: Array) -> tuple[Array, Array]:
    k = variables.size // 2
    return variables[:k], variables[k:]


def _parts(pairs: Array) -> tuple[Array, Array, Array, Array]:
    """Slacks or multipliers of the two sides of the coefficients, of t >= 0, and of the sum."""
    k = pairs.size // 3
    return pairs[:k], pairs[k : 2 * k], pairs[2 * k : 3 * k], pairs[3 * k :]


class BallModel(PenaltyModel):
    def __init__(self, program: BoxProgram, radius: float, p: float) -> None:
        self.program, self.ball = program, _LiftedBall(radius / program.coef_unit, p)
        self.first = self.ball.first(program.design.n_features, 0.5)

    def newton(self, at: Iterate, pulled: Array, factored: Factored) -> PenaltyNewton | None:
        return self.ball.newton(at, -pulled, factored)

    def curved(self, variables: Array, slacks: Array) -> Array:
        return self.ball.slacks(variables)

    def coef_and_free(self, at: Iterate, free: Array, close: bool) -> tuple[Array, Array]:
        return _halves(at.variables)[0], free


class _QuadraticModel(PrimalDualModel):
    """``slope'w + w'Hw / 2`` over the ball."""

    def __init__(self, matrix: Array, slope: Array, ball: _LiftedBall) -> None:
        self.matrix, self.slope, self.ball = matrix, slope, ball
        self.first = ball.first(slope.size, 1.0 / (3 * slope.size + 1))

    def value(self, coef: Array) -> float:
        return float(self.slope @ coef + 0.5 * coef @ (self.matrix @ coef))

    def curved(self, variables: Array, slacks: Array) -> Array:
        return self.ball.slacks(variables)

    def newton(self, at: Iterate) -> NewtonStep | None:
        gradient = self.slope + self.matrix @ _halves(at.variables)[0]
        newton, none = self.ball.newton(at, gradient, self._factored), np.empty(0)
        if newton is None:
            return None

        def step(products: Array) -> tuple[Array, Array]:
            by = newton(none, none, products / at.slacks)
            return by.variables, by.slacks

        return step

    def _factored(self, stiffness: Array | None) -> Solve:
        matrix, none = self.matrix.copy(), np.empty(0)
        np.einsum("ii->i", matrix)[:] += stiffness
        inverse = inverse_of(matrix, overwrite=True)
        return lambda r, rp, rf: (-inverse(rp), none, none, none)


def minimised_in_ball(
    matrix: Array, gradient: Array, at: Array, radius: float, p: float, accuracy: float
) -> Array:
    """The step d that minimises ``gradient'd + d'Hd / 2`` subject to ``|at + d|_p <= radius``. The
    Newton step if it stays in the ball. Otherwise an interior point method on the lifted ball,
    until the complementarity is at most ``accuracy`` times the decrease of the model."""
    step = -inverse_of(matrix)(gradient)
    if float(np.linalg.norm(at + step, p)) <= radius:
        return step
    slope = gradient - matrix @ at
    unit = radius * float(np.abs(slope).sum())
    if unit == 0.0:
        return -at
    model = _QuadraticModel(matrix / unit, slope / unit, _LiftedBall(radius, p))
    iterate, length, before = model.first, 1.0, model.value(at)
    for _ in range(MAX_ITERATIONS):
        decrease = before - model.value(_halves(iterate.variables)[0])
        done = iterate.complementarity <= max(accuracy * decrease, SUM_ROUNDING)
        if done or length < MIN_STEP:
            break
        iterate, length = predictor_corrector(model, iterate)
    return _halves(iterate.variables)[0] - at
