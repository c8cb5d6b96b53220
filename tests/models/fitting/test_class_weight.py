"""Class weights are a setting of a whole study: a part of its data may lack a class."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import LinearSVC

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    MarginFDA,
    MulticlassSVC,
    SparseLogisticRegression,
    StabilitySelection,
    alpha_max,
    compare,
    margin_path,
)

MODELS = [
    HuberizedSVC(),
    SparseLogisticRegression(),
    MulticlassSVC(),
    SVC(),
    SVC(kernel="rbf"),
    L2SVC(),
    LogisticRegression(),
    DWD(),
    MarginFDA(),
    DDAGClassifier(SVC()),
    HuberizedSVCCV([0.1, 0.01, 0.001], cv=3),
    CalibratedMargin(SVC(), cv=3),
]


def with_weights(model: Any, weights: Any) -> Any:
    names = [name for name in model.get_params() if name.endswith("class_weight")]
    return clone(model).set_params(**{names[-1]: weights})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_labels_that_y_lacks_change_nothing(model: Any) -> None:
    X, y = make_classification(80, 5, random_state=1)
    labels = np.array(["no", "yes"])[y]
    given = {"no": 1.0, "yes": 2.0}
    found = with_weights(model, {**given, "unknown": 3.0}).fit(X, labels)
    expected = with_weights(model, given).fit(X, labels)
    assert np.array_equal(found.predict(X), expected.predict(X))
    if hasattr(found, "decision_function"):
        assert np.array_equal(found.decision_function(X), expected.decision_function(X))
    for misspelt in ({"yse": 2.0}, {"no": 1.0, "yse": 2.0}):
        with pytest.raises(ValueError, match=r"names \['yse'\], none of which .* y: 'no', 'yes'"):
            with_weights(model, misspelt).fit(X, labels)


def test_labels_without_weight_are_labels() -> None:
    X, y = load_iris(return_X_y=True)
    weights = (y < 2).astype(float)
    found = SVC(class_weight={2: 5.0}).fit(X, y, weights)
    assert np.array_equal(found.coef_, SVC().fit(X[y < 2], y[y < 2]).coef_)


@pytest.mark.filterwarnings("ignore")
def test_parts_of_a_study_may_lack_a_class() -> None:
    X, y = load_iris(return_X_y=True)
    weights = {0: 1.0, 1: 2.0, 2: 3.0}
    model = LogisticRegression(class_weight=weights)
    scores = cross_val_score(model, X, y, cv=KFold(3), error_score="raise")  # sorted by class
    assert np.all(scores == 0.0)
    BaggingClassifier(model, 5, max_samples=4, random_state=0).fit(X, y)
    pair = X[y != 1], y[y != 1]
    path = margin_path(HuberizedSVC(class_weight=weights), *pair, n_alphas=3)
    assert len(path) == 3
    assert HuberizedSVC(class_weight={}).fit(*pair).certificate_.converged


@pytest.mark.parametrize("weights", [{0: 1.0, 7: 2.0}, {0: 1.0, 1: 1.0, "2": 5.0}], ids=str)
def test_a_misspelt_label_is_refused_by_whatever_takes_all_data(weights: Any) -> None:
    X, y = load_iris(return_X_y=True)
    ovr = HuberizedSVC(alpha=0.1, multi_class="ovr", class_weight=weights)
    for takes in (
        ovr.fit,
        SVC(kernel="rbf", class_weight=weights).fit,
        DDAGClassifier(LinearSVC(class_weight=weights)).fit,
        partial(margin_path, ovr),
        partial(alpha_max, ovr),
        StabilitySelection(ovr, n_pairs=2, pfer=1, q=2).fit,
        partial(compare, models={"own": ovr}, cv=2, progress=False),
    ):
        with pytest.raises(ValueError, match=r"none of which .* y: 0, 1, 2"):
            takes(X, y)


@pytest.mark.parametrize("weight", ["x", None, [1, 2]], ids=str)
def test_a_weight_that_is_no_number_is_told_with_the_parameter(weight):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class_weight: weights must be "):
        SVC(class_weight={0: weight}).fit(X, y)
