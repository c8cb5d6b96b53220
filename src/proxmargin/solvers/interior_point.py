"""An interior point method for losses with a box on their dual and a ridge penalty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from proxmargin.certificate import Gap
from proxmargin.designs.base import Design
from proxmargin.designs.standardized import StandardizedDesign, centred
from proxmargin.losses.base import Array
from proxmargin.losses.hinge import Hinge
from proxmargin.losses.margin import CappedQuadratic
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.losses.tail_mean import TailMean
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.penalties.pinned import Pinned
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import Solver, State
from proxmargin.stopping import Stop

__all__ = ["Central", "InteriorPoint"]

# rows and columns of the largest system that is factorised: 8 * LARGEST^2 bytes are 288 MB
LARGEST = 6_000
# with fewer samples than this many features, the system over the samples takes less work; and it
# keeps its digits where the two numbers are close, while the other one loses them
WIDE = 1.9
# share of the way to the boundary that a step may go
TO_BOUNDARY = 0.995
# slack that every complementary pair starts with, in units of the goal of the margins
FIRST_SLACK = 1.0
# Gondzio's corrections: by how much further the trial step goes, the range of products that is
# left alone (in units of the target), and the gain in step that makes another one worth its cost
REACH, NARROW_RANGE, GAIN = 0.3, (0.1, 10.0), 0.05
CORRECTIONS = 2
# diagonal added to a matrix that is not positive definite in floating point, relative to its own,
# and how often it is multiplied by the growth
LEAST_LIFT, LIFT_GROWTH, LIFTS = 1e-15, 100.0, 8
# a step this short does not move the point any more
SHORTEST_STEP = 1e-8
# with all margins beyond this share of the goal the classes are separated
SEPARATED = 0.5
# certificates without progress after which rounding is all that is left
PATIENCE, PROGRESS = 6, 0.9
# a gap with less than this share in complementary products is of rounding
FOLLOWING = 0.1
# complementary values stay above this share of the box, so that their ratios are finite
FLOOR = 1e-100


@dataclass(frozen=True, eq=False)
class Central(State):
    """The state of the interior point method, on the samples with a positive weight.

    Attributes
    ----------
    coef : (n_features,)
        Coefficients in units of the program (`_Program`).
    free : (n_free,)
        The unpenalised numbers of the model: intercept and threshold, where there are any.
    scores : (n_samples,)
        What ``coef`` and ``free`` give.
    dual, room : (n_samples,)
        ``a`` and ``u - a``, both positive.
    below, above : (n_samples,)
        Slacks of the two sides of the box.
    best : float
        The least gap so far.
    idle : int
        Certificates in a row that were not better, for rounding.
    """

    coef: Array = None  # type: ignore[assignment]
    free: Array = None  # type: ignore[assignment]
    scores: Array = None  # type: ignore[assignment]
    dual: Array = None  # type: ignore[assignment]
    room: Array = None  # type: ignore[assignment]
    below: Array = None  # type: ignore[assignment]
    above: Array = None  # type: ignore[assignment]
    best: float = np.inf
    idle: int = 0


class _Box(NamedTuple):
    """``min over rho  pull rho + sum_i max {a (goal + rho - y_i z_i) - bends_i a^2 / 2}``.

    The maximum is over ``0 <= a <= caps_i``; ``rho`` is there where ``pull`` is not zero.
    """

    signs: Array
    caps: Array
    bends: Array
    goal: float
    pull: float


class _Program(NamedTuple):
    """The problem in units in which the largest cap and the typical margin are one.

    ``l2/2 |w|^2 + <pull, f> + <ridge, f^2>/2 + sum_i box_i(y_i (w'x_i + borders_i'f))``

    Attributes
    ----------
    signs, caps, bends : (n_samples,)
        Of the samples with a positive weight.
    goal : float
    borders : (n_samples, n_free)
        Columns of the intercept and of the threshold.
    pull, ridge : (n_free,)
    l2 : float
    dual_unit, coef_unit : float
        What a dual coordinate, a coefficient and an intercept of one stand for.
    design : Design
        Of these samples, centred where the intercept is free.
    factorised : callable
        From theta to what solves for a step (`_Solve`), or None where that failed.
    """

    signs: Array
    caps: Array
    bends: Array
    goal: float
    borders: Array
    pull: Array
    ridge: Array
    l2: float
    dual_unit: float
    coef_unit: float
    design: Design
    factorised: Callable[[_Program, Array], _Solve | None]

    def scores(self, coef: Array) -> Array:
        """``X coef``, (n_samples,)."""
        return self.design.scores(coef[:, None])[:, 0]

    def pulled(self, dual: Array) -> Array:
        """``X' dual``, (n_features,)."""
        return self.design.adjoint(dual[:, None])[:, 0]

    @property
    def pairs(self) -> int:
        """Number of complementary pairs."""
        return self.caps.size * (2 if np.isfinite(self.caps[0]) else 1)


