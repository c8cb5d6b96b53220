"""Losses within a budget: the price of an exact penalty, and budgets that cannot be met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from proxmargin.certificate import certify
from proxmargin.losses.level_set import LevelSet
from proxmargin.outcome import Solution
from proxmargin.problem import Point, Problem
from proxmargin.traits import Trait

__all__ = ["UnattainableError", "at_sufficient_price", "brought_within", "budgeted", "overspent"]

# the first price, in units of the multiplier at which coefficients appear, and how it is raised
FIRST, RAISE = 1e3, 1e3
# after so many times a loss that still falls does so towards what no coefficients attain
RAISES = 5
# a loss that falls by less than this share when the price rises is at its least
SETTLED = 1e-6

# halvings of the way to a point within the budget, and what is gone beyond, for rounding
BISECTIONS, MARGIN = 60, 1e-9
# a critical strength of this share of what features can have is zero
NOTHING = 1e-12
# a budget below the least loss by less may be one that the search for that did not reach
CLEARLY = 1e-4


class UnattainableError(ValueError):
    """The budget is below the least loss.

    Attributes
    ----------
    least : float
        The least loss that was found, in units of the budget.
    """

    def __init__(self, budget: float, least: float) -> None:
        super().__init__(f"the budget {budget:g} is less than the least loss, {least:.8g}")
        self.least = least


def budgeted(problem: Problem, budget: float) -> Problem:
    """Minimise the penalty of ``problem`` with its loss within ``budget``, by an exact penalty.

    The price is far above the multiplier at which coefficients first appear;
    `at_sufficient_price` raises it where that is not enough.
    """
    null = problem.null_point()
    scores = np.broadcast_to(null.intercept, (problem.design.n_samples, null.intercept.size))
    _, dual = problem.loss.value_and_gradient(np.ascontiguousarray(scores))
    dual = problem.loss.balanced(dual, problem.intercept)
    critical = problem.penalty.critical_strength(problem.design.adjoint(dual))
    price = FIRST / critical if critical > NOTHING * problem.slope_size else FIRST
    return replace(problem, loss=LevelSet(problem.loss, budget, price))


def at_sufficient_price(
    problem: Problem,
    solve: Callable[[Problem, Point | None], Solution],
    tol: float,
    least: Callable[[Problem, float], float],
) -> Solution:
    """The solution within the budget, at a price that is raised until it is one.

    Whether there is one is asked first of smooth losses, of which it is known quickly; of others
    where the first price did not do.

    A solution that ended before its gap met the tolerance is returned as it is: `overspent` tells.

    Parameters
    ----------
    problem : Problem
        As `budgeted` returns it.
    solve : callable
        Solves a problem from a point, or from where it sees fit.
    tol : float
        The relative gap that is asked for.
    least : callable
        The least loss of a problem, or one within what it is given, from above; zero if unknown.

    Raises
    ------
    UnattainableError
        The loss is above the budget and does not fall any more.
    """
    quick = Trait.SMOOTH in _loss(problem).loss.traits
    attainable = quick and _is_attainable(problem, least)
    solution = solve(problem, None)
    if not quick and solution.certificate.converged and overspent(problem, solution, tol):
        attainable = _is_attainable(problem, least)
    for raised in range(RAISES + 1):
        loss, above = _loss(problem), _excess(problem, solution)
        if not solution.certificate.converged or not overspent(problem, solution, tol):
            return solution
        if raised == RAISES:
            break
        problem = replace(problem, loss=replace(loss, price=RAISE * loss.price))
        further = solve(problem, solution.point)
        if not further.certificate.converged:
            return further
        settled = _excess(problem, further) + loss.budget
        if settled >= (above + loss.budget) * (1.0 - SETTLED) and not attainable:
            break
        solution = further
    if attainable:  # at a price that is out of reach
        return solution
    raise UnattainableError(loss.budget, loss.budget + above)


def overspent(problem: Problem, solution: Solution, tol: float) -> float:
    """How far a solution is above the budget, zero where that is within the tolerance.

    The price of what is within it is a small share of the penalty.
    """
    above = _excess(problem, solution)
    spent = _loss(problem).price * above
    return above if spent > tol * problem.penalty.value(solution.point.coef) else 0.0


def brought_within(problem: Problem, solution: Solution, inside: Point) -> Solution | None:
    """A solution above the budget, moved towards a point ``inside`` as far as the budget asks for.

    The penalty is convex: it grows by no more than its share of the difference. None where the
    point is not inside.
    """
    (coef, intercept, *_), loss = solution.point, _loss(problem)
    here = problem.design.scores(coef) + intercept
    there = problem.design.scores(inside.coef) + inside.intercept
    if loss.excess(there) > 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        share = 0.5 * (low + high)
        meets = loss.excess(here + share * (there - here)) <= 0
        low, high = (low, share) if meets else (share, high)
    # what scores are rounded to may be above by that much
    share = min(high + MARGIN, 1.0)
    mixed = Point(
        coef + share * (inside.coef - coef), intercept + share * (inside.intercept - intercept)
    )
    gap = certify(problem, mixed, dual=solution.gap.dual_point)
    if loss.excess(problem.design.scores(gap.point.coef) + gap.point.intercept) > 0:
        return None
    told = replace(
        solution.certificate,
        primal=gap.primal,
        dual=gap.dual,
        gap=gap.gap,
        relative_gap=gap.relative_gap,
        kkt_residual=gap.kkt_residual,
        stop_reason=f"{solution.certificate.stop_reason}, and the budget was met by a mixture with "
        "a point of small loss",
    )
    return replace(solution, point=gap.point, gap=gap, certificate=told)


def _is_attainable(problem: Problem, least: Callable[[Problem, float], float]) -> bool:
    """Whether coefficients within the budget are known; refuses one clearly below the least loss.

    A loss that does not fall as the price rises proves nothing: it may be flat up to a price at
    which it falls again.
    """
    budget = _loss(problem).budget
    found = least(problem, budget)
    if budget < found * (1.0 - CLEARLY):
        raise UnattainableError(budget, found)
    return found <= budget


def _loss(problem: Problem) -> LevelSet:
    assert isinstance(problem.loss, LevelSet)
    return problem.loss


def _excess(problem: Problem, solution: Solution) -> float:
    point = solution.point
    return _loss(problem).excess(problem.design.scores(point.coef) + point.intercept)
