"""The multiclass hinge smoothed around multipliers, plus an elastic net, and its minimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.solvers.multiplier_newton import smoothed_classes
from proxmargin.losses.base import Array
from proxmargin.losses.classes.crammer_singer import CrammerSinger
from proxmargin.solvers.classes.block import Block, Live
from proxmargin.solvers.classes.system import class_system

__all__ = ["ClassPoint", "End", "Smoothed", "minimised"]

ORTHANT_CORRECTIONS = 5  # active sets tried in a Newton step
# line search
ARMIJO_FRACTION = 1e-4  # of the slope, that the objective has to fall by
OBJECTIVE_ROUNDING = 1e-13  # relative: a smaller decrease cannot be seen
END_SLOPE_FRACTION = 0.8  # of the first slope, at the end of a step whose decrease is not seen
HALVINGS = 30  # of a step
EPS = float(np.finfo(float).eps)


class ClassPoint(NamedTuple):
    """A point of a smoothed problem.

    Attributes
    ----------
    stacked : (n_columns + 1, n_classes)
        Coefficients, and the intercept as last row.
    scores, masses : (n_samples, n_classes)
        The masses are the maximisers, in the unit simplex.
    live : (n_live,) integers
        Samples whose maximiser has two classes or more.
    value : float
    """

    stacked: Array
    scores: Array
    masses: Array
    live: NDArray[np.intp]
    value: float


class End(NamedTuple):
    """How the iteration on a smoothed problem ended."""

    steps: int
    solved: bool
    stuck: bool


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smoothed problem on a working set of columns.

    With multipliers p and coefficients W of the centre,

        sum_i s_i max_q { q'm_i - |q - p_i|^2 / (2 sharpness) }
        + l1 |W|_1 + l2/2 |W|^2 + |W - W_centre|^2_D / 2,

    m the margins ``z_ik - z_iy + [k != y_i]`` and q in the unit simplex.

    Attributes
    ----------
    block : Block
    loss : CrammerSinger
    l1, l2, proximal : (n_columns + 1, 1)
        Strengths, and D; the last row is that of the intercept.
    stacked : (n_columns + 1, n_classes)
        The centre's coefficients and intercept.
    masses : (n_samples, n_classes)
        The centre's multipliers.
    sharpness : float
    movable : (n_columns + 1, 1) of bool
        What may change: all but an intercept that is not there.
    """

    block: Block
    loss: CrammerSinger
    l1: Array
    l2: Array
    proximal: Array
    stacked: Array
    masses: Array
    sharpness: float
    movable: NDArray[np.bool_]

    def at(self, stacked: Array, scores: Array | None = None) -> ClassPoint:
        """The smoothed problem at a point; ``scores`` where they are known."""
        if scores is None:
            scores = self.block.scores(stacked)
        masses = np.empty_like(scores)
        value, live = smoothed_classes(
            scores, self.loss.codes, self.loss.shares, self.masses, self.sharpness, masses
        )
        value += float((self.l1 * np.abs(stacked)).sum())
        value += 0.5 * float((self.l2 * stacked**2).sum())
        value += 0.5 * float((self.proximal * (stacked - self.stacked) ** 2).sum())
        return ClassPoint(stacked, scores, masses, live, value)

    def along(
        self, here: ClassPoint, direction: Array, side: Array
    ) -> Callable[[float], ClassPoint]:
        """The point at a step length, projected onto the orthant ``side``.

        Scores are linear in the length but for the projected coefficients, which are mostly few.
        """
        ahead = self.block.scores(direction)

        def point(length: float) -> ClassPoint:
            moved = here.stacked + length * direction
            beyond = moved * side < 0
            scores = here.scores + length * ahead
            rows = np.flatnonzero(beyond.any(axis=1))
            if rows.size:
                scores -= self.block.part_scores(rows, np.where(beyond, moved, 0.0)[rows])
                moved[beyond] = 0.0
            return self.at(moved, scores)

        return point

    def slope(self, here: ClassPoint) -> Array:
        """The gradient of the smooth part."""
        pulled = self.block.adjoint(self.loss.dual_of(here.masses))
        proximal = self.proximal * (here.stacked - self.stacked)
        return np.where(self.movable, pulled + self.l2 * here.stacked + proximal, 0.0)

    @property
    def weights(self) -> Array:
        """Curvatures of the samples."""
        return self.sharpness * self.loss.shares

    def residual(self, here: ClassPoint, slope: Array) -> float:
        """The largest violation of the optimality conditions, over the penalty's gradient."""
        at_zero = np.maximum(np.abs(slope) - self.l1, 0.0)
        away = np.abs(slope + self.l1 * np.sign(here.stacked))
        rest = np.where(here.stacked == 0, at_zero, away)
        unit = max(float(self.l1[0, 0]), float(np.abs(self.l2 * here.stacked).max(initial=0.0)))
        return max(float(rest[:-1].max(initial=0.0)) / (unit or 1.0), float(rest[-1].max()))

    def direction(self, here: ClassPoint, slope: Array, side: Array) -> Array:
        """The Newton step in the orthant ``side``; pairs at zero that would leave it stay zero."""
        free = (side != 0) | (self.l1 == 0) & self.movable
        live = Live(here.live, here.masses, self.weights)
        diagonal = (self.l2 + self.proximal)[:, 0]
        system = class_system(self.block, live, free, diagonal, bool(self.l1.any()))
        towards = system.pairs.gathered(side)
        zero = (system.pairs.gathered(here.stacked) == 0) & (towards != 0)
        keep = np.ones(towards.size, dtype=bool)
        move = np.zeros(free.shape)
        for _ in range(ORTHANT_CORRECTIONS):
            move = system.step(slope + self.l1 * side, keep)
            wrong = keep & zero & (system.pairs.gathered(move) * towards < 0)
            if not wrong.any():
                break
            keep &= ~wrong
        return move

    def side(self, here: ClassPoint, slope: Array) -> Array:
        """The signs of coefficients with an l1 part, or of their first step away from zero."""
        entering = np.where(np.abs(slope) > self.l1, -np.sign(slope), 0.0)
        signs = np.where(here.stacked == 0, entering, np.sign(here.stacked))
        return np.where(self.l1 > 0, signs, 0.0)