class _Direction(NamedTuple):
    """A step of each part of the state."""

    coef: Array
    free: Array
    scores: Array
    dual: Array
    below: Array
    above: Array


_Solve = Callable[[Array, Array, Array], tuple[Array, Array, Array, Array]]
"""From ``(r, rp, rf)`` to the changes of coef, free, scores and signed dual.

With signed duals ``v = y a`` and F the borders, a step solves, for given theta > 0,

    v / theta + X w + F f = r,    l2 w - X'v = -rp,    ridge f - F'v = -rf.
"""


def _over_features(program: _Program, theta: Array) -> _Solve | None:
    """Down to ``X' diag(theta) X + l2 I``, with the borders inside."""
    design, borders = program.design, program.borders
    p = design.n_features
    matrix = np.empty((p + program.ridge.size,) * 2)
    matrix[:p, :p] = design.gram(theta, np.zeros(p))
    weighted = theta[:, None] * borders
    if borders.shape[1]:
        matrix[p:, :p] = design.adjoint(weighted).T
        matrix[:p, p:] = matrix[p:, :p].T
        matrix[p:, p:] = borders.T @ weighted
    matrix.flat[:: len(matrix) + 1] += np.append(np.full(p, program.l2), program.ridge)
    factor = _cholesky(matrix.copy)
    if factor is None:
        return None

    def solve(r: Array, rp: Array, rf: Array) -> tuple[Array, Array, Array, Array]:
        dual = theta * r
        right = np.append(program.pulled(dual) - rp, borders.T @ dual - rf)
        both = cho_solve(factor, right, check_finite=False)
        coef, free = both[:p], both[p:]
        scores = program.scores(coef) + borders @ free
        return coef, free, scores, theta * (r - scores)

    return solve


def _over_samples(program: _Program, theta: Array) -> _Solve | None:
    """Down to ``X X' / l2 + diag(1 / theta)``; the borders through a Schur complement.

    X X' serves to find the step only. What the step does is measured with X: in columns of very
    different scales, rounding of X X' can hide the small ones.
    """
    outer, borders, l2 = program.design.outer_gram(), program.borders, program.l2

    def matrix() -> Array:
        built = outer * (1.0 / l2)
        built.flat[:: len(built) + 1] += 1.0 / theta
        return built

    factor = _cholesky(matrix)
    if factor is None:
        return None
    across = cho_solve(factor, borders, check_finite=False)
    corner = borders.T @ across + np.diag(program.ridge)

    def solve(r: Array, rp: Array, rf: Array) -> tuple[Array, Array, Array, Array]:
        alone = cho_solve(factor, r + program.scores(rp / l2), check_finite=False)
        free = np.asarray(np.linalg.lstsq(corner, borders.T @ alone - rf, rcond=None)[0])
        dual = alone - across @ free
        coef = (program.pulled(dual) - rp) / l2
        return coef, free, program.scores(coef) + borders @ free, dual

    return solve


def _cholesky(build: Callable[[], Array]) -> tuple[Array, bool] | None:
    """The factor of the symmetric matrix that ``build`` makes, lifted as far as needed.

    The matrix is positive definite but for rounding; a lift costs accuracy of the step only,
    since residuals are measured afresh every iteration.
    """
    lift = 0.0
    for _ in range(LIFTS):
        matrix = build()
        if not np.isfinite(matrix).all():
            return None
        if lift > 0:
            diagonal = np.einsum("ii->i", matrix)
            diagonal += lift * (diagonal + LEAST_LIFT * diagonal.max())
        try:
            # the transpose of a symmetric matrix is in the order that LAPACK overwrites in place
            factor, lower = cho_factor(matrix.T, overwrite_a=True, check_finite=False)
        except LinAlgError:
            lift = max(LEAST_LIFT, LIFT_GROWTH * lift)
        else:
            return factor, bool(lower)
    return None


