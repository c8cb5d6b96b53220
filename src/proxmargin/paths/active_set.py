"""Losses with a box on their dual points, in inner products: the primal-dual active-set method."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.problem import Problem
from proxmargin.solvers.box.box_program import box_of
from proxmargin.solvers.linear_algebra import cholesky

__all__ = ["ActiveSet", "DualSolution"]

Array = NDArray[np.float64]
Sides = NDArray[np.int8]

# where a dual coordinate is in its box
AT_ZERO = -1
FREE = 0  # strictly inside
AT_CAP = 1
MOST_FACES = 40  # tried for a strength
# relative: of coordinates to the box, of margins to the scores
ROUNDING = 1e-9
PROXIMAL = 1e-13  # of the inner products, on their diagonal: repeated samples share their weight


class DualSolution(NamedTuple):
    """The solution of a strength.

    Attributes
    ----------
    dual : (n_samples,)
        Signed: ``w = X' dual / l2``.
    steps : int
        Linear systems that it took.
    """

    dual: Array
    steps: int


class _At(NamedTuple):
    """A solution on a face: signed dual point and scores, (n_samples,)."""

    dual: Array
    scores: Array


class ActiveSet:
    """The faces of the box that hold the optima, each found from the one of the strength before.

    Margins are known to be at the goal where dual coordinates are free; on a face the optimality
    conditions are linear,

        K v / l2 + b + bends v = y goal  (free samples),   sum(v) = 0.

    Samples whose coordinate leaves the box go to that side, and those whose margin is on the wrong
    side of the goal become free. It is a semismooth Newton method (Hintermueller, Ito, Kunisch
    2002) and ends at the exact solution, or, which has no guarantee, not at all.

    Parameters
    ----------
    problem : Problem
        With any of the strengths.
    kernel : (n_samples, n_samples)
        Inner products, of centred samples where the intercept is free.
    """

    name: ClassVar[str] = "active-set"

    @staticmethod
    def takes(problem: Problem) -> bool:
        box = problem.loss.box
        return box is not None and box.pull == 0

    def __init__(self, problem: Problem, kernel: Array) -> None:
        self.kernel, self.free = kernel, problem.fits_intercept
        self.signs, self.caps, self.bends, self.goal, _ = box_of(problem)
        level = float(np.trace(kernel)) / len(kernel)
        self.bump = PROXIMAL * level
        # dual points of a free intercept sum to zero: this changes b alone, and makes K definite
        self.lift = level if self.free else 0.0
        self.sides = self._first_sides()

    def _first_sides(self) -> Sides:
        """Those of a ridge so strong that all margins are below their goal or at it."""
        sides = np.full(self.caps.size, AT_CAP, np.int8)
        if not np.isfinite(self.caps).all():
            sides[:] = FREE
        elif self.free:
            surplus = float(self.signs @ self.caps)
            sides[self.signs * surplus > ROUNDING * self.caps.sum()] = FREE
        return sides

    def restart(self, problem: Problem, dual: Array) -> None:
        """From a signed dual point that was found elsewhere."""
        a = self.signs * dual
        room = ROUNDING * self._units(a)
        self.sides = np.full(a.size, FREE, np.int8)
        self.sides[a <= room] = AT_ZERO
        self.sides[a >= self.caps - room] = AT_CAP

    def solved(self, problem: Problem, tol: float) -> DualSolution | None:
        """The exact solution; None where the faces do not end, or a system cannot be solved."""
        l2, sides = problem.penalty.l2, self.sides
        for steps in range(1, MOST_FACES + 1):
            at = self._on(sides, l2)
            if at is None or not np.isfinite(at.scores).all():
                return None
            following = self._following(sides, at)
            if np.array_equal(following, sides):
                self.sides = sides
                return DualSolution(at.dual, steps)
            sides = following
        return None

    def _on(self, sides: Sides, l2: float) -> _At | None:
        """The solution on a face; None without one."""
        dual = np.zeros_like(self.goal)
        full = sides == AT_CAP
        dual[full] = self.signs[full] * self.caps[full]
        inside = np.flatnonzero(sides == FREE)
        right = l2 * self.signs * self.goal - self.kernel @ dual
        if not inside.size:
            return self._on_a_corner(sides, dual, l2)
        matrix = self.kernel[np.ix_(inside, inside)]
        matrix += self.lift
        matrix.flat[:: inside.size + 1] += l2 * self.bends[inside] + self.bump
        factor = cholesky(matrix, overwrite=True)
        if factor is None:
            return None
        columns = np.column_stack([right[inside], np.ones(inside.size)])
        by_score, by_shift = factor.solve(columns).T
        shift = 0.0
        if self.free:
            shift = float(by_score.sum() + dual.sum()) / float(by_shift.sum())
        part = by_score - shift * by_shift
        dual[inside] = part
        shift += self.lift * float(part.sum())
        return _At(dual, (self.kernel @ dual + shift) / l2)

    def _on_a_corner(self, sides: Sides, dual: Array, l2: float) -> _At | None:
        """No coordinate is free: any intercept does that keeps all margins on their sides."""
        if not self.free:
            return _At(dual, self.kernel @ dual / l2)
        if abs(float(dual.sum())) > ROUNDING * float(np.abs(dual).sum()):
            return None
        bare = self.kernel @ dual / l2
        edge, upper = self.signs * self.goal - bare, sides * self.signs > 0
        low, high = edge[~upper].max(initial=-np.inf), edge[upper].min(initial=np.inf)
        ends = [end for end in (low, high) if np.isfinite(end)]
        return _At(dual, bare + float(np.mean(ends)))

    def _following(self, sides: Sides, at: _At) -> Sides:
        """The sides that a solution on a face asks for."""
        a, inside = self.signs * at.dual, sides == FREE
        missing = self.goal - self.signs * at.scores - self.bends * a
        wrong = ROUNDING * (np.abs(self.goal) + float(np.abs(at.scores).max()))
        room = ROUNDING * self._units(a)
        following = sides.copy()
        following[inside & (a < -room)] = AT_ZERO
        following[inside & (a > self.caps + room)] = AT_CAP
        following[(sides == AT_ZERO) & (missing > wrong)] = FREE
        following[(sides == AT_CAP) & (missing < -wrong)] = FREE
        return following

    def _units(self, a: Array) -> Array:
        """Of the coordinates: the caps, or the largest of them where there are none."""
        return np.where(np.isfinite(self.caps), self.caps, float(np.abs(a).max(initial=0.0)))
