"""Gap-safe screening: features proved zero at every solution by the certificate of any point.

Let q be the dual point of a certificate with gap g, and q* the optimal one. The terms of the gap
are non-negative, also at a solution ``(w*, b*)`` with scores z*:

    ``g >= [L(z*) + L*(q) - <z*, q>] + [B(b*) + B*(c) - <c, b*>]``,  ``c = -1'q``.

Restricted to scores ``z* + x u`` for u in R^K, the supremum that is L* makes the first bracket at
least ``|x'(q - q*)|^2 / (2 s(x))`` where ``s(x) |u|^2`` bounds the curvature of L along u. With a
ridge r of the intercept, the second one is ``|1'(q - q*)|^2 / (2 r)``; a free intercept has r = 0,
and none at all an infinite r. Writing a feature x_j as ``(x_j - m) + m 1``, Cauchy-Schwarz gives

    ``|x_j'(q - q*)| <= sqrt(2 g s_j)``,  ``s_j = min_m  s(x_j - m) + m^2 r``.

A feature whose row of ``X'q`` is farther than that inside the subdifferential of the penalty at
zero is zero at every solution: the gap-safe rule of Ndiaye et al. (2017), for several scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array
from proxmargin.problem import Problem
from proxmargin.rounding import OBJECTIVE_ROUNDING, SUM_ROUNDING

__all__ = ["sensitivities", "surely_zero"]


def surely_zero(problem: Problem, gap: Gap) -> NDArray[np.bool_]:
    """Mask of features that ``gap`` proves to be zero at every solution, (n_features,).

    Parameters
    ----------
    problem : Problem
        The certified problem, or its restriction to some of the features (`Problem.on_columns`) if
        the penalty is separable over features.
    gap : Gap
    """
    design, penalty = problem.design, problem.penalty
    curvatures = problem.loss.row_curvatures
    amount = gap.gap + OBJECTIVE_ROUNDING * abs(gap.primal)
    if not (np.isfinite(amount) and np.isfinite(curvatures).all()):
        return np.zeros(design.n_features, dtype=bool)
    dual, largest = gap.dual_point, design.largest()
    squares = sensitivities(problem) + SUM_ROUNDING * curvatures.sum() * largest**2
    rounding = SUM_ROUNDING * float(np.linalg.norm(np.abs(dual).sum(axis=0))) * largest
    radii = np.sqrt(2.0 * amount * squares) + rounding
    return penalty.keeps_at_zero(-design.adjoint(dual), radii)


def sensitivities(problem: Problem) -> Array:
    """The s_j of each feature, (n_features,)."""
    design, rows = problem.design, problem.loss.row_curvatures
    ridge = _ridge(problem)
    centre = np.zeros(design.n_features)
    if not np.isfinite(ridge):
        return design.column_squares(rows, centre)
    centre = design.adjoint(rows[:, None])[:, 0] / (float(rows.sum()) + ridge)
    return design.column_squares(rows, centre) + ridge * centre**2


def _ridge(problem: Problem) -> float:
    """r; infinite if the column sums of the dual are not constrained.

    An intercept with zero sum over the classes leaves the common part of these sums free, which
    matters unless coefficients, or the rows of dual points, sum to zero too.
    """
    intercept = problem.intercept
    common = intercept.sums_to_zero and not (
        problem.penalty.sums_to_zero or problem.loss.compares_classes
    )
    return np.inf if common or intercept.is_pinned else intercept.l2
