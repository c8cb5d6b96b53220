"""The least attainable loss against whole linear programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.losses import LevelSet, Logistic
from proxmargin.penalties import ElasticNet, Pinned, SumToZero
from proxmargin.solvers.least_loss import least_loss, require_attainable
from tests.cases import binary_problem
from tests.oracles.programs import whole_program
from tests.solvers.test_linear_program import every_wrong_class, sample, two_classes, worst_class

# a penalty that costs nothing to eight digits
FAINT = 1e-10


@pytest.mark.parametrize("shape", [(60, 2, 3), (40, 5, 4), (25, 8, 2)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_array])
def test_it_is_that_of_the_whole_program(shape: tuple[int, int, int], form: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = np.round(2.0 * rng.standard_normal(shape[:2])), np.arange(shape[0]) % shape[2]
    for intercept in (SumToZero(ElasticNet(0.0, 0.0)), Pinned()):
        problem = worst_class(form(X), y, ElasticNet(1.0), intercept=intercept)
        free = problem.fits_intercept
        best = whole_program(X, y, FAINT, offsets=free).value
        assert best > 0.1
        assert least_loss(problem) == pytest.approx(best, rel=1e-7)


def test_wrong_classes_and_signs() -> None:
    X, y = sample(np.random.default_rng(1), 50, 3, 3)
    best = whole_program(X, y, FAINT, loss="wrong").value
    assert least_loss(every_wrong_class(X, y, 1.0)) == pytest.approx(best, rel=1e-7)
    signs, weights = np.where(y == 0, 1.0, -1.0), 1.0 + np.arange(50) % 2
    best = whole_program(X, signs, FAINT, loss="binary", weights=weights).value
    assert least_loss(two_classes(X, signs, 1.0, weights)) == pytest.approx(best, rel=1e-7)


def test_independent_samples_attain_zero() -> None:
    X, y = sample(np.random.default_rng(2), 20, 19, 3)
    assert least_loss(worst_class(X, y, ElasticNet(1.0))) == 0.0


def test_duplicates_of_two_classes_cannot_be_told_apart() -> None:
    X, y = sample(np.random.default_rng(3), 20, 50, 3)
    X[1] = X[0]  # of the classes 1 and 0: one of the two is short by one at least
    found = least_loss(worst_class(X, y, ElasticNet(1.0)))
    assert found == pytest.approx(2.0 / 20, rel=1e-9)


def test_a_budget_below_it_is_an_error_that_names_it() -> None:
    X, y = sample(np.random.default_rng(4), 40, 2, 3)
    problem = worst_class(X, y, ElasticNet(1.0))
    least = least_loss(problem)

    def require(budget: float) -> None:
        require_attainable(replace(problem, loss=LevelSet(problem.loss, budget, 1e3)), unit=40.0)

    require(least)
    require(1.1 * least)
    with pytest.raises(ValueError, match=f"eta must be at least {40.0 * least:.10g}"):
        require(0.9 * least)


def test_other_losses_are_refused() -> None:
    with pytest.raises(TypeError, match="no linear program"):
        least_loss(binary_problem(np.random.default_rng(5), Logistic()))
