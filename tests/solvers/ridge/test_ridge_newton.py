"""Newton's method with a ridge: optima of an interior point, hard strengths, odd data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer

from proxmargin import LogisticRegression
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.margins.logistic import DistanceWeighted
from proxmargin.functions.losses.shifted import Shifted
from proxmargin.losses import HuberizedHinge, Logistic, MarginSum, SquaredHinge
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import Ball, ElasticNet, Pinned, Ridge
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.ridge import ridge_forms
from proxmargin.solvers.ridge.newton import RidgeNewton
from tests.oracles.models import binary_optimum
from tests.shared_data import load_instance, needs_data, reference_instances

LOSSES = {
    "huberized_hinge": HuberizedHinge(1.0),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
}
INTERCEPTS = {"free": Ridge(0.0), "ridge": Ridge(0.3), "none": Pinned()}
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


def margin_sum(phi: Any, y: np.ndarray, weights: np.ndarray | None = None) -> MarginSum:
    weights = np.ones(y.size) if weights is None else np.asarray(weights, float)
    total = float(weights.sum())
    return MarginSum(phi, y.astype(float)[:, None], (weights / total)[:, None], total)


def solved(
    X: Any,
    y: np.ndarray,
    phi: Any,
    l2: float,
    *,
    intercept: Any = INTERCEPTS["free"],
    weights: np.ndarray | None = None,
    tol: float = 1e-10,
    start: Point | None = None,
) -> Solution:
    problem = Problem(margin_sum(phi, y, weights), Ridge(l2), as_design(X), intercept)
    return minimize(problem, RidgeNewton(), stop=Stop(tol=tol), start=start)


def two_classes(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.5 * y[:, None], y


def cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1.0


def assert_optimum(found: Solution, X: Any, y: np.ndarray, **model: Any) -> None:
    best = binary_optimum(X, y, l1_ratio=0.0, **model)
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(best.value, rel=1e-8)


@every_loss
def test_breast_cancer_is_solved_like_an_interior_point_does(loss: str) -> None:
    X, y = cancer()
    assert_optimum(solved(X, y, LOSSES[loss], 1e-2), X, y, loss=loss, alpha=1e-2)


@pytest.mark.sampled(3)
@every_loss
@every_intercept
@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (20, 1)], ids=["narrow", "wide", "single"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_small_weighted_data_are_solved_in_every_form(loss, intercept, shape, kind, rng) -> None:
    X, y = two_classes(rng, *shape)
    X[rng.random(shape) < 0.4] = 0.0
    weights = rng.integers(0, 4, y.size).astype(float)
    found = solved(kind(X), y, LOSSES[loss], 0.05, intercept=INTERCEPTS[intercept], weights=weights)
    ridge = 0.3 if intercept == "ridge" else 0.0
    model = {"loss": loss, "alpha": 0.05, "intercept_ridge": ridge, "weights": weights}
    assert_optimum(found, X, y, fit_intercept=intercept != "none", **model)


@every_loss
@every_intercept
@pytest.mark.parametrize("shape", [(60, 15), (15, 60)], ids=["narrow", "wide"])
def test_conjugate_gradients_find_what_factors_find(
    loss, intercept, shape, rng, monkeypatch
) -> None:
    X, y = two_classes(rng, *shape)
    choice = {"intercept": INTERCEPTS[intercept], "tol": 1e-11}
    factored = solved(X, y, LOSSES[loss], 1e-3, **choice)
    monkeypatch.setattr(ridge_forms, "MAX_SIDE", 0)
    monkeypatch.setattr(ridge_forms, "MAX_SPARSE_SIDE", 0)
    for data in (X, sp.csr_matrix(X)):
        iterated = solved(data, y, LOSSES[loss], 1e-3, **choice)
        assert iterated.certificate.converged
        np.testing.assert_allclose(iterated.point.coef, factored.point.coef, atol=1e-4)


@every_loss
@pytest.mark.parametrize("strength", [1e-8, 1e-4, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("shape", [(60, 4), (15, 60)], ids=["narrow", "wide"])
def test_separable_data_are_solved_at_any_strength(loss, strength, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    X[:, 0] += 5.0 * y
    found = solved(X, y, LOSSES[loss], 1.0 / (strength * y.size), tol=1e-9)
    assert found.certificate.converged


@every_loss
def test_units_of_the_features_do_not_matter_much(loss, rng) -> None:
    X, y = two_classes(rng, 80, 6)
    X = X * 10.0 ** np.arange(-3, 3) + 1e3
    assert solved(X, y, LOSSES[loss], 1e-2, tol=1e-9).certificate.converged


@every_loss
@pytest.mark.parametrize("wide", [False, True])
def test_odd_data_end_with_a_certificate(loss, wide, rng) -> None:
    n, p = (8, 20) if wide else (20, 3)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    lonely = np.where(np.arange(n) == 0, 1.0, -1.0)
    constant = np.hstack([X[:, 1:], np.full((n, 1), 7.0)])
    cases = [(np.ones((n, p)), y), (X, lonely), (constant, y), (np.repeat(X[: n // 2], 2, 0), y)]
    for data, labels in cases:
        assert solved(data, labels, LOSSES[loss], 1e-2).certificate.converged


@every_loss
@pytest.mark.parametrize("shape", [(40, 5), (12, 30)], ids=["narrow", "wide"])
def test_a_start_at_the_optimum_takes_no_steps(loss, shape, rng) -> None:
    X, y = two_classes(rng, *shape)
    first = solved(X, y, LOSSES[loss], 0.1, tol=1e-12)
    again = solved(X, y, LOSSES[loss], 0.1, tol=1e-9, start=first.point)
    assert again.certificate.n_iter == 0


def test_distance_weighted_loss_with_a_ridge_is_taken_too(rng) -> None:
    X, y = two_classes(rng, 50, 6)
    assert solved(X, y, DistanceWeighted(0.5), 1e-3).certificate.converged


def test_penalties_that_are_no_ridge_are_refused(rng) -> None:
    X, y = two_classes(rng, 10, 2)
    for penalty in (Ridge(0.0), ElasticNet(0.1, 0.1), Ball(2.0, 1.0)):
        problem = Problem(margin_sum(Logistic(), y), penalty, as_design(X), Ridge(0.0))
        assert RidgeNewton().objection(problem)
    plain = Problem(margin_sum(Logistic(), y), ElasticNet(0.0, 0.1), as_design(X), Ridge(0.0))
    assert RidgeNewton().objection(plain) is None


SUMS = [i for i in reference_instances("csum") if i["params"]["loss"] in LOSSES]


@needs_data("reference/instances.py", "reference/optima.json")
@pytest.mark.parametrize(
    "instance", [pytest.param(i, id=f"{i['data']}, {i['params']}") for i in SUMS]
)
def test_the_reference_optima_are_reached(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    loss, strength = instance["params"]["loss"], instance["params"]["C"]
    total = float(y.size if weights is None else weights.sum())
    l2 = 1.0 / (strength * total)
    found = solved(X, y, LOSSES[loss], l2, weights=weights, tol=1e-6).certificate
    assert found.converged
    room = (1e-6 + instance["accuracy"]) * instance["optimum"]
    assert abs(found.primal * strength * total - instance["optimum"]) <= room


# what forbids a way of solving the systems, and data and a ridge for which it is taken
WAYS = {
    "a Gram matrix of more samples than features": (
        "GRAM_SAMPLES_PER_FEATURE",
        1.0,
        (60, 45),
        1e-3,
    ),
}


@every_loss
@every_intercept
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_solve_the_systems_finds_the_same(
    loss, intercept, way, rng, monkeypatch
) -> None:
    constant, value, (samples, features), l2 = WAYS[way]
    X, y = two_classes(rng, samples, features)
    choice = {"intercept": INTERCEPTS[intercept], "tol": 1e-12}
    usual = solved(X, y, LOSSES[loss], l2, **choice)
    monkeypatch.setattr(ridge_forms, constant, value)
    other = solved(X, y, LOSSES[loss], l2, **choice)
    assert usual.certificate.converged
    assert other.certificate.converged
    np.testing.assert_allclose(usual.point.coef, other.point.coef, atol=1e-6)


def test_weak_ridges_of_more_samples_than_features_keep_their_digits(rng) -> None:
    X, y = two_classes(rng, 60, 45)
    assert solved(X, y, Logistic(), 1e-9, tol=1e-9).certificate.converged


def test_certificates_are_computed_where_the_solver_claims_to_be_there(rng) -> None:
    X, y = two_classes(rng, 40, 400)
    told: list[Any] = []
    problem = Problem(margin_sum(Logistic(), y), Ridge(1e-2), as_design(X), Ridge(0.0))
    alone = minimize(problem, RidgeNewton(), stop=Stop(tol=1e-6))
    watched = minimize(problem, RidgeNewton(), stop=Stop(tol=1e-6), callbacks=[told.append])
    assert alone.certificate.n_iter > 2
    assert alone.certificate.n_passes < watched.certificate.n_passes
    assert [report.n_iter for report in told] == list(range(watched.certificate.n_iter + 1))
    np.testing.assert_allclose(alone.point.coef, watched.point.coef, atol=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["zeros", "constant", "repeated", "centred"])
def test_singular_inner_products_are_certified(
    kind: str, fit_intercept: bool, rng: np.random.Generator
) -> None:
    X = {
        "zeros": np.zeros((20, 30)),
        "constant": np.full((20, 30), 7.3),
        "repeated": np.repeat(rng.standard_normal((5, 30)), 4, axis=0),
        "centred": np.outer(np.arange(20.0), rng.standard_normal(30)),
    }[kind]
    y = np.where(np.arange(20) % 3, 1, -1)
    found = [
        LogisticRegression(solver=solver, fit_intercept=fit_intercept).fit(X, y).certificate_
        for solver in ("ridge-newton", "fapg")
    ]
    assert all(certificate.converged for certificate in found)
    assert found[0].dual <= found[1].primal
    assert found[1].dual <= found[0].primal


@every_loss
@every_intercept
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_hessians_of_some_samples_lead_to_the_optimum_of_all(
    loss, intercept, kind, rng, monkeypatch
) -> None:
    X, y = two_classes(rng, 24000, 4)
    y[3::4] = -1.0  # some are on the wrong side
    kept = np.flatnonzero((y < 0) | (np.arange(y.size) % 60 == 0))  # few of one class
    X, y = X[kept][np.argsort(y[kept])], np.sort(y[kept])  # classes follow each other
    weights = rng.integers(0, 4, y.size).astype(float)
    weights[::50] *= 100.0
    sums = Shifted(margin_sum(LOSSES[loss], y, weights), rng.standard_normal((y.size, 1)))
    best = []
    for every in (20, 1):
        monkeypatch.setattr(ridge_forms, "LARGEST_EVERY", every)
        problem = Problem(sums, Ridge(1e-3), as_design(kind(X)), INTERCEPTS[intercept])
        best.append(minimize(problem, RidgeNewton(), stop=Stop(tol=1e-9)).certificate)
        assert best[-1].converged
        assert (ridge_forms.form_of(problem).stride() > 1) == (every > 1)
    assert best[0].primal == pytest.approx(best[1].primal, rel=2e-9)
