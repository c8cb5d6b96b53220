"""The reference optima of the multiclass hinge, through `MulticlassSVC`, in both of its forms."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from proxmargin import MulticlassSVC
from tests.shared_data import load_instance, load_set, needs_data, reference_instances

INSTANCES = reference_instances("crammer_singer")

pytestmark = needs_data("reference/instances.py", "reference/optima.json")


def name_of(instance: dict[str, Any]) -> str:
    settings = ", ".join(f"{k} {v}" for k, v in instance["params"].items())
    return f"{instance['data'].removeprefix('sklearn:')}, {settings}"


def cases(keep: Any = lambda instance: True) -> Any:
    chosen = [pytest.param(i, id=name_of(i)) for i in INSTANCES if keep(i)]
    return pytest.mark.parametrize("instance", chosen)


@lru_cache(maxsize=4)
def load(key: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    return load_instance(next(i for i in INSTANCES if i["id"] == key))


def settings_of(instance: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator; groups are blocks of features that follow each other."""
    settings = dict(instance["params"])
    size = settings.pop("group_size", None)
    if size is not None:
        settings["groups"] = np.arange(instance["p"]) // size
    return settings


def fitted(instance: dict[str, Any], **settings: Any) -> MulticlassSVC:
    X, y, weights = load(instance["id"])
    model = MulticlassSVC(**{**settings_of(instance), **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weights)


def hinges(instance: dict[str, Any], model: MulticlassSVC) -> float:
    X, y, weights = load(instance["id"])
    z = X @ model.coef_.T + model.intercept_
    off = z + (np.arange(z.shape[1]) != y[:, None]) - z[np.arange(y.size), y][:, None]
    return float((np.ones(y.size) if weights is None else weights) @ off.max(axis=1))


def norm(instance: dict[str, Any], W: np.ndarray) -> float:
    kind = instance["params"]["penalty"]
    if kind == "l1":
        return float(np.abs(W).sum())
    if kind == "l2":
        return float((W**2).sum() / 2)
    codes = settings_of(instance)["groups"]
    order = 2 if kind == "group_l2" else np.inf
    return sum(np.linalg.norm(w[codes == g], order) for w in W for g in range(codes[-1] + 1))


@pytest.mark.sampled(6)
@cases()
def test_the_multiclass_machine_reaches_the_reference_optimum(instance: dict[str, Any]) -> None:
    model = fitted(instance)
    value = instance["params"]["C"] * hinges(instance, model) + norm(instance, model.coef_)
    optimum, certificate = instance["optimum"], model.certificate_
    assert certificate.converged
    assert abs(value - optimum) <= (1e-6 + instance["accuracy"]) * optimum
    assert certificate.primal == pytest.approx(value, rel=1e-8)
    assert certificate.dual <= optimum * (1 + instance["accuracy"])


@pytest.mark.slow
@cases(lambda i: i["data"] == "sklearn:wine" or i["data"] == "srbct")
def test_the_paper_s_method_comes_near_or_says_how_far_it_got(instance: dict[str, Any]) -> None:
    certificate = fitted(instance, solver="fbpd", tol=1e-3, time_limit=3.0).certificate_
    optimum, accuracy = instance["optimum"], 1e-9 + instance["accuracy"]
    assert certificate.dual <= optimum * (1 + accuracy)
    assert certificate.primal >= optimum * (1 - accuracy)
    if certificate.converged:
        assert certificate.primal <= optimum * (1 + 1e-3 + accuracy)


@pytest.mark.slow
@cases(lambda i: i["data"] in ("sklearn:wine", "srbct", "dna"))
def test_the_budget_that_an_optimum_spends_gives_its_penalty_back(instance) -> None:
    model = fitted(instance, tol=1e-9)
    budget = hinges(instance, model)
    if budget < 1e-3:
        pytest.skip("separated: the budget does not determine the penalty")
    again = fitted(instance, C=None, eta=budget)
    expected = norm(instance, model.coef_)
    assert again.certificate_.converged
    exact = instance["params"]["penalty"] in ("l1", "group_linf")
    assert again.certificate_.primal == pytest.approx(expected, rel=1e-6 if exact else 1e-5)
    assert hinges(instance, again) <= budget * (1 + 1e-8)


@pytest.mark.skipif(not reference_instances("crammer_singer"), reason="no reference instances")
@needs_data("data/letter.npz")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_twenty_six_letters_are_fitted_together(loss: str) -> None:
    X, y = load_set("letter", rows=600)
    X = StandardScaler().fit_transform(X)
    model = MulticlassSVC(penalty="l2", C=0.1, loss=loss, tol=1e-4).fit(X, y)
    assert model.certificate_.converged
    assert model.coef_.shape == (26, 16)
    assert model.score(X, y) > 0.7
