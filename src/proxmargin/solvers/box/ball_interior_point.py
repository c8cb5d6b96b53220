"""An interior point method for losses with a box on their dual and coefficients in an l_p ball."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.standardized import StandardizedDesign
from proxmargin.loop.solver import Solver, State
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.penalties.ball import Ball
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.box.box_program import (
    LARGEST,
    BoxProgram,
    live_samples,
    program_of,
    system_work,
)

__all__ = ["BallCentral", "BallInteriorPoint"]

BOUNDARY_FRACTION = 0.995  # of the way to the boundary that a step may go
BACKTRACKING = 0.9  # factor on a step that the curved part of the boundary cuts short
FIRST_POWERS = 0.5  # sum of the powers t at the start; at most one
FIRST_SLACK = 1.0  # of the box at the start, in units of the goal of the margins
MIN_STEP = 1e-8  # a shorter step ends the method: it does not move the point
COMPLEMENTARITY_FLOOR = 1e-100  # of slacks and multipliers: their ratios stay finite
# convergence
GAP_REDUCTION = 0.9  # a smaller gap than this times the least one is progress
ROUNDING_PRODUCTS = 1e-3  # complementary products over the gap, below which the gap is rounding
PATIENCE_CERTIFICATES = 8  # without progress and of rounding, until the method ends


@dataclass(frozen=True, eq=False, kw_only=True)
class BallCentral(State):
    """The state of `BallInteriorPoint`, on the samples with a positive weight.

    Attributes
    ----------
    coef : (n_features,)
        Coefficients over the radius.
    powers : (n_features,)
        t, upper bounds of ``|w_j|^p`` whose sum is less than one.
    free : (n_free,)
        The unpenalised parameters of the model: intercept and threshold, where there are any.
    scores : (n_samples,)
        Of ``coef`` and ``free``.
    slacks, multipliers : (n_pairs,)
        Both sides of all complementary pairs, in the order of `_Region.split`.
    best : float
        The least gap so far.
    idle : int
        Certificates in a row without progress, because of rounding.
    """

    coef: Array
    powers: Array
    free: Array
    scores: Array
    slacks: Array
    multipliers: Array
    best: float = np.inf
    idle: int = 0


class _Pairs(NamedTuple):
    """One side of the complementary pairs.

    The slacks are: the dual coordinates a and ``u - a`` (empty without caps); ``root - w`` and
    ``root + w`` with ``root = powers^(1/p)``; the powers t; and ``1 - sum t``.
    """

    dual: Array
    room: Array
    above: Array
    below: Array
    powers: Array
    rest: Array


class _Region(NamedTuple):
    """The problem in units in which the radius is one.

    Attributes
    ----------
    program : BoxProgram
        Of the same loss with a ridge, which is left out.
    exponent : float
        p.
    unit : float
        A coefficient of one, in units of the program.
    """

    program: BoxProgram
    exponent: float
    unit: float

    def split(self, pairs: Array) -> _Pairs:
        n, p = self.program.caps.size, self.program.design.n_features
        capped = n if np.isfinite(self.program.caps[0]) else 0
        return _Pairs(*np.split(pairs, np.cumsum([n, capped, p, p, p])))

    def in_the_ball(self, coef: Array, powers: Array) -> Array:
        """The slacks of the ball, the last four of `_Pairs`; some negative outside."""
        root = np.maximum(powers, 0.0) ** (1.0 / self.exponent)
        return np.concatenate([root - coef, root + coef, powers, [1.0 - float(powers.sum())]])

    def design(self, stiffness: Array) -> StandardizedDesign:
        """The data in coordinates in which a ridge of these strengths has strength one."""
        base = self.program.design
        return StandardizedDesign(base, np.zeros(base.n_features), np.sqrt(stiffness) / self.unit)

    def pulled(self, signed: Array) -> Array:
        """``X'v`` in these units."""
        return self.unit * self.program.pulled(signed)


class _Direction(NamedTuple):
    """A step of each part of the state."""

    coef: Array
    powers: Array
    free: Array
    scores: Array
    slacks: Array
    multipliers: Array


