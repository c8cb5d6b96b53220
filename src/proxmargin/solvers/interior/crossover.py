"""Crossover from the interior of a box to the exact optimum on one of its faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import TINY
from proxmargin.functions.losses.base import Array
from proxmargin.solvers.interior.box_program import BoxProgram, Solve

Partition = NDArray[np.int8]
"""Where each dual coordinate is in its box: -1 at its lower bound, 0 inside, 1 at its upper one."""

# active-set iterations
MAX_FACES = 8  # faces tried in one crossover
# a face is given up if more samples change sides than the larger of these
MANY_CHANGES = 10  # samples
MANY_CHANGES_FRACTION = 0.1  # of the free samples
# proximal regularisation of a singular system
PROXIMAL_WEIGHT = 1e-10  # relative to the curvature of the dual
MIN_DISTANCE = 1e-2  # to the sides of the box over its width, in the scaling of the proximal term
PROXIMAL_STEPS = 12  # at most
RESIDUAL_REDUCTION = 0.3  # ratio of residuals above which a step is the last one
# violation that counts as rounding, over the upper bound for the box, over the scores for a margin
ROUNDING_TOLERANCE = 1e-9


class Face(NamedTuple):
    """A guess of the face of the box with the optimum, and a point to start from."""

    partition: Partition  # (n_samples,)
    # (n_samples,); in the interior of the box. If the optimal dual point is not unique, the
    # proximal steps find one close to this one, which tends to lie in the relative interior of the
    # face
    dual: Array
    free: Array  # (n_free,)


class ExactSolution(NamedTuple):
    # in units of the program; bounds are exact
    coef: Array
    free: Array
    dual: Array
    gap: float  # sum of the Fenchel-Young terms of the boxes, in units of the program


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


def work_of(program: BoxProgram, partition: Partition) -> float:
    """Work of a linear system on this face, in iterations of the interior point method."""
    n, p = program.design.n_samples, program.design.n_features
    count = np.count_nonzero(partition == 0)
    if program.is_wide:
        return (1 + count) ** 3 / (1 + n) ** 3
    return (1 + count + p) / (1 + n + p)


def cross_over(program: BoxProgram, face: Face, rounds: int) -> tuple[ExactSolution | None, int]:
    """Solve the optimality conditions on a face, and correct the face until they hold.

    Returns the solution or None, and the number of faces tried, at most ``rounds``.

    With signed duals ``v = y a``, known for samples that are not free, the conditions are linear,

        curvature v + X w + F f = y target  (free samples),  l2 w = X'v,  F'v = pull + ridge f.

    They may be singular (repeated rows, more free samples than features). Proximal steps from the
    interior point converge nevertheless, and leave the part of v in the null space unchanged. A
    sample whose a leaves the box goes to that side, one whose margin is on the wrong side of the
    kink becomes free: the primal-dual active-set method, which is a semismooth Newton method
    (Hintermueller, Ito, Kunisch 2002).

    It gives up if the number of samples that change sides grows or is too large.
    """
    partition, last = face.partition, np.inf
    for used in range(1, rounds + 1):
        at = _solved_face(program, face._replace(partition=partition))
        if at is None:
            return None, used
        implied = implied_partition(program, partition, at.signed, at.scores)
        changes = int(np.count_nonzero(implied != partition))
        if changes == 0:
            return _exact_solution(program, at, partition), used
        if changes > min(last, _most_changes(partition)):
            return None, used
        partition, last = implied, changes
    return None, rounds


class _FacePoint(NamedTuple):
    coef: Array
    free: Array
    scores: Array
    signed: Array


def _most_changes(partition: Partition) -> float:
    """The number of samples that may change sides before a face is given up."""
    return max(MANY_CHANGES, MANY_CHANGES_FRACTION * np.count_nonzero(partition == 0))


def _solved_face(program: BoxProgram, face: Face) -> _FacePoint | None:
    """Proximal steps until the conditions hold on the face; None if the face is a bad guess."""
    inside, upper = face.partition == 0, face.partition > 0
    system = _proximal_system(program, face, inside)
    if system is None:
        return None
    signed = program.signs * np.where(inside, face.dual, np.where(upper, program.upper, 0.0))
    coef = program.adjoint(signed) / program.l2
    scores = program.scores(coef) + program.borders @ face.free
    at, last = _FacePoint(coef, face.free, scores, signed), np.inf
    for step in range(PROXIMAL_STEPS):
        at, rest = _proximal_step(program, system, inside, at)
        if not np.isfinite(rest):
            return None
        if step == 0:
            implied = implied_partition(program, face.partition, at.signed, at.scores)
            if np.count_nonzero(implied != face.partition) > _most_changes(face.partition):
                return None
        elif rest > RESIDUAL_REDUCTION * last:
            break
        last = rest
    return at


def _proximal_system(program: BoxProgram, face: Face, inside: NDArray[np.bool_]) -> Solve | None:
    """The linear system of a proximal step, scaled by the distances to the sides of the box."""
    width = np.where(np.isfinite(program.upper), program.upper, max(float(face.dual.max()), TINY))
    share = np.clip(np.minimum(face.dual, program.upper - face.dual) / width, MIN_DISTANCE, 1.0)
    curvature = float(program.design.row_norms()[inside].mean()) if inside.any() else 1.0
    curvature = max(curvature / program.l2, PROXIMAL_WEIGHT)  # of data that vary
    theta = np.zeros_like(width)
    stiff = program.curvature[inside] + PROXIMAL_WEIGHT * curvature / share[inside] ** 2
    theta[inside] = 1.0 / stiff
    proximal = program._replace(ridge=program.ridge + PROXIMAL_WEIGHT / curvature)
    return proximal.system(theta)


def _proximal_step(
    program: BoxProgram, system: Solve, inside: NDArray[np.bool_], at: _FacePoint
) -> tuple[_FacePoint, float]:
    """The point after a proximal step, and the largest residual before it."""
    r = program.signs * program.target - at.scores - program.curvature * at.signed
    rp = program.l2 * at.coef - program.adjoint(at.signed)
    rf = program.pull + program.ridge * at.free - program.borders.T @ at.signed
    rest = float(np.abs(r[inside]).max(initial=0.0)) + float(np.abs(rf).max(initial=0.0))
    moved = (a + b for a, b in zip(at, system(r, rp, rf), strict=True))
    return _FacePoint(*moved), rest


def _exact_solution(program: BoxProgram, at: _FacePoint, partition: Partition) -> ExactSolution:
    dual = np.clip(program.signs * at.signed, 0.0, program.upper)
    dual = np.where(partition == 0, dual, np.where(partition > 0, program.upper, 0.0))
    scores = program.scores(at.coef) + program.borders @ at.free
    missing = program.target - program.signs * scores
    best = np.where(missing > 0, program.upper, 0.0)
    curved = program.curvature > 0
    best[curved] = np.clip(missing[curved] / program.curvature[curved], 0.0, program.upper[curved])
    terms = (best - dual) * (missing - 0.5 * program.curvature * (best + dual))
    return ExactSolution(at.coef, at.free, dual, float(terms.sum()))
