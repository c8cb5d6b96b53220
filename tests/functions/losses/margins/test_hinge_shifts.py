"""Intercepts of hinges of wrong classes against a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from proxmargin.losses import Hinge, MarginSum, wrong_classes
from proxmargin.penalties import ElasticNet, Ridge, SumToZero


def shift(scores: np.ndarray, signs: np.ndarray, weights: np.ndarray, l2: float) -> float:
    """The best intercept of a sum of hinges of one output."""
    loss = MarginSum(Hinge(), signs[:, None], weights[:, None], 1.0)
    return float(loss.best_intercept(scores[:, None], Ridge(l2), np.zeros(1))[0])


def least(loss: MarginSum, scores: np.ndarray) -> float:
    """The minimum over intercepts that sum to zero, by a linear program over b and the hinges."""
    n, K = scores.shape
    signs = np.zeros((n * K, K))
    signs[np.arange(n * K), np.tile(np.arange(K), n)] = loss.signs.ravel()
    found = linprog(
        np.concatenate([np.zeros(K), loss.weights.ravel()]),
        A_ub=-np.hstack([signs, np.eye(n * K)]),
        b_ub=-(1.0 - (loss.signs * scores).ravel()),
        A_eq=np.concatenate([np.ones(K), np.zeros(n * K)])[None, :],
        b_eq=[0.0],
        bounds=[(None, None)] * K + [(0.0, None)] * (n * K),
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "ties"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_intercepts_of_wrong_classes_are_the_best(seed: int, ties: bool, classes: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, 15)
    weights = rng.integers(0, 3, 15) + (np.arange(15) == 0)
    loss = wrong_classes(Hinge(), codes, weights / weights.sum(), classes, float(weights.sum()))
    scores = 3.0 * rng.standard_normal((15, classes))
    scores = np.round(scores) if ties else scores
    free = SumToZero(ElasticNet(0.0, 0.0))
    found = loss.best_intercept(scores, free, np.zeros(classes))
    assert abs(found.sum()) < 1e-12
    assert loss.value(scores + found) == pytest.approx(least(loss, scores), abs=1e-10)


def test_margins_of_both_signs() -> None:
    rng = np.random.default_rng(7)
    signs = rng.choice([-1.0, 1.0], (12, 3))
    weights = rng.random((12, 3)) / 36
    loss = MarginSum(Hinge(), signs, weights, 12.0)
    scores = rng.standard_normal((12, 3))
    found = loss.best_intercept(scores, SumToZero(ElasticNet(0.0, 0.0)), np.zeros(3))
    assert loss.value(scores + found) == pytest.approx(least(loss, scores), abs=1e-10)


@pytest.mark.parametrize("level", [-1000.0, 1000.0, 0.3])
@pytest.mark.parametrize("l2", [0.1, 3.0])
def test_a_ridge_may_put_the_intercept_beyond_all_kinks(level: float, l2: float) -> None:
    signs, weights = np.array([1.0, 1.0, -1.0, 1.0, -1.0]), np.full(5, 0.2)
    scores = np.full(5, level)

    def value(b: float) -> float:
        return float(weights @ np.maximum(1.0 - signs * (scores + b), 0.0) + 0.5 * l2 * b**2)

    found = shift(scores, signs, weights, l2)
    grid = np.concatenate([np.linspace(-1200, 1200, 4801), found + np.linspace(-0.1, 0.1, 201)])
    assert value(found) <= min(map(value, grid)) + 1e-12


@pytest.mark.parametrize("n", [2, 10, 40, 1000])
def test_of_an_interval_that_is_optimal_the_middle_is_found_whatever_the_rounding(n: int) -> None:
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    found = shift(5.0 * signs + 0.5, signs, np.full(n, 1.0 / n), 0.0)
    assert found == pytest.approx(-0.5)


@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 3000])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("digits", [0, 1, 16], ids=["many ties", "ties", "no ties"])
def test_the_shift_is_a_minimum(l2: float, n: int, share: float, digits: int) -> None:
    rng = np.random.default_rng(3)
    signs = np.where(rng.random(n) < share, 1.0, -1.0)
    scores = np.round(rng.standard_normal(n) + 0.4 * signs, digits)
    weights = rng.random(n) / n * (rng.random(n) < 0.8)

    def value(b: float) -> float:
        return float(weights @ np.maximum(1.0 - signs * (scores + b), 0.0) + 0.5 * l2 * b**2)

    found = shift(scores, signs, weights, l2)
    others = np.append(signs - scores, np.linspace(found - 1e-3, found + 1e-3, 101))
    assert value(found) <= min(map(value, others)) + 1e-14


@pytest.mark.parametrize("order", ["sorted", "valley", "wave", "sawtooth"])
def test_no_order_of_the_samples_takes_long(order: str) -> None:
    n = 400_000
    i = np.arange(n)
    scores = {
        "sorted": i / n,
        "valley": np.abs(i / n - 0.5),
        "wave": np.sin(6.0 * i / n),
        "sawtooth": i % 1000 / 1000.0,
    }[order]
    signs = np.where(np.sin(i) > 0.7, 1.0, -1.0)
    kinks = signs - scores
    # more of the samples are negative: the intercept is a quantile of all kinks
    assert shift(scores, signs, np.full(n, 1.0 / n), 0.0) == pytest.approx(
        np.sort(kinks)[np.count_nonzero(signs > 0) - 1], abs=1e-4
    )
