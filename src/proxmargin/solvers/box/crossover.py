"""Crossover from the interior of a box to the exact optimum on one of its faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.rounding import TINY
from proxmargin.solvers.box.box_program import BoxProgram, Solve

__all__ = [
    "AT_CAP",
    "AT_ZERO",
    "FREE",
    "MAX_FACES",
    "ROUNDING_TOLERANCE",
    "Crossing",
    "ExactSolution",
    "Face",
    "Sides",
    "cross_over",
    "dual_units",
    "implied_sides",
    "work_of",
]

Sides = NDArray[np.int8]

# position of a dual coordinate in its box
AT_ZERO = -1
FREE = 0  # strictly inside
AT_CAP = 1
# active-set iterations
MAX_FACES = 8  # faces tried in one crossover
# a face is given up if more samples change sides than the larger of these
MANY_CHANGES = 10  # samples
MANY_CHANGES_FRACTION = 0.1  # of the free samples
# proximal regularisation of a singular system
PROXIMAL_WEIGHT = 1e-10  # relative to the curvature of the dual
MIN_DISTANCE = 1e-2  # to the sides of the box over the cap, in the scaling of the proximal term
MIN_CURVATURE = 1e-10  # in units of the program, for data without variation
PROXIMAL_STEPS = 12  # at most
RESIDUAL_REDUCTION = 0.3  # ratio of residuals above which a step is the last one
# violation that counts as rounding, over the cap for the box, over the scores for a margin
ROUNDING_TOLERANCE = 1e-9


class Face(NamedTuple):
    """A guess of the face of the box with the optimum, and a point to start from.

    Attributes
    ----------
    sides : (n_samples,) of `AT_ZERO`, `FREE`, `AT_CAP`
    dual : (n_samples,)
        In the interior of the box. If the optimal dual point is not unique, the proximal steps find
        one close to this one, which tends to lie in the relative interior of the face.
    free : (n_free,)
    """

    sides: Sides
    dual: Array
    free: Array


class ExactSolution(NamedTuple):
    """A solution of the optimality conditions.

    Attributes
    ----------
    coef, free, scores, dual : arrays
        As in the state of the interior point method; zeros and caps are exact.
    gap : float
        Sum of the Fenchel-Young terms of the boxes, in units of the program.
    """

    coef: Array
    free: Array
    scores: Array
    dual: Array
    gap: float


class Crossing(NamedTuple):
    """The result of a crossover: a solution or None, and the number of faces tried."""

    vertex: ExactSolution | None
    rounds: int


def implied_sides(program: BoxProgram, sides: Sides, signed: Array, scores: Array) -> Sides:
    """The sides that the solution on a face implies: the next face of an active-set method."""
    dual, inside = program.signs * signed, sides == FREE
    missing = program.goal - program.signs * scores - program.bends * dual
    slack = ROUNDING_TOLERANCE * (np.abs(program.goal) + float(np.abs(scores).max()))
    room = ROUNDING_TOLERANCE * dual_units(program, dual)
    implied = sides.copy()
    implied[inside & (dual < -room)] = AT_ZERO
    implied[inside & (dual > program.caps + room)] = AT_CAP
    implied[(sides == AT_ZERO) & (missing > slack)] = FREE
    implied[(sides == AT_CAP) & (missing < -slack)] = FREE
    return implied


def dual_units(program: BoxProgram, dual: Array) -> Array:
    """The units of dual coordinates: the caps, or the largest coordinate where there are none."""
    largest = float(np.abs(dual).max(initial=0.0))
    return np.where(np.isfinite(program.caps), program.caps, largest)


def work_of(program: BoxProgram, sides: Sides) -> float:
    """Work of a linear system on this face, in iterations of the interior point method."""
    n, p = program.design.n_samples, program.design.n_features
    count = int((sides == FREE).sum())
    if program.is_wide:
        return (1 + count) ** 3 / (1 + n) ** 3
    return (1 + count + p) / (1 + n + p)


def cross_over(program: BoxProgram, face: Face, rounds: int) -> Crossing:
    """Solve the optimality conditions on a face, and correct the face until they hold.

    With signed duals ``v = y a``, known for samples that are not free, the conditions are linear,

        bends v + X w + F f = y goal  (free samples),  l2 w = X'v,  F'v = pull + ridge f.

    They may be singular (repeated rows, more free samples than features). Proximal steps from the
    interior point converge nevertheless, and leave the part of v in the null space unchanged. A
    sample whose a leaves the box goes to that side, one whose margin is on the wrong side of the
    kink becomes free: the primal-dual active-set method, which is a semismooth Newton method
    (Hintermueller, Ito, Kunisch 2002).

    It gives up if the number of samples that change sides grows or is too large.
    """
    sides, last = face.sides, np.inf
    for used in range(1, rounds + 1):
        found = _solve_face(program, face._replace(sides=sides))
        if found is None:
            return Crossing(None, used)
        changes = int(np.count_nonzero(found.sides != sides))
        if changes == 0:
            return Crossing(_exact_solution(program, found), used)
        if changes > min(last, _max_side_changes(sides)):
            return Crossing(None, used)
        sides, last = found.sides, changes
    return Crossing(None, rounds)


class _Point(NamedTuple):
    coef: Array
    free: Array
    scores: Array
    signed: Array


class _Found(NamedTuple):
    """The solution on a face, and the sides that it implies."""

    at: _Point
    sides: Sides


def _max_side_changes(sides: Sides) -> float:
    """The number of samples that may change sides before a face is given up."""
    return max(MANY_CHANGES, MANY_CHANGES_FRACTION * np.count_nonzero(sides == FREE))


def _solve_face(program: BoxProgram, face: Face) -> _Found | None:
    """Proximal steps until the conditions hold on the face; None if the face is a bad guess."""
    inside = face.sides == FREE
    system = _proximal_system(program, face, inside)
    if system is None:
        return None
    dual = np.where(inside, face.dual, np.where(face.sides == AT_CAP, program.caps, 0.0))
    signed = program.signs * dual
    coef = program.adjoint(signed) / program.l2
    at = _Point(coef, face.free, program.scores(coef) + program.borders @ face.free, signed)
    last = np.inf
    for step in range(PROXIMAL_STEPS):
        at, rest = _proximal_step(program, system, inside, at)
        if not np.isfinite(rest):
            return None
        if step == 0:
            implied = implied_sides(program, face.sides, at.signed, at.scores)
            wrong = np.count_nonzero(implied != face.sides)
            if wrong > _max_side_changes(face.sides):
                return None
        elif rest > RESIDUAL_REDUCTION * last:
            break
        last = rest
    return _Found(at, implied_sides(program, face.sides, at.signed, at.scores))


def _proximal_system(program: BoxProgram, face: Face, inside: NDArray[np.bool_]) -> Solve | None:
    """The linear system of a proximal step, scaled by the distances to the sides of the box."""
    caps = np.where(np.isfinite(program.caps), program.caps, max(float(face.dual.max()), TINY))
    share = np.clip(np.minimum(face.dual, program.caps - face.dual) / caps, MIN_DISTANCE, 1.0)
    curvature = float(program.design.row_norms()[inside].mean()) if inside.any() else 1.0
    curvature = max(curvature / program.l2, MIN_CURVATURE)
    theta = np.zeros_like(caps)
    stiff = program.bends[inside] + PROXIMAL_WEIGHT * curvature / share[inside] ** 2
    theta[inside] = 1.0 / stiff
    proximal = program._replace(ridge=program.ridge + PROXIMAL_WEIGHT / curvature)
    return proximal.system(theta)


def _proximal_step(
    program: BoxProgram, system: Solve, inside: NDArray[np.bool_], at: _Point
) -> tuple[_Point, float]:
    """The point after a proximal step, and the largest residual before it."""
    r = program.signs * program.goal - at.scores - program.bends * at.signed
    rp = program.l2 * at.coef - program.adjoint(at.signed)
    rf = program.pull + program.ridge * at.free - program.borders.T @ at.signed
    rest = float(np.abs(r[inside]).max(initial=0.0)) + float(np.abs(rf).max(initial=0.0))
    coef, free, scores, signed = system(r, rp, rf)
    moved = _Point(at.coef + coef, at.free + free, at.scores + scores, at.signed + signed)
    return moved, rest


def _exact_solution(program: BoxProgram, found: _Found) -> ExactSolution:
    at, sides = found
    dual = np.clip(program.signs * at.signed, 0.0, program.caps)
    dual = np.where(sides == AT_ZERO, 0.0, np.where(sides == AT_CAP, program.caps, dual))
    scores = program.scores(at.coef) + program.borders @ at.free
    missing = program.goal - program.signs * scores
    best = np.where(missing > 0, program.caps, 0.0)
    curved = program.bends > 0
    best[curved] = np.clip(missing[curved] / program.bends[curved], 0.0, program.caps[curved])
    terms = (best - dual) * (missing - 0.5 * program.bends * (best + dual))
    return ExactSolution(at.coef, at.free, scores, dual, float(terms.sum()))
