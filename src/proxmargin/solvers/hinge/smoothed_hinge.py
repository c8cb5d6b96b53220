"""The smooth subproblems of the proximal method of multipliers for the hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.solvers.hinge_newton import net_slopes, net_value, orthant, smoothed_hinge
from proxmargin.compiled.solvers.orthant_step import orthant_step
from proxmargin.designs.base import Design
from proxmargin.losses.base import Array
from proxmargin.solvers.hinge.curved_system import WIDE, Curved, HingeSystem, hinge_system
from proxmargin.solvers.hinge.newton_rows import NewtonRows, few_by_rows, newton_rows

__all__ = ["Centre", "End", "HingePoint", "SmoothedHinge", "minimised"]

EPS = float(np.finfo(float).eps)
TINY = float(np.finfo(float).tiny)
# Newton step within an orthant
RELATIVE_SHIFTS = (0.0, 1e-14, 1e-11, 1e-8)  # of the diagonal, tried until Cholesky succeeds
ORTHANT_CORRECTIONS = 5  # active sets tried, each without all features that change their sign
ORTHANT_BREAKPOINTS = 50  # pieces of the path that drops features one by one, if these fail
# line search
ARMIJO_FRACTION = 1e-4  # of the slope, that the objective has to fall by
OBJECTIVE_ROUNDING = 1e-13  # relative: a smaller decrease cannot be seen
END_SLOPE_FRACTION = 0.8  # of the first slope, at the end of a step whose decrease is not seen
HALVINGS = 40  # of a step; further trials divide by ten
MAX_TRIALS = 60  # in all: with few samples curved, a Newton step in large units is far too long
# residual, in units of the target, that counts as solved where rounding ends the line search
ACCEPTED_EXCESS = 1e3


class Centre(NamedTuple):
    """The point that a smoothed problem is built around: coefficients, intercept, multipliers."""

    coef: Array
    intercept: float
    dual: Array


class HingePoint(NamedTuple):
    """A point of a smoothed problem.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
    scores : (n_samples,)
    dual : (n_samples,)
        Maximisers, the multipliers of this point.
    free : integers
        Samples whose maximiser is strictly inside its box.
    value : float
    """

    coef: Array
    intercept: float
    scores: Array
    dual: Array
    free: NDArray[np.intp]
    value: float


class Slopes(NamedTuple):
    """The gradient of the smooth part at a point, and the residual of the optimality conditions.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
    residual : float
        Largest violation of the optimality conditions, relative to ``max |X'(y a)|``.
    least : float
        The part of the residual that rounding of the scores explains.
    pulled : (n_features,)
        ``X'(y a)`` for the multipliers a.
    """

    coef: Array
    intercept: float
    residual: float
    least: float
    pulled: Array


class End(NamedTuple):
    """How the iteration on a smoothed problem ended, and ``X'(y a)`` of its multipliers."""

    steps: int
    solved: bool
    stuck: bool
    pulled: Array


