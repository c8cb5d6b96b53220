"""The reference optima, reached through the public estimators by every solver that takes them.

The objective is computed again from ``coef_`` and ``intercept_``, by `tests.oracles.models`.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    HuberizedSVC,
    LogisticRegression,
    MarginClassifier,
    MarginFDA,
    MarginMPM,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.losses import HuberizedHinge
from proxmargin.penalties import Ridge
from tests.oracles.models import binary_objective, joint_objective, loss_values
from tests.shared_data import load_instance, needs_data, reference_instances

ESTIMATORS: dict[str, Any] = {
    "huberized_hinge": HuberizedSVC,
    "squared_hinge": SquaredHingeSVC,
    "logistic": SparseLogisticRegression,
}
BINARY = [i for i in reference_instances("binary_en") if i["params"]["loss"] in ESTIMATORS]
JOINT = reference_instances("mhsvm")
UNIFIED = reference_instances("csum", "nusvm", "dwd", "mmfda", "mmmpm")

pytestmark = needs_data("reference/instances.py", "reference/optima.json")


# sets on which the methods of papers take seconds
LARGE = ("a9a", "sklearn:breast_cancer", "mushrooms", "spambase")


@lru_cache(maxsize=4)
def load(key: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Features, labels and weights of the instance with this id."""
    return load_instance(next(i for i in BINARY + JOINT + UNIFIED if i["id"] == key))


def name_of(instance: dict[str, Any]) -> str:
    model = instance["params"].get("loss", "multiclass huberized_hinge")
    strength = f"alpha {instance['params']['alpha']}, l1_ratio {instance['params']['l1_ratio']}"
    return f"{instance['data'].removeprefix('sklearn:')}, {model}, {strength}" + (
        ", weighted" if instance.get("weighted") else ""
    )


def cases(binary: list[str], joint: list[str]) -> Any:
    """Every instance with every solver; those of papers on large sets are slow tests."""
    params = []
    for instance in BINARY + JOINT:
        for solver in joint if instance["kind"] == "mhsvm" else binary:
            slow = instance["data"] in LARGE and solver in ("gcd", "b-pgh", "b-pgh-2")
            params.append(
                pytest.param(
                    instance,
                    solver,
                    id=f"{name_of(instance)}, {solver}",
                    marks=[pytest.mark.slow] if slow else [],
                )
            )
    return pytest.mark.parametrize(("instance", "solver"), params)


def fitted(instance: dict[str, Any], solver: str, X: Any = None, **options: Any) -> Any:
    model = dict(instance["params"])
    loss = model.pop("loss", "huberized_hinge")
    model.pop("sign", None)
    stored, y, weights = load(instance["id"])
    estimator = ESTIMATORS[loss](solver=solver, **model, **options)
    return estimator.fit(stored if X is None else X, y, sample_weight=weights)


def objective(instance: dict[str, Any], estimator: Any) -> float:
    """What the fitted numbers are worth, by the statement of the model."""
    model = dict(instance["params"])
    model.pop("sign", None)
    X, y, weights = load(instance["id"])
    if instance["kind"] == "mhsvm":
        coef, intercept = estimator.coef_, estimator.intercept_
        return joint_objective(X, y, coef, intercept, weights=weights, **model)
    coef, intercept = estimator.coef_[0], estimator.intercept_[0]
    return binary_objective(X, y, coef, intercept, weights=weights, **model)


@pytest.mark.sampled(6)
@cases(
    ["b-pgh", "b-pgh-2", "gcd", "fapg", "fapg-ws", "newton", "auto"],
    ["m-pgh", "m-pgh-2", "fapg", "fapg-ws", "auto"],
)
def test_every_solver_reaches_the_reference_optimum(instance: dict[str, Any], solver: str) -> None:
    estimator = fitted(instance, solver)
    value, optimum = objective(instance, estimator), instance["optimum"]
    certificate = estimator.certificate_
    assert abs(value - optimum) <= (1e-6 + instance["accuracy"]) * abs(optimum)
    assert certificate.primal == pytest.approx(value, rel=1e-10)
    assert certificate.converged
    assert certificate.dual <= optimum * (1 + instance["accuracy"])


@pytest.mark.slow
@cases(["b-pgh", "fapg"], ["m-pgh", "fapg"])
def test_a_tight_tolerance_gives_eight_digits(instance: dict[str, Any], solver: str) -> None:
    estimator = fitted(instance, solver, tol=1e-10)
    value, optimum = objective(instance, estimator), instance["optimum"]
    assert abs(value - optimum) <= (1e-8 + instance["accuracy"]) * abs(optimum)
    assert estimator.certificate_.primal == pytest.approx(value, rel=1e-11)
    assert estimator.certificate_.converged


