"""What a path says of itself: explained loss, coefficients between strengths, probabilities."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss

import proxmargin as pm

X, Y = load_breast_cancer(return_X_y=True)
X = (X[::4] - X.mean(axis=0)) / X.std(axis=0)
Y = Y[::4]
WINE, KIND = load_wine(return_X_y=True)
WEIGHT = 1.0 + np.arange(Y.size) % 3


def null_log_loss(y, weight=None):
    shares = np.bincount(np.unique(y, return_inverse=True)[1], weight)
    shares = shares / shares.sum()
    return -np.sum(shares * np.log(shares))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_deviance_ratio_is_that_of_the_log_loss(l1_ratio, weight, standardize):
    model = pm.SparseLogisticRegression(l1_ratio=l1_ratio, standardize=standardize)
    path = pm.margin_path(model, X, Y, alphas=[0.3, 0.1, 0.01, 0.1], sample_weight=weight)
    losses = [log_loss(Y, each, sample_weight=weight) for each in path.predict_proba(X)]
    expected = 1 - np.array(losses) / null_log_loss(Y, weight)
    np.testing.assert_allclose(path.deviance_ratio, expected, rtol=1e-9, atol=1e-12)


def test_factors_and_an_offset_count():
    factor, offset = np.ones(30), np.sin(np.arange(Y.size))
    factor[:2] = 0.0, 3.0
    model = pm.SparseLogisticRegression(l1_ratio=0.9, penalty_factor=factor)
    path = pm.margin_path(model, X, Y, n_alphas=5, eps=0.1, offset=offset)
    losses = [log_loss(Y, each) for each in path.predict_proba(X, offset)]
    ridge = pm.LogisticRegression(C=1e8).fit(X[:, :1], Y, offset=offset)
    null = log_loss(Y, ridge.predict_proba(X[:, :1], offset))
    np.testing.assert_allclose(path.deviance_ratio, 1 - np.array(losses) / null, atol=1e-6)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_several_classes(multi_class):
    model = pm.SparseLogisticRegression(
        l1_ratio=1.0, standardize=True, multi_class=multi_class, tol=1e-8
    )
    path = pm.margin_path(model, WINE, KIND, n_alphas=6, eps=0.05)
    assert path.deviance_ratio[0] == pytest.approx(0, abs=1e-9)
    if multi_class == "joint":
        losses = np.array([log_loss(KIND, each) for each in path.predict_proba(WINE)])
        null = null_log_loss(KIND)
    else:
        signs = np.where(KIND[:, None] == np.arange(3), 1.0, -1.0)
        losses = np.logaddexp(0, -signs * path.scores(WINE)).sum(axis=2).mean(axis=1)
        null = sum(null_log_loss(k == KIND) for k in range(3))
    np.testing.assert_allclose(path.deviance_ratio, 1 - losses / null, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (pm.SVC(), lambda t: np.maximum(1 - t, 0)),
        (pm.L2SVC(standardize=True), lambda t: np.maximum(1 - t, 0) ** 2),
        (pm.ElasticNetSVC(l1_ratio=0.5), lambda t: np.maximum(1 - t, 0)),
        (
            pm.HuberizedSVC(l1_ratio=0.5, intercept_ridge=0.1, bounds=(0, None)),
            lambda t: np.where(t < 0, 0.5 - t, np.maximum(1 - t, 0) ** 2 / 2),
        ),
    ],
    ids=["SVC", "L2SVC", "ElasticNetSVC", "HuberizedSVC"],
)
def test_the_loss_of_margins(model, loss):
    path = pm.margin_path(model, X, Y, n_alphas=4, eps=0.1)
    signs = 2.0 * Y - 1
    losses = loss(signs * path.scores(X)).mean(axis=1)
    grid = np.linspace(-2, 2, 40001)
    share = Y.mean()
    nulls = share * loss(grid) + (1 - share) * loss(-grid)
    ridge = getattr(model, "intercept_ridge", 0.0) / 2 * grid**2
    null = nulls[np.argmin(nulls + ridge)]
    np.testing.assert_allclose(path.deviance_ratio, 1 - losses / null, atol=1e-5)


def test_all_classes_at_once_with_groups():
    model = pm.MulticlassSVC("group_l2", groups="features", loss="squared_hinge", standardize=True)
    path = pm.margin_path(model, WINE, KIND, n_alphas=4, eps=0.1)
    scores = path.scores(WINE)
    own = np.take_along_axis(scores, np.broadcast_to(KIND[None, :, None], (4, 178, 1)), axis=2)
    losses = (np.maximum(1 + scores - own, 0) ** 2).sum(axis=2) - 1
    shares = losses.mean(axis=1)
    np.testing.assert_allclose(path.deviance_ratio, 1 - shares / shares[0], atol=1e-6)


def test_a_part_of_a_path_and_a_pickled_one_keep_it():
    path = pm.margin_path(pm.SparseLogisticRegression(l1_ratio=1.0), X, Y, n_alphas=5)
    back = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(back.deviance_ratio, path.deviance_ratio)
    part = path._picked(np.array([3, 1]))
    np.testing.assert_array_equal(part.deviance_ratio, path.deviance_ratio[[3, 1]])


def test_paths_without_a_common_loss_say_so():
    with pytest.raises(AttributeError, match="alpha or C"):
        _ = pm.margin_path(pm.NuSVC(), X, Y, nus=[0.3]).deviance_ratio
    with pytest.raises(AttributeError, match="CalibratedMargin"):
        pm.margin_path(pm.SVC(), X, Y, n_alphas=2).predict_proba(X)


def test_a_search_keeps_the_explained_loss_of_its_path():
    model = pm.SparseLogisticRegressionCV(alphas=6, eps=0.05, cv=3).fit(X, Y)
    losses = np.array([log_loss(Y, each) for each in model.path_.predict_proba(X)])
    np.testing.assert_allclose(model.path_.deviance_ratio, 1 - losses / null_log_loss(Y), atol=1e-9)


@pytest.mark.parametrize("data", [X, sparse.csr_array(X)])
def test_coefficients_between_strengths_are_interpolated(data):
    path = pm.margin_path(pm.HuberizedSVC(l1_ratio=1.0), data, Y, alphas=[0.05, 0.2, 0.1])
    for k, alpha in enumerate(path.alphas):
        np.testing.assert_array_equal(path.coef(alpha), path.coefs[k])
        np.testing.assert_array_equal(path.intercept(alpha), path.intercepts[k])
    np.testing.assert_allclose(
        path.coef(0.175), 0.75 * path.coefs[1] + 0.25 * path.coefs[2], atol=1e-15
    )
    np.testing.assert_allclose(
        path.intercept(0.0625), 0.25 * path.intercepts[2] + 0.75 * path.intercepts[0]
    )


def test_a_strength_beyond_the_path_is_refused():
    path = pm.margin_path(pm.L2SVC(), X, Y, Cs=[0.1, 1.0])
    assert path.coef(0.5).shape == (1, 30)
    for C in (0.09, 1.1, np.nan):
        with pytest.raises(ValueError, match="C"):
            path.coef(C)
    one = pm.margin_path(pm.L2SVC(), X, Y, Cs=[0.5])
    np.testing.assert_array_equal(one.coef(0.5), one.coefs[0])


@pytest.mark.parametrize("kind", [pm.SparseLogisticRegression, pm.ElasticNetSVC])
def test_a_path_ends_before_the_first_model_with_too_many_features(kind):
    model = kind(l1_ratio=0.9)
    whole = pm.margin_path(model, X, Y, n_alphas=15, eps=0.05)
    assert whole.ended == "complete"
    path = pm.margin_path(model, X, Y, n_alphas=15, eps=0.05, max_features=4)
    kept = int(np.argmax(whole.n_nonzero > 4))
    assert path.ended == "features"
    assert len(path) == kept == path.deviance_ratio.size
    np.testing.assert_allclose(path.coefs, whole.coefs[:kept], atol=1e-6)


def test_features_are_counted_once_for_all_classes():
    model = pm.SparseLogisticRegression(l1_ratio=1.0, standardize=True, multi_class="ovr")
    whole = pm.margin_path(model, WINE, KIND, n_alphas=10, eps=0.05)
    path = pm.margin_path(model, WINE, KIND, n_alphas=10, eps=0.05, max_features=6)
    assert len(path) == np.argmax(whole.n_nonzero > 6)


def test_what_cannot_have_so_few_features_says_so():
    with pytest.raises(ValueError, match="max_features=5: the first model"):
        pm.margin_path(pm.SVC(), X, Y, n_alphas=3, max_features=5)
    with pytest.raises(ValueError, match="max_features is for paths in alpha and C"):
        pm.margin_path(pm.NuSVC(), X, Y, nus=[0.3], max_features=5)
    with pytest.raises(ValueError, match="max_features"):
        pm.margin_path(pm.SparseLogisticRegression(), X, Y, max_features=1.5)