@dataclass(frozen=True, eq=False)
class SmoothedHinge:
    """``F(w, b) = sum_i e_i(x_i'w + b) + l1 |w|_1 + l2/2 |w|^2 + ridge/2 b^2 + proximal terms``,

        e_i(z) = max_{0 <= a <= caps_i} {a (1 - y_i z) - (a - centre_i)^2 / (2 widths_i)},

    the proximal terms being ``|w - centre|^2_D / 2`` and ``proximal_b/2 (b - centre)^2``.

    Attributes
    ----------
    design : Design
    signs, caps, widths : (n_samples,)
    l1, l2 : float
    centre : Centre
    proximal : float > 0
        The diagonal of D.
    ridge : float
    intercept_proximal : float > 0, or None
        None where there is no intercept.
    """

    design: Design
    signs: Array
    caps: Array
    widths: Array
    l1: float
    l2: float
    centre: Centre
    proximal: float
    ridge: float
    intercept_proximal: float | None

    @property
    def rows(self) -> NewtonRows:
        return newton_rows(self.design)

    def at(self, coef: Array, intercept: float, scores: Array | None = None) -> HingePoint:
        """The smoothed problem at a point; ``scores`` if they are known."""
        if scores is None:
            scores = self.rows.scores(coef) + intercept
        dual = np.empty_like(scores)
        value, free = smoothed_hinge(
            scores, self.signs, self.caps, self.centre.dual, self.widths, dual
        )
        turn = intercept - self.centre.intercept
        value += net_value(coef, self.centre.coef, self.l1, self.l2, self.proximal)
        value += 0.5 * self.ridge * intercept**2 + 0.5 * (self.intercept_proximal or 0.0) * turn**2
        return HingePoint(coef, intercept, scores, dual, free, value)

    def slopes(self, here: HingePoint) -> Slopes:
        signed = self.signs * here.dual
        pulled, slope = self.rows.adjoint(signed), np.empty_like(here.coef)
        rest, pull = net_slopes(
            here.coef, self.centre.coef, pulled, self.l1, self.l2, self.proximal, slope
        )
        lean = 0.0
        if self.intercept_proximal is not None:
            turn = here.intercept - self.centre.intercept
            lean = self.ridge * here.intercept - float(signed.sum())
            lean += self.intercept_proximal * turn
        unit = max(pull, self.l1) or 1.0
        total = max(float(here.dual.sum()), TINY)
        residual = max(rest / unit, abs(lean) / total)
        widths = self.widths[here.free]
        noise = 2 * EPS * float(widths @ widths) ** 0.5 * self.rows.largest
        return Slopes(slope, lean, residual, noise / unit, pulled)

    def curved(self, here: HingePoint, index: NDArray[np.intp]) -> Curved:
        """The curvature at a point, in the intercept and the features ``index``."""
        part, bends = self.design, self.widths[here.free]
        if self.rows.is_large(here.free.size, index.size):
            bends = np.zeros_like(self.widths)
            bends[here.free] = self.widths[here.free]
        else:
            part = self.rows.part(here.free, index)
        return Curved(
            part,
            bends,
            np.full(index.size, self.proximal + self.l2),
            None if self.intercept_proximal is None else self.intercept_proximal + self.ridge,
        )


def minimised(
    smoothed: SmoothedHinge, here: HingePoint, target: float, limit: int, deadline: float
) -> tuple[HingePoint, End]:
    """Newton steps until the residual is at most ``target``, or the line search fails."""
    steps, slopes = 0, smoothed.slopes(here)
    while True:
        if slopes.residual <= max(target, slopes.least):
            return here, End(steps, solved=True, stuck=False, pulled=slopes.pulled)
        if steps >= limit or clock() >= deadline:
            return here, End(steps, solved=False, stuck=False, pulled=slopes.pulled)
        stepped = _stepped(smoothed, here, slopes, deadline)
        steps += 1
        if stepped is None:
            solved = slopes.residual <= ACCEPTED_EXCESS * target
            return here, End(steps, solved, stuck=True, pulled=slopes.pulled)
        here, slopes = stepped


class _Direction(NamedTuple):
    """A step of some ``features``, which keep their sign ``side``, and the gradient in them."""

    features: NDArray[np.intp]
    side: Array
    slope: Array
    coef: Array
    intercept: float


