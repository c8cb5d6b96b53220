"""A smooth loss with a ridge on some of the samples: values, gradients, Newton systems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.solvers import expansions as compiled
from proxmargin.compiled.solvers.newton import exact_step
from proxmargin.designs import DenseDesign
from proxmargin.designs.base import Array, Design, Index
from proxmargin.problem import Problem
from proxmargin.rounding import TINY
from proxmargin.runtime.memoisation import cached_property
from proxmargin.solvers.linear_algebra import Factor, cholesky

__all__ = ["Place", "ReducedHessian", "SampledObjective", "searched", "stratified"]

# steps
RISE = 1e-13  # relative increase of the objective that counts as rounding
OVERSHOT = 0.9  # slope at the end of a full step over the first, beyond which it is searched
SEARCH_TOLERANCE = 0.05  # slope at the end of a search over the first slope
SEARCH_STEPS = 60  # limit: more bisections than a step has bits


class Place(NamedTuple):
    """A point, and the objective there to second order in the scores.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
    scores : (n_samples,)
        Including intercept and offset.
    value : float
    slope : (n_features + 1,)
        The gradient in coefficients and intercept, the latter zero where that is pinned.
    bend : (n_samples,)
        Second derivatives of the loss in the scores.
    """

    coef: Array
    intercept: float
    scores: Array
    value: float
    slope: Array
    bend: Array


class ReducedHessian(NamedTuple):
    """A Hessian, with the intercept eliminated.

    Attributes
    ----------
    factor : Factor
        Of ``X' D X - h h' / total + l2 I`` with ``h = X' D 1``.
    mean : (n_features,)
        ``h / total``.
    total : float
        Curvature in the intercept; infinite where that is pinned.
    """

    factor: Factor
    mean: Array
    total: float

    def solve(self, right: Array) -> Array:
        """The solution of the Newton system, (n_features + 1,)."""
        coef = self.factor.solve(right[:-1] - self.mean * right[-1])
        return np.append(coef, right[-1] / self.total - float(self.mean @ coef))


@dataclass(frozen=True, eq=False)
class SampledObjective:
    """``sum_i weights_i phi(signs_i z_i) + (l2/2) |w|^2`` plus the penalty of the intercept.

    Parameters
    ----------
    phi : named tuple
        The loss of a margin in kernels.
    design : Design
    signs, weights, offset : (n_samples,)
        The weights sum to one. An empty offset is none.
    l2 : float
    intercept_l2 : float or None
        Strength of the ridge of the intercept; None where that is pinned at zero.
    """

    phi: Any
    design: Design
    signs: Array
    weights: Array
    offset: Array
    l2: float
    intercept_l2: float | None

    @classmethod
    def of(cls, problem: Problem, index: Index | None = None) -> SampledObjective:
        """That of the problem, or of some of its samples with weights that sum to one again."""
        loss, design = problem.margins, problem.design
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        offset = problem.offset if problem.loss.largest_offset > 0 else np.empty(0)
        if index is not None:
            design, signs, weights = design.rows(index), signs[index], weights[index]
            weights = weights / weights.sum()
            offset = offset[index] if offset.size else offset
        ridge = problem.intercept.l2 if problem.fits_intercept else None
        return cls(
            loss.phi.scalars,
            design,
            np.ascontiguousarray(signs),
            np.ascontiguousarray(weights),
            np.ascontiguousarray(offset),
            problem.penalty.l2,
            ridge,
        )

    def at(self, coef: Array, intercept: float) -> Place:
        """The objective at a point: one pass over dense data stored by rows, two over others."""
        lines = self._lines
        dual, bend = np.empty((2, self.signs.size))
        if lines is None:
            scores = self.design.scores(coef[:, None])[:, 0] + intercept
            scores += self.offset if self.offset.size else 0.0
            sums = compiled.expanded(self.phi, scores, 0.0, self.signs, self.weights, dual, bend)
            pulled = self.design.adjoint(dual[:, None])[:, 0]
        else:
            scores, pulled = np.empty(self.signs.size), np.empty(coef.size)
            base, centre, scale = self.design.stored
            base.counter.add(base.share)
            raw = coef / scale
            shift = intercept - float(centre @ raw)
            given = (self.phi, lines, raw, shift, self.offset, self.signs, self.weights)
            sums = compiled.expanded_lines(*given, scores, dual, bend, pulled)
            scores += shift
            pulled = (pulled - centre * sums[0]) / scale
        slope = np.append(self.l2 * coef - pulled, 0.0)
        value = sums[2] + 0.5 * self.l2 * float(coef @ coef)
        if self.intercept_l2 is not None:
            slope[-1] = self.intercept_l2 * intercept - sums[0]
            value += 0.5 * self.intercept_l2 * intercept**2
        return Place(coef, intercept, scores, value, slope, bend)

    def metric(self, bend: Array) -> ReducedHessian:
        """The Hessian for these second derivatives of the loss."""
        total, mean = np.inf, np.zeros(self.design.n_features)
        if self.intercept_l2 is not None:
            total = max(float(bend.sum()) + self.intercept_l2, TINY)
            mean = self.design.adjoint(bend[:, None])[:, 0] / total
        matrix = self.design.gram(bend, mean)
        if self.intercept_l2:  # X' D X - total mean mean', which is not the centred one
            matrix += self.intercept_l2 * np.outer(mean, mean)
        np.einsum("ii->i", matrix)[:] += self.l2
        diagonal = matrix.diagonal().copy()
        factor = cholesky(matrix, overwrite=True) or Factor(np.diag(np.sqrt(diagonal)), True)
        return ReducedHessian(factor, mean, total)

    def gap(self, slope: Array, metric: ReducedHessian) -> float:
        """The duality gap with the intercept that a Newton step of it alone reaches."""
        rest, left = slope[:-1] - metric.mean * slope[-1], slope[-1]
        return 0.5 * (float(rest @ rest) / self.l2 + left * left / metric.total)

    @cached_property
    def _lines(self) -> Array | None:
        """The rows of dense data in memory, in double precision."""
        base = self.design.stored.base
        return base.lines if isinstance(base, DenseDesign) and base.by_rows else None


def searched(objective: SampledObjective, at: Place, move: Array) -> Place:
    """The end of a step, or the minimum along it if that is far from its end."""
    slope = float(move @ at.slope)
    if not slope < 0.0:
        return at
    there = objective.at(at.coef + move[:-1], at.intercept + float(move[-1]))
    falls = there.value <= at.value + RISE * abs(at.value)
    if falls and float(move @ there.slope) <= -OVERSHOT * slope:
        return there
    ridge, own = objective.l2, objective.intercept_l2 or 0.0
    nothing = np.zeros(0)
    length = exact_step(
        objective.phi,
        at.scores,
        there.scores - at.scores,
        objective.signs,
        objective.weights,
        *(nothing,) * 4,
        ridge * float(at.coef @ move[:-1]) + own * at.intercept * float(move[-1]),
        ridge * float(move[:-1] @ move[:-1]) + own * float(move[-1]) ** 2,
        SEARCH_TOLERANCE,
        SEARCH_STEPS,
    )
    move = length * move
    return objective.at(at.coef + move[:-1], at.intercept + float(move[-1]))


def stratified(problem: Problem, every: int) -> Index:
    """The indices of every k-th sample of positive weight of each class."""
    loss = problem.margins
    signs, live = loss.signs[:, 0], loss.weights[:, 0] > 0
    sides = (np.flatnonzero(live & (signs == side))[::every] for side in (-1.0, 1.0))
    return np.sort(np.concatenate(list(sides)))
