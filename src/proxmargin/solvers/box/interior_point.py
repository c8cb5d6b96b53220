"""An interior point method for losses with a box on their dual and a ridge penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.gap import Gap
from proxmargin.loop.solver import Solver, State, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.rounding import TINY
from proxmargin.solvers.boundary import BOUNDARY_FRACTION, COMPLEMENTARITY_FLOOR
from proxmargin.solvers.box.box_program import (
    BoxProgram,
    Solve,
    box_objection,
    program_of,
    size_objection,
    system_work,
)
from proxmargin.solvers.box.crossover import (
    AT_CAP,
    AT_ZERO,
    FREE,
    MAX_FACES,
    ExactSolution,
    Face,
    cross_over,
    work_of,
)
from proxmargin.solvers.box.pairs import complementarity, idle_after, longest, products

__all__ = ["InteriorPoint", "InteriorPointState"]

MIN_STEP = 1e-8  # step length below which the method ends
# Gondzio's centrality corrections
MAX_CORRECTIONS = 2  # per iteration
TRIAL_EXTENSION = 0.3  # added to the step length for the trial step
PRODUCT_RANGE = (0.1, 10.0)  # complementary products over the target that need no correction
MIN_STEP_GAIN = 0.05  # gain in step length over the extension, for which a correction is kept
# convergence
ROUNDING_PRODUCTS = 0.1  # complementarity over the gap, below which the gap is rounding
FEASIBLE = 1e-2  # residuals over the first ones, up to which the equations hold
SEPARATED_MARGIN = 0.5  # least margin over the goal, above which the classes are separated
# crossover to the exact optimum on a face
CROSSOVER_GAP = 1e-3  # relative gap below which it is tried
CROSSOVER_REDUCTION = 0.3  # ratio of complementarity from one attempt to the next, at most
CROSSOVER_BUDGET = 3.0  # work of all attempts, in interior point iterations
CROSSOVER_PORTION = 0.5  # share of the remaining budget for one attempt


@dataclass(frozen=True, eq=False, kw_only=True)
class InteriorPointState(State):
    """The state of the interior point method, for the samples with positive weight.

    Attributes
    ----------
    coef : (n_features,)
        Coefficients in units of the program (`BoxProgram`).
    free : (n_free,)
        Unpenalised parameters: intercept and threshold, as far as the model has them.
    scores : (n_samples,)
        Scores of ``coef`` and ``free``.
    dual, room : (n_samples,)
        ``a`` and ``u - a``, both positive.
    below, above : (n_samples,)
        Slacks of the two sides of the box.
    best : float
        Smallest gap so far.
    infeasible : float
        Residuals of the equations over the first ones; a step of length s leaves 1 - s of them.
    relative : float
        The last relative gap.
    idle : int
        Certificates in a row without progress because of rounding.
    vertex : ExactSolution, optional
        The exact solution on the face of the box that the last crossover found.
    guessed : float
        Complementarity at the last crossover.
    spent : float
        Work of all crossovers so far, in interior point iterations.
    """

    coef: Array
    free: Array
    scores: Array
    dual: Array
    room: Array
    below: Array
    above: Array
    best: float = np.inf
    infeasible: float = 1.0
    relative: float = np.inf
    idle: int = 0
    vertex: ExactSolution | None = None
    guessed: float = np.inf
    spent: float = 0.0


class _Direction(NamedTuple):
    """A Newton step of each part of the state."""

    coef: Array
    free: Array
    scores: Array
    dual: Array
    below: Array
    above: Array


@dataclass(frozen=True)
class InteriorPoint(Solver[InteriorPointState]):
    """Mehrotra's predictor-corrector method, with Gondzio's centrality corrections.

    Losses whose margin terms are conjugates of linear or quadratic functions on an interval (hinge,
    huberized and squared hinge), and the tail mean of the nu-SVM, give with a ridge penalty a
    quadratic program with one or two bounds a sample,

        min  l2/2 |w|^2 + pull'f + sum_i max_{0 <= a <= u_i} {a (goal_i - t_i) - d_i a^2 / 2},

    with margins ``t = y (X w + F f)`` and free parameters f (intercept, threshold). An iteration
    reduces the Newton system to one positive definite matrix, over the features or over the
    samples, whichever is smaller, bordered by F: no null-space basis of the constraint
    ``F'(y a) = pull`` is needed. Primal and dual variables move by the same step length.

    Parameters
    ----------
    max_stalled : int >= 1
        Certificates without a smaller gap, because of rounding, after which the method ends.

    Notes
    -----
    Sources: Mehrotra (1992), "On the implementation of a primal-dual interior point method";
    Gondzio (1996), "Multiple centrality corrections in a primal-dual method for linear
    programming". The models are (11), (12) and (14) of Ito, Takeda and Toh (2017), whose bounds
    carry the sample weights here.

    A square matrix over the samples or the features, whichever are fewer, is stored; its side is at
    most `LARGEST`. There is no warm start: points at the boundary are bad starts. The point is the
    primal iterate, not ``X'v / l2`` of the dual: after a full step both agree up to rounding, which
    is larger in the dual.
    """

    max_stalled: int = 6

    name: ClassVar[str] = "interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200
    polishing: ClassVar[int] = 2

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        return box_objection(problem) or size_objection(problem)

    def work(self, problem: Problem) -> float:
        return system_work(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> InteriorPointState:
        """The first state: zero coefficients, and equal products in all complementary pairs."""
        program = program_of(problem)
        below = np.maximum(-program.goal, 0.0) + program.first_slack
        above = np.maximum(program.goal, 0.0) + program.first_slack
        dual = program.caps * (above / (below + above))
        if not np.isfinite(program.caps[0]):
            above, dual = np.zeros_like(above), program.first_slack / program.bends
        return InteriorPointState(
            coef=np.zeros(program.design.n_features),
            free=np.zeros(program.pull.size),
            scores=np.zeros(program.caps.size),
            dual=dual,
            room=program.caps - dual,
            below=below,
            above=above,
        )

    def step(self, problem: Problem, state: InteriorPointState) -> InteriorPointState:
        program = program_of(problem)
        signed = program.signs * state.dual
        rp = program.l2 * state.coef - program.adjoint(signed)
        rf = program.pull + program.ridge * state.free - program.borders.T @ signed
        stiffness = state.below / state.dual + state.above / state.room + program.bends
        solve = program.factorised(program, 1.0 / stiffness)
        if solve is None:
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        direction, length = _predictor_corrector(program, state, solve, rp, rf)
        length = min(1.0, BOUNDARY_FRACTION * length)
        if not (np.isfinite(length) and np.isfinite(direction.scores).all()):
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        moved = _after_step(program, state, direction, length)
        moved = replace(moved, n_iter=state.n_iter + 1, finished=length < MIN_STEP)
        return _with_vertex(program, state, moved)

    def point(self, problem: Problem, state: InteriorPointState) -> Point:
        program = program_of(problem)
        at = state.vertex or state
        point = _scaled_to_goal(problem, program, program.point(problem, at.coef, at.free), at)
        return problem.centred.point(point.coef, point.intercept)

    def dual(self, problem: Problem, state: InteriorPointState) -> Array:
        program = program_of(problem)
        return program.dual_point(problem, (state.vertex or state).dual)

    def observe(self, problem: Problem, state: InteriorPointState, gap: Gap) -> InteriorPointState:
        """End if the gap has exceeded the complementary products for several certificates.

        It does so too as long as the equations do not hold, which is no rounding.
        """
        program = program_of(problem)
        expected = program.dual_unit * program.coef_unit * complementarity(state)
        idle = idle_after(state, gap, expected, ROUNDING_PRODUCTS)
        idle = idle if state.infeasible <= FEASIBLE else 0
        best = min(gap.gap, state.best)
        finished = state.finished or idle >= self.max_stalled
        return replace(state, best=best, relative=gap.relative_gap, idle=idle, finished=finished)


def _with_vertex(
    program: BoxProgram, before: InteriorPointState, after: InteriorPointState
) -> InteriorPointState:
    """``after``, with the exact solution of a crossover if one is tried and succeeds."""
    total = complementarity(after)
    ratio = total / max(complementarity(before), TINY)
    near = min(before.relative * ratio, before.relative) <= CROSSOVER_GAP
    if not near or after.spent >= CROSSOVER_BUDGET or total > CROSSOVER_REDUCTION * after.guessed:
        return replace(after, vertex=None, exact=False)
    sides = _nearest_sides(before, after)
    work = work_of(program, sides)
    rounds = min(MAX_FACES, math.ceil(CROSSOVER_PORTION * (CROSSOVER_BUDGET - after.spent) / work))
    found = cross_over(program, Face(sides, after.dual, after.free), rounds)
    vertex = found.vertex if found.vertex and found.vertex.gap <= total else None
    spent = after.spent + work * found.rounds
    exact = vertex is not None
    return replace(after, vertex=vertex, exact=exact, spent=spent, guessed=total)


def _nearest_sides(before: InteriorPointState, after: InteriorPointState) -> NDArray[np.int8]:
    """The active sides by Tapia's indicators (El-Bakry, Tapia and Zhang 1994).

    The active member of a complementary pair falls faster than its partner; ratios have no units.
    """
    empty = after.dual * before.below < after.below * before.dual
    full = np.zeros_like(empty)
    if np.isfinite(after.room[0]):
        full = after.room * before.above < after.above * before.room
    sides = np.full(empty.size, FREE, np.int8)
    sides[empty & ~full] = AT_ZERO
    sides[full & ~empty] = AT_CAP
    return sides


def _scaled_to_goal(
    problem: Problem, program: BoxProgram, point: Point, at: InteriorPointState | ExactSolution
) -> Point:
    """The point; of a hinge with separated classes, scaled and shifted to a least margin of one.

    With weights far larger than the ridge, the rounding of margins at one would dominate the
    objective; at this multiple the loss is exactly zero.
    """
    margins, goal = program.signs * at.scores, float(program.goal[0])
    scalable = goal > 0 and not program.bends.any() and bool(np.all(program.goal == goal))
    if not scalable or float(margins.min()) < SEPARATED_MARGIN:
        return point
    scores = program.design.scores(point.coef)[:, 0] + point.intercept[0]
    up, down = (float((y * scores[program.signs == y]).min(initial=np.inf)) for y in (1.0, -1.0))
    shift = 0.0
    if problem.intercept.is_shift_invariant and np.isfinite(up + down):
        shift = 0.5 * (down - up)
    multiple = goal / min(up + shift, down - shift)
    loss = float(program.caps @ np.maximum(goal - program.signs * scores, 0.0))
    square = 0.5 * program.l2 * float(np.vdot(point.coef, point.coef))
    square += 0.5 * problem.intercept.l2 * program.l2 / problem.penalty.l2 * point.intercept[0] ** 2
    if multiple**2 * square > square + loss:
        return point
    return Point(multiple * point.coef, multiple * (point.intercept + shift))


def _predictor_corrector(
    program: BoxProgram, state: InteriorPointState, solve: Solve, rp: Array, rf: Array
) -> tuple[_Direction, float]:
    """Predictor, corrector, and centrality corrections as long as they lengthen the step."""

    def toward(low: Array | float, top: Array | float) -> tuple[_Direction, float]:
        found = _direction(program, state, solve, rp, rf, low, top)
        return found, longest(state, found)

    mean = complementarity(state) / program.pairs
    ahead, length = toward(0.0, 0.0)
    low, top = products(state, ahead, length)
    share = (float(low.sum() + top.sum()) / program.pairs / mean) ** 3
    target = min(share, 1.0) * mean
    low, top = target - ahead.dual * ahead.below, target + ahead.dual * ahead.above
    found, length = toward(low, top)
    for _ in range(MAX_CORRECTIONS):
        if length >= 1.0:
            break
        wanted = min(1.0, length + TRIAL_EXTENSION)
        lows, tops = products(state, found, wanted)
        low = low + _centrality_correction(lows, target)
        top = top + _centrality_correction(tops, target)
        other, reached = toward(low, top)
        if reached < length + MIN_STEP_GAIN * TRIAL_EXTENSION:
            break
        found, length = other, reached
    return found, length


def _direction(
    program: BoxProgram,
    state: InteriorPointState,
    solve: Solve,
    rp: Array,
    rf: Array,
    low: Array | float,
    top: Array | float,
) -> _Direction:
    """The Newton step towards products ``low`` and ``top`` of the complementary pairs.

    Both contain the second-order correction.
    """
    pushed, pressed = low / state.dual, top / state.room
    r = program.goal - program.signs * state.scores - program.bends * state.dual + pushed - pressed
    coef, free, scores, signed = solve(program.signs * r, rp, rf)
    dual = program.signs * signed
    below = pushed - state.below - state.below / state.dual * dual
    above = pressed - state.above + state.above / state.room * dual
    return _Direction(coef, free, scores, dual, below, above)


def _after_step(
    program: BoxProgram, state: InteriorPointState, by: _Direction, step: float
) -> InteriorPointState:
    floor = COMPLEMENTARITY_FLOOR * np.where(np.isfinite(program.caps), program.caps, 1.0)
    capped = np.isfinite(program.caps[0])
    return replace(
        state,
        coef=state.coef + step * by.coef,
        free=state.free + step * by.free,
        scores=state.scores + step * by.scores,
        infeasible=state.infeasible * (1.0 - step),
        dual=np.maximum(state.dual + step * by.dual, floor),
        room=np.maximum(state.room - step * by.dual, floor),
        below=np.maximum(state.below + step * by.below, COMPLEMENTARITY_FLOOR),
        above=np.maximum(state.above + step * by.above, COMPLEMENTARITY_FLOOR)
        if capped
        else state.above,
    )


def _centrality_correction(products: Array, target: float) -> Array:
    """The correction that moves products into the range around the target; large ones in part."""
    low, high = PRODUCT_RANGE
    inside = np.clip(products, low * target, high * target)
    return np.maximum(inside - products, -high * target)
