"""On every real multiclass set the largest score is worth more than the largest class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from proxmargin import HuberizedSVC, SparseLogisticRegression
from tests.shared_data import load_set, needs_data

STORED = ["covtype", "dna", "glass", "mnist", "satimage", "segment", "srbct", "usps", "vehicle"]
EMBEDDED = {"digits": load_digits, "iris": load_iris, "wine": load_wine}
MODELS = {
    "joint": HuberizedSVC(alpha=0.01, standardize=True, tol=1e-3),
    "one against the rest": HuberizedSVC(alpha=0.01, multi_class="ovr", standardize=True, tol=1e-3),
    "logistic": SparseLogisticRegression(alpha=0.01, standardize=True, tol=1e-3),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


def halves(X: Any, y: np.ndarray) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    order = np.random.default_rng(1).permutation(y.size)
    train, test = order[::2], order[1::2]
    return X[train], y[train], X[test], y[test]


def check_beats_the_majority(model: Any, X: Any, y: np.ndarray) -> None:
    X_train, y_train, X_test, y_test = halves(X, y)
    predicted = model.fit(X_train, y_train).predict(X_test)
    labels, counts = np.unique(y_train, return_counts=True)
    majority = np.full(y_test.shape, labels[counts.argmax()])
    assert accuracy_score(y_test, predicted) > accuracy_score(y_test, majority)
    scores = model.decision_function(X_test)
    np.testing.assert_array_equal(predicted, model.classes_[scores.argmax(axis=1)])


@pytest.mark.sampled(2)
@every_model
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_data(f"data/{name}.npz")) for name in STORED]
)
def test_predictions_beat_the_majority_class_on_stored_sets(model: Any, name: str) -> None:
    check_beats_the_majority(model, *load_set(name, rows=2000 if name != "mnist" else 1000))


@every_model
@pytest.mark.parametrize("name", EMBEDDED)
def test_predictions_beat_the_majority_class_on_embedded_sets(model: Any, name: str) -> None:
    check_beats_the_majority(model, *EMBEDDED[name](return_X_y=True))


@needs_data("data/poker.npz")
@every_model
def test_on_poker_hands_predictions_are_at_least_as_balanced_as_the_majority(model: Any) -> None:
    # no linear model can beat the majority there: the rank of a hand is not linear in its cards
    X_train, y_train, X_test, y_test = halves(*load_set("poker", rows=4000))
    predicted = model.fit(X_train, y_train).predict(X_test)
    kinds = np.unique(y_test).size
    assert balanced_accuracy_score(y_test, predicted) >= 1 / kinds - 0.02
