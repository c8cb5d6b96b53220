"""Optima computed on the spot by an interior-point solver, from models written a second time."""

from __future__ import annotations

from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from proxmargin import ElasticNetSVC, HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC
from tests.oracles.models import binary_objective, binary_optimum, joint_objective, joint_optimum

ESTIMATORS: dict[str, Any] = {
    "hinge": ElasticNetSVC,
    "huberized_hinge": HuberizedSVC,
    "squared_hinge": SquaredHingeSVC,
    "logistic": SparseLogisticRegression,
}
LOADERS = {"breast_cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris}


@cache
def data(name: str, rows: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Some standardised rows and features of a set that comes with scikit-learn."""
    X, y = LOADERS[name](return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    chosen = np.sort(np.random.default_rng(3).permutation(y.size)[:rows])
    X, y = X[chosen, :features], y[chosen]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


BINARY_DATA = {
    "breast_cancer": ("breast_cancer", 120, 10, 2),
    "wine": ("wine", 60, 13, 2),
    "iris": ("iris", 60, 4, 2),
    "more features than samples": ("breast_cancer", 20, 30, 2),
}
NETS = [(0.05, 0.5), (0.02, 1.0), (0.1, 0.0), (0.002, 0.8), (3.0, 0.9)]


@pytest.mark.parametrize("name", BINARY_DATA)
@pytest.mark.parametrize("loss", ESTIMATORS)
@pytest.mark.parametrize(("alpha", "l1_ratio"), NETS)
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
def test_binary_fits_reach_the_interior_point_optimum(
    name: str, loss: str, alpha: float, l1_ratio: float, fit_intercept: bool
) -> None:
    X, codes = data(*BINARY_DATA[name])
    y = np.where(codes == 1, 1.0, -1.0)
    model = {"alpha": alpha, "l1_ratio": l1_ratio}
    best = binary_optimum(X, y, loss=loss, fit_intercept=fit_intercept, **model)
    fit = ESTIMATORS[loss](tol=1e-9, fit_intercept=fit_intercept, **model).fit(X, codes)
    value = binary_objective(X, y, fit.coef_[0], fit.intercept_[0], loss=loss, **model)
    assert value == pytest.approx(best.value, rel=2e-8)
    assert value <= best.value * (1 + 1e-9)
    assert value == pytest.approx(fit.certificate_.primal, rel=1e-11)


@pytest.mark.parametrize("delta", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("intercept_ridge", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_huberized_fits_with_every_setting_reach_the_interior_point_optimum(
    delta: float, intercept_ridge: float, weighted: bool
) -> None:
    X, codes = data("breast_cancer", 100, 8, 2)
    y = np.where(codes == 1, 1.0, -1.0)
    weights = np.arange(100) % 4.0 if weighted else np.ones(100)
    model = {"alpha": 0.03, "l1_ratio": 0.4, "delta": delta, "intercept_ridge": intercept_ridge}
    words = {"loss": "huberized_hinge", "weights": weights, **model}
    best = binary_optimum(X, y, **words)
    fit = HuberizedSVC(tol=1e-9, **model).fit(X, codes, sample_weight=weights)
    value = binary_objective(X, y, fit.coef_[0], fit.intercept_[0], **words)
    assert value == pytest.approx(best.value, rel=2e-8)
    np.testing.assert_allclose(fit.coef_[0], best.coef, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "rows", "features", "classes"), [("iris", 90, 4, 3), ("wine", 90, 8, 3)]
)
@pytest.mark.parametrize(("alpha", "l1_ratio"), NETS)
@pytest.mark.parametrize("delta", [0.1, 1.0])
@pytest.mark.parametrize("intercept", ["free", "ridge", "none"])
def test_joint_fits_reach_the_interior_point_optimum(
    name: str, rows: int, features: int, classes: int, alpha, l1_ratio, delta, intercept
) -> None:
    X, codes = data(name, rows, features, classes)
    weights = 1.0 + np.arange(codes.size) % 3
    ridge = 0.3 * (intercept == "ridge")
    model = {"alpha": alpha, "l1_ratio": l1_ratio, "delta": delta, "intercept_ridge": ridge}
    with_intercept = intercept != "none"
    best = joint_optimum(X, codes, fit_intercept=with_intercept, weights=weights, **model)
    fit = HuberizedSVC(tol=1e-9, fit_intercept=with_intercept, **model)
    fit.fit(X, codes, sample_weight=weights)
    value = joint_objective(X, codes, fit.coef_, fit.intercept_, weights=weights, **model)
    # where all coefficients are zero the interior point stops farther from the optimum
    assert best.value * (1 - 1e-5) <= value <= best.value * (1 + 1e-9)
    if np.any(fit.coef_):
        assert value == pytest.approx(best.value, rel=2e-8)
    assert value == pytest.approx(fit.certificate_.primal, rel=1e-11)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "huberized_hinge"])
def test_one_against_the_rest_solves_one_binary_problem_a_class(loss: str) -> None:
    X, codes = data("iris", 90, 4, 3)
    model = {"alpha": 0.03, "l1_ratio": 0.5}
    fit = ESTIMATORS[loss](tol=1e-9, multi_class="ovr", **model).fit(X, codes)
    for k in range(3):
        y = np.where(codes == k, 1.0, -1.0)
        best = binary_optimum(X, y, loss=loss, **model)
        value = binary_objective(X, y, fit.coef_[k], fit.intercept_[k], loss=loss, **model)
        assert value == pytest.approx(best.value, rel=2e-8)
        assert value == pytest.approx(fit.certificate_[k].primal, rel=1e-11)


def test_the_multiplier_of_the_dual_constraint_is_minus_the_intercept() -> None:
    # the dual of the huberized model as a quadratic program of its own:
    # min mean(-a + delta a^2 / 2) + |soft(v, l1)|^2 / (2 l2),  v = mean(a y x),  sum(a y) / n = 0
    X, codes = data("breast_cancer", 100, 8, 2)
    y, n = np.where(codes == 1, 1.0, -1.0), codes.size
    l1, l2, delta = 0.01, 0.02, 0.8
    a, excess = cp.Variable(n), cp.Variable(8)
    v = X.T @ cp.multiply(y, a) / n
    balance = cp.sum(cp.multiply(y, a)) / n == 0
    dual = (cp.sum(-a) + delta / 2 * cp.sum_squares(a)) / n + cp.sum_squares(excess) / (2 * l2)
    constraints = [balance, a >= 0, a <= 1, cp.abs(v - excess) <= l1]
    program = cp.Problem(cp.Minimize(dual), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    fit = HuberizedSVC(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), delta=delta, tol=1e-11)
    fit.fit(X, codes)
    # the constraint is on c = mean(a y); the gradient in the scores is -a y / n, so that the
    # multiplier of the sum of the gradient, which is minus the intercept, is minus that of c
    assert -program.value == pytest.approx(fit.certificate_.primal, rel=1e-8)
    assert float(balance.dual_value) == pytest.approx(fit.intercept_[0], abs=1e-5)
    np.testing.assert_allclose(excess.value / l2, fit.coef_[0], atol=1e-4)
