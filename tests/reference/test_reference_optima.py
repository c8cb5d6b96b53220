"""The reference optima, reached through the public estimators by every solver that takes them.

The objective is computed again from ``coef_`` and ``intercept_``, by `tests.oracles.models`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC
from tests.data import load_instance, needs_data, reference_instances
from tests.oracles.models import binary_objective, joint_objective

ESTIMATORS: dict[str, Any] = {
    "huberized_hinge": HuberizedSVC,
    "squared_hinge": SquaredHingeSVC,
    "logistic": SparseLogisticRegression,
}
BINARY = [i for i in reference_instances("binary_en") if i["params"]["loss"] in ESTIMATORS]
JOINT = reference_instances("mhsvm")

pytestmark = needs_data("reference/instances.py", "reference/optima.json")


@lru_cache(maxsize=4)
def load(key: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Features, labels and weights of the instance with this id."""
    return load_instance(next(i for i in BINARY + JOINT if i["id"] == key))


def name_of(instance: dict[str, Any]) -> str:
    model = instance["params"].get("loss", "multiclass huberized_hinge")
    strength = f"alpha {instance['params']['alpha']}, l1_ratio {instance['params']['l1_ratio']}"
    return f"{instance['data'].removeprefix('sklearn:')}, {model}, {strength}" + (
        ", weighted" if instance.get("weighted") else ""
    )


def cases(binary: list[str], joint: list[str]) -> Any:
    """Every instance with every solver; coordinate descent on mushrooms takes half a minute."""
    params = []
    for instance in BINARY + JOINT:
        for solver in joint if instance["kind"] == "mhsvm" else binary:
            slow = instance["data"] == "mushrooms" and solver == "gcd"
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
