"""Where the reduced convex hulls of two classes of many samples meet, from the hinge."""

from __future__ import annotations

import numpy as np

from proxmargin.designs import Design, standardized
from proxmargin.losses.base import Array
from proxmargin.losses.margins.hinge import Hinge
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.minimize import minimize
from proxmargin.pace import affordable
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Problem
from proxmargin.solvers.box.interior_point import InteriorPoint
from proxmargin.stopping import Stop

__all__ = ["FEASIBLE", "meeting_nu"]

# entries of the data up to which the simplex method is as fast
FEW_ENTRIES = 50_000
# by how much a dual point may miss its constraints, and below which its sum is zero
FEASIBLE = 1e-9
# the ridge, for features of unit variance and a loss of at most one, and the gap to solve it to
RIDGE, SOLVED = 1e-8, 1e-9
# what the bounds of nu may differ by
ACCURACY = 1e-8
# directions with less of the curvature of the samples between their bounds are left alone
FLAT = 1e-13


def meeting_nu(
    design: Design, signs: Array, shares: Array, deadline: float = np.inf
) -> float | None:
    """The largest nu at which the reduced hulls meet, or None where this is not how to find it.

    The dual of ``max sum a`` over ``0 <= a <= s``, ``y'a = 0``, ``X'(y a) = 0`` is the least
    hinge loss that any coefficients have. With next to no ridge that is a problem for interior
    points, with small systems where there are few features. Its coefficients prove an upper
    bound, its dual point, once it meets the equations, a lower one.

    Parameters
    ----------
    design : Design
    signs, shares : (n_samples,)
    deadline : float
        When to give up, on the clock of `proxmargin.compiled.clock`.
    """
    n, p = design.n_samples, design.n_features
    if n < p or n * p < FEW_ENTRIES:
        return None
    scaled = standardized(design, shares)
    loss = MarginSum(Hinge(), signs[:, None], shares[:, None])
    problem = Problem(loss, Ridge(RIDGE), scaled, Ridge(0.0))
    solver = InteriorPoint()
    refused = solver.objection(problem) is not None
    if refused or not affordable(solver.work(problem), deadline):
        return None
    gap = minimize(problem, solver, stop=Stop(tol=SOLVED, deadline=deadline)).gap
    if not np.isfinite(gap.gap):
        return None
    scores = scaled.scores(gap.point.coef) + gap.point.intercept
    upper = loss.value(scores)
    balanced = _balanced(scaled, signs * np.abs(gap.dual_point[:, 0]), shares)
    within = signs * balanced
    if (within < -FEASIBLE).any() or (within > shares + FEASIBLE).any():
        return None
    lower = float(within.sum())
    return None if upper - lower > ACCURACY else max(0.5 * (lower + upper), 0.0)


def _balanced(design: Design, signed: Array, shares: Array) -> Array:
    """The signed dual point, moved so that it sums to zero, as do the features under it.

    Samples move by as little as they can in units of their distance from their bounds: an affine
    scaling step.
    """
    room = np.minimum(np.abs(signed), shares - np.abs(signed)) ** 2
    p = design.n_features
    matrix = np.empty((p + 1, p + 1))
    matrix[:p, :p] = design.gram(room, np.zeros(p))
    matrix[:p, p] = matrix[p, :p] = design.adjoint(room[:, None])[:, 0]
    matrix[p, p] = room.sum()
    missed = np.append(design.adjoint(signed[:, None])[:, 0], signed.sum())
    by = np.linalg.lstsq(matrix, missed, rcond=FLAT)[0]
    return signed - room * (design.scores(by[:p, None])[:, 0] + by[p])
