"""Newton's method on the dual for strictly convex smooth losses with a ridge and few samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.kernels.kernel_design import KernelDesign
from proxmargin.loop.solver import CLAIM_FRACTION, GapState
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solvers.in_samples import InSamples
from proxmargin.solvers.linear_algebra import cholesky, inverse_of
from proxmargin.solvers.smooth.margin_model import MarginExpansion, expanded, line_search
from proxmargin.traits import Trait

__all__ = ["DualNewton", "WeightsOfSamples"]

FLAT_CURVATURE = 1e-30  # curvature over the largest, below which a sample counts as linear


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightsOfSamples(GapState):
    """The state of `DualNewton`.

    Attributes
    ----------
    weights : (n_samples,)
        The a of ``w = X'a``, for centred samples if the intercept is free.
    at : Expansion
        Expansion of the loss at this point.
    """

    weights: Array
    at: MarginExpansion


@dataclass(frozen=True)
class DualNewton(InSamples[WeightsOfSamples]):
    """Newton's method with inner products K of the samples.

    With the signed dual point ``v = l2 a``, the gradient q of the loss in the scores and its
    curvatures D, a step d of v and one m of the intercept solve

        ``d + D (K d / l2 + m) = -(q + v)``,  ``sum(v + d) = l2_b (b + m)``,

    scaled symmetrically by the square roots of D. ``(q + v)' K (q + v) / (2 l2)`` is a duality gap.
    It is `RidgeNewton` for wide data, without the measures for kinks and weak ridges: on a path it
    starts close to the solution. On a kernel matrix the coefficients are the weights a.
    """

    name: ClassVar[str] = "dual-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.SINGLE_OUTPUT
    max_iter: ClassVar[int] = 60

    def objection(self, problem: Problem) -> str | None:
        refusal = super().objection(problem)
        if refusal is None and not problem.margins.phi.is_strictly_convex:
            refusal = "it needs a loss that is curved everywhere"
        return refusal

    def init(self, problem: Problem, start: Point, stop: Stop) -> WeightsOfSamples:
        design, kernel = problem.centred.design, _kernel(problem)
        weights, bare = np.zeros(design.n_samples), np.zeros(design.n_samples)
        if start.dual is not None:
            weights = -start.dual[:, 0] / problem.penalty.l2
            bare = kernel @ weights
        elif start.coef.any() and _is_kernel(problem):
            weights = start.coef[:, 0]
            bare = kernel @ weights
        elif start.coef.any():
            bare = design.scores(start.coef)[:, 0]
            weights = inverse_of(kernel)(bare)
        intercept = float(problem.centred.intercept(start)[0])
        at = expanded(problem, bare + intercept, intercept, 0.0)
        state = WeightsOfSamples(weights=weights, at=at, tol=CLAIM_FRACTION * stop.tol)
        return _with_gap(problem, state.but(unpolished=stop.polish))

    def onward(self, problem: Problem, state: WeightsOfSamples) -> WeightsOfSamples:
        return _with_gap(problem, state.but(n_iter=0, unpolished=True))

    def step(self, problem: Problem, state: WeightsOfSamples) -> WeightsOfSamples:
        l2, at, weights = problem.penalty.l2, state.at, state.weights
        step, move = _step(problem, state)
        moved = _kernel(problem) @ step
        slope, bend = l2 * float(weights @ moved), l2 * float(step @ moved)
        moved += move
        length = line_search(problem, at, moved, move, slope, bend)
        if not length > 0:
            return state.but(n_iter=state.n_iter + 1, finished=True)
        scores, intercept = at.scores + length * moved, at.intercept + length * move
        there = expanded(problem, scores, intercept, 0.0)
        size, change = float(np.linalg.norm(weights)), length * float(np.linalg.norm(step))
        reached = state.but(
            n_iter=state.n_iter + 1,
            weights=weights + length * step,
            at=there,
            point_change=change / size if size > 0 else np.inf,
            objective_change=(at.value - there.value) / (1.0 + abs(there.value)),
        )
        return _with_gap(problem, reached)

    def observe(self, problem: Problem, state: WeightsOfSamples, gap: Gap) -> WeightsOfSamples:
        return state.observed()

    def weights_of(self, problem: Problem, state: WeightsOfSamples) -> Array:
        return state.weights

    def point(self, problem: Problem, state: WeightsOfSamples) -> Point:
        data, coef = problem.centred, state.weights[:, None]
        if not _is_kernel(problem):
            coef = data.design.adjoint(coef)
        return data.point(coef, np.array([state.at.intercept]))

    def scores(self, problem: Problem, state: WeightsOfSamples) -> Array | None:
        return state.at.scores[:, None] if _is_kernel(problem) else None

    def dual(self, problem: Problem, state: WeightsOfSamples) -> Array:
        if _is_kernel(problem):
            return -problem.penalty.l2 * state.weights[:, None]
        # the gradient of the loss; ``-l2 a`` may differ from it in the null space of K
        return state.at.dual[:, None]


def _is_kernel(problem: Problem) -> bool:
    """Whether the design is a kernel matrix, whose coefficients are weights of samples."""
    return isinstance(problem.design, KernelDesign)


def _kernel(problem: Problem) -> Array:
    return problem.centred.design.outer_gram()


def _with_gap(problem: Problem, state: WeightsOfSamples) -> WeightsOfSamples:
    """The state with the gap of its point, and a claim if that meets the tolerance."""
    l2, at, weights = problem.penalty.l2, state.at, state.weights
    rest = at.dual + l2 * weights
    gap = 0.5 * float(rest @ (_kernel(problem) @ rest)) / l2
    value = at.value + 0.5 * l2 * float(weights @ (at.scores - at.intercept))
    return state.but(relative_gap=gap / max(value, problem.negligible)).claimed(final=True)


def _step(problem: Problem, state: WeightsOfSamples) -> tuple[Array, float]:
    """The Newton step of the weights and of the intercept."""
    l2, at = problem.penalty.l2, state.at
    rest = at.dual + l2 * state.weights
    root = np.sqrt(np.maximum(at.bend, FLAT_CURVATURE * at.bend.max()))
    matrix = _kernel(problem) * root
    matrix *= root[:, None]
    matrix.flat[:: root.size + 1] += l2
    factor = cholesky(matrix, overwrite=True)
    if factor is None:
        return -rest / l2, 0.0
    by_score, by_shift = root * factor.solve(np.column_stack([-rest / root, root])).T
    if not problem.fits_intercept:
        return by_score, 0.0
    own = problem.intercept.l2 / l2
    surplus = float(by_score.sum() + state.weights.sum()) - own * at.intercept
    move = surplus / (float(by_shift.sum()) + own)
    return by_score - move * by_shift, move
