"""Linear extrapolation of the paths of hinges: a predictor for the next strength.

For the problem ``mean hinge + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)`` write
``c = 1 / alpha``. As long as the sets of samples on the kink of the hinge and of features with a
nonzero coefficient do not change, the optimality conditions are linear equations in
``(w, b, c q)``, with q the dual point, whose right-hand side is affine in c. Coefficients,
intercept and scaled dual point are therefore piecewise linear in c, with a breakpoint where one of
these sets changes (Hastie, Rosset, Tibshirani and Zhu 2004; Wang, Zhu and Zou 2006, section 3).
From solutions at ``c_1`` and ``c_2`` the predictor at ``c_3`` is

    w_2 + (c_3 - c_2) / (c_2 - c_1) (w_2 - w_1),

and likewise for b and c q: exact if there is no breakpoint between ``c_1`` and ``c_3``, and a good
start if there are few. Without a ridge the coefficients are piecewise constant in c, and the last
solution is the better start.
"""

from __future__ import annotations

from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = ["extrapolated"]

FURTHEST = 3.0  # (c_3 - c_2) / (c_2 - c_1); beyond it there are many breakpoints between
NEEDED = Trait.HINGE | Trait.SINGLE_OUTPUT | Trait.NET


def extrapolated(
    problem: Problem, last: Point, before: Point, at: tuple[float, float, float]
) -> Point:
    """The predictor at the next strength; ``last`` where it does not apply.

    It does not for losses other than the binary hinge, without a ridge, without dual points, or
    where the next step is more than `FURTHEST` times the last one.

    Parameters
    ----------
    problem : Problem
        Of any of the strengths.
    last, before : Point
        The solutions at ``c_2`` and ``c_1``.
    at : three numbers
        ``c_1 < c_2 < c_3``, reciprocals of the strengths.
    """
    first, second, third = at
    if NEEDED not in problem.traits or not problem.penalty.l2 > 0 or not 0 < first < second:
        return last
    step = (third - second) / (second - first)
    if last.dual is None or before.dual is None or not 0 < step <= FURTHEST:
        return last
    coef = last.coef + step * (last.coef - before.coef)
    coef[coef * last.coef <= 0] = 0.0  # a sign would change: the breakpoint at zero comes first
    scaled = second * last.dual
    return Point(
        coef,
        last.intercept + step * (last.intercept - before.intercept),
        (scaled + step * (scaled - first * before.dual)) / third,
    )
