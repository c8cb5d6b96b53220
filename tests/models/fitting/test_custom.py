"""`MarginClassifier`: penalties are taken by what they can do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV

from proxmargin import MarginClassifier
from proxmargin.losses import Hinge, HuberizedHinge, Logistic, MarginLoss
from proxmargin.penalties import Ball, ElasticNet, Ridge


@pytest.mark.parametrize("loss", [HuberizedHinge(), Logistic(), Hinge()], ids=repr)
def test_a_ridge_of_all_classes_is_an_elastic_net_without_l1(loss: MarginLoss) -> None:
    X, y = load_iris(return_X_y=True)
    ridge = MarginClassifier(loss, Ridge(0.1), tol=1e-8).fit(X, y)
    net = MarginClassifier(loss, ElasticNet(0.0, 0.1), tol=1e-8).fit(X, y)
    assert ridge.certificate_.converged
    assert ridge.certificate_.primal == pytest.approx(net.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(ridge.coef_, net.coef_, atol=1e-3)
    np.testing.assert_allclose(ridge.coef_.sum(axis=0), 0.0, atol=1e-9)


def test_a_ball_of_all_classes_is_refused_in_a_sentence() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="use multi_class='ovr'"):
        MarginClassifier(penalty=Ball()).fit(X, y)


def test_parameters_of_loss_and_penalty_are_searched_by_name() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = MarginClassifier(HuberizedHinge(0.5), standardize=True)
    assert model.get_params()["loss__delta"] == 0.5
    assert model.get_params()["penalty__l1"] == 0.005
    assert "loss__delta" not in model.get_params(deep=False)
    grid = {"loss__delta": [0.1, 2.0], "penalty__l1": [0.01, 0.1]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    best = search.best_estimator_
    assert best.loss == HuberizedHinge(search.best_params_["loss__delta"])
    assert best.penalty == ElasticNet(search.best_params_["penalty__l1"], 0.005)
    assert model.loss == HuberizedHinge(0.5)  # the given object is not changed
    assert clone(best).get_params() == best.get_params()


@pytest.mark.parametrize("name", ["loss__width", "penalty__C", "solver__tol", "nonsense"])
def test_unknown_parameters_of_parts_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=name.split("__")[0]):
        MarginClassifier().set_params(**{name: 1.0})
