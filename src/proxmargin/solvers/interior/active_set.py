"""The active-set method, on the faces of the box of the dual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import DIAGONAL_SHIFT
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import factor_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.box_program import (
    BoxProgram,
    box_objection,
    live_samples,
    program_of,
)
from proxmargin.solvers.loop.solver import GapState, Solver, Stop, at_least_one
from proxmargin.solvers.shared.numerical import cholesky

Partition = NDArray[np.int8]
"""Where each dual coordinate is in its box: -1 at its lower bound, 0 inside, 1 at its upper one."""

# violation that counts as rounding, over the upper bound for the box, over the scores for a margin
ROUNDING_TOLERANCE = 1e-9


def partition_of(lower: NDArray[np.bool_], upper: NDArray[np.bool_]) -> Partition:
    """The partition of coordinates at their lower and upper bounds; free where at both."""
    return upper.astype(np.int8) - lower.astype(np.int8)


def implied_partition(
    program: BoxProgram, partition: Partition, signed: Array, scores: Array
) -> Partition:
    """What the solution on a face implies: the next face of an active-set method."""
    dual, inside = program.signs * signed, partition == 0
    missing = program.target - program.signs * scores - program.curvature * dual
    slack = ROUNDING_TOLERANCE * (np.abs(program.target) + float(np.abs(scores).max()))
    room = ROUNDING_TOLERANCE * dual_units(program, dual)
    lower = np.where(inside, dual < -room, (partition < 0) & (missing <= slack))
    upper = np.where(inside, dual > program.upper + room, (partition > 0) & (missing >= -slack))
    return partition_of(lower, upper)


def dual_units(program: BoxProgram, dual: Array) -> Array:
    """The units of dual coordinates: the upper bounds, or the largest one where there are none."""
    largest = float(np.abs(dual).max(initial=0.0))
    return np.where(np.isfinite(program.upper), program.upper, largest)


FULL_EXCHANGES = 3  # steps without fewer samples on wrong sides, before one is exchanged at a time
NEAR = 1e-6  # distance of a margin of a start to its target, over the scores, that counts as zero


@dataclass(frozen=True, eq=False, kw_only=True)
class ActiveSetState(GapState):
    """The state of `ActiveSet`, in units of `BoxProgram`, for the samples with positive weight."""

    # (n_samples,); the face of the box for the next step
    partition: Partition
    signed: Array  # (n_samples,); the dual point v: ``w = X'v / l2``
    free: Array  # (n_free,); intercept and threshold, as far as the model has them
    # smallest number of samples on wrong sides of a face so far
    wrong: int = np.iinfo(np.int64).max
    idle: int = 0  # faces since then


class _FaceSolution(NamedTuple):
    signed: Array
    free: Array
    scores: Array


@dataclass(frozen=True)
class ActiveSet(Solver[ActiveSetState]):
    """The primal-dual active-set method, with inner products K of the samples.

    Where a dual coordinate lies strictly inside the box, the margin is at its target, so that on a
    face the optimality conditions are linear,

        ``K v / l2 + F f + curvature v = y target`` (samples inside),  ``F'v = pull + ridge f``,

    with columns F of the intercept and, for the tail mean, of the threshold. A sample whose
    coordinate leaves the box goes to that side of it, and one whose margin is on the wrong side of
    the target becomes free: a semismooth Newton method (Hintermueller, Ito, Kunisch 2002). It ends
    at the exact solution after a few faces or, as there is no guarantee, not at all.

    Parameters
    ----------
    max_samples : int >= 1
        Largest number of samples; the inner products and a factor of 3000 samples take 72 MB each.
    """

    max_samples: int = 3000

    name: ClassVar[str] = "active-set"
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 40  # number of faces

    def __post_init__(self) -> None:
        at_least_one(self, "max_samples")

    def objection(self, problem: Problem) -> str | None:
        missing = box_objection(problem) or super().objection(problem)
        if missing:
            return missing
        samples = problem.design.n_samples
        if samples > problem.design.n_features:
            return (
                "it needs as many features as samples or more: others have singular inner products"
            )
        if samples > self.max_samples:
            return (
                f"it factorises inner products of samples, {self.max_samples} at most, and there "
                f"are {samples}"
            )
        return None

    def work(self, problem: Problem) -> float:
        samples, design = problem.design.n_samples, problem.design
        return gram_work(design.n_features, samples, design.density) + factor_work(samples)

    def init(self, problem: Problem, start: Point, stop: Stop) -> ActiveSetState:
        program = program_of(problem)
        return ActiveSetState(
            partition=_first_partition(problem, program, start),
            signed=np.zeros_like(program.signs),
            free=np.zeros_like(program.pull),
            tol=stop.tol,
        )

    def onward(self, problem: Problem, state: ActiveSetState) -> ActiveSetState:
        """The first state for a problem with another ridge, from the solution of this one."""
        most = np.iinfo(np.int64).max
        return state.but(n_iter=0, wrong=most, idle=0, claims=False, exact=False, finished=False)

    def step(self, problem: Problem, state: ActiveSetState) -> ActiveSetState:
        program = program_of(problem)
        face = _with_balance(program, state.partition)
        at = _solution_on_face(program, face)
        if at is None or not np.isfinite(at.scores).all():
            return state.but(n_iter=state.n_iter + 1, finished=True)
        partition = implied_partition(program, face, at.signed, at.scores)
        wrong = np.flatnonzero(partition != face)
        ended = wrong.size == 0
        idle = 0 if wrong.size < state.wrong else state.idle + 1
        if idle > FULL_EXCHANGES:
            partition[wrong[:-1]] = face[wrong[:-1]]
        return state.but(
            n_iter=state.n_iter + 1,
            wrong=min(wrong.size, state.wrong),
            idle=idle,
            partition=partition,
            signed=at.signed,
            free=at.free,
            relative_gap=0.0 if ended else np.inf,
            exact=ended,
            finished=ended,
        ).claimed(final=True)

    def weights_of(self, problem: Problem, state: ActiveSetState) -> Array:
        program = program_of(problem)
        inner = np.zeros(problem.design.n_samples)
        inner[live_samples(problem)] = program.coef_unit / program.l2 * state.signed
        return inner

    def point(self, problem: Problem, state: ActiveSetState) -> Point:
        program, data = program_of(problem), problem.centred
        coef = data.design.adjoint(self.weights_of(problem, state)[:, None])
        intercept = np.zeros(1)
        if problem.fits_intercept:
            intercept[0] = program.coef_unit * state.free[0]
        return data.point(coef, intercept)

    def dual(self, problem: Problem, state: ActiveSetState) -> Array:
        program = program_of(problem)
        return program.dual_point(problem, program.signs * state.signed)


def _first_partition(problem: Problem, program: BoxProgram, start: Point) -> Partition:
    """The face of a known solution; else of a ridge so strong that no margin exceeds its target.
    The margins of a warm start give the partition, unless there is a threshold, which they do not
    give."""
    live, tail = live_samples(problem), bool(problem.fits_intercept < program.pull.size)
    if start.dual is not None:
        dual = -program.signs * start.dual[live, 0] / program.dual_unit
        room = ROUNDING_TOLERANCE * dual_units(program, dual)
        return partition_of(dual <= room, dual >= program.upper - room)
    if start.coef.any() and not tail:
        scores = problem.design.scores(start.coef)[live, 0] + start.intercept[0]
        missing = program.target - program.signs * scores / program.coef_unit
        room = NEAR * (np.abs(program.target) + float(np.abs(scores / program.coef_unit).max()))
        return partition_of(missing < -room, missing - program.curvature * program.upper > room)
    if tail or not np.isfinite(program.upper).all():
        return np.zeros(program.upper.size, np.int8)
    # the heavier class must not be at its upper bounds
    surplus = float(program.signs @ program.upper) if problem.fits_intercept else 0.0
    heavier = program.signs * surplus > ROUNDING_TOLERANCE * program.upper.sum()
    return np.where(heavier, 0, 1).astype(np.int8)


def _with_balance(program: BoxProgram, partition: Partition) -> Partition:
    """The face; an edge of it instead of a corner whose sum violates the intercept's constraint.
    The surplus of the sum moves the intercept until the first margin reaches its target: that of a
    sample of the heavier class at its bound, or of the other class at zero."""
    if program.pull.size != 1 or program.ridge[0] > 0 or np.any(partition == 0):
        return partition
    signed = _at_upper(program, partition)
    surplus = float(program.borders[:, 0] @ signed - program.pull[0])
    if abs(surplus) <= ROUNDING_TOLERANCE * float(np.abs(signed).sum() + np.abs(program.pull[0])):
        return partition
    edge, upper = _edges(program, partition, signed)
    pulled = np.flatnonzero(upper == (surplus > 0))
    edge = edge[pulled] if surplus > 0 else -edge[pulled]
    freed = partition.copy()
    freed[pulled[edge.argmin()]] = 0
    return freed


def _at_upper(program: BoxProgram, partition: Partition) -> Array:
    """The dual point at a corner."""
    return np.where(partition > 0, program.signs * program.upper, 0.0)


def _edges(
    program: BoxProgram, partition: Partition, signed: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """The intercept at which each margin of a corner reaches its target, and whether that is an
    upper bound of the intercept; otherwise it is a lower bound."""
    bare, border = program.design.outer_gram() @ signed / program.l2, program.borders[:, 0]
    return (program.signs * program.target - bare) / border, partition * program.signs * border > 0


def _solution_on_face(program: BoxProgram, partition: Partition) -> _FaceSolution | None:
    kernel, borders, l2 = program.design.outer_gram(), program.borders, program.l2
    inside, signed = np.flatnonzero(partition == 0), _at_upper(program, partition)
    if not inside.size:
        return _solution_at_corner(program, partition, signed)
    level = float(np.trace(kernel)) / len(kernel)
    right = l2 * program.signs * program.target - kernel @ signed
    part = borders[inside]
    # F'v is known where f has no ridge: adding a multiple of F F' changes only f, and makes K
    # definite
    lift = np.where(program.ridge == 0, level, 0.0)
    matrix = kernel[np.ix_(inside, inside)] + (part * lift) @ part.T
    matrix.flat[:: inside.size + 1] += l2 * program.curvature[inside] + DIAGONAL_SHIFT * level
    factor = cholesky(matrix, overwrite=True)
    if factor is None:
        return None
    both = factor.solve(np.column_stack([right[inside], part]))
    alone, across = both[:, 0], both[:, 1:]
    corner = part.T @ across + np.diag(program.ridge / l2)
    known = part.T @ alone + borders.T @ signed - program.pull
    if known.size == 1:
        free = known / corner[0]
    else:  # least squares: samples of one class do not separate threshold and intercept
        free = np.asarray(np.linalg.lstsq(corner, known, rcond=None)[0])
    signed[inside] = alone - across @ free
    free = (free + lift * (part.T @ signed[inside])) / l2
    return _FaceSolution(signed, free, kernel @ signed / l2 + borders @ free)


def _solution_at_corner(
    program: BoxProgram, partition: Partition, signed: Array
) -> _FaceSolution | None:
    """The solution at a corner: any intercept that keeps all margins on their sides."""
    bare = program.design.outer_gram() @ signed / program.l2
    if not program.pull.size:
        return _FaceSolution(signed, np.zeros(0), bare)
    if program.pull.size > 1:
        return None
    if program.ridge[0] > 0:
        free = (program.borders.T @ signed - program.pull) / program.ridge
        return _FaceSolution(signed, free, bare + program.borders @ free)
    edge, upper = _edges(program, partition, signed)
    low, high = edge[~upper].max(initial=-np.inf), edge[upper].min(initial=np.inf)
    ends = [end for end in (low, high) if np.isfinite(end)]
    free = np.array([np.mean(ends)])
    return _FaceSolution(signed, free, bare + program.borders @ free)