@dataclass(frozen=True)
class BallInteriorPoint(Solver[BallCentral]):
    """Mehrotra's predictor-corrector method for kinked losses over ``|w|_p <= radius``.

    The loss is that of `proxmargin.solvers.box.interior_point.InteriorPoint`; the ball (with radius
    one) is lifted by a variable t for each coefficient,

        ``-t_j^(1/p) <= w_j <= t_j^(1/p),   t_j >= 0,   sum_j t_j <= 1``,

    whose logarithms are the barrier of the epigraph of ``|w|^p`` (Nesterov 2012, "Towards
    non-symmetric conic optimization"): it has no singularity at ``w_j = 0`` for any p. The
    variables t are eliminated coordinate by coordinate and the multiplier of their sum by one more
    right-hand side, which leaves the linear system of a ridge with one strength a feature.

    Notes
    -----
    The ball may be inactive: its multipliers then go to zero. It stores a square matrix of the
    smaller of samples and features, at most `box_program.LARGEST`. There is no warm start.
    """

    name: ClassVar[str] = "ball-interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200
    polishing: ClassVar[int] = 1

    def objection(self, problem: Problem) -> str | None:
        if problem.loss.box is None:
            return "it needs a hinge loss (plain, huberized or squared), binary, or a tail mean"
        plain = problem.has_plain_intercept
        if not (isinstance(problem.penalty, Ball) and plain):
            return "it needs coefficients in a ball, and an intercept with a ridge or none"
        size = min(problem.design.n_samples, problem.design.n_features)
        if size > LARGEST:
            return (
                f"it factorises a matrix over samples or features, of which there may be "
                f"{LARGEST} at most, and the smaller number here is {size}"
            )
        return None

    def work(self, problem: Problem) -> float:
        return system_work(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> BallCentral:
        """At zero coefficients, with complementary products of one size."""
        region = _region_of(problem)
        program, p = region.program, region.program.design.n_features
        below = np.maximum(-program.goal, 0.0) + FIRST_SLACK
        above = np.maximum(program.goal, 0.0) + FIRST_SLACK
        box = [program.caps * (above / (below + above)), program.caps * (below / (below + above))]
        beside = [below, above]
        if not np.isfinite(program.caps[0]):
            box, beside = [FIRST_SLACK / program.bends], [below]
        coef, powers = np.zeros(p), np.full(p, FIRST_POWERS / p)
        ball = region.in_the_ball(coef, powers)
        mean = float(np.concatenate(box) @ np.concatenate(beside)) / (len(box) * below.size)
        return BallCentral(
            coef=coef,
            powers=powers,
            free=np.zeros(program.pull.size),
            scores=np.zeros(program.caps.size),
            slacks=np.concatenate([*box, ball]),
            multipliers=np.concatenate([*beside, mean / ball]),
        )

    def step(self, problem: Problem, state: BallCentral) -> BallCentral:
        region, n_iter = _region_of(problem), state.n_iter + 1
        toward = _system(region, state)
        if toward is None:
            return replace(state, n_iter=n_iter, finished=True)
        ahead = toward(np.zeros_like(state.slacks))
        if not np.isfinite(ahead.slacks).all():
            return replace(state, n_iter=n_iter, finished=True)
        tried = _moved(region, state, ahead, _longest(region, state, ahead))
        mean = _complementarity(state) / state.slacks.size
        share = (_complementarity(tried) / state.slacks.size / mean) ** 3
        found = toward(min(share, 1.0) * mean - ahead.slacks * ahead.multipliers)
        length = _longest(region, state, found) if np.isfinite(found.slacks).all() else 0.0
        if length < MIN_STEP:
            return replace(state, n_iter=n_iter, finished=True)
        return replace(_moved(region, state, found, length), n_iter=n_iter)

    def point(self, problem: Problem, state: BallCentral) -> Point:
        region = _region_of(problem)
        program = region.program
        coef = program.coef_unit * region.unit * state.coef[:, None]
        intercept = np.zeros(1)
        if problem.fits_intercept:
            intercept = program.coef_unit * state.free[:1]
        return problem.centred.point(coef, intercept)

    def dual(self, problem: Problem, state: BallCentral) -> Array:
        region = _region_of(problem)
        program = region.program
        dual = np.zeros((problem.design.n_samples, 1))
        signed = program.signs * region.split(state.slacks).dual
        dual[live_samples(problem), 0] = -program.dual_unit * signed
        return dual

    def observe(self, problem: Problem, state: BallCentral, gap: Gap) -> BallCentral:
        """Give up when the gap exceeds the complementary products for several certificates."""
        program = _region_of(problem).program
        expected = program.dual_unit * program.coef_unit * _complementarity(state)
        ended = gap.gap > GAP_REDUCTION * state.best and expected < ROUNDING_PRODUCTS * gap.gap
        idle = state.idle + 1 if ended else 0
        finished = state.finished or idle >= PATIENCE_CERTIFICATES
        return replace(state, best=min(gap.gap, state.best), idle=idle, finished=finished)


def _region_of(problem: Problem) -> _Region:
    """The problem in units of its ball, made once and kept with it."""
    return problem.remembered(_new_region)


def _new_region(problem: Problem) -> _Region:
    """The units of the program of a ridge, in which a homogeneous loss has scores of order one."""
    ball = problem.penalty
    assert isinstance(ball, Ball)
    square = program_of(replace(problem, penalty=Ridge(1.0))).coef_unit
    program = program_of(replace(problem, penalty=Ridge(np.sqrt(square) / ball.radius)))
    return _Region(program, ball.p, ball.radius / program.coef_unit)


def _system(region: _Region, state: BallCentral) -> Callable[[Array], _Direction] | None:
    """A function from target products of the pairs to the Newton step; None if Cholesky failed.

    Targets contain the second-order correction. With ``root(t)`` the bounds of w and m, k their
    multipliers, the equations of a coordinate are

        ``m - k - X'v = 0,   price - (m + k) root'(t) - floor = 0``,

    price being the multiplier of the sum of t, and floor those of t >= 0.
    """
    program, p = region.program, region.exponent
    slack, factor = region.split(state.slacks), region.split(state.multipliers)
    signed = program.signs * slack.dual
    slope = state.powers ** (1.0 / p - 1.0) / p
    both = factor.above + factor.below
    rw = factor.above - factor.below - region.pulled(signed)
    rt = factor.rest - both * slope - factor.powers
    rf = program.pull + program.ridge * state.free - program.borders.T @ signed
    up, down = factor.above / slack.above, factor.below / slack.below
    curve = both * slope * (1.0 - 1.0 / p) / state.powers + factor.powers / slack.powers
    along = slope**2 * (up + down) + curve
    # (up + down) - slope^2 (up - down)^2 / along, rearranged to be free of cancellation
    stiffness = ((up + down) * curve + 4.0 * slope**2 * up * down) / along
    tilt = slope * (up - down) / along
    theta = factor.dual / slack.dual + program.bends
    if slack.room.size:
        theta = theta + factor.room / slack.room
    root = np.sqrt(stiffness)
    ridge = program._replace(design=region.design(stiffness), l2=1.0)
    solve = program.factorised(ridge, 1.0 / theta)
    if solve is None:
        return None
    beside = solve(np.zeros_like(theta), -tilt / root, np.zeros_like(rf))
    give = float(slack.rest[0] / factor.rest[0])
    bend = give + float((1.0 / along).sum() + (tilt / root) @ beside[0])

    def toward(products: Array) -> _Direction:
        push = products / state.slacks - state.multipliers
        pushed = region.split(push)
        r = program.goal - program.signs * state.scores - program.bends * slack.dual
        r += pushed.dual + factor.dual
        if slack.room.size:
            r -= pushed.room + factor.room
        bt = slope * (pushed.above + pushed.below) + pushed.powers - rt
        bw = pushed.below - pushed.above - rw + tilt * bt
        alone = solve(program.signs * r, -bw / root, rf)
        right = give * float(pushed.rest[0]) + float((bt / along).sum())
        price = (right + float((tilt / root) @ alone[0])) / bend
        scaled, free, scores, change = (a - price * b for a, b in zip(alone, beside, strict=True))
        coef = scaled / root
        powers = (bt - price) / along + tilt * coef
        dual, bound = program.signs * change, slope * powers
        ball = [bound - coef, bound + coef, powers, [-float(powers.sum())]]
        slacks = np.concatenate([dual, -dual[: slack.room.size], *ball])
        multipliers = push - state.multipliers / state.slacks * slacks
        return _Direction(coef, powers, free, scores, slacks, multipliers)

    return toward


def _moved(region: _Region, state: BallCentral, by: _Direction, step: float) -> BallCentral:
    """After a step; slacks of the ball are recomputed, not linearised."""
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


def _longest(region: _Region, state: BallCentral, by: _Direction) -> float:
    """The largest step length, at most one, that keeps its distance from the boundary."""
    falls = (by.slacks / state.slacks, by.multipliers / state.multipliers)
    fastest = -min(float(fall.min()) for fall in falls)
    length = min(1.0, BOUNDARY_FRACTION / fastest) if fastest > 0 else 1.0
    least = (1.0 - BOUNDARY_FRACTION) * BACKTRACKING * state.slacks
    while length >= MIN_STEP:
        coef, powers = state.coef + length * by.coef, state.powers + length * by.powers
        slacks = region.in_the_ball(coef, powers)
        if (slacks >= least[least.size - slacks.size :]).all():
            break
        length *= BACKTRACKING
    return length


def _complementarity(state: BallCentral) -> float:
    """Sum of the products of the complementary pairs."""
    return float(state.slacks @ state.multipliers)
