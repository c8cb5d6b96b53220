"""From the interior of a box to the exact optimum on one of its faces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.solvers.box.box_program import BoxProgram, Solve

__all__ = [
    "AT_CAP",
    "AT_ZERO",
    "FREE",
    "ROUNDS",
    "Crossing",
    "ExactSolution",
    "Face",
    "crossed",
    "work_of",
]

# sides of the box that a dual coordinate may be on
AT_ZERO, FREE, AT_CAP = -1, 0, 1
# faces tried in a row
ROUNDS = 8
# a solution that puts more samples than this, and more than this share of the free ones, on other
# sides is that of a bad guess
FEW, WRONG = 10, 0.1
# weight of the proximal term, relative to the curvature of the dual; coordinates move as if they
# were at least this share of their cap away from the sides
PROXIMAL, NEAREST = 1e-10, 1e-2
# the least curvature, in units of the program: that of data without any variation
FLAT = 1e-10
# proximal steps at most; one that leaves more than this share of the residual is the last
STEPS, FALL = 12, 0.3
# how far beyond a side, in units of the cap, and how wrong a margin, relative to the largest
# score, may be from rounding
BEYOND = 1e-9


class Face(NamedTuple):
    """A guess of the face of the box that holds the optimum, and a point to start from.

    Attributes
    ----------
    sides : (n_samples,) of `AT_ZERO`, `FREE`, `AT_CAP`
    dual : (n_samples,)
        In the interior of the box. Where the optimal dual point is not unique, the one close to
        this is found, which tends to be inside the face.
    free : (n_free,)
    """

    sides: NDArray[np.int8]
    dual: Array
    free: Array


class ExactSolution(NamedTuple):
    """A solution of the optimality conditions.

    Attributes
    ----------
    coef, free, scores, dual : arrays
        As in the state of the interior point method, zeros and caps exact.
    gap : float
        Sum of the Fenchel-Young terms of the boxes, in units of the program.
    """

    coef: Array
    free: Array
    scores: Array
    dual: Array
    gap: float


class Crossing(NamedTuple):
    """What came of a guess: a solution or none, and how many faces it took."""

    vertex: ExactSolution | None
    rounds: int


def work_of(program: BoxProgram, sides: NDArray[np.int8]) -> float:
    """The work of a system on a face like this one, as a share of an interior iteration's."""
    n, p = program.design.n_samples, program.design.n_features
    count = int((sides == FREE).sum())
    if program.is_wide:
        return (1 + count) ** 3 / (1 + n) ** 3
    return (1 + count + p) / (1 + n + p)


def crossed(program: BoxProgram, face: Face, rounds: int) -> Crossing:
    """Solve the optimality conditions on a face, and correct the face where they are not met.

    With signed duals ``v = y a`` known off the free samples, the conditions are linear,

        bends v + X w + F f = y goal  (free samples),  l2 w = X'v,  F'v = pull + ridge f.

    They may be singular (repeated rows, more free samples than features): proximal steps from
    the interior point solve them all the same, and leave undetermined parts of v where they are.
    Samples whose a is beyond a side of the box go to that side, those whose margin is on the
    wrong side of the kink become free: the semismooth Newton method for these conditions, or
    primal-dual active-set method (Hintermueller, Ito, Kunisch 2002).

    It gives up where a solution would change more sides than the one before, or too many.
    """
    sides, last = face.sides, np.inf
    for used in range(1, rounds + 1):
        found = _solved(program, face._replace(sides=sides))
        if found is None:
            return Crossing(None, used)
        changes = int(np.count_nonzero(found.sides != sides))
        if changes == 0:
            return Crossing(_vertex(program, found), used)
        if changes > min(last, _bearable(sides)):
            return Crossing(None, used)
        sides, last = found.sides, changes
    return Crossing(None, rounds)


class _Point(NamedTuple):
    coef: Array
    free: Array
    scores: Array
    signed: Array


class _Found(NamedTuple):
    """The solution on a face, and on which sides its samples should have been."""

    at: _Point
    sides: NDArray[np.int8]


def _bearable(sides: NDArray[np.int8]) -> float:
    """With more wrong sides than this a face is not worth correcting."""
    return max(FEW, WRONG * np.count_nonzero(sides == FREE))


def _solved(program: BoxProgram, face: Face) -> _Found | None:
    """Proximal steps until the conditions hold on the face, or it is seen to be a wrong one."""
    inside = face.sides == FREE
    system = _factorised(program, face, inside)
    if system is None:
        return None
    dual = np.where(inside, face.dual, np.where(face.sides == AT_CAP, program.caps, 0.0))
    signed = program.signs * dual
    coef = program.pulled(signed) / program.l2
    at = _Point(coef, face.free, program.scores(coef) + program.borders @ face.free, signed)
    last = np.inf
    for step in range(STEPS):
        at, rest = _improved(program, system, inside, at)
        if not np.isfinite(rest):
            return None
        if step == 0:
            wrong = np.count_nonzero(_sides(program, face.sides, at) != face.sides)
            if wrong > _bearable(face.sides):
                return None
        elif rest > FALL * last:
            break
        last = rest
    return _Found(at, _sides(program, face.sides, at))


def _factorised(program: BoxProgram, face: Face, inside: NDArray[np.bool_]) -> Solve | None:
    """The system of a proximal step; far from the sides of the box steps may be long."""
    caps = np.where(np.isfinite(program.caps), program.caps, max(float(face.dual.max()), 1e-300))
    share = np.clip(np.minimum(face.dual, program.caps - face.dual) / caps, NEAREST, 1.0)
    curvature = float(program.design.row_norms()[inside].mean()) if inside.any() else 1.0
    curvature = max(curvature / program.l2, FLAT)
    theta = np.zeros_like(caps)
    stiff = program.bends[inside] + PROXIMAL * curvature / share[inside] ** 2
    theta[inside] = 1.0 / stiff
    proximal = program._replace(ridge=program.ridge + PROXIMAL / curvature)
    return program.factorised(proximal, theta)


def _improved(
    program: BoxProgram, system: Solve, inside: NDArray[np.bool_], at: _Point
) -> tuple[_Point, float]:
    """A proximal step, and the largest residual that it started from."""
    r = program.signs * program.goal - at.scores - program.bends * at.signed
    rp = program.l2 * at.coef - program.pulled(at.signed)
    rf = program.pull + program.ridge * at.free - program.borders.T @ at.signed
    rest = float(np.abs(r[inside]).max(initial=0.0)) + float(np.abs(rf).max(initial=0.0))
    coef, free, scores, signed = system(r, rp, rf)
    moved = _Point(at.coef + coef, at.free + free, at.scores + scores, at.signed + signed)
    return moved, rest


def _sides(program: BoxProgram, sides: NDArray[np.int8], at: _Point) -> NDArray[np.int8]:
    """Where the samples should be, judging by a solution."""
    dual = program.signs * at.signed
    units = np.where(np.isfinite(program.caps), program.caps, float(np.abs(dual).max()))
    missing = program.goal - program.signs * at.scores - program.bends * dual
    wrong = BEYOND * (program.goal + float(np.abs(at.scores).max()))
    corrected = sides.copy()
    inside = sides == FREE
    corrected[inside & (dual < -BEYOND * units)] = AT_ZERO
    corrected[inside & (dual > program.caps + BEYOND * units)] = AT_CAP
    corrected[(sides == AT_ZERO) & (missing > wrong)] = FREE
    corrected[(sides == AT_CAP) & (missing < -wrong)] = FREE
    return corrected


def _vertex(program: BoxProgram, found: _Found) -> ExactSolution:
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
