"""Decomposition: the dual of a kernel machine, solved block by block with the exact kernel.

With weights of samples beta, the dual of a hinge, squared hinge or nu-SVM with a ridge is

    minimise  beta'K beta / 2 + sum_i curvature_i beta_i^2 / 2 - target sum_i y_i beta_i

over ``low_i <= beta_i <= high_i``, an interval between zero and a bound with the sign of y_i. A
free intercept fixes the sum of beta; in a nu-SVM, the sum of each class. A step minimises over a
block of coordinates, among them the most violating and the free ones, and updates ``K beta`` with
the rows of K of the coordinates that changed: the decomposition of Joachims (1999) with blocks as
large as memory allows, and sequential minimal optimisation inside (Fan, Chen and Lin 2005).

The kernel matrix of a block is kept in single precision from step to step, so that only that of new
samples is computed. Its rounding affects where a step goes but not what it is worth: ``K beta`` is
updated in double precision, and the length of a step that overshoots is the exact minimiser. Where
the rounding prevents progress, blocks are stored in double precision. As the scores of all samples
are known, a gap needs no product with the kernel: each step computes its own. A small problem is
one block in double precision, solved in one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import SLOPE_ROUNDING
from proxmargin.compiled.solvers.decomposition import pairwise, pairwise_and_faces
from proxmargin.data.kernels.checks import IndefiniteKernelError
from proxmargin.data.kernels.matrix import (
    VALUE_WORK,
    KernelDesign,
    KernelMatrix,
    kernel_matrix_of,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.threads import affordable
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.interior.box_program import box_of, has_ridge
from proxmargin.solvers.loop.solver import (
    CLAIM_FRACTION,
    GapState,
    Solver,
    Stop,
    at_least_one,
    check_numbers,
)

# -- size of a block: a large one needs fewer products with the kernel, a small one less SMO
SMALL_BLOCK = 2000  # samples up to which one block has all, and of the first blocks of more
DOUBLING = 8  # steps after which it doubles: slow progress means that the block is too small
FEW = 50  # free samples whose median is a level to compare with, or else violations on each side
LEAST_SIDE = 0.01  # share of the violation of a pair that either of it has at least
SHORT_BLOCK = 128  # samples of a block without time: for fewer, other costs of a step prevail
# -- time of a step, in multiply-adds of a matrix product, whose speed is measured
PAIR_WORK = 40.0  # of SMO for a pair of the block: about one step a coordinate, each over all
# -- accuracy of a block
PAIRS_PER_COORDINATE = 50  # limit of the SMO steps, per coordinate: a first block takes about one
WHOLE_FORCING = 1e-3  # violation left in a block that is the whole problem: about single precision
EXACT_FORCING = 1e-12  # the same in double precision, where no step is to follow
SINGLE_RANGE = 1e20  # of kernel values, either way from one: float32 and their products stay finite
# violation left in a block in double precision, each time before a step on the face of free weights
FACE_FORCINGS = np.array([1e-3, 1e-4])
DOUBLE_SAMPLES = 500  # up to which double precision is cheap: the square, 2 MB, stays in cache
OVERSHOT = 0.6  # exact length of a step over its own, below which float32 has misled the block
REFRESH_TRAVEL = 30.0  # sum of updates over |beta|_1, which multiplies the rounding of K beta
PATIENCE = 50  # steps without progress between two certificates: each costs a product


class BoxedDual(NamedTuple):
    """The dual problem, as stated at the top of the module."""

    # (n_samples,), ``linear`` is ``target y``
    low: Array
    high: Array
    curvature: Array
    linear: Array
    # (n_samples,) bool, the samples of the first sum; none if there is only one sum
    groups: NDArray[np.bool_]
    sums: tuple[float, float]  # sums of beta over the second and over the first group


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks(GapState):
    weights: Array  # (n_samples,), beta
    product: Array  # (n_samples,), ``K beta``
    block: Index  # (n_block,) int, the last block, in increasing order
    travel: float = 0.0  # sum of the absolute changes of beta since the product was last recomputed
    pairs: int = 0  # number of SMO steps so far
    # smallest value so far of the largest violation of the optimality conditions by a pair
    violation: float = np.inf
    idle: int = 0  # steps over the whole problem that did not halve the violation
    single: bool = True  # whether blocks of the kernel are stored in single precision
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class BlockDecomposition(Solver[Blocks]):
    """Block coordinate descent on the dual of a kernel machine, each block solved by SMO.

    Parameters
    ----------
    block : int
        Largest size of a block, whose ``block x block`` kernel matrix is stored.
    forcing : float in (0, 1)
        Violation at which a block counts as solved, over that of the whole problem. A block that is
        the whole problem is solved more accurately.
    max_stalled : int >= 1
        Steps over the whole problem that do not halve the violation, which has reached rounding,
        after which the method ends.
    """

    block: int = 4000
    forcing: float = 0.03
    max_stalled: int = 5

    name: ClassVar[str] = "decomposition"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    computes_gap: ClassVar[bool] = True
    check_every: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_numbers(self, "block", least=2, whole=True)
        check_numbers(self, "forcing", above=0, below=1)
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if problem.loss.box is None:
            return "it needs a hinge, squared hinge, huberized hinge or nu-SVM loss, binary"
        if not has_ridge(problem):
            return "it needs a ridge penalty"
        if not problem.intercept.is_shift_invariant:
            return "it needs a free intercept"
        if not isinstance(problem.design, KernelDesign):
            return "it needs a kernel matrix: a nonlinear kernel"
        return None

    def product_bytes(self, problem: Problem) -> int:
        return _matrix(problem).product_bytes

    def start_work(self, problem: Problem) -> float:
        """Multiply-adds of the scores of the start from zero coefficients."""
        started = _feasible(problem, np.zeros((problem.design.n_samples, 1)))
        return VALUE_WORK * int(np.count_nonzero(started)) * problem.design.n_samples

    def init(self, problem: Problem, start: Point, stop: Stop) -> Blocks:
        weights = _feasible(problem, start.coef)
        product = problem.design.scores(weights[:, None])[:, 0]
        few = weights.size <= DOUBLE_SAMPLES
        largest = 0.0 if few else float(_matrix(problem).diagonal().max())
        state = Blocks(
            weights=weights,
            product=product,
            block=np.empty(0, dtype=np.intp),
            single=not few and 1 / SINGLE_RANGE <= largest <= SINGLE_RANGE,
            stop=stop,
            tol=CLAIM_FRACTION * stop.tol,
            unpolished=few and stop.polish,
        )
        return _with_gap(problem, state) if start.coef.any() else state

    def step(self, problem: Problem, state: Blocks) -> Blocks:
        terms, matrix = _terms(problem), _matrix(problem)
        gradient = state.product + terms.curvature * state.weights - terms.linear
        worst = max(high - low for _, low, high in _ends(terms, state.weights, gradient))
        rounding = SLOPE_ROUNDING * float(np.abs(state.product).max() + np.abs(gradient).max())
        if worst <= rounding:
            return state.but(n_iter=state.n_iter + 1, finished=True)
        idle = state.idle + 1 if worst > 0.5 * state.violation else 0
        block = self._next_block(terms, state, gradient)
        solved = self._solve_block(terms, matrix, state, gradient, block, worst)
        weights, product, travel, off = _moved(terms, matrix, state, gradient, block, solved)
        before = _objective(terms, state.weights, state.product)
        fall = before - _objective(terms, weights, product)
        change = weights - state.weights
        stalled = block.size == weights.size and idle >= self.max_stalled
        after = state.but(
            n_iter=state.n_iter + 1,
            objective_change=fall / (1.0 / problem.penalty.l2 + abs(before)),
            point_change=sqrt(change @ change) / (1.0 + sqrt(state.weights @ state.weights)),
            finished=(solved.pairs == 0 and not state.single) or stalled,
            weights=weights,
            product=product,
            block=block,
            travel=travel,
            pairs=state.pairs + solved.pairs,
            violation=min(worst, state.violation),
            idle=idle,
            # beyond half of the violation signs may be wrong; false if it is NaN
            single=state.single and solved.pairs > 0 and off <= 0.5 * worst,
        )
        return _with_gap(problem, after)

    def point(self, problem: Problem, state: Blocks) -> Point:
        return Point(state.weights[:, None], np.zeros(1))

    def scores(self, problem: Problem, state: Blocks) -> Array:
        return state.product[:, None]

    def dual(self, problem: Problem, state: Blocks) -> Array:
        return -problem.penalty.l2 * state.weights[:, None]

    def _solve_block(
        self,
        terms: BoxedDual,
        matrix: KernelMatrix,
        state: Blocks,
        gradient: Array,
        block: Index,
        worst: float,
    ) -> _Solved:
        first, dtype = terms.groups[block], np.dtype(np.float32 if state.single else np.float64)
        order, square = matrix.square(dtype).of(block[first], block[~first])
        diagonal = slice(None, order.size * len(square), len(square) + 1)
        square.flat[diagonal] += terms.curvature[order]
        value, slope = state.weights[order], gradient[order]
        whole, exact = order.size == gradient.size, square.dtype == np.float64
        least = (EXACT_FORCING if exact else WHOLE_FORCING) if whole else 1.0
        split, most = int(np.count_nonzero(terms.groups[order])), PAIRS_PER_COORDINATE * order.size
        stated = (square, value, slope, terms.low[order], terms.high[order], split)
        tol, back, turned = min(self.forcing, least) * worst, np.argsort(order), None
        if whole and exact:
            pairs = pairwise_and_faces(*stated, worst * FACE_FORCINGS, tol, most)
            turned = (square @ (value - state.weights[order]))[back]
        else:
            pairs = pairwise(*stated, tol, most)[0]
        return _Solved(value[back], slope[back], int(pairs), turned)

    def _next_block(self, terms: BoxedDual, state: Blocks, gradient: Array) -> Index:
        """The next block: the largest violations, a quarter of it on each side; then free samples
        of the last block, further violations, and other free samples.

        It always contains the most violating pair (`_amounts`), so that every step decreases the
        objective. Each group has its share of both sides: pairs are of one group, and where one
        violates by weights that are too small and the other by those that are too large, the
        largest make no pair.
        """
        n = gradient.size
        free = (state.weights > terms.low) & (state.weights < terms.high)
        least = SMALL_BLOCK * 2 ** (state.n_iter // DOUBLING)
        # as many others may join those between their bounds
        most = min(self.block, max(least, 2 * int(np.count_nonzero(free))))
        while most > SHORT_BLOCK:  # kernel values of the block's rows, and its SMO steps
            work = most * (VALUE_WORK * n + PAIR_WORK * most)
            if affordable(work, state.stop.deadline, share=1.0):
                break
            most = max(most // 2, SHORT_BLOCK)
        if n <= most:
            return np.arange(n)
        if not state.weights.any():
            return _evenly(terms, most)
        short, over = _amounts(terms, state.weights, gradient)
        past = np.zeros(n, dtype=bool)
        past[state.block] = True
        amount = np.maximum(short, over)
        groups = [group for group in (terms.groups, ~terms.groups) if group.any()]
        groups.sort(key=lambda group: -float(short[group].max() + over[group].max()))
        share = max(1, most // (4 * len(groups)))
        ordered = np.concatenate(
            [
                *(_largest(side, group, share) for group in groups for side in (short, over)),
                _by_decreasing_amount(amount, past & free),
                _by_decreasing_amount(amount, (amount > 0) & ~past),
                np.flatnonzero(free),
                state.block,
            ]
        )
        _, places = np.unique(ordered, return_index=True)
        return np.sort(ordered[np.sort(places)[:most]])


class _Solved(NamedTuple):
    """Weights and gradients of a block, and the SMO steps that led there. ``turned`` is the change
    of the gradients of all samples, if the block in double precision has them all."""

    weights: Array
    gradient: Array
    pairs: int
    turned: Array | None


def _moved(
    terms: BoxedDual,
    matrix: KernelMatrix,
    state: Blocks,
    gradient: Array,
    block: Index,
    solved: _Solved,
) -> tuple[Array, Array, float, float]:
    """The step to the solution of the block, or the exact minimiser along it if it overshoots:
    weights, product, travel, and the largest error of the gradients that the block was solved
    with."""
    change = np.zeros_like(gradient)
    change[block] = solved.weights - state.weights[block]
    if solved.turned is None:
        weights = state.weights + change
        inside = (weights > terms.low) & (weights < terms.high)  # these will change again
        moved = matrix.matvec(change[:, None], inside)[:, 0]
        turned = moved + terms.curvature * change
    else:
        turned = solved.turned
        moved = turned - terms.curvature * change
    _check_curvature(matrix, change, moved)
    off = float(np.abs(gradient[block] + turned[block] - solved.gradient).max(initial=0.0))
    curvature = float(change @ turned)
    length = -float(change @ gradient) / curvature if curvature > 0 else 1.0
    weights = state.weights.copy()
    # by rounding a length may be negative: a step back would leave the box
    if 0.0 < length < OVERSHOT:
        change, moved = length * change, length * moved
        weights += change
    else:
        weights[block] = solved.weights
    travel = state.travel + float(np.abs(change).sum())
    if travel > REFRESH_TRAVEL * float(np.abs(weights).sum()):
        return weights, matrix.matvec(weights[:, None])[:, 0], 0.0, off
    return weights, state.product + moved, travel, off


def _evenly(terms: BoxedDual, most: int) -> Index:
    """So many samples of both classes, at even steps."""
    parts = [np.flatnonzero(side) for side in (terms.linear > 0, terms.linear <= 0)]
    steps = [max(1, round(2 * part.size / most)) for part in parts]
    taken = np.concatenate(
        [part[::step][: most // 2] for part, step in zip(parts, steps, strict=True)]
    )
    return np.sort(taken)


def _matrix(problem: Problem) -> KernelMatrix:
    matrix = kernel_matrix_of(problem.design)
    assert matrix is not None
    return matrix


@kept
def _terms(problem: Problem) -> BoxedDual:
    box, l2 = box_of(problem), problem.penalty.l2
    upper, up = box.upper / l2, box.signs > 0
    apart = bool(box.pull)  # a nu-SVM: each class has half of the mass
    return BoxedDual(
        low=np.where(up, 0.0, -upper),
        high=np.where(up, upper, 0.0),
        curvature=l2 * box.curvature,
        linear=box.target * box.signs,
        groups=up if apart else np.zeros(up.size, dtype=bool),
        sums=(-0.5 / l2, 0.5 / l2) if apart else (0.0, 0.0),
    )


def _feasible(problem: Problem, coef: Array) -> Array:
    """Feasible weights near ``coef``; if that is zero, feasible weights that are mostly zero."""
    terms, l2 = _terms(problem), problem.penalty.l2
    if coef.any():
        balanced: Array = problem.loss.balanced(-l2 * coef, problem.intercept)[:, 0] / -l2
        return balanced
    weights = np.zeros(coef.shape[0])
    for first, total in zip((False, True), terms.sums, strict=True):
        if not total:
            continue
        index = np.flatnonzero(terms.groups == first)
        upper = terms.high[index] - terms.low[index]
        before = np.cumsum(upper) - upper
        weights[index] = np.sign(total) * np.clip(abs(total) - before, 0.0, upper)
    return weights


def _objective(terms: BoxedDual, weights: Array, product: Array) -> float:
    """The dual objective over the strength of the ridge."""
    return float(weights @ (0.5 * (product + terms.curvature * weights) - terms.linear))


def _with_gap(problem: Problem, state: Blocks) -> Blocks:
    """The state with its duality gap, up to rounding, and a claim if that meets the tolerance. The
    coefficients are the best multiple of those of the dual point for a homogeneous loss, and those
    themselves for others. Without progress a certificate decides."""
    loss, l2, scores = problem.loss, problem.penalty.l2, state.product[:, None]
    intercept = loss.best_intercept(scores, problem.intercept, np.zeros(1))
    scores = scores + intercept
    value, square = loss.value(scores), max(float(state.weights @ state.product), 0.0)
    multiple = 1.0
    if loss.is_homogeneous:
        multiple = problem.best_multiple(Point(np.array([[np.sqrt(square)]]), intercept), value)
    gap = multiple * loss.fenchel_young(scores, -l2 * state.weights[:, None])
    gap += 0.5 * l2 * (multiple - 1.0) ** 2 * square
    primal = multiple * value + 0.5 * l2 * multiple**2 * square
    scale = max(abs(primal), abs(primal - gap), problem.negligible)
    priced = state.but(relative_gap=gap / scale).claimed(final=True)
    stuck = state.idle > 0 and state.idle % PATIENCE == 0
    return priced.but(claims=True) if stuck else priced


def _check_curvature(matrix: KernelMatrix, change: Array, product: Array) -> None:
    """Raise if the Rayleigh quotient of a step proves that the kernel is indefinite."""
    size = float(change @ change)
    if matrix.is_definite or size == 0.0:
        return
    quotient, largest = float(change @ product) / size, float(matrix.diagonal().max())
    if quotient < -matrix.negative * largest:
        raise IndefiniteKernelError(quotient, largest)


def _ends(terms: BoxedDual, weights: Array, gradient: Array) -> list[tuple[Index, float, float]]:
    """For each group the least gradient of weights that may grow, and the largest of others."""
    found = []
    for group in (terms.groups, ~terms.groups):
        index = np.flatnonzero(group)
        if not index.size:
            continue
        at, g = weights[index], gradient[index]
        lowest = float(g[at < terms.high[index]].min(initial=np.inf))
        highest = float(g[at > terms.low[index]].max(initial=-np.inf))
        found.append((index, lowest, highest))
    return found


def _amounts(terms: BoxedDual, weights: Array, gradient: Array) -> tuple[Array, Array]:
    """Violation of each sample by a weight that is too small, and by one that is too large.

    Gradients are compared with one level a group, the median over the free samples, which estimates
    the intercept. A few free samples may estimate it so badly that one side has next to no
    violation: samples are compared with the furthest one of the other side then. The most violating
    pair has positive amounts.
    """
    short, over = np.zeros_like(gradient), np.zeros_like(gradient)
    for index, lowest, highest in _ends(terms, weights, gradient):
        if not highest > lowest:
            continue
        at, g = weights[index], gradient[index]
        grows, falls = at < terms.high[index], at > terms.low[index]
        free = g[grows & falls]
        level = float(np.median(free)) if free.size else 0.5 * (lowest + highest)
        inside = LEAST_SIDE * (highest - lowest)
        above = below = min(max(level, lowest + inside), highest - inside)
        if free.size < FEW and min(np.sum(g[grows] < level), np.sum(g[falls] > level)) < FEW:
            above, below = highest, lowest
        short[index] = np.where(grows, np.maximum(above - g, 0.0), 0.0)
        over[index] = np.where(falls, np.maximum(g - below, 0.0), 0.0)
    return short, over


def _largest(amount: Array, among: NDArray[np.bool_], count: int) -> Index:
    """Indices of the ``count`` largest amounts ``among`` some, of those that are positive."""
    index = np.flatnonzero(among & (amount > 0))
    if count < index.size:
        index = index[np.argpartition(amount[index], -count)[-count:]]
    return index


def _by_decreasing_amount(amount: Array, among: NDArray[np.bool_]) -> Index:
    """Indices ``among`` in the order of decreasing amount."""
    index = np.flatnonzero(among)
    return index[np.argsort(-amount[index], kind="stable")]
