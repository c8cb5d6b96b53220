"""An interior point method for losses with a box on their dual and coefficients in an l_p ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.standardized import StandardizedDesign
from proxmargin.loop.solver import Solver, State, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.boundary import COMPLEMENTARITY_FLOOR
from proxmargin.solvers.box.box_program import (
    BoxProgram,
    program_of,
    size_objection,
    system_work,
)
from proxmargin.solvers.box.pairs import idle_after
from proxmargin.solvers.lifted_ball import (
    EliminatedBounds,
    ball_slacks,
    first_bounds,
    length_inside,
)
from proxmargin.traits import Trait

__all__ = ["BallInteriorPoint", "BallInteriorPointState"]

FIRST_SLACK = 1.0  # first slack of the box, in units of the goal of the margins
MIN_STEP = 1e-8  # step length below which the method ends
# convergence
ROUNDING_PRODUCTS = 1e-3  # complementarity over the gap, below which the gap is rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class BallInteriorPointState(State):
    """The state of `BallInteriorPoint`, for the samples with positive weight.

    Attributes
    ----------
    coef : (n_features,)
        Coefficients over the radius.
    powers : (n_features,)
        The variables t of the lifted ball, ``|w_j|^p < t_j`` and ``sum_j t_j < 1``.
    free : (n_free,)
        Unpenalised parameters: intercept and threshold, as far as the model has them.
    scores : (n_samples,)
        Scores of ``coef`` and ``free``.
    slacks, multipliers : (n_pairs,)
        All complementary pairs, in the order of `_Region.split`.
    best : float
        Smallest gap so far.
    idle : int
        Certificates in a row without progress because of rounding.
    """

    coef: Array
    powers: Array
    free: Array
    scores: Array
    slacks: Array
    multipliers: Array
    best: float = np.inf
    idle: int = 0


class _BallPairs(NamedTuple):
    """The slacks, or the multipliers, of all complementary pairs.

    The slacks are the dual coordinates a and ``u - a`` (empty without caps), and those of the
    lifted ball (`proxmargin.solvers.lifted_ball`).
    """

    dual: Array
    room: Array
    ball: Array


class _Region(NamedTuple):
    """The problem in units in which the ball has radius one.

    Attributes
    ----------
    program : BoxProgram
        The program of the same loss with a ridge; the ridge is not used.
    exponent : float
        p.
    unit : float
        A coefficient of one in these units, in units of the program.
    """

    program: BoxProgram
    exponent: float
    unit: float

    def split(self, pairs: Array) -> _BallPairs:
        n = self.program.caps.size
        capped = n if np.isfinite(self.program.caps[0]) else 0
        return _BallPairs(*np.split(pairs, [n, n + capped]))

    def in_the_ball(self, coef: Array, powers: Array) -> Array:
        """The slacks of the lifted ball, negative outside of it."""
        return ball_slacks(coef, powers, self.exponent)

    def design(self, stiffness: Array) -> StandardizedDesign:
        """The data with features scaled so that this ridge, one strength a feature, becomes one."""
        base = self.program.design
        return StandardizedDesign(base, np.zeros(base.n_features), np.sqrt(stiffness) / self.unit)

    def adjoint(self, signed: Array) -> Array:
        """``X'v`` in these units."""
        return self.unit * self.program.adjoint(signed)


class _BallDirection(NamedTuple):
    """A Newton step of each part of the state."""

    coef: Array
    powers: Array
    free: Array
    scores: Array
    slacks: Array
    multipliers: Array


