"""The nu at which the reduced convex hulls of two large classes meet, by the least hinge loss."""

from __future__ import annotations

import numpy as np

from proxmargin.designs import Design, standardized
from proxmargin.loop.minimize import minimize
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.losses.margins.hinge import Hinge
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Problem
from proxmargin.runtime.pace import affordable
from proxmargin.solvers.box.interior_point import InteriorPoint

__all__ = ["FEASIBILITY_TOLERANCE", "meeting_nu"]

MIN_ENTRIES = 50_000  # n_samples times n_features; below it the simplex method is as fast
FEASIBILITY_TOLERANCE = 1e-9  # of the constraints on a dual point; a smaller sum counts as zero
TINY_RIDGE = 1e-8  # strength, for features of unit variance and a loss of at most one
RIDGE_GAP = 1e-9  # relative gap of the problem with that ridge
NU_TOLERANCE = 1e-8  # largest accepted difference of the bounds of nu
RANK_TOLERANCE = 1e-13  # relative singular value below which the projection ignores a direction


def meeting_nu(
    design: Design, signs: Array, shares: Array, deadline: float = np.inf
) -> float | None:
    """The largest nu at which the reduced hulls meet; None if the linear program suits better.

    The dual of ``max sum a`` over ``0 <= a <= s``, ``y'a = 0``, ``X'(y a) = 0`` is the least hinge
    loss. An interior point method, whose systems are small for few features, minimises it with a
    tiny ridge. Its coefficients give an upper bound of nu; its dual point, projected onto the
    equality constraints, a lower bound.

    Parameters
    ----------
    design : Design
    signs, shares : (n_samples,)
    deadline : float
        Time on the clock of `proxmargin.compiled.clock` at which to give up.
    """
    n, p = design.n_samples, design.n_features
    if n < p or n * p < MIN_ENTRIES:
        return None
    scaled = standardized(design, shares)
    loss = MarginSum(Hinge(), signs[:, None], shares[:, None])
    problem = Problem(loss, Ridge(TINY_RIDGE), scaled, Ridge(0.0))
    solver = InteriorPoint()
    refused = solver.objection(problem) is not None
    if refused or not affordable(solver.work(problem), deadline):
        return None
    gap = minimize(problem, solver, stop=Stop(tol=RIDGE_GAP, deadline=deadline)).gap
    if not np.isfinite(gap.gap):
        return None
    scores = scaled.scores(gap.point.coef) + gap.point.intercept
    upper = loss.value(scores)
    balanced = _balanced(scaled, signs * np.abs(gap.dual_point[:, 0]), shares)
    within = signs * balanced
    if (within < -FEASIBILITY_TOLERANCE).any() or (within > shares + FEASIBILITY_TOLERANCE).any():
        return None
    lower = float(within.sum())
    return None if upper - lower > NU_TOLERANCE else max(0.5 * (lower + upper), 0.0)


def _balanced(design: Design, signed: Array, shares: Array) -> Array:
    """The signed dual point v projected onto ``1'v = 0``, ``X'v = 0``.

    The projection is in the norm scaled by the distances to the bounds: an affine scaling step.
    """
    room = np.minimum(np.abs(signed), shares - np.abs(signed)) ** 2
    p = design.n_features
    matrix = np.empty((p + 1, p + 1))
    matrix[:p, :p] = design.gram(room, np.zeros(p))
    matrix[:p, p] = matrix[p, :p] = design.adjoint(room[:, None])[:, 0]
    matrix[p, p] = room.sum()
    missed = np.append(design.adjoint(signed[:, None])[:, 0], signed.sum())
    by = np.linalg.lstsq(matrix, missed, rcond=RANK_TOLERANCE)[0]
    return signed - room * (design.scores(by[:p, None])[:, 0] + by[p])