def _stepped(
    smoothed: SmoothedHinge, here: HingePoint, slopes: Slopes, deadline: float
) -> tuple[HingePoint, Slopes] | None:
    """A Newton step with a line search; None if the line search fails.

    Near the solution the decrease of the objective is below rounding. There the slope at the end
    of the step decides, which by convexity bounds the objective: the approximate Wolfe condition
    of Hager and Zhang (2005).
    """
    to = _direction(smoothed, here, slopes, deadline)
    slack = OBJECTIVE_ROUNDING * abs(here.value)
    first = here.coef[to.features]
    whole = np.zeros_like(here.coef)
    whole[to.features] = to.coef
    moved = smoothed.rows.scores(whole) + to.intercept
    fall = -float(to.slope @ to.coef) - to.intercept * slopes.intercept
    length = 1.0
    for trial in range(MAX_TRIALS):
        coef = here.coef.copy()
        coef[to.features] = first + length * to.coef
        there = smoothed.at(
            coef, here.intercept + length * to.intercept, here.scores + length * moved
        )
        if length * fall > slack and there.value <= here.value - ARMIJO_FRACTION * length * fall:
            return there, smoothed.slopes(there)
        if there.value <= here.value + slack:
            end = smoothed.slopes(there)
            slope = end.coef[to.features] + smoothed.l1 * to.side
            if float(slope @ to.coef) + to.intercept * end.intercept <= END_SLOPE_FRACTION * abs(
                fall
            ):
                return there, end
        if length * fall <= slack:
            return None
        length *= 0.5 if trial < HALVINGS else 0.1
    return None


def _direction(
    smoothed: SmoothedHinge, here: HingePoint, slopes: Slopes, deadline: float
) -> _Direction:
    """The Newton step in the orthant of the non-zero and the violating features."""
    index, side, slope = orthant(here.coef, slopes.coef, smoothed.l1)
    curved, coef = smoothed.curved(here, index), here.coef[index]
    matrix = few_by_rows(curved.design)
    if matrix is not None:
        own = -1.0 if curved.intercept_curvature is None else curved.intercept_curvature
        parts = matrix, curved.bends, curved.diagonal, own
        start = coef, side, slope, slopes.intercept
        move, turn = orthant_step(
            *parts, *start, WIDE, RELATIVE_SHIFTS, ORTHANT_CORRECTIONS, ORTHANT_BREAKPOINTS
        )
    else:
        model = _Model(hinge_system(curved, deadline), coef, side, slope, slopes.intercept)
        move, turn = _jumped(model)
        if not float(slope @ move) + turn * slopes.intercept < 0:
            move, turn = _walked(model)
    return _Direction(index, side, slope, move, turn)


class _Model(NamedTuple):
    """A quadratic model: its system, the point, its orthant, and the gradient there."""

    system: HingeSystem
    coef: Array
    side: Array
    slope: Array
    lean: float


def _jumped(model: _Model) -> tuple[Array, float]:
    """A primal active-set guess at the minimiser of the model in the orthant.

    All coefficients that would change their sign are fixed at zero and the others solved for
    again, a few times; it need not be a descent direction.
    """
    coef, side = model.coef, model.side
    stays = np.ones(coef.size, dtype=bool)
    for _ in range(ORTHANT_CORRECTIONS):
        index = np.flatnonzero(stays)
        push, tilt = model.system.push(np.where(stays, 0.0, -coef), 0.0)
        part, turn = model.system.step(index, (model.slope + push)[index], model.lean + tilt)
        move = -coef
        move[index] = part
        beyond = stays & ((coef + move) * side < 0)
        if not beyond.any():
            break
        stays &= ~beyond
    return np.where((coef + move) * side < 0, -coef, move), turn


def _walked(model: _Model) -> tuple[Array, float]:
    """A descent direction in the orthant, by a path of minimisers.

    It goes towards the minimiser up to the first coefficient that reaches zero, fixes it there,
    and goes on towards the minimiser over the others.
    """
    coef, side = model.coef, model.side
    stays = np.ones(coef.size, dtype=bool)
    move, turn = np.zeros(coef.size), 0.0
    for _ in range(ORTHANT_BREAKPOINTS):
        index = np.flatnonzero(stays)
        push, tilt = model.system.push(move, turn)
        part, shift = model.system.step(index, (model.slope + push)[index], model.lean + tilt)
        room, pace = (coef + move)[index] * side[index], -part * side[index]
        reach = np.where(pace > 0, room / np.where(pace > 0, pace, 1.0), np.inf)
        length = min(1.0, float(reach.min(initial=np.inf)))
        move[index] += length * part
        turn += length * shift
        hit = index[reach <= length]
        if length == 1.0 and hit.size == 0:
            break
        move[hit] = -coef[hit]
        stays[hit] = False
    return move, turn
