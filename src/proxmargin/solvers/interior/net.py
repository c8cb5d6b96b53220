"""Elastic nets, with factors and bounds of single features, in interior point methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.functions.losses.base import Array
from proxmargin.optimality.problem import Problem
from proxmargin.solvers.interior.box_program import BoxProgram
from proxmargin.solvers.interior.boxes import (
    Factored,
    Iterate,
    PenaltyModel,
    PenaltyNewton,
    PenaltyStep,
)


class NetModel(PenaltyModel):
    """``sum_j l1_j w_j + l2_j w_j^2 / 2 + sum_k max_{0 <= b <= u_k} b (target_k - m_k)``.

    The margins m are coefficients or their negatives. An l1 norm is ``l |w| = l w + max_{0 <= b <=
    2 l} -b w``, and a bound ``w <= u`` is ``max_{0 <= b} b (w - u)``. Features without a penalty
    are free parameters, and those that are fixed at zero are left out.

    Attributes
    ----------
    penalised, unpenalised : index arrays
        The features with a penalty, and those without.
    owner, sign, target : (n_boxes,)
        For each box the index of its coefficient and the sign of it; those of the l1 norm first.
    bounded : int
        The number of boxes of the l1 norm; the others have no upper bound.
    scale : (n_penalised,)
        Coefficients of this size change the margins by one.
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
