"""Paths: where they start, what they prove, and that warm starts change nothing but the time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    ElasticNetSVC,
    History,
    HuberizedSVC,
    LogisticRegression,
    MarginClassifier,
    MarginFDA,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    alpha_max,
    margin_path,
)
from proxmargin.paths import alpha_grid, fitted_grid

ESTIMATORS = (HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression)
SETS = {"breast_cancer": load_breast_cancer, "wine": load_wine}


@pytest.fixture(params=list(SETS))
def data(request):
    return SETS[request.param](return_X_y=True)


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("standardize", [False, True])
def test_all_coefficients_vanish_just_above_alpha_max_and_not_just_below(kind, standardize, data):
    X, y = data
    X = X / X.std(axis=0)
    model = kind(l1_ratio=0.7, standardize=standardize, tol=1e-10)
    alpha = alpha_max(model, X, y)
    above = model.set_params(alpha=1.001 * alpha).fit(X, y).coef_
    below = model.set_params(alpha=0.999 * alpha).fit(X, y).coef_
    assert not above.any()
    assert below.any()


def test_alpha_max_counts_weights_like_repeated_samples():
    X, y = load_breast_cancer(return_X_y=True)
    times = np.random.default_rng(0).integers(1, 4, y.size)
    model = HuberizedSVC(standardize=True)
    repeated = alpha_max(model, X.repeat(times, axis=0), y.repeat(times))
    assert alpha_max(model, X, y, times) == pytest.approx(repeated, rel=1e-12)


def test_alpha_max_of_a_ridge_penalty_is_infinite_and_its_path_still_has_a_grid(data):
    model = SquaredHingeSVC(l1_ratio=0.0, standardize=True)
    assert alpha_max(model, *data) == np.inf
    path = margin_path(model, *data, n_alphas=3, eps=0.1)
    start = alpha_max(SquaredHingeSVC(l1_ratio=1e-3, standardize=True), *data)
    np.testing.assert_allclose(path.alphas, start * np.geomspace(1, 0.1, 3))
    assert (path.n_nonzero == data[0].shape[1]).all()


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_point_of_a_path_is_certified_and_agrees_with_a_cold_fit(kind, data):
    X, y = data
    model = kind(l1_ratio=0.8, standardize=True, tol=1e-9)
    path = margin_path(model, X, y, n_alphas=4, eps=0.02)
    assert all(c.converged and c.relative_gap <= 1e-9 for c in path.certificates)
    for index, alpha in enumerate(path.alphas):
        cold = kind(alpha=alpha, l1_ratio=0.8, standardize=True, tol=1e-9).fit(X, y)
        assert path.certificates[index].primal == pytest.approx(cold.certificate_.primal, rel=1e-8)
        warm = path.model(index)
        assert warm.alpha == alpha
        assert path.coefs[index].shape == cold.coef_.shape
        assert (warm.predict(X) == cold.predict(X)).mean() > 0.99


def test_a_path_starts_without_features_and_counts_each_feature_once():
    X, y = load_wine(return_X_y=True)
    path = margin_path(SquaredHingeSVC(standardize=True), X, y, n_alphas=6)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[-1] > 5
    np.testing.assert_array_equal(path.n_nonzero, (path.coefs != 0).any(axis=1).sum(axis=1))
    assert path.coefs.shape == (6, 3, 13)
    assert path.intercepts.shape == (6, 3)
    np.testing.assert_array_equal(path.classes, [0, 1, 2])
    assert len(path) == 6


def test_results_come_in_the_order_of_the_given_alphas():
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(standardize=True)
    shuffled = margin_path(model, X, y, alphas=[0.01, 1.0, 0.1])
    ordered = margin_path(model, X, y, alphas=[1.0, 0.1, 0.01])
    np.testing.assert_array_equal(shuffled.alphas, [0.01, 1.0, 0.1])
    np.testing.assert_array_equal(shuffled.coefs, ordered.coefs[[2, 0, 1]])


def test_sparse_data_give_the_same_path_as_dense_data():
    X, y = load_wine(return_X_y=True)
    model = HuberizedSVC(standardize=True, tol=1e-9)
    dense = margin_path(model, X, y, n_alphas=3, eps=0.05)
    thin = margin_path(model, sparse.csr_array(X), y, n_alphas=3, eps=0.05)
    np.testing.assert_allclose(thin.alphas, dense.alphas, rtol=1e-9)
    np.testing.assert_allclose(thin.coefs, dense.coefs, atol=1e-3 * np.abs(dense.coefs).max())


def test_the_estimator_stays_as_it_was_and_its_callbacks_are_called():
    X, y = load_breast_cancer(return_X_y=True)
    history = History()
    model = HuberizedSVC(alpha=0.5, standardize=True, callbacks=[history])
    margin_path(model, X, y, n_alphas=2)
    assert model.alpha == 0.5
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")
    assert len(history) > 0


def test_a_path_that_does_not_converge_warns_once_with_the_worst_gap():
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(standardize=True, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="of 5 fits of the HuberizedSVC path") as caught:
        path = margin_path(model, X, y, n_alphas=5)
    assert len(caught) == 1
    worst = max(c.relative_gap for c in path.certificates)
    assert f"{worst:.2e}" in str(caught[0].message)


def test_a_converged_path_is_silent(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        margin_path(SparseLogisticRegression(standardize=True), *data, n_alphas=3)


def test_features_without_any_relation_still_give_a_grid():
    X, y = np.ones((6, 2)), np.array([0, 1] * 3)
    assert alpha_max(HuberizedSVC(standardize=True), X, y) == 0.0
    grid = alpha_grid(HuberizedSVC(standardize=True), X, y, n_alphas=2, eps=0.1)
    np.testing.assert_allclose(grid, [1.0, 0.1])


@pytest.mark.parametrize("alphas", [[], [[0.1]], [-1.0], [np.nan], 0.5])
def test_unusable_alphas_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        margin_path(HuberizedSVC(), *load_wine(return_X_y=True), alphas=alphas)


@pytest.mark.parametrize("option", [{"n_alphas": 0}, {"eps": 0.0}, {"eps": 2.0}])
def test_an_unusable_grid_is_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        margin_path(HuberizedSVC(), *load_wine(return_X_y=True), **option)


def test_an_estimator_without_alpha_is_refused():
    with pytest.raises(TypeError, match="MarginClassifier has none"):
        alpha_max(MarginClassifier(), *load_wine(return_X_y=True))


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (L2SVC(standardize=True), [{"C": C} for C in (0.01, 0.1, 1.0)]),
        (LogisticRegression(class_weight="balanced"), [{"C": C} for C in (10.0, 0.1)]),
        (DWD(), [{"nu": nu} for nu in (0.5, 2.0)]),
        (MarginFDA(standardize=True), [{"kappa": kappa} for kappa in ("0.2max", "0.8max")]),
        (NuSVC(), [{"nu": nu} for nu in ("auto", "0.5max")]),
        (L2SVC(), [{"standardize": flag, "C": 0.1} for flag in (True, False)]),
        (SVC(kernel="rbf"), [{"C": C} for C in (0.1, 1.0)]),
    ],
    ids=lambda case: type(case).__name__,
)
@pytest.mark.parametrize("wide", [True, False])
def test_a_grid_of_settings_gives_the_models_of_fits_apart(model, settings, wide: bool) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((24, 40) if wide else (60, 5))
    y = np.arange(len(X)) % 3
    X[:, 0] += 3.0 * y
    X[:, 1] -= 4.0 * (y == 1)
    model.set_params(tol=1e-8)
    together = list(fitted_grid(model, settings, X, y))
    assert len(together) == len(settings)
    for one, setting in zip(together, settings, strict=True):
        apart = clone(model).set_params(**setting).fit(X, y)
        assert one.get_params() == apart.get_params()
        assert one.certificate_.converged
        np.testing.assert_allclose(
            one.decision_function(X), apart.decision_function(X), rtol=1e-3, atol=1e-3
        )
        for a, b in zip(one.certificate_, apart.certificate_, strict=True):
            assert abs(a.primal - b.primal) <= a.gap + b.gap + 1e-12 * abs(b.primal)


def test_a_grid_checks_every_setting() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    models = fitted_grid(L2SVC(standardize=True), [{"C": 0.1}, {"C": -1.0}], X, y)
    assert next(models).certificate_.converged
    with pytest.raises(ValueError, match="C must be"):
        next(models)