@dataclass(frozen=True)
class BallInteriorPoint(Solver[BallInteriorPointState]):
    """Mehrotra's predictor-corrector method for kinked losses over ``|w|_p <= radius``.

    The losses are those of `proxmargin.solvers.box.interior_point.InteriorPoint`. The ball is
    lifted by a variable t for each coefficient (`proxmargin.solvers.lifted_ball`). Eliminating
    these leaves the linear system of a ridge with one strength a feature.

    Parameters
    ----------
    max_stalled : int >= 1
        Certificates without a smaller gap, because of rounding, after which the method ends.

    Notes
    -----
    If the ball is inactive its multipliers go to zero. A square matrix over the samples or the
    features, whichever are fewer, is stored; its side is at most `box_program.LARGEST`. There is no
    warm start.
    """

    max_stalled: int = 8

    name: ClassVar[str] = "ball-interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200
    polishing: ClassVar[int] = 1

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if Trait.BALL not in problem.traits or not problem.has_plain_intercept:
            return "it needs coefficients in a ball, and an intercept with a ridge or none"
        if problem.loss.box is None:
            return "it needs a hinge loss (plain, huberized or squared), binary, or a tail mean"
        return size_objection(problem)

    def work(self, problem: Problem) -> float:
        return system_work(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> BallInteriorPointState:
        """The first state: zero coefficients, and complementary products of one size."""
        region = _region_of(problem)
        program, p = region.program, region.program.design.n_features
        below = np.maximum(-program.goal, 0.0) + FIRST_SLACK
        above = np.maximum(program.goal, 0.0) + FIRST_SLACK
        box = [program.caps * (above / (below + above)), program.caps * (below / (below + above))]
        beside = [below, above]
        if not np.isfinite(program.caps[0]):
            box, beside = [FIRST_SLACK / program.bends], [below]
        coef, powers = np.zeros(p), first_bounds(p)
        ball = region.in_the_ball(coef, powers)
        mean = float(np.concatenate(box) @ np.concatenate(beside)) / (len(box) * below.size)
        return BallInteriorPointState(
            coef=coef,
            powers=powers,
            free=np.zeros(program.pull.size),
            scores=np.zeros(program.caps.size),
            slacks=np.concatenate([*box, ball]),
            multipliers=np.concatenate([*beside, mean / ball]),
        )

    def step(self, problem: Problem, state: BallInteriorPointState) -> BallInteriorPointState:
        region, n_iter = _region_of(problem), state.n_iter + 1
        toward = _system(region, state)
        if toward is None:
            return replace(state, n_iter=n_iter, finished=True)
        ahead = toward(np.zeros_like(state.slacks))
        if not np.isfinite(ahead.slacks).all():
            return replace(state, n_iter=n_iter, finished=True)
        tried = _after_step(region, state, ahead, _step_to_boundary(region, state, ahead))
        mean = _complementarity(state) / state.slacks.size
        share = (_complementarity(tried) / state.slacks.size / mean) ** 3
        found = toward(min(share, 1.0) * mean - ahead.slacks * ahead.multipliers)
        length = _step_to_boundary(region, state, found) if np.isfinite(found.slacks).all() else 0.0
        if length < MIN_STEP:
            return replace(state, n_iter=n_iter, finished=True)
        return replace(_after_step(region, state, found, length), n_iter=n_iter)

    def point(self, problem: Problem, state: BallInteriorPointState) -> Point:
        region = _region_of(problem)
        point = region.program.point(problem, region.unit * state.coef, state.free)
        return problem.centred.point(point.coef, point.intercept)

    def dual(self, problem: Problem, state: BallInteriorPointState) -> Array:
        region = _region_of(problem)
        return region.program.dual_point(problem, region.split(state.slacks).dual)

    def observe(
        self, problem: Problem, state: BallInteriorPointState, gap: Gap
    ) -> BallInteriorPointState:
        """End if the gap has exceeded the complementary products for several certificates."""
        program = _region_of(problem).program
        expected = program.dual_unit * program.coef_unit * _complementarity(state)
        idle = idle_after(state, gap, expected, ROUNDING_PRODUCTS)
        finished = state.finished or idle >= self.max_stalled
        return replace(state, best=min(gap.gap, state.best), idle=idle, finished=finished)


def _region_of(problem: Problem) -> _Region:
    """The problem in units of its ball, computed once."""
    return problem.remembered(_new_region)


def _new_region(problem: Problem) -> _Region:
    """The problem in units of a program with a ridge for which scores are of order one."""
    ball = problem.ball
    square = program_of(replace(problem, penalty=Ridge(1.0))).coef_unit
    program = program_of(replace(problem, penalty=Ridge(np.sqrt(square) / ball.radius)))
    return _Region(program, ball.p, ball.radius / program.coef_unit)


def _system(
    region: _Region, state: BallInteriorPointState
) -> Callable[[Array], _BallDirection] | None:
    """Maps target products of the pairs to the Newton step; None if Cholesky failed.

    The targets contain the second-order correction.
    """
    program = region.program
    slack, factor = region.split(state.slacks), region.split(state.multipliers)
    bounds = EliminatedBounds(state.powers, slack.ball, factor.ball, region.exponent)
    signed = program.signs * slack.dual
    rw = bounds.lean - region.adjoint(signed)
    rf = program.pull + program.ridge * state.free - program.borders.T @ signed
    theta = factor.dual / slack.dual + program.bends
    if slack.room.size:
        theta = theta + factor.room / slack.room
    root = np.sqrt(bounds.stiffness)
    ridge = program._replace(design=region.design(bounds.stiffness), l2=1.0)
    solve = program.factorised(ridge, 1.0 / theta)
    if solve is None:
        return None
    beside = solve(np.zeros_like(theta), -bounds.tilt / root, np.zeros_like(rf))

    def toward(products: Array) -> _BallDirection:
        push = products / state.slacks - state.multipliers
        pushed = region.split(push)
        r = program.goal - program.signs * state.scores - program.bends * slack.dual
        r += pushed.dual + factor.dual
        if slack.room.size:
            r -= pushed.room + factor.room
        right = bounds.right(pushed.ball, rw)
        alone = solve(program.signs * r, -right.coef / root, rf)
        price = bounds.price(right, alone[0] / root, beside[0] / root)
        scaled, free, scores, change = (a - price * b for a, b in zip(alone, beside, strict=True))
        coef, dual = scaled / root, program.signs * change
        powers, ball = bounds.changes(right, price, coef)
        slacks = np.concatenate([dual, -dual[: slack.room.size], ball])
        multipliers = push - state.multipliers / state.slacks * slacks
        return _BallDirection(coef, powers, free, scores, slacks, multipliers)

    return toward


def _after_step(
    region: _Region, state: BallInteriorPointState, by: _BallDirection, step: float
) -> BallInteriorPointState:
    """The state after a step; slacks of the ball are recomputed, not linearised."""
    coef, powers = state.coef + step * by.coef, state.powers + step * by.powers
    slacks = state.slacks + step * by.slacks
    curved = region.in_the_ball(coef, powers)
    slacks[slacks.size - curved.size :] = curved
    return replace(
        state,
        coef=coef,
        powers=powers,
        free=state.free + step * by.free,
        scores=state.scores + step * by.scores,
        slacks=np.maximum(slacks, COMPLEMENTARITY_FLOOR),
        multipliers=np.maximum(state.multipliers + step * by.multipliers, COMPLEMENTARITY_FLOOR),
    )


def _step_to_boundary(region: _Region, state: BallInteriorPointState, by: _BallDirection) -> float:
    """The longest step, at most one, that keeps a distance from the boundary."""

    def curved(length: float) -> Array:
        return region.in_the_ball(state.coef + length * by.coef, state.powers + length * by.powers)

    changes = by.slacks, by.multipliers
    return length_inside(state.slacks, state.multipliers, changes, curved, MIN_STEP)


def _complementarity(state: BallInteriorPointState) -> float:
    """Sum of the products of the complementary pairs."""
    return float(state.slacks @ state.multipliers)
