"""Where the next solution of a path of hinges may lie: on the line through the last two.

With a ridge the coefficients, the intercept and the multipliers over the strength of the penalty
are piecewise linear in the reciprocal of that strength: between its corners the same samples are on
the kink and the same features have a coefficient, and the optimality conditions are linear in these
(Hastie, Rosset, Tibshirani and Zhu 2004; Wang, Zhu and Zou 2006, section 3). Without a ridge the
coefficients are piecewise constant.
"""

from __future__ import annotations

from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = ["extrapolated"]

FURTHEST = 3.0  # the next step over the last one: beyond it the line has passed many corners
NEEDED = Trait.HINGE | Trait.SINGLE_OUTPUT | Trait.NET


def extrapolated(
    problem: Problem, last: Point, before: Point, at: tuple[float, float, float]
) -> Point:
    """A start for the next strength; the last solution where the line tells nothing.

    Parameters
    ----------
    problem : Problem
        Of any of the strengths.
    at : three numbers
        The reciprocals of the strengths: of ``before``, of ``last`` and of the next one.
    """
    first, second, third = at
    if NEEDED not in problem.traits or not problem.penalty.l2 > 0 or not 0 < first < second:
        return last
    step = (third - second) / (second - first)
    if last.dual is None or before.dual is None or not 0 < step <= FURTHEST:
        return last
    coef = last.coef + step * (last.coef - before.coef)
    coef[coef * last.coef <= 0] = 0.0  # another sign, or none: there is a corner before
    scaled = second * last.dual
    return Point(
        coef,
        last.intercept + step * (last.intercept - before.intercept),
        (scaled + step * (scaled - first * before.dual)) / third,
    )