@dataclass(frozen=True)
class InteriorPoint(Solver[Central]):
    """Mehrotra's predictor and corrector, with Gondzio's further corrections.

    Losses that are, in each margin, the conjugate of a linear or quadratic function on an
    interval (hinge, huberized and squared hinge), and the tail mean of the nu-SVM, lead with a
    ridge penalty to a quadratic program with one bound or two a sample,

        min  l2/2 |w|^2 + pull'f + sum_i max_{0 <= a <= u_i} {a (goal - t_i) - d_i a^2 / 2},

    with margins ``t = y (X w + F f)`` and free numbers f (intercept, threshold). An iteration
    eliminates all of it down to one positive definite matrix, over the features or over the
    samples, whichever is smaller, with the borders F inside: no null space of the constraint
    ``F'(y a) = pull`` is needed. All parts of the state move by the same step.

    Notes
    -----
    Sources: Mehrotra (1992), "On the implementation of a primal-dual interior point method";
    Gondzio (1996), "Multiple centrality corrections in a primal-dual method for linear
    programming". The models are (11), (12) and (14) of Ito, Takeda and Toh (2017), whose bounds
    carry the sample weights here.

    It stores a square matrix of the smaller of samples and features, which is at most `LARGEST`.
    The number of iterations hardly depends on the conditioning of the data; a start other than
    zero is not made use of, since points at the boundary are bad starts.
    """

    name: ClassVar[str] = "interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200

    def objection(self, problem: Problem) -> str | None:
        if not _has_box(problem):
            return "it needs a hinge loss (plain, huberized or squared), binary, or a tail mean"
        if not _has_ridge(problem):
            return "it needs a ridge penalty (without l1) and an intercept with a ridge or none"
        size = min(problem.design.n_samples, problem.design.n_features)
        if size > LARGEST:
            return (
                f"it factorises a matrix over samples or features, of which there may be "
                f"{LARGEST} at most, and the smaller number here is {size}"
            )
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> Central:
        """At zero coefficients, with equal products in all complementary pairs."""
        program = _program(problem)
        residual = -program.goal
        below = np.full(program.caps.size, max(residual, 0.0) + FIRST_SLACK)
        above = np.full(program.caps.size, max(-residual, 0.0) + FIRST_SLACK)
        dual = program.caps * (above / (below + above))
        if not np.isfinite(program.caps[0]):
            above, dual = np.zeros_like(above), FIRST_SLACK / program.bends
        return Central(
            coef=np.zeros(program.design.n_features),
            free=np.zeros(program.pull.size),
            scores=np.zeros(program.caps.size),
            dual=dual,
            room=program.caps - dual,
            below=below,
            above=above,
        )

    def step(self, problem: Problem, state: Central) -> Central:
        program = _program(problem)
        signed = program.signs * state.dual
        rp = program.l2 * state.coef - program.pulled(signed)
        rf = program.pull + program.ridge * state.free - program.borders.T @ signed
        stiffness = state.below / state.dual + state.above / state.room + program.bends
        solve = program.factorised(program, 1.0 / stiffness)
        if solve is None:
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        direction, length = _corrected(program, state, solve, rp, rf)
        length = min(1.0, TO_BOUNDARY * length)
        if not (np.isfinite(length) and np.isfinite(direction.scores).all()):
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        moved = _moved(program, state, direction, length)
        return replace(moved, n_iter=state.n_iter + 1, finished=length < SHORTEST_STEP)

    def point(self, problem: Problem, state: Central) -> Point:
        program = _program(problem)
        coef = program.coef_unit * state.coef[:, None]
        intercept = np.zeros(1)
        if problem.fits_intercept:
            intercept = program.coef_unit * state.free[:1]
        point = _touching(problem, program, Point(coef, intercept), state)
        return Point(point.coef, point.intercept - _centre(problem) @ point.coef)

    def dual(self, problem: Problem, state: Central) -> Array:
        program = _program(problem)
        dual = np.zeros((problem.design.n_samples, 1))
        dual[_live(problem), 0] = -program.dual_unit * program.signs * state.dual
        return dual

    def observe(self, problem: Problem, state: Central, gap: Gap) -> Central:
        """Give up when the gap does not follow the complementary products any more.

        Without rounding their sum is the gap, once the equations hold.
        """
        program = _program(problem)
        expected = program.dual_unit * program.coef_unit * _complementarity(state)
        ended = gap.gap > PROGRESS * state.best and expected < FOLLOWING * gap.gap
        idle = state.idle + 1 if ended else 0
        best = min(gap.gap, state.best)
        finished = state.finished or idle >= PATIENCE
        return replace(state, best=best, idle=idle, finished=finished)