def one_of_each() -> list[Any]:
    """One small instance of each model with an l2 part, weighted where there is one."""
    chosen = {}
    for instance in [i for i in BINARY + JOINT if i["params"]["l1_ratio"] < 1 and i["n"] < 700]:
        key = instance["params"].get("loss", "joint")
        if key not in chosen or (instance.get("weighted") and not chosen[key].get("weighted")):
            chosen[key] = instance
    return [pytest.param(instance, id=name_of(instance)) for instance in chosen.values()]


# stored sparse; one of each data set
SPARSE = [
    pytest.param(i, id=name_of(i))
    for i in BINARY
    if (i["data"], i["params"]["loss"]) in {("a9a", "logistic"), ("mushrooms", "squared_hinge")}
]


@pytest.mark.parametrize("instance", one_of_each() + SPARSE)
def test_sparse_input_gives_the_dense_result(instance: dict[str, Any]) -> None:
    stored = load(instance["id"])[0]
    X = stored.toarray() if sp.issparse(stored) else stored
    dense = fitted(instance, "auto", X, tol=1e-10)
    value = objective(instance, dense)
    # strong convexity: two points within the gap of the optimum are this close
    l2 = instance["params"]["alpha"] * (1 - instance["params"]["l1_ratio"])
    near = 2 * np.sqrt(2 * 1e-10 * value / l2)
    for kind in (sp.csr_matrix, sp.csc_matrix):
        model = fitted(instance, "auto", kind(X), tol=1e-10)
        assert objective(instance, model) == pytest.approx(value, rel=1e-9)
        assert np.linalg.norm(model.coef_ - dense.coef_) <= near


