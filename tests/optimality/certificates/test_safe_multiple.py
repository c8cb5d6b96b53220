"""The factor on a point that moves margins at a kink to the side where rounding costs least."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.optimality.certificates.rounding_terms import safe_multiple
from proxmargin.optimality.problem import Point
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from tests.cases.problems import hinge_net_problem


@pytest.mark.parametrize("length", [0.5, 1.0, 1.0 + 1e-9])
@pytest.mark.parametrize("least", [1e-17, 1e-15, 1e-13, 1e-9, 1e-3, 0.1, 10.0])
def test_a_least_gain_ends_the_search_only_where_no_gain_is_as_large(rng, length, least) -> None:
    problem = hinge_net_problem(rng)
    found = minimize(problem, MultiplierNewton(), stop=Stop(1e-12)).point
    point = Point(length * found.coef, length * found.intercept)
    scores = problem.design.scores(point.coef) + point.intercept
    enclosed = problem.design.enclosed(point.coef, point.intercept, scores)
    whole, cut = (safe_multiple(problem, point, enclosed, each) for each in (0.0, least))
    assert cut == whole or (cut == (1.0, 0.0) and whole[1] < least)


def test_it_gains_what_the_rounding_of_margins_at_the_kink_costs(rng) -> None:
    problem = hinge_net_problem(rng)
    found = minimize(problem, MultiplierNewton(), stop=Stop(1e-12)).point
    scores = problem.design.scores(found.coef) + found.intercept
    enclosed = problem.design.enclosed(found.coef, found.intercept, scores)
    multiple, gain = safe_multiple(problem, found, enclosed._replace(error=1e-6 * np.ones(1)))
    assert 1.0 < multiple < 1.0 + 1e-4
    assert gain > 0.0
