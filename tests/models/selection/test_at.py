"""Other choices out of a fitted search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import proxmargin as pm

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X, Y = X[::3], Y[::3]


@pytest.fixture(scope="module")
def search():
    return pm.SparseLogisticRegressionCV(
        alphas=12, l1_ratios=(1.0, 0.5), eps=0.02, cv=4, standardize=True
    ).fit(X, Y)


def test_the_choices_of_a_search_are_those_of_searches_that_ask_for_them(search):
    other = pm.SparseLogisticRegressionCV(
        alphas=12, l1_ratios=(1.0, 0.5), eps=0.02, cv=4, standardize=True, selection="1se"
    ).fit(X, Y)
    assert search.alpha_ != other.alpha_
    found = search.at("1se")
    assert (found.alpha, found.l1_ratio) == (other.alpha_, other.l1_ratio_)
    np.testing.assert_array_equal(found.coef_, other.coef_)
    np.testing.assert_array_equal(found.predict(X), other.predict(X))
    assert list(found.feature_names_in_) == list(X.columns)
    assert found.certificate_.converged
    np.testing.assert_array_equal(other.at("best").coef_, search.coef_)
    assert search.alpha_ == search.at("best").alpha


def test_a_strength_of_the_grid_gives_its_model(search):
    alpha = search.path_.alphas[4]
    np.testing.assert_array_equal(search.at(alpha).coef_, search.path_.coefs[4])
    assert search.at(alpha * (1 + 1e-12)).alpha == alpha


def test_what_there_is_not_is_refused(search):
    with pytest.raises(ValueError, match=r"path_\.coef"):
        search.at(1.5 * search.path_.alphas[4])
    with pytest.raises(ValueError, match="choice must be"):
        search.at("2se")
    kernel = pm.SVCCV(Cs=[0.1, 1.0, 10.0], kernel="rbf", cv=3, standardize=True).fit(X, Y)
    with pytest.raises(ValueError, match=r"fit SVC\(C=\.\.\.\)"):
        kernel.at("1se")
    relaxed = pm.SparseLogisticRegressionCV(alphas=8, eps=0.1, cv=3, relaxed=[0.5]).fit(X, Y)
    with pytest.raises(ValueError, match=r"gamma_=0\.5"):
        relaxed.at("best")
