"""The strength at which a regularisation path starts, from both sides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from proxmargin.data.designs import as_design
from proxmargin.functions.penalties.groups import GroupL2, GroupLinf, Groups
from proxmargin.losses import Hinge, HuberizedHinge, MarginSum
from proxmargin.models.limits import critical
from proxmargin.models.limits.critical import critical_strength
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import null_point, smooth_critical_strength
from proxmargin.penalties import ElasticNet, Penalty, Pinned, SumToZero, SumToZeroGroups
from proxmargin.solvers.choice.names import choose, solve
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.programs.linear_program import LinearProgram
from tests.cases import binary_problem
from tests.shared_data import load_set, needs_data
from tests.solvers.programs.test_linear_program import (
    every_wrong_class,
    sample,
    two_classes,
    worst_class,
)


def with_strength(problem: Problem, strength: float) -> Problem:
    penalty = problem.penalty
    if isinstance(penalty, SumToZero):
        return replace(problem, penalty=SumToZero(ElasticNet(strength)))
    if isinstance(penalty, ElasticNet):
        return replace(problem, penalty=ElasticNet(strength))
    return replace(problem, penalty=replace(penalty, strength=strength))  # type: ignore[type-var]


def assert_critical(problem: Problem, strength: float) -> None:
    """Zero coefficients above the strength, others below it."""
    above, below = (
        minimize(with_strength(problem, factor * strength), LinearProgram(), stop=Stop(tol=1e-10))
        for factor in (1.001, 0.999)
    )
    assert above.certificate.converged
    assert below.certificate.converged
    assert not above.point.coef.any()
    assert below.point.coef.any()
    # and the null model is worse than that, by more than rounding
    null = problem.loss.value(np.tile(null_point(problem).intercept, (problem.design.n_samples, 1)))
    assert below.gap.primal < null * (1.0 - 1e-9)


PENALTIES: dict[str, Penalty] = {
    "l1": ElasticNet(1.0),
    "group l_inf within classes": GroupLinf(Groups.within_classes(np.arange(30) // 4)),
    "group l_inf across classes": GroupLinf(Groups.features(30)),
    "weights": GroupLinf(Groups.features(30), 1.0, 1.0 + np.arange(30) % 3),
}


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
@pytest.mark.parametrize("sizes", [(7, 7, 7), (3, 9, 5), (2, 15, 2)], ids=str)
def test_zero_is_optimal_from_there_on(penalty: Penalty, sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), sizes)
    X = rng.standard_normal((y.size, 30)) + (np.arange(30) % 3 == y[:, None])
    for intercept in (SumToZero(ElasticNet(0.0, 0.0)), Pinned()):
        problem = worst_class(X, y, penalty, intercept=intercept)
        assert_critical(problem, critical_strength(problem))


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
def test_ratios_find_the_value_of_the_linear_program(penalty: Penalty, monkeypatch) -> None:
    X, y = sample(np.random.default_rng(9), 60, 30, 3)
    for intercept in (SumToZero(ElasticNet(0.0, 0.0)), Pinned()):
        problem = worst_class(X, y, penalty, intercept=intercept)
        exact = critical_strength(problem)
        with monkeypatch.context() as patch:
            patch.setattr(critical, "MAX_DENSE_PIECES", 0)
            assert critical_strength(problem) == pytest.approx(exact, rel=1e-6)


def test_weights_and_sparse_data() -> None:
    X, y = sample(np.random.default_rng(1), 40, 12, 3)
    X *= np.random.default_rng(2).random(X.shape) < 0.3
    weights = 1.0 + np.arange(40) % 3
    problem = worst_class(sp.csr_array(X), y, ElasticNet(1.0), weights=weights)
    strength = critical_strength(problem)
    assert_critical(problem, strength)
    repeated = worst_class(
        np.repeat(X, weights.astype(int), axis=0),
        np.repeat(y, weights.astype(int)),
        ElasticNet(1.0),
    )
    assert critical_strength(repeated) == pytest.approx(strength, rel=1e-9)


def test_hinges_of_wrong_classes_and_of_signs() -> None:
    X, y = sample(np.random.default_rng(3), 24, 12, 3)
    problem = every_wrong_class(X, y, 1.0)
    assert_critical(problem, critical_strength(problem))
    signs = np.where(np.arange(24) % 4 == 0, 1.0, -1.0)
    binary = two_classes(X, signs, 1.0, np.ones(24))
    assert_critical(binary, critical_strength(binary))


def test_balanced_binary_classes_have_it_in_closed_form() -> None:
    """All hinges are tied with nothing but one: ``|X'y|_inf / n`` (any intercept in [-1, 1])."""
    X, y = sample(np.random.default_rng(4), 20, 9, 2)
    signs = 2.0 * y - 1.0
    problem = two_classes(X, signs, 1.0, np.ones(20))
    assert critical_strength(problem) == pytest.approx(np.abs(X.T @ signs).max() / 20, rel=1e-12)


