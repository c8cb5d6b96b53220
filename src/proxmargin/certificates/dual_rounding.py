"""The gap that rounding a dual point to float64 costs, whatever the solver."""

from __future__ import annotations

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.kernels.kernel_design import KernelDesign
from proxmargin.problem import Problem

__all__ = ["is_dual_rounding"]

FAR_BEYOND = 1e30  # multiple of a rounding error that is outside any domain


def is_dual_rounding(problem: Problem, gap: Gap, tol: float, most: float) -> bool:
    """Whether rounding the dual point to float64 costs more than ``tol`` and most of the gap.

    Parameters
    ----------
    tol : float
        Relative gap.
    most : float
        Largest ratio of the gap to that cost.
    """
    cost = _cost(problem, gap)
    return gap.gap <= most * cost and tol * gap.scale < cost


def _cost(problem: Problem, gap: Gap) -> float:
    """Expected gap of the optimal dual point rounded to float64; zero if unknown.

    Entries of X'q that should cancel are off by ``e_j^2 = sum_i ulp(q_i)^2 x_ij^2 / 12`` in mean
    square, as rounding errors are uniform. With a ridge that costs ``sum_j e_j^2 / (2 l2)``.
    Without one the dual point is scaled into the domain of the conjugate, and its value falls by
    the share by which the largest error exceeds the strength.
    """
    design, penalty = problem.design, problem.penalty
    if isinstance(design, KernelDesign):
        return 0.0
    squares, centre = np.spacing(np.abs(gap.dual_point)) ** 2 / 12.0, np.zeros(design.n_features)
    errors = np.column_stack([design.column_squares(each, centre) for each in squares.T])
    if penalty.l2 > 0:
        return float(errors.sum()) / (2.0 * penalty.l2)
    scale = penalty.domain_scale(FAR_BEYOND * np.sqrt(errors))
    return abs(gap.primal) / (FAR_BEYOND * scale) if 0.0 < scale < 1.0 else 0.0