def _touching(problem: Problem, program: _Program, point: Point, state: Central) -> Point:
    """Where a hinge separates the classes: the multiple of the point with least margin one.

    Weights far larger than the ridge turn the rounding of margins at one into most of the
    objective; at the least length without any loss nothing of it is left.
    """
    margins = program.signs * state.scores
    if program.bends.any() or program.goal == 0 or float(margins.min()) < SEPARATED:
        return point
    scores = program.design.scores(point.coef)[:, 0] + point.intercept[0]
    up, down = (float((y * scores[program.signs == y]).min(initial=np.inf)) for y in (1.0, -1.0))
    shift = 0.0
    if problem.intercept.is_shift_invariant and np.isfinite(up + down):
        shift = 0.5 * (down - up)
    multiple = program.goal / min(up + shift, down - shift)
    loss = float(program.caps @ np.maximum(program.goal - program.signs * scores, 0.0))
    square = 0.5 * program.l2 * float(np.vdot(point.coef, point.coef))
    square += 0.5 * problem.intercept.l2 * program.l2 / problem.penalty.l2 * point.intercept[0] ** 2
    if multiple**2 * square > square + loss:
        return point
    return Point(multiple * point.coef, multiple * (point.intercept + shift))


def _corrected(
    program: _Program, state: Central, solve: _Solve, rp: Array, rf: Array
) -> tuple[_Direction, float]:
    """Predictor, corrector, and as many further corrections as lengthen the step."""

    def toward(low: Array | float, top: Array | float) -> tuple[_Direction, float]:
        found = _direction(program, state, solve, rp, rf, low, top)
        return found, _longest(state, found)

    mean = _complementarity(state) / program.pairs
    ahead, length = toward(0.0, 0.0)
    low, top = _products(state, ahead, length)
    share = (float(low.sum() + top.sum()) / program.pairs / mean) ** 3
    target = min(share, 1.0) * mean
    low, top = target - ahead.dual * ahead.below, target + ahead.dual * ahead.above
    found, length = toward(low, top)
    for _ in range(CORRECTIONS):
        if length >= 1.0:
            break
        wanted = min(1.0, length + REACH)
        products = _products(state, found, wanted)
        low = low + _outliers(products[0], target)
        top = top + _outliers(products[1], target)
        other, reached = toward(low, top)
        if reached < length + GAIN * REACH:
            break
        found, length = other, reached
    return found, length


def _direction(
    program: _Program,
    state: Central,
    solve: _Solve,
    rp: Array,
    rf: Array,
    low: Array | float,
    top: Array | float,
) -> _Direction:
    """The Newton step towards products ``low`` and ``top`` of the complementary pairs.

    ``low`` and ``top`` already contain what corrects for the products of changes.
    """
    pushed, pressed = low / state.dual, top / state.room
    r = program.goal - program.signs * state.scores - program.bends * state.dual + pushed - pressed
    coef, free, scores, signed = solve(program.signs * r, rp, rf)
    dual = program.signs * signed
    below = pushed - state.below - state.below / state.dual * dual
    above = pressed - state.above + state.above / state.room * dual
    return _Direction(coef, free, scores, dual, below, above)


def _moved(program: _Program, state: Central, by: _Direction, step: float) -> Central:
    floor = FLOOR * np.where(np.isfinite(program.caps), program.caps, 1.0)
    capped = np.isfinite(program.caps[0])
    return replace(
        state,
        coef=state.coef + step * by.coef,
        free=state.free + step * by.free,
        scores=state.scores + step * by.scores,
        dual=np.maximum(state.dual + step * by.dual, floor),
        room=np.maximum(state.room - step * by.dual, floor),
        below=np.maximum(state.below + step * by.below, FLOOR),
        above=np.maximum(state.above + step * by.above, FLOOR) if capped else state.above,
    )


def _complementarity(state: Central) -> float:
    """Sum of the products of the complementary pairs."""
    return float(state.dual @ state.below + _tops(state.room, state.above).sum())


def _products(state: Central, by: _Direction, step: float) -> tuple[Array, Array]:
    """Products of the complementary pairs after a step."""
    low = (state.dual + step * by.dual) * (state.below + step * by.below)
    return low, _tops(state.room - step * by.dual, state.above + step * by.above)


def _tops(room: Array, above: Array) -> Array:
    """``room * above``, zero where there is no cap."""
    return np.multiply(room, above, out=np.zeros_like(above), where=np.isfinite(room))


def _outliers(products: Array, target: float) -> Array:
    """What brings products back into the range around the target, large ones only part way."""
    low, high = NARROW_RANGE
    inside = np.clip(products, low * target, high * target)
    return np.maximum(inside - products, -high * target)


