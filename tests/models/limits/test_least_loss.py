"""The least attainable loss against whole linear programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import MulticlassSVC
from proxmargin.losses import LevelSet, Logistic, Multinomial, PairwiseSquaredHinge, TailMean
from proxmargin.models.limits.least_loss import enclosed_least, least_point
from proxmargin.penalties import ElasticNet, Pinned, SumToZero
from tests.cases import binary_problem
from tests.oracles.programs import whole_program
from tests.solvers.programs.test_linear_program import (
    every_wrong_class,
    sample,
    two_classes,
    worst_class,
)

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
        assert least_point(problem).loss == pytest.approx(best, rel=1e-7)


def test_wrong_classes_and_signs() -> None:
    X, y = sample(np.random.default_rng(1), 50, 3, 3)
    best = whole_program(X, y, FAINT, loss="wrong").value
    assert least_point(every_wrong_class(X, y, 1.0)).loss == pytest.approx(best, rel=1e-7)
    signs, weights = np.where(y == 0, 1.0, -1.0), 1.0 + np.arange(50) % 2
    best = whole_program(X, signs, FAINT, loss="binary", weights=weights).value
    assert least_point(two_classes(X, signs, 1.0, weights)).loss == pytest.approx(best, rel=1e-7)


def test_independent_samples_attain_zero() -> None:
    X, y = sample(np.random.default_rng(2), 20, 19, 3)
    assert least_point(worst_class(X, y, ElasticNet(1.0))).loss == 0.0


def test_duplicates_of_two_classes_cannot_be_told_apart() -> None:
    X, y = sample(np.random.default_rng(3), 20, 50, 3)
    X[1] = X[0]  # of the classes 1 and 0: one of the two is short by one at least
    found = least_point(worst_class(X, y, ElasticNet(1.0))).loss
    assert found == pytest.approx(2.0 / 20, rel=1e-9)


@pytest.mark.parametrize("make", [PairwiseSquaredHinge, Multinomial])
@pytest.mark.parametrize("free", [True, False])
def test_smooth_losses_reach_the_interior_point_optimum(make: Any, free: bool) -> None:
    X, y = sample(np.random.default_rng(4), 40, 2, 3)
    intercept = SumToZero(ElasticNet(0.0, 0.0)) if free else Pinned()
    loss = make(y, np.full(40, 1 / 40), 3, 40.0)
    problem = replace(worst_class(X, y, ElasticNet(1.0), intercept=intercept), loss=loss)
    W, b = cp.Variable((2, 3)), cp.Variable(3)
    z = X @ W + np.ones((40, 1)) @ cp.reshape(b, (1, 3), order="C")
    own = cp.reshape(cp.sum(cp.multiply(z, np.eye(3)[y]), axis=1), (40, 1), order="C")
    off = z - own @ np.ones((1, 3))
    if make is Multinomial:
        total = cp.sum(cp.log_sum_exp(off, axis=1))
    else:
        wrong = np.arange(3) != y[:, None]
        total = cp.sum(cp.multiply(wrong, cp.square(cp.pos(1 + off))))
    best = cp.Problem(cp.Minimize(total / 40), [] if free else [b == 0]).solve(cp.CLARABEL)
    assert least_point(problem).loss == pytest.approx(best, rel=1e-7)
    level = replace(problem, loss=LevelSet(loss, 0.1, 1e3))
    assert best < least_point(level, enough=1.2 * best).loss <= 1.2 * best


@pytest.mark.parametrize("make", [PairwiseSquaredHinge, Multinomial])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_units_of_features_do_not_count(make: Any, form: Any) -> None:
    X, y = sample(np.random.default_rng(6), 60, 4, 3)
    even = worst_class(X, y, ElasticNet(1.0))
    loss = make(y, np.full(60, 1 / 60), 3, 60.0)
    expected = least_point(replace(even, loss=loss)).loss
    assert expected > 0.1
    rough = X * np.logspace(-4, 4, 4) + np.array([0.0, 1.0, 100.0, 0.0])
    found = least_point(replace(worst_class(form(rough), y, ElasticNet(1.0)), loss=loss)).loss
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("make", [None, PairwiseSquaredHinge])
def test_without_time_it_is_not_known(make: Any) -> None:
    X, y = sample(np.random.default_rng(6), 60, 4, 3)
    problem = worst_class(X, y, ElasticNet(1.0))
    if make is not None:
        problem = replace(problem, loss=make(y, np.full(60, 1 / 60), 3, 60.0))
    assert least_point(problem, deadline=0.0).loss == 0.0


def test_other_losses_are_refused() -> None:
    rng = np.random.default_rng(5)
    made = binary_problem(rng, Logistic())
    tail = TailMean(made.loss.signs, made.loss.shares, 0.1)
    unknown = replace(made, loss=tail)
    with pytest.raises(TypeError, match="is not known"):
        least_point(unknown)


@pytest.mark.parametrize("make", [PairwiseSquaredHinge, Multinomial])
@pytest.mark.parametrize("p", [5, 60])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_point_of_a_smooth_loss_attains_what_is_told(make: Any, p: int, scale: float) -> None:
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((40, p)) * scale, rng.integers(0, 3, 40)
    X[30:] = X[20:30]  # no coefficients give any scores
    intercept = SumToZero(ElasticNet(0.0, 0.0))
    loss = make(y, np.full(40, 1 / 40), 3, 40.0)
    problem = replace(worst_class(X, y, ElasticNet(1.0), intercept=intercept), loss=loss)
    enough = 0.8 * loss.value(np.zeros((40, 3)))
    least, point = least_point(problem, enough)
    assert 0 < least <= enough
    assert point is not None
    scores = problem.design.scores(point.coef) + point.intercept
    assert loss.value(scores) <= least * (1 + 1e-9)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("share", [0.5, 0.97, 1.2])
def test_smoothed_losses_enclose_the_least_hinge(free: bool, share: float, rng) -> None:
    X, y = rng.standard_normal((60, 3)) * [1.0, 100.0, 0.01], rng.integers(0, 3, 60)
    model = MulticlassSVC(fit_intercept=free)
    (problem,) = model._assemble(X, y, None).problems
    least = least_point(problem).loss
    found = enclosed_least(problem, share * least, np.inf)
    assert found.lower <= least * (1 + 1e-9) <= found.upper * (1 + 2e-9)
    scores = problem.design.scores(found.point.coef) + found.point.intercept
    assert problem.loss.value(scores) == pytest.approx(found.upper, rel=1e-9)
    if share == 0.5:
        assert found.lower > share * least
    if share == 1.2:
        assert found.upper <= share * least