def minimised(
    smoothed: Smoothed, here: ClassPoint, target: float, limit: int, deadline: float
) -> tuple[ClassPoint, End]:
    """Newton steps until the residual is at most ``target``, or the line search fails."""
    steps = 0
    while True:
        slope = smoothed.slope(here)
        rest = smoothed.residual(here, slope)
        if rest <= target:
            return here, End(steps, solved=True, stuck=False)
        if steps >= limit or clock() >= deadline:
            return here, End(steps, solved=False, stuck=False)
        trial = _stepped(smoothed, here, slope)
        steps += 1
        if trial is None:
            return here, End(steps, solved=False, stuck=True)
        here = trial


def _stepped(smoothed: Smoothed, here: ClassPoint, slope: Array) -> ClassPoint | None:
    """A Newton step with a projected line search in its orthant; None if that fails.

    Where the decrease is below rounding, the slope at its end decides (Hager and Zhang 2005).
    """
    side = smoothed.side(here, slope)
    pull = slope + smoothed.l1 * side
    direction = smoothed.direction(here, slope, side)
    along, length = smoothed.along(here, direction, side), 1.0
    for _ in range(HALVINGS):
        there = along(length)
        change = there.stacked - here.stacked
        fall = float(np.vdot(pull, change))
        slack = OBJECTIVE_ROUNDING * abs(here.value)
        if there.value <= here.value + ARMIJO_FRACTION * fall and fall < -slack:
            return there
        if there.value <= here.value + slack and fall < 0:
            ahead = float(np.vdot(smoothed.slope(there) + smoothed.l1 * side, change))
            if ahead <= -END_SLOPE_FRACTION * fall:
                return there
        length *= 0.5
    return None
