"""The compiled engine of paths against single fits, which have other solvers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    ElasticNetSVC,
    HuberizedSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    margin_path,
)
from proxmargin.designs import SparseDesign
from proxmargin.paths import engine
from proxmargin.paths.engine import NAME, Engine

MODELS = [SparseLogisticRegression, SquaredHingeSVC, HuberizedSVC]
Data = tuple[Any, np.ndarray]


def wide(layout: str = "C") -> Data:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 300))
    y = np.where(X[:, :4].sum(axis=1) + 0.5 * rng.standard_normal(40) > 0, 1, -1)
    if layout == "CSR":
        X[rng.random(X.shape) < 0.7] = 0.0
        return sparse.csr_array(X), y
    return np.array(X, order=layout), y  # type: ignore[call-overload]


def tall(layout: str = "C") -> Data:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (sparse.csr_array(X) if layout == "CSR" else np.array(X, order=layout)), y  # type: ignore[call-overload]


def check(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None = None) -> None:
    """Every model of a path is as good as it claims, and as one of a single fit."""
    path = margin_path(model, X, y, n_alphas=12, eps=0.02, sample_weight=weights)
    assert {one.solver for one in path.certificates} == {NAME}
    assembly = model._assemble(X, y, weights)
    for k in (0, 3, 7, 11):
        found, claimed = path.model(k), path.certificates[k]
        single = type(model)(**{**found.get_params(), "tol": 1e-9}).fit(X, y, sample_weight=weights)
        penalty = found._penalty(assembly.targets, assembly.problems[0].design)
        (problem,) = assembly.with_penalty(penalty).problems
        value = problem.value(assembly.points(found.coef_, found.intercept_)[0])
        room = 1e-14 * abs(value)
        assert claimed.converged
        assert claimed.relative_gap <= model.tol
        assert abs(value - claimed.primal) <= 1e-12 * abs(value)
        assert value - single.certificate_.primal <= claimed.gap + room
        assert claimed.dual <= single.certificate_.primal + room


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", ["C", "F", "CSR"])
@pytest.mark.parametrize("data", [wide, tall])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.sampled(3)
def test_paths_are_as_good_as_they_claim(
    model: Any, layout: str, data: Any, l1_ratio: float
) -> None:
    check(model(l1_ratio=l1_ratio, tol=1e-7), *data(layout))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "settings",
    [
        {"standardize": True},
        {"fit_intercept": False},
        {"standardize": True, "fit_intercept": False},
        {"bounds": (0.0, np.inf)},
        {"bounds": (-0.05, 0.1), "standardize": True},
    ],
)
@pytest.mark.sampled(3)
def test_settings(model: Any, settings: dict[str, Any]) -> None:
    check(model(l1_ratio=0.8, tol=1e-7, **settings), *wide())


@pytest.mark.parametrize("model", MODELS)
def test_factors_and_weights(model: Any) -> None:
    X, y = wide()
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, len(y)).astype(float)
    weights[:2] = 1.0
    factors = rng.uniform(0.2, 3.0, X.shape[1])
    check(model(penalty_factor=factors, tol=1e-7), X, y, weights)


@pytest.mark.parametrize("data", [wide, tall])
def test_arrays_grow_as_they_have_to(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "FIRST_SLOTS", 2)
    monkeypatch.setattr(engine, "FIRST_MEMBERS", 1)
    monkeypatch.setattr(engine, "FIRST_ENTRIES", 1)
    check(SparseLogisticRegression(l1_ratio=0.5, tol=1e-7), *data())


@pytest.mark.parametrize("data", [wide, tall])
def test_the_path_goes_on_after_a_strength_that_was_given_up(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    whole, calls = Engine.solved, []

    def given_up(self: Engine, l1: np.ndarray, l2: np.ndarray) -> Any:
        calls.append(l1.size)
        return [] if len(calls) % 2 == 0 else whole(self, l1[:3], l2[:3])

    expected = margin_path(SparseLogisticRegression(tol=1e-10), X, y, n_alphas=9, eps=0.05)
    monkeypatch.setattr(Engine, "solved", given_up)
    path = margin_path(SparseLogisticRegression(tol=1e-10), X, y, n_alphas=9, eps=0.05)
    assert len({one.solver for one in path.certificates}) == 2
    np.testing.assert_allclose(path.coefs, expected.coefs, atol=2e-4)


def test_what_single_fits_alone_have_is_left_to_them() -> None:
    X, y = wide()
    for model in (
        SparseLogisticRegression(solver="newton"),
        SparseLogisticRegression(max_iter=1000),
        SparseLogisticRegression(time_limit=60.0),
        SparseLogisticRegression(penalty_factor=np.r_[0.0, np.ones(299)]),
        ElasticNetSVC(),
    ):
        path = margin_path(model, X, y, n_alphas=3, eps=0.3)
        assert all(one.solver != NAME for one in path.certificates)


def test_few_passes_over_wide_data() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 3000))
    y = np.where(X[:, :3].sum(axis=1) > 0, 1, -1)
    path = margin_path(SparseLogisticRegression(), X, y, n_alphas=50, eps=0.05)
    assert sum(one.n_passes for one in path.certificates) < len(path)


def test_a_model_that_would_be_larger_than_the_data_is_left_to_single_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "FIRST_MEMBERS", 4)
    monkeypatch.setattr(engine, "MODEL_BYTES", 1)
    monkeypatch.setattr(SparseDesign, "nbytes", 16 * 5**2)
    path = margin_path(SparseLogisticRegression(tol=1e-8), *wide("CSR"), n_alphas=40, eps=0.05)
    assert path.certificates[1].solver == NAME != path.certificates[-1].solver
    assert path.coefs[-1].astype(bool).sum() > 5
    assert all(one.converged for one in path.certificates)


def test_a_path_that_diverges_is_left_to_single_fits() -> None:
    """Features whose centre is 5e7 standard deviations off: of inner products rounding is left."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = sparse.csr_array(5e7 + rng.standard_normal((10, 6)))
        y = np.where(rng.standard_normal(10) > 0, 1, -1)
        y[:2] = -1, 1
        model = SparseLogisticRegression(l1_ratio=0.5, standardize=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = margin_path(model, X, y, n_alphas=5, eps=0.1)
        for one in path.certificates:
            assert np.isfinite(one.primal)
            assert one.converged == (one.relative_gap <= model.tol)
