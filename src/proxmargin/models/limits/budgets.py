"""Losses within a budget: the price of an exact penalty, and budgets that cannot be met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from proxmargin.compiled.rounding import HALVINGS
from proxmargin.functions.losses.shifted import LevelSet
from proxmargin.functions.traits import Trait
from proxmargin.models.limits.critical import LEAST_STRENGTH
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.solvers.loop.report import Solution

# factor on the multiplier at which coefficients become nonzero, and, while the solution exceeds the
# budget, on the price
PRICE_GROWTH = 1e3
MAX_RAISES = 5  # of the price; a loss that still falls then has no minimiser
SETTLED_CHANGE = 1e-6  # relative decrease of the loss after a raise, below which it is constant
BUDGET_MARGIN = 1e-4  # relative: the least loss is known only from above
MIXING_MARGIN = 1e-9  # of the segment, added to the root: more than the rounding of scores


class UnattainableError(ValueError):
    """The budget is below the least loss that was found, ``least``, in units of the budget, which
    may be only a lower bound of it (``is_bound``)."""

    def __init__(self, budget: float, least: float, is_bound: bool = False) -> None:
        super().__init__(f"the budget {budget:g} is less than the least loss, {least:.8g}")
        self.least, self.is_bound = least, is_bound


def budgeted(problem: Problem, budget: float) -> Problem:
    """The problem of minimising the penalty with the loss within ``budget``, by an exact penalty.
    The price is far above the multiplier at which coefficients first appear; `at_sufficient_price`
    raises it where that is not enough."""
    null = null_point(problem)
    scores = np.broadcast_to(null.intercept, (problem.design.n_samples, null.intercept.size))
    _, dual = problem.loss.value_and_gradient(np.ascontiguousarray(scores))
    dual = problem.loss.balanced(dual, problem.intercept)
    critical = problem.penalty.critical_strength(problem.design.adjoint(dual))
    is_zero = critical <= LEAST_STRENGTH * problem.slope_size
    price = PRICE_GROWTH if is_zero else PRICE_GROWTH / critical
    return replace(problem, loss=LevelSet(problem.loss, budget, price))


def at_sufficient_price(
    problem: Problem,
    solve: Callable[[Problem, Point | None], Solution],
    tol: float,
    least: Callable[[Problem, float], float],
) -> Solution:
    """The solution within the budget, at a price that is raised until it is exact.

    Whether the budget can be met is checked first for smooth losses, where that is fast; for others
    only if the first price was not enough. A solution whose gap did not meet the tolerance is
    returned as it is: see `overspent`.

    ``problem``: as `budgeted` returns it. ``solve``: solves a problem from a warm start, or None.
    ``least(problem, enough)``: the least loss, or any loss below ``enough``; zero if unknown.

    Raises UnattainableError: the loss is above the budget and does not fall any more.
    """
    quick = Trait.SMOOTH in problem.level_set.loss.traits
    attainable = quick and _is_attainable(problem, least)
    solution = solve(problem, None)
    if not quick and solution.certificate.converged and overspent(problem, solution, tol):
        attainable = _is_attainable(problem, least)
    for raised in range(MAX_RAISES + 1):
        loss, above = problem.level_set, _excess(problem, solution)
        if not solution.certificate.converged or not overspent(problem, solution, tol):
            return solution
        if raised == MAX_RAISES:
            break
        problem = replace(problem, loss=replace(loss, price=PRICE_GROWTH * loss.price))
        further = solve(problem, solution.point)
        if not further.certificate.converged:
            return further
        settled = _excess(problem, further) + loss.budget
        if settled >= (above + loss.budget) * (1.0 - SETTLED_CHANGE) and not attainable:
            break
        solution = further
    if attainable:  # at a larger price than was tried
        return solution
    raise UnattainableError(loss.budget, loss.budget + above)


def overspent(problem: Problem, solution: Solution, tol: float) -> float:
    """The excess of a solution over the budget; zero if its price is within the tolerance. The
    tolerance is relative to the penalty."""
    above = _excess(problem, solution)
    spent = problem.level_set.price * above
    return above if spent > tol * problem.penalty.value(solution.point.coef) else 0.0


def brought_within(problem: Problem, solution: Solution, inside: Point) -> Solution | None:
    """A solution above the budget, moved towards a point ``inside`` until it meets the budget. By
    convexity the penalty grows by at most the same share of the difference. None if ``inside``
    exceeds the budget."""
    (coef, intercept, *_), loss = solution.point, problem.level_set
    here = problem.design.scores(coef) + intercept
    there = problem.design.scores(inside.coef) + inside.intercept
    if loss.excess(there) > 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = 0.5 * (low + high)
        meets = loss.excess(here + share * (there - here)) <= 0
        low, high = (low, share) if meets else (share, high)
    # a margin for the rounding of scores
    share = min(high + MIXING_MARGIN, 1.0)
    mixed = Point(
        coef + share * (inside.coef - coef), intercept + share * (inside.intercept - intercept)
    )
    gap = certify(problem, mixed, dual=solution.gap.dual_point)
    if loss.excess(problem.design.scores(gap.point.coef) + gap.point.intercept) > 0:
        return None
    told = replace(
        solution.certificate,
        **gap.numbers,
        stop_reason=f"{solution.certificate.stop_reason}, and the budget was met by a mixture with "
        "a point of small loss",
    )
    return replace(solution, point=gap.point, gap=gap, certificate=told)


def _is_attainable(problem: Problem, least: Callable[[Problem, float], float]) -> bool:
    """Whether a point within the budget is known; raises if the budget is below the least loss.
    That the loss does not fall as the price rises proves nothing: it may do so at a larger
    price."""
    budget = problem.level_set.budget
    found = least(problem, budget)
    if budget < found * (1.0 - BUDGET_MARGIN):
        raise UnattainableError(budget, found)
    return found <= budget


def _excess(problem: Problem, solution: Solution) -> float:
    point = solution.point
    return problem.level_set.excess(problem.design.scores(point.coef) + point.intercept)
