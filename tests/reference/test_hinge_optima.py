"""The reference optima of the hinge with an elastic net, through `ElasticNetSVC`."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from proxmargin import ElasticNetSVC
from tests.oracles.models import binary_objective
from tests.shared_data import load_instance, needs_data, reference_instances

HINGE = [i for i in reference_instances("binary_en") if i["params"]["loss"] == "hinge"]

pytestmark = needs_data("reference/instances.py", "reference/optima.json")


@lru_cache(maxsize=4)
def load(key: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    return load_instance(next(i for i in HINGE if i["id"] == key))


def name_of(instance: dict[str, Any]) -> str:
    model = instance["params"]
    name = f"{instance['data'].removeprefix('sklearn:')}, {model['alpha']}, {model['l1_ratio']}"
    return name + (", weighted" if instance.get("weighted") else "")


every_instance = pytest.mark.parametrize(
    "instance", [pytest.param(i, id=name_of(i)) for i in HINGE]
)


def fitted(instance: dict[str, Any], **options: Any) -> tuple[ElasticNetSVC, float]:
    """The fitted model, and what its numbers are worth by the statement of the model."""
    X, y, weights = load(instance["id"])
    model = dict(instance["params"])
    loss = model.pop("loss")
    estimator = ElasticNetSVC(**model, **options).fit(X, y, sample_weight=weights)
    coef, intercept = estimator.coef_[0], estimator.intercept_[0]
    return estimator, binary_objective(X, y, coef, intercept, loss=loss, weights=weights, **model)


@every_instance
@pytest.mark.parametrize("tol", [1e-6, 1e-10])
def test_the_default_solver_reaches_the_reference_optimum(
    instance: dict[str, Any], tol: float
) -> None:
    estimator, value = fitted(instance, tol=tol)
    optimum, accuracy = instance["optimum"], instance["accuracy"]
    certificate = estimator.certificate_
    assert certificate.converged
    assert certificate.solver == "multiplier-newton"
    assert abs(value - optimum) <= (tol + accuracy) * optimum
    assert certificate.primal == pytest.approx(value, rel=1e-11)
    assert certificate.dual <= optimum * (1 + accuracy)
    # of the features that the reference has, none is missing
    if tol < 1e-9:
        assert np.count_nonzero(np.abs(estimator.coef_) > 1e-6) == instance["nonzeros"]


@pytest.mark.sampled(12)
@every_instance
@pytest.mark.parametrize("solver", ["isvm2", "admm"])
def test_the_solvers_of_papers_reach_it_or_say_how_far_they_got(
    instance: dict[str, Any], solver: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator, value = fitted(instance, solver=solver, tol=1e-3, time_limit=2.0)
    optimum, accuracy = instance["optimum"], instance["accuracy"]
    certificate = estimator.certificate_
    assert certificate.solver == solver
    assert certificate.primal == pytest.approx(value, rel=1e-11)
    # the gap is never less than the error
    assert certificate.dual <= optimum * (1 + accuracy)
    if certificate.converged:
        assert abs(value - optimum) <= (1e-3 + accuracy) * optimum
