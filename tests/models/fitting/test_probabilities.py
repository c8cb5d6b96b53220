"""Probabilities of logistic models: sums, logarithms, and the class of `predict`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification

from proxmargin import LogisticRegression, SparseLogisticRegression, SparseLogisticRegressionCV

# scores of three classes, one row each: ties, one-sided, tiny differences, and the largest numbers
SCORES = np.array(
    [
        [79.0, 227.0, -3.0],
        [0.0, 1e-17, -1.0],
        [0.0, 0.0, 0.0],
        [-800.0, -900.0, -1000.0],
        [-1000.0, -900.0, -800.0],
        [-1e300, -2e300, -1e300],
        [1e300, -1e300, 2e300],
        [1.7e308, -1.7e308, 1.75e308],
        [-1.7e308, -1.7e308, -1.7e308],
        [5e-324, 1e-323, 0.0],
        [1.0, 2.0, 3.0],
    ]
)
X, Y = make_classification(
    120, 6, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
)


class Scored(LogisticRegression):
    """A fitted model whose scores are the data."""

    def __init__(self, multi_class: str = "ovr") -> None:
        super().__init__()
        self.multi_class = multi_class

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        return X


def scored(multi_class: str, classes: int) -> Any:
    model = Scored(multi_class)
    model.classes_ = np.arange(classes)
    return model


def require_law(model: Any, X: Any) -> None:
    shares, logs, labels = model.predict_proba(X), model.predict_log_proba(X), model.predict(X)
    assert np.isfinite(logs).all()
    assert (logs <= 0.0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(np.exp(logs), shares, rtol=1e-12, atol=1e-300)
    for found in (shares, logs):
        np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], labels)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
def test_the_predicted_class_is_the_most_probable_one(multi_class: str) -> None:
    require_law(scored(multi_class, 3), SCORES)
    require_law(scored(multi_class, 3), SCORES[:, ::-1])


def test_so_it_is_of_two_classes() -> None:
    binary = np.concatenate([SCORES.ravel(), [-1e-17, -5e-324, -0.0]])
    require_law(scored("ovr", 2), binary)


def test_probabilities_of_classes_against_the_rest_are_divided_by_their_sum() -> None:
    scores = np.random.default_rng(0).normal(0.0, 5.0, (50, 3))
    each = expit(scores)
    shares = scored("ovr", 3).predict_proba(scores)
    np.testing.assert_allclose(shares, each / each.sum(axis=1, keepdims=True), rtol=1e-13)
    # where all are tiny they are those of exp(score), and not equal
    far = scored("ovr", 3).predict_proba(scores - 900.0)
    np.testing.assert_allclose(far, softmax(scores, axis=1), rtol=1e-11)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=1e6),
        SparseLogisticRegression(alpha=1e-9),
        SparseLogisticRegression(alpha=1e-9, multi_class="ovr"),
        SparseLogisticRegressionCV(alphas=3, eps=0.1, cv=3, multi_class="ovr"),
    ],
)
def test_so_it_is_far_from_the_data(model: Any) -> None:
    for data, labels in ((X, Y), (X[Y < 2], Y[Y < 2])):
        model.fit(data, labels)
        for factor in (1.0, 100.0, 1e4, 1e139):
            require_law(model, factor * data)
