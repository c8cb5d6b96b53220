"""Smooth losses that are strictly convex, in inner products: Newton's method."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.paths.active_set import DualSolution
from proxmargin.problem import Problem
from proxmargin.solvers.linear_algebra import cholesky
from proxmargin.solvers.smooth.margin_model import Expansion, expanded, line_search
from proxmargin.traits import Trait

__all__ = ["DualNewton"]

Array = NDArray[np.float64]

MOST_STEPS = 60  # of a strength
SHARP = 1e-3  # gap, over the tolerance, that needs no further step
PROVED = 0.5  # of the tolerance: certificates, whose gap includes rounding, then confirm it
FLAT_CURVATURE = 1e-30  # of the largest curvature: below, a sample counts as linear


class DualNewton:
    """Newton's method from the coefficients of the strength before.

    With the gradient q of the loss in the scores and its curvatures D, a step d of the signed dual
    point and one m of the intercept solve

        d + D (K d / l2 + m) = -(q + v),   sum(v + d) = 0,

    scaled symmetrically by the roots of D. ``(q + v)' K (q + v) / (2 l2)`` is a duality gap.
    Where it meets the tolerance one more step follows, as a relative gap of 1e-6 leaves errors of
    1e-3 in the coefficients, and a step squares the gap.

    Parameters
    ----------
    problem : Problem
        With any of the strengths.
    kernel : (n_samples, n_samples)
        Inner products, of centred samples where the intercept is free.
    """

    name: ClassVar[str] = "dual-newton"

    @staticmethod
    def takes(problem: Problem) -> bool:
        return Trait.SMOOTH in problem.loss.traits and problem.margins.phi.is_strictly_convex

    def __init__(self, problem: Problem, kernel: Array) -> None:
        self.kernel, self.free = kernel, problem.fits_intercept
        self.coef = np.zeros(len(kernel))  # v / l2: the weights of the samples
        self.intercept = 0.0

    def restart(self, problem: Problem, dual: Array) -> None:
        """From a signed dual point that was found elsewhere."""
        self.coef = dual / problem.penalty.l2

    def solved(self, problem: Problem, tol: float) -> DualSolution | None:
        """The solution; None where the gap does not fall to the tolerance."""
        l2, v = problem.penalty.l2, problem.penalty.l2 * self.coef
        at = expanded(problem, self.kernel @ self.coef + self.intercept, self.intercept, 0.0)
        polished = False
        for steps in range(MOST_STEPS):
            bare = at.scores - at.intercept
            rest = at.dual + v
            pulled = self.kernel @ rest
            gap = 0.5 * float(rest @ pulled) / l2
            least = PROVED * tol * (at.value + 0.5 * float(v @ bare))
            if gap <= least and (polished or gap <= SHARP * least):
                self.coef, self.intercept = v / l2, at.intercept
                return DualSolution(v, steps)
            polished = gap <= least
            step, move = self._step(at, v, rest, l2)
            moved = self.kernel @ step / l2
            slope, bend = float(v @ moved), float(step @ moved)
            moved += move
            length = line_search(problem, at, moved, move, slope, bend)
            if not length > 0:
                return None
            v = v + length * step
            at = expanded(problem, at.scores + length * moved, at.intercept + length * move, 0.0)
        return None

    def _step(self, at: Expansion, v: Array, rest: Array, l2: float) -> tuple[Array, float]:
        """Newton's step of the dual point and of the intercept."""
        root = np.sqrt(np.maximum(at.bend, FLAT_CURVATURE * at.bend.max()))
        matrix = self.kernel * root
        matrix *= root[:, None]
        matrix.flat[:: root.size + 1] += l2
        factor = cholesky(matrix, overwrite=True)
        if factor is None:
            return -rest, 0.0
        columns = np.column_stack([-l2 * rest / root, root])
        by_score, by_shift = root * factor.solve(columns).T
        if not self.free:
            return by_score, 0.0
        level = float(by_score.sum() + v.sum()) / float(by_shift.sum())
        return by_score - level * by_shift, level / l2
