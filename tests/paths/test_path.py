"""Paths: what they prove, and that warm starts change nothing but the time."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    ElasticNetSVC,
    History,
    HuberizedSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    margin_path,
)

ESTIMATORS = (HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression)


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


@pytest.mark.parametrize("alphas", [[], [[0.1]], [-1.0], [np.nan], 0.5])
def test_unusable_alphas_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        margin_path(HuberizedSVC(), *load_wine(return_X_y=True), alphas=alphas)
