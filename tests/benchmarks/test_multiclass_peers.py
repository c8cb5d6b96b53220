"""Rivals of the multiclass hinge, against optima of CVXPY."""

from __future__ import annotations

from itertools import count

import cvxpy as cp
import numpy as np
import pytest
from benchmarks.papers.chierchia.timing import losses
from benchmarks.peers.cutting_planes import cutting_planes
from benchmarks.peers.iterates import Iterate, until
from benchmarks.peers.linear_constraints import linear_constraints
from benchmarks.peers.primal_dual import budget, penalised
from benchmarks.peers.proximal_gradient import LOGIT, SQUARE, Smooth, proximal_gradient
from sklearn.datasets import load_iris

from proxmargin import MulticlassSVC
from proxmargin.penalties import ElasticNet, GroupLinf, Groups

X, y = load_iris(return_X_y=True)
X, y = (X[::6] - X.mean(axis=0)) / X.std(axis=0), y[::6]


def hinges(coef: cp.Variable, intercept: cp.Variable | np.ndarray) -> cp.Expression:
    """The sum of the hinges of all samples, coef (classes, features)."""
    scores = X @ coef.T + np.ones((y.size, 1)) @ cp.reshape(intercept, (1, 3), order="C")
    own = cp.sum(cp.multiply(scores, np.eye(3)[y]), axis=1, keepdims=True)
    return cp.sum(cp.max(scores - own @ np.ones((1, 3)) + 1.0 - np.eye(3)[y], axis=1))


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_cutting_planes_find_the_optimum_and_bound_it(C: float) -> None:
    coef = cp.Variable((3, X.shape[1]))
    objective = 0.5 * cp.sum_squares(coef) + C * hinges(coef, np.zeros(3)) / y.size
    best = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    found = cutting_planes(X, y, C, tol=1e-7)
    assert found.primal == pytest.approx(best, rel=1e-6)
    assert found.dual <= best * (1 + 1e-8)
    assert found.primal - found.dual <= 1.2e-7 * C


def test_linear_constraints_find_the_optimum() -> None:
    coef, intercept, eta = cp.Variable((3, X.shape[1])), cp.Variable(3), 5.0
    problem = cp.Problem(cp.Minimize(cp.sum(cp.abs(coef))), [hinges(coef, intercept) <= eta])
    best = problem.solve(solver=cp.CLARABEL)
    ones = np.column_stack([X, np.ones(y.size)])
    norm = np.sqrt(3.0) * float(np.linalg.norm(ones, 2))
    penalty = ElasticNet(1.0, 0.0)
    found = until(linear_constraints(X, y, penalty, eta, norm), 1e-7, 5000).last
    assert np.abs(found.coef).sum() == pytest.approx(best, rel=3e-3)
    assert losses(X @ found.coef + found.intercept, y) == pytest.approx(eta, rel=1e-2)


@pytest.mark.parametrize("accelerated", [True, False])
@pytest.mark.parametrize(("loss", "name"), [(SQUARE, "squared_hinge"), (LOGIT, "logistic")])
def test_proximal_gradient_finds_the_optimum(loss: Smooth, name: str, accelerated: bool) -> None:
    best = MulticlassSVC(penalty="l2", loss=name, C=0.1, tol=1e-10).fit(X, y)
    norm = float(np.linalg.norm(np.column_stack([X, np.ones(y.size)]), 2))
    steps = proximal_gradient(X, y, loss, ElasticNet(0.0, 1.0), 0.1, norm, accelerated=accelerated)
    found = until(steps, 1e-7, 3000).last
    np.testing.assert_allclose(found.coef.T, best.coef_, rtol=1e-3, atol=1e-4)


def test_a_relative_change_ends_iterates() -> None:
    halving = (Iterate(np.array([[1.0 - 2.0**-k]]), np.zeros(1)) for k in count(1))
    ended = until(halving, 1e-3, 50)
    assert (ended.iterations, ended.met) == (10, True)
    halving = (Iterate(np.array([[1.0 - 2.0**-k]]), np.zeros(1)) for k in count(1))
    assert until(halving, 1e-9, 5)[1:] == (5, False)


def test_bare_algorithm_1_finds_the_optimum() -> None:
    groups = np.array([0, 0, 1, 1])
    penalty = GroupLinf(Groups.within_classes(groups))
    best = MulticlassSVC(penalty="group_linf", groups=groups, C=0.3, tol=1e-8).fit(X, y)
    ones = np.column_stack([X, np.ones(y.size)])
    norm = np.sqrt(3.0) * float(np.linalg.norm(ones, 2))
    found = until(penalised(X, y, penalty, 0.3, norm), 1e-8, 20_000).last
    value = penalty.value(found.coef) + 0.3 * losses(X @ found.coef + found.intercept, y)
    assert value == pytest.approx(best.certificate_.primal, rel=1e-3)


def test_bare_algorithm_2_finds_the_optimum() -> None:
    groups = np.array([0, 0, 1, 1])
    penalty, eta = GroupLinf(Groups.within_classes(groups)), 5.0
    best = MulticlassSVC(penalty="group_linf", groups=groups, C=None, eta=eta, tol=1e-5).fit(X, y)
    ones = np.column_stack([X, np.ones(y.size)])
    norm = np.sqrt(3.0) * float(np.linalg.norm(ones, 2))
    found = until(budget(X, y, penalty, eta, norm), 1e-8, 20_000).last
    assert penalty.value(found.coef) == pytest.approx(best.certificate_.primal, rel=1e-3)
    assert losses(X @ found.coef + found.intercept, y) == pytest.approx(eta, rel=1e-2)


def test_linear_constraints_solve_the_problem_of_algorithm_2() -> None:
    groups = np.array([0, 0, 1, 1])
    penalty, eta = GroupLinf(Groups.within_classes(groups)), 5.0
    best = MulticlassSVC(penalty="group_linf", groups=groups, C=None, eta=eta, tol=1e-5).fit(X, y)
    ones = np.column_stack([X, np.ones(y.size)])
    norm = np.sqrt(3.0) * float(np.linalg.norm(ones, 2))
    found = until(linear_constraints(X, y, penalty, eta, norm), 1e-7, 5000).last
    assert penalty.value(found.coef) == pytest.approx(best.certificate_.primal, rel=3e-3)


@pytest.mark.parametrize("C", [0.1, 2.0])
def test_cutting_planes_solve_the_problem_without_offsets(C: float) -> None:
    best = MulticlassSVC(penalty="l2", C=C, fit_intercept=False, tol=1e-8).fit(X, y)
    found = cutting_planes(X, y, C * y.size, tol=1e-6)
    least = best.certificate_.primal
    assert found.dual <= least * (1 + 1e-8)
    assert least * (1 - 1e-8) <= found.primal <= least + 1.2e-6 * C * y.size