@pytest.mark.parametrize(
    "instance", [pytest.param(i, id=name_of(i)) for i in BINARY + JOINT if i.get("weighted")]
)
def test_weights_equal_repeated_rows(instance: dict[str, Any]) -> None:
    X, y, weights = load(instance["id"])
    weighted = fitted(instance, "auto", tol=1e-10)
    model = {k: v for k, v in instance["params"].items() if k != "sign"}
    repeated = ESTIMATORS[model.pop("loss", "huberized_hinge")](tol=1e-10, **model)
    times = weights.astype(int)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert repeated.certificate_.primal == pytest.approx(weighted.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(repeated.coef_, weighted.coef_, atol=1e-4)


# -- the models of inner products -----------------------------------------------------------------

UNIFIED_ESTIMATORS: dict[str, Any] = {
    "hinge": SVC,
    "squared_hinge": L2SVC,
    "logistic": LogisticRegression,
    "nusvm": NuSVC,
    "dwd": DWD,
    "mmfda": MarginFDA,
    "mmmpm": MarginMPM,
}


def unified_name(instance: dict[str, Any]) -> str:
    model = instance["params"]
    settings = ", ".join(f"{k} {v}" for k, v in model.items() if k != "loss")
    name = model.get("loss", instance["kind"])
    return f"{instance['data'].removeprefix('sklearn:')}, {name}, {settings}" + (
        ", weighted" if instance.get("weighted") else ""
    )


def unified_cases(*solvers: str) -> Any:
    params = [
        pytest.param(
            instance,
            solver,
            id=f"{unified_name(instance)}, {solver}",
            marks=[pytest.mark.slow] if is_slow(instance, solver) else [],
        )
        for instance in UNIFIED
        for solver in solvers
    ]
    return pytest.mark.parametrize(("instance", "solver"), params)


def is_slow(instance: dict[str, Any], solver: str) -> bool:
    """First-order steps on the dual of large samples, or of weak ridges."""
    hard = instance["data"] == "a9a" or instance["params"].get("C", 0) >= 100
    return solver == "fapg-star" and hard


def unified_fit(instance: dict[str, Any], solver: str, **options: Any) -> Any:
    X, y, weights = load(instance["id"])
    model = dict(instance["params"])
    loss = model.pop("loss", instance["kind"])
    if loss == "huberized_hinge":
        total = y.size if weights is None else weights.sum()
        estimator: Any = MarginClassifier(
            HuberizedHinge(1.0), Ridge(1.0 / (model["C"] * total)), solver=solver, **options
        )
    else:
        estimator = UNIFIED_ESTIMATORS[loss](solver=solver, **model, **options)
    return estimator.fit(X, y, sample_weight=weights)


def unified_value(instance: dict[str, Any], estimator: Any) -> float:
    """What the fitted numbers are worth, by the statement of the model, scale-free where it is."""
    X, y, weights = load(instance["id"])
    s = np.ones(y.size) if weights is None else weights
    w, b, model = estimator.coef_[0], estimator.intercept_[0], instance["params"]
    t = y * (X @ w + b)
    if instance["kind"] == "csum":
        return float(model["C"] * s @ loss_values(model["loss"], t) + 0.5 * w @ w)
    if instance["kind"] == "dwd":
        q = np.sqrt(s.sum() * model["nu"])
        assert np.linalg.norm(w) <= 1 + 1e-9
        return float(s @ np.where(t >= q, 1 / np.maximum(t, q), (2 * q - t) / q**2))
    if instance["kind"] == "nusvm":
        order, mass = np.argsort(t), model["nu"] * s.sum()
        before = np.concatenate([[0.0], np.cumsum(s[order])[:-1]])
        taken = np.clip(mass - before, 0.0, s[order])
        return float(-(taken @ t[order]) / mass / np.linalg.norm(w))
    means, variances = [], []
    for side in (1, -1):
        one = y == side
        shares = s[one] / s[one].sum()
        scores = X[one] @ w
        means.append(shares @ scores)
        variances.append(shares @ (scores - means[-1]) ** 2)
    spread = np.sqrt(sum(variances)) if instance["kind"] == "mmfda" else np.sqrt(variances).sum()
    return float(-(means[0] - means[1] - model["kappa"] * spread) / np.linalg.norm(w))


def stated(instance: dict[str, Any], estimator: Any) -> float:
    """The value of the model that its certificate speaks of."""
    primal = estimator.certificate_.primal
    if instance["kind"] in ("nusvm", "mmfda", "mmmpm"):
        return -np.sqrt(-2.0 * primal)  # half the square of the margin, with a minus
    if isinstance(estimator, MarginClassifier):  # a mean, and a penalty over C S
        _, y, weights = load(instance["id"])
        return primal * instance["params"]["C"] * (y.size if weights is None else weights.sum())
    return primal


@pytest.mark.sampled(4)
@unified_cases("auto", "fapg-star")
def test_the_models_of_inner_products_reach_the_reference_optimum(
    instance: dict[str, Any], solver: str
) -> None:
    estimator = unified_fit(instance, solver)
    value, optimum = unified_value(instance, estimator), instance["optimum"]
    assert estimator.certificate_.converged
    assert abs(value - optimum) <= (1e-6 + instance["accuracy"]) * abs(optimum)
    assert stated(instance, estimator) == pytest.approx(value, rel=1e-9)


@pytest.mark.sampled(8)
@unified_cases("fapg")
def test_the_printed_method_reaches_it_or_says_how_far_it_got(
    instance: dict[str, Any], solver: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = unified_fit(instance, solver, time_limit=1.0)
    value, optimum = unified_value(instance, estimator), instance["optimum"]
    certificate, accuracy = estimator.certificate_, 1e-9 + instance["accuracy"]
    assert stated(instance, estimator) == pytest.approx(value, rel=1e-9)
    if certificate.converged:
        assert abs(value - optimum) <= (1e-3 + accuracy) * abs(optimum)
    # the gap is never less than the error: what it leaves below the value is below the optimum
    true = optimum * certificate.primal / value
    if value < 0:  # half the square of a margin, with a minus
        true = -0.5 * optimum**2
    assert certificate.dual <= true + accuracy * abs(true)


@pytest.mark.parametrize("instance", [pytest.param(i, id=unified_name(i)) for i in UNIFIED])
def test_a_tight_tolerance_leaves_nothing_but_the_accuracy_of_the_reference(
    instance: dict[str, Any],
) -> None:
    estimator = unified_fit(instance, "auto", tol=1e-10)
    value, optimum = unified_value(instance, estimator), instance["optimum"]
    assert abs(value - optimum) <= (1e-8 + instance["accuracy"]) * abs(optimum)
    assert estimator.certificate_.converged


@pytest.mark.parametrize(
    "instance", [pytest.param(i, id=unified_name(i)) for i in UNIFIED if i.get("weighted")]
)
def test_weights_equal_repeated_rows_in_the_models_of_inner_products(
    instance: dict[str, Any],
) -> None:
    X, y, weights = load(instance["id"])
    weighted = unified_fit(instance, "auto", tol=1e-10)
    times = weights.astype(int)
    model = {k: v for k, v in instance["params"].items() if k != "loss"}
    make = UNIFIED_ESTIMATORS[instance["params"].get("loss", instance["kind"])]
    repeated = make(tol=1e-10, **model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    primal = weighted.certificate_.primal
    assert repeated.certificate_.primal == pytest.approx(primal, rel=1e-9)
    near = 1e-3 * np.abs(weighted.coef_).max()
    np.testing.assert_allclose(repeated.coef_, weighted.coef_, atol=near)