def test_rows_that_sum_to_zero_have_one_too() -> None:
    X, y = sample(np.random.default_rng(10), 21, 10, 3)
    problem = every_wrong_class(X, y, 1.0)
    features, within = Groups.features(10), Groups.within_classes(np.arange(10) // 3)
    for norm in (GroupLinf(features), GroupL2(features), GroupLinf(within), GroupL2(within)):
        exact = critical_strength(replace(problem, penalty=SumToZeroGroups(norm)))
        for factor, live in ((1.001, False), (0.999, True)):
            penalty = SumToZeroGroups(replace(norm, strength=factor * exact))
            found = solve(at := replace(problem, penalty=penalty), choose(at), stop=Stop(tol=1e-9))
            assert found.certificate.converged
            assert found.point.coef.any() == live


def test_lengths_of_groups_are_exact_to_nine_digits() -> None:
    """With groups of one feature in each class the length is the absolute value."""
    X, y = sample(np.random.default_rng(5), 21, 10, 3)
    one = worst_class(X, y, GroupL2(Groups.within_classes(np.arange(10))))
    assert critical_strength(one) == pytest.approx(
        critical_strength(worst_class(X, y, ElasticNet(1.0))), rel=2e-9
    )
    # a rotation of the features leaves the length of all of them
    turn = np.linalg.qr(np.random.default_rng(6).standard_normal((10, 10)))[0]
    whole = GroupL2(Groups.within_classes(np.zeros(10)))
    plain, turned = (critical_strength(worst_class(A, y, whole)) for A in (X, X @ turn))
    assert turned == pytest.approx(plain, rel=2e-9)
    linf = critical_strength(worst_class(X, y, GroupLinf(whole.groups)))
    assert linf / np.sqrt(10) <= plain <= linf


def test_a_class_without_weight_does_not_count() -> None:
    X, y = sample(np.random.default_rng(7), 18, 9, 3)
    weights = (y != 1).astype(float)
    lacking = critical_strength(worst_class(X, y, ElasticNet(1.0), weights=weights))
    two = critical_strength(worst_class(X[y != 1], y[y != 1] // 2, ElasticNet(1.0)))
    assert lacking == pytest.approx(two, rel=1e-9)


def test_smooth_losses_have_one_gradient_at_the_null_model() -> None:
    problem = binary_problem(np.random.default_rng(8), HuberizedHinge(0.5), ElasticNet(0.1))
    assert critical_strength(problem) == smooth_critical_strength(problem)


def test_features_that_say_nothing_have_no_strength() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0])
    X = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0], [3.0, 1.0]])
    loss = MarginSum(Hinge(), y[:, None], np.full((4, 1), 0.25), 4.0)
    problem = Problem(
        loss, ElasticNet(1.0), as_design(X), two_classes(X, y, 1.0, np.ones(4)).intercept
    )
    assert critical_strength(problem) == pytest.approx(0.0, abs=1e-12)


def uneven(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Data with an offset, and signs of which a third is positive."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(24) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((24, 15)) + 3.0 + 0.5 * y[:, None] * (np.arange(15) < 2), y


def least_norm(X: np.ndarray, y: np.ndarray, balanced: np.ndarray) -> float:
    """``min |X'q|_inf`` over the subgradients q at the null model, with ``balanced'q = 0``."""
    n, p = X.shape
    upper = np.vstack([np.c_[X.T * y, -np.ones(p)], np.c_[-X.T * y, -np.ones(p)]])
    equal = np.vstack([np.append(y, 0.0), *(np.append(b * y, 0.0) for b in balanced.T)])
    bounds = [(1 / n, 1 / n) if sign > 0 else (0, 1 / n) for sign in y] + [(0, None)]
    found = linprog(
        np.append(np.zeros(n), 1.0), upper, np.zeros(2 * p), equal, np.zeros(len(equal)), bounds
    )
    assert found.status == 0
    return float(found.fun)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_array])
def test_units_of_all_features_are_those_of_the_strength(layout) -> None:
    for seed in range(3):
        X, y = uneven(seed)
        plain = critical_strength(two_classes(layout(X), y, 1.0, np.ones(24)))
        assert plain == pytest.approx(least_norm(X, y, X[:, :0]), rel=1e-7)
        for power in (-12, -9, -6, 6, 9, 12):
            unit = 10.0**power
            scaled = critical_strength(two_classes(layout(unit * X), y, 1.0, np.ones(24)))
            assert scaled == pytest.approx(unit * plain, rel=1e-9)


@pytest.mark.parametrize("power", [-12, -9, 9, 12])
def test_a_feature_in_another_unit_leaves_the_others_theirs(power: int) -> None:
    """A tiny one is of no consequence, and with a huge one dual points have no product."""
    for seed in range(5):
        X, y = uneven(seed)
        wild, others = X[:, [7]], np.delete(X, 7, axis=1)
        expected = least_norm(others, y, wild[:, : int(power > 0)])
        X[:, 7] *= 10.0**power
        for layout in (np.asarray, sp.csc_array):
            strength = critical_strength(two_classes(layout(X), y, 1.0, np.ones(24)))
            assert strength == pytest.approx(expected, rel=1e-7)


@needs_data("data/leukemia.npz", "data/srbct.npz")
@pytest.mark.parametrize("name", ["srbct", "leukemia"])
def test_thousands_of_genes(name: str) -> None:
    X, y = load_set(name)
    y = np.unique(y, return_inverse=True)[1]
    scale = X.std(axis=0)
    X = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    problem = worst_class(X, y, ElasticNet(1.0))
    assert_critical(problem, critical_strength(problem))