def _longest(state: Central, by: _Direction) -> float:
    """The largest step up to one after which nothing is negative."""
    parts = (
        (state.dual, by.dual),
        (state.room, -by.dual),
        (state.below, by.below),
        (state.above, by.above),
    )
    fastest = max(_fall(value, change) for value, change in parts)
    return 1.0 / fastest if fastest > 1.0 else 1.0


def _fall(value: Array, change: Array) -> float:
    ratio = np.divide(change, value, out=np.zeros_like(change), where=value > 0)
    return -float(ratio.min())


# -- from the problem to the program ----------------------------------------------------------


def _has_box(problem: Problem) -> bool:
    loss = problem.loss
    if isinstance(loss, MarginSum):
        return loss.n_outputs == 1 and isinstance(loss.phi, Hinge | CappedQuadratic)
    return isinstance(loss, TailMean)


def _has_ridge(problem: Problem) -> bool:
    penalty = problem.penalty
    plain = isinstance(penalty, Ridge) or (isinstance(penalty, ElasticNet) and penalty.l1 == 0)
    return plain and penalty.l2 > 0 and isinstance(problem.intercept, Ridge | Pinned)


def _box(problem: Problem) -> _Box:
    """The loss, which `InteriorPoint.objection` has found to be of one of these types."""
    loss = problem.loss
    if isinstance(loss, TailMean):
        return _Box(loss.signs, loss.caps, np.zeros_like(loss.caps), 0.0, -1.0)
    assert isinstance(loss, MarginSum)
    weights = loss.weights[:, 0]
    bend = 1.0 / loss.phi.smoothness  # zero for the hinge
    bends = np.divide(bend, weights, out=np.zeros_like(weights), where=weights > 0)
    caps = np.where(weights > 0, weights, 0.0)
    if np.isfinite(loss.phi.dual_bound):
        caps = caps * loss.phi.dual_bound
    else:
        caps = np.where(weights > 0, np.inf, 0.0)
    return _Box(loss.signs[:, 0], caps, bends, 1.0, 0.0)


def _live(problem: Problem) -> NDArray[np.intp]:
    """Which samples have a positive weight."""
    return np.flatnonzero(problem.loss.shares > 0)


def _data(problem: Problem) -> Design:
    """The samples that count, centred where the intercept is free, which only moves it."""
    shares, live = problem.loss.shares, _live(problem)
    design = problem.design if live.size == shares.size else problem.design.rows(live)
    return centred(design, shares[live]) if problem.intercept.is_shift_invariant else design


def _centre(problem: Problem) -> Array:
    data = _data(problem)
    return data.centre if isinstance(data, StandardizedDesign) else np.zeros(data.n_features)


def _program(problem: Problem) -> _Program:
    """The program of the problem, made once and kept with it."""
    known = problem.__dict__.get("_interior_program")
    if known is None:
        known = problem.__dict__["_interior_program"] = _new_program(problem)
    program: _Program = known
    return program


def _new_program(problem: Problem) -> _Program:
    box, live, data = _box(problem), _live(problem), _data(problem)
    signs, caps = box.signs[live], box.caps[live]
    finite = np.isfinite(caps[0])
    unit = float(caps.max()) if finite else float(1.0 / box.bends[live].max())
    borders, pull, ridge = _borders(problem, box, signs)
    length = 1.0
    if box.pull:  # a homogeneous loss: the coefficients are of the order of the data over l2
        length = max(float(problem.loss.shares[live] @ data.row_norms()), 1e-300)
        length /= problem.penalty.l2
    n, p = data.n_samples, data.n_features
    wide = n <= LARGEST and (n <= WIDE * (p + pull.size) or p > LARGEST)
    return _Program(
        signs=signs,
        caps=caps / unit,
        bends=box.bends[live] * unit / length,
        goal=box.goal,
        borders=borders,
        pull=pull / unit,
        ridge=ridge * length / unit,
        l2=problem.penalty.l2 * length / unit,
        dual_unit=unit,
        coef_unit=length,
        design=data,
        factorised=_over_samples if wide else _over_features,
    )


def _borders(problem: Problem, box: _Box, signs: Array) -> tuple[Array, Array, Array]:
    """Columns, linear and quadratic coefficients of the intercept and of the threshold."""
    columns, pull, ridge = [], [], []
    if problem.fits_intercept:
        columns.append(np.ones_like(signs))
        pull.append(0.0)
        ridge.append(problem.intercept.l2)
    if box.pull:
        columns.append(-signs)
        pull.append(box.pull)
        ridge.append(0.0)
    borders = np.column_stack(columns) if columns else np.empty((signs.size, 0))
    return borders, np.array(pull), np.array(ridge)
