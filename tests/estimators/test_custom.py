"""`MarginClassifier`: penalties are taken by what they can do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

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
