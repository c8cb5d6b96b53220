"""Where paths start: the least strength without coefficients."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from proxmargin import (
    DWD,
    ElasticNetSVC,
    HuberizedSVC,
    MarginClassifier,
    MarginFDA,
    MarginMPM,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    alpha_max,
    margin_path,
)
from proxmargin.paths import alpha_grid

ESTIMATORS = (HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression)


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


@pytest.mark.parametrize("kind", [HuberizedSVC, ElasticNetSVC, SparseLogisticRegression])
def test_a_strength_of_zero_has_no_sign(kind):
    for fits_intercept in (True, False):
        X, y = np.zeros((6, 2)), np.array([0, 1] * 3)
        strength = alpha_max(kind(fit_intercept=fits_intercept), X, y)
        assert strength == 0.0
        assert not np.signbit(strength)


def test_features_without_any_relation_still_give_a_grid():
    X, y = np.ones((6, 2)), np.array([0, 1] * 3)
    assert alpha_max(HuberizedSVC(standardize=True), X, y) == 0.0
    with pytest.warns(UserWarning, match="no feature with a penalty is related to the labels"):
        grid = alpha_grid(HuberizedSVC(standardize=True), X, y, n_alphas=2, eps=0.1)
    np.testing.assert_allclose(grid, [1.0, 0.1])


def test_a_rare_class_that_a_hinge_never_names_is_no_lack_of_related_features():
    rng = np.random.default_rng(0)
    y = (np.arange(200) < 12).astype(int)
    X = rng.standard_normal((200, 3))
    X[:, 0] += 0.8 * y
    with pytest.warns(UserWarning, match="class is so rare .*class_weight='balanced'"):
        alpha_grid(ElasticNetSVC(l1_ratio=1.0), X, y, n_alphas=2)
    for other in (HuberizedSVC(), ElasticNetSVC(class_weight="balanced")):
        assert alpha_max(other, X, y) > 0.01
    constant = np.ones((6, 2)), np.array([0, 1] * 3)
    with pytest.warns(UserWarning, match="related to the labels: their") as told:
        alpha_grid(HuberizedSVC(), *constant, n_alphas=2)
    assert "rare" not in str(told[0].message)


@pytest.mark.filterwarnings("error::UserWarning:proxmargin")
def test_a_feature_in_a_unit_of_its_own_leaves_the_grid_its_start():
    rng = np.random.default_rng(2)
    y = (np.arange(30) % 3 == 0).astype(int)
    X = rng.standard_normal((30, 6)) + 3.0 + y[:, None]
    X[:, 2] = 1e12 * rng.standard_normal(30)
    grid = alpha_grid(ElasticNetSVC(l1_ratio=0.5), X, y, n_alphas=2)
    without = alpha_max(ElasticNetSVC(l1_ratio=0.5), np.delete(X, 2, axis=1), y)
    assert without <= grid[0] < 10 * without


@pytest.mark.parametrize("option", [{"n_alphas": 0}, {"eps": 0.0}, {"eps": 2.0}])
def test_an_unusable_grid_is_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        margin_path(HuberizedSVC(), *load_wine(return_X_y=True), **option)


def test_an_estimator_without_alpha_is_refused():
    with pytest.raises(TypeError, match="MarginClassifier has none"):
        alpha_max(MarginClassifier(), *load_wine(return_X_y=True))


@pytest.mark.parametrize(
    ("model", "parameter"), [(DWD, "nu"), (NuSVC, "nu"), (MarginFDA, "kappa"), (MarginMPM, "kappa")]
)
def test_a_model_without_a_strength_is_referred_to_the_path_in_its_own_parameter(model, parameter):
    X, y = load_wine(return_X_y=True)
    with pytest.raises(TypeError, match=f"{model.__name__} has {parameter}, .*{parameter}s="):
        alpha_max(model(), X, y)
