"""The multiclass hinge smoothed around multipliers, with an elastic net, and its Newton steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING
from proxmargin.compiled.solvers.multiplier_newton import smoothed_classes
from proxmargin.functions.losses.classes.multinomial import CrammerSinger
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.block import Block, CurvedSamples, class_coordinates
from proxmargin.solvers.augmented.class_system import class_system
from proxmargin.solvers.augmented.multipliers import (
    FIRST_SHARPNESS,
    MIN_PROXIMAL,
    ORTHANT_CORRECTIONS,
    Centre,
    End,
    HingeModel,
    MultiplierState,
    line_search,
    minimise,
)
from proxmargin.solvers.shared.margin_model import KINK_TOLERANCE

WARM_SHARPNESS = 10.0  # first one for a warm start
MIN_SPREAD = 1e-3  # of a feature over the mean one, in its proximal term


class ClassPoint(NamedTuple):
    stacked: Array  # (n_columns + 1, n_classes); coefficients, and the intercept as last row
    # (n_samples, n_classes); the multipliers are the maximisers q, in the unit simplex
    scores: Array
    multipliers: Array
    # (n_curved,) integers; samples whose maximiser has at least two positive entries
    curved: NDArray[np.intp]
    value: float

    @property
    def rounding(self) -> float:
        return OBJECTIVE_ROUNDING * abs(self.value)


class ClassSlopes(NamedTuple):
    """The gradient of the smooth part, and the residual of the optimality conditions."""

    slope: Array  # (n_columns + 1, n_classes)
    residual: float
    least: float = 0.0  # the part of the residual that is rounding; not known, hence zero


@dataclass(frozen=True, eq=False)
class SmoothedMulticlass:
    """A smoothed problem on a working set of columns.

    With multipliers p and coefficients W of the centre,

        sum_i s_i max_q { q'm_i - |q - p_i|^2 / (2 sharpness) }
        + l1 |W|_1 + l2/2 |W|^2 + |W - W_centre|^2_D / 2,

    m the margins ``z_ik - z_iy + [k != y_i]`` and q in the unit simplex.
    """

    block: Block
    loss: CrammerSinger
    # (n_columns + 1, 1); strengths, and the diagonal D; the last row belongs to the intercept
    l1: Array
    l2: Array
    proximal: Array
    stacked: Array  # (n_columns + 1, n_classes); the centre's coefficients and intercept
    multipliers: Array  # (n_samples, n_classes); the centre's multipliers
    sharpness: float
    # (n_columns + 1, 1) of bool; what may change: everything except an absent intercept
    movable: NDArray[np.bool_]

    def at(self, stacked: Array, scores: Array | None = None) -> ClassPoint:
        """The smoothed problem at a point; ``scores`` save a product if known."""
        if scores is None:
            scores = self.block.scores(stacked)
        multipliers = np.empty_like(scores)
        value, curved = smoothed_classes(
            scores, self.loss.codes, self.loss.shares, self.multipliers, self.sharpness, multipliers
        )
        value += float((self.l1 * np.abs(stacked)).sum())
        value += 0.5 * float((self.l2 * stacked**2).sum())
        value += 0.5 * float((self.proximal * (stacked - self.stacked) ** 2).sum())
        return ClassPoint(stacked, scores, multipliers, curved, value)

    def along(
        self, here: ClassPoint, direction: Array, side: Array
    ) -> Callable[[float], ClassPoint]:
        """The point at a step length along ``direction``, projected onto the orthant ``side``.
        Scores are linear in the length except for the projected coefficients, which are mostly
        few."""
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
        pulled = self.block.adjoint(self.loss.dual_of(here.multipliers))
        proximal = self.proximal * (here.stacked - self.stacked)
        return np.where(self.movable, pulled + self.l2 * here.stacked + proximal, 0.0)

    @property
    def weights(self) -> Array:
        """Curvatures of the samples in the smoothed loss."""
        return self.sharpness * self.loss.shares

    def residual(self, here: ClassPoint, slope: Array) -> float:
        """The largest violation of the optimality conditions, over the penalty's gradient norm."""
        at_zero = np.maximum(np.abs(slope) - self.l1, 0.0)
        away = np.abs(slope + self.l1 * np.sign(here.stacked))
        rest = np.where(here.stacked == 0, at_zero, away)
        unit = max(float(self.l1[0, 0]), float(np.abs(self.l2 * here.stacked).max(initial=0.0)))
        return max(float(rest[:-1].max(initial=0.0)) / (unit or 1.0), float(rest[-1].max()))

    def direction(self, here: ClassPoint, slope: Array, side: Array, deadline: float) -> Array:
        """The Newton step in the orthant ``side``; zeros that would leave it stay zero, as far as
        the deadline allows corrections."""
        free = (side != 0) | (self.l1 == 0) & self.movable
        samples = here.curved
        curved = CurvedSamples(samples, here.multipliers[samples] > 0, self.weights[samples])
        diagonal = (self.l2 + self.proximal)[:, 0]
        system = class_system(self.block, curved, free, diagonal, bool(self.l1.any()), deadline)
        towards = system.pairs.gathered(side)
        zero = (system.pairs.gathered(here.stacked) == 0) & (towards != 0)
        keep = np.ones(towards.size, dtype=bool)
        move = np.zeros(free.shape)
        for _ in range(ORTHANT_CORRECTIONS):
            move = system.step(slope + self.l1 * side, keep)
            wrong = keep & zero & (system.pairs.gathered(move) * towards < 0)
            if not wrong.any() or clock() >= deadline:
                break
            keep &= ~wrong
        return move

    def side(self, here: ClassPoint, slope: Array) -> Array:
        """Signs of coefficients with an l1 part; of zeros, of their first step, or zero if none."""
        entering = np.where(np.abs(slope) > self.l1, -np.sign(slope), 0.0)
        signs = np.where(here.stacked == 0, entering, np.sign(here.stacked))
        return np.where(self.l1 > 0, signs, 0.0)

    def slopes(self, here: ClassPoint) -> ClassSlopes:
        slope = self.slope(here)
        return ClassSlopes(slope, self.residual(here, slope))

    def newton_step(
        self, here: ClassPoint, slopes: ClassSlopes, deadline: float
    ) -> tuple[ClassPoint, ClassSlopes] | None:
        """A Newton step with a projected line search in its orthant; None if the search fails."""
        side = self.side(here, slopes.slope)
        pull = slopes.slope + self.l1 * side
        direction = self.direction(here, slopes.slope, side, deadline)

        def fall(there: ClassPoint, length: float) -> float:
            return -float(np.vdot(pull, there.stacked - here.stacked))

        def ahead(there: ClassPoint, end: ClassSlopes, length: float) -> float:
            return float(np.vdot(end.slope + self.l1 * side, there.stacked - here.stacked))

        first, along = -float(np.vdot(pull, direction)), self.along(here, direction, side)
        return line_search(here, along, self.slopes, first, fall, ahead)


class MulticlassHinge(HingeModel):
    """The multiclass hinge, with multipliers in the unit simplex of each sample."""

    least_sharpness = FIRST_SHARPNESS
    max_sharpness = 3e5
    first_residual: ClassVar[float] = 1e-2
    residual_reduction: ClassVar[float] = 0.5
    growths: ClassVar[tuple[float, float]] = (1.5, 8.0)

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.loss, CrammerSinger)
        self.problem, self.classes = problem, problem.loss
        self.coordinates = class_coordinates(problem)
        self.design = self.coordinates.design

    def start(self, start: Point) -> tuple[Centre, Array, float]:
        problem, loss, warm = self.problem, self.classes, bool(start.coef.any())
        if not warm:
            start = null_point(problem)
        coef, intercept = self.coordinates.of(start)
        scores = self.design.scores(coef) + intercept
        near = start.dual
        if near is None:
            near = loss.dual_of(loss.near_points(scores, KINK_TOLERANCE))
        multipliers = loss.points_of(loss.balanced(near, problem.intercept))
        return (
            Centre(coef, intercept, multipliers),
            scores,
            WARM_SHARPNESS if warm else FIRST_SHARPNESS,
        )

    def solved(self, state: MultiplierState) -> tuple[Centre, Array, Array | None, End]:
        problem, members, centre = self.problem, state.members, state.centre
        l1, l2 = problem.penalty.l1, problem.penalty.l2
        proximal = np.zeros(members.size)
        if l1 > 0:
            spreads = self.coordinates.spreads
            mean = float(np.sqrt((spreads**2).mean()))
            proximal = state.proximal * l1 * np.maximum(spreads[members], MIN_SPREAD * mean)
        smoothed = SmoothedMulticlass(
            block=self.coordinates.block(members),
            loss=self.classes,
            l1=np.append(np.full(members.size, l1), 0.0)[:, None],
            l2=np.append(np.full(members.size, l2), problem.intercept.l2)[:, None],
            proximal=np.append(proximal, MIN_PROXIMAL)[:, None],
            stacked=np.vstack([centre.coef[members], centre.intercept]),
            multipliers=centre.multipliers,
            sharpness=state.sharpness,
            movable=np.append(np.ones(members.size, dtype=bool), problem.fits_intercept)[:, None],
        )
        here, _, end = minimise(
            smoothed,
            smoothed.at(np.vstack([state.at.coef[members], state.at.intercept])),
            state.residual,
            state.newton_steps,
            state.stop.deadline,
        )
        at = Centre(here.stacked[:-1], here.stacked[-1], here.multipliers)
        return at, here.scores, None, end

    def point(self, at: Centre) -> Point:
        return self.problem.projected(self.coordinates.point(at.coef, at.intercept))

    def dual(self, multipliers: Array) -> Array:
        return self.classes.dual_of(multipliers)

    def loss(self, scores: Array) -> float:
        return self.classes.value(scores)

    def dual_value(self, multipliers: Array) -> float:
        return float(np.vdot(self.classes.margins, self.classes.dual_of(multipliers)))
