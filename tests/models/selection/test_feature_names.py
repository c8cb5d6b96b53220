"""Classifiers within others: names of the last fit, and one warning in the outer one's name."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.svm import SVC as ScikitSVC

from proxmargin import (
    SVC,
    SVCCV,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVCCV,
    LogisticRegressionCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
)

X, Y = make_classification(60, 5, n_informative=4, n_redundant=0, random_state=1)
X[:, 0] += 3 * Y
FRAME = pd.DataFrame(X, columns=list("abcde"))
SEVERAL = make_classification(90, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
OUTER = [
    CalibratedMargin(SVC(), cv=2),
    CalibratedMargin(SVC(), cv=2, ensemble=False),
    CalibratedMargin(SVCCV(Cs=2, cv=2), cv=2),
    DDAGClassifier(SVC()),
    SVCCV(Cs=2, cv=2),
    SVCCV(Cs=2, cv=2, kernel="rbf"),
    HuberizedSVCCV(alphas=2, cv=2, eps=0.1, keep_scores=True),
    LogisticRegressionCV(Cs=2, cv=2),
    SparseLogisticRegressionCV(alphas=2, cv=2, eps=0.1),
    StabilitySelection(
        SparseLogisticRegression(), n_pairs=9, q=2, threshold=0.9, alphas=5, random_state=0
    ),
]
METHODS = (
    *("predict", "decision_function", "predict_proba", "predict_log_proba"),
    *("rejects", "score", "transform"),
)


def learned(model: Any) -> set[str]:
    return {name for name in vars(model) if name.endswith("_") or name.startswith("_")}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", OUTER, ids=str)
@pytest.mark.parametrize(
    ("first", "second"),
    [((FRAME, Y), (X[:, :3], Y)), ((FRAME, Y), SEVERAL), (SEVERAL, (FRAME, Y))],
    ids=["fewer columns, no names", "more classes", "two classes, names"],
)
def test_a_second_fit_keeps_nothing_of_the_first(model: Any, first: Any, second: Any) -> None:
    again, fresh = clone(model).fit(*first).fit(*second), clone(model).fit(*second)
    assert learned(again) == learned(fresh)
    assert again.n_features_in_ == second[0].shape[1]
    assert list(getattr(again, "feature_names_in_", [])) == list(getattr(second[0], "columns", []))


def test_certificates_of_an_earlier_fit_are_dropped() -> None:
    model = DDAGClassifier(SVC()).fit(*SEVERAL)
    assert not hasattr(model.set_params(estimator=ScikitSVC()).fit(*SEVERAL), "certificate_")


@pytest.mark.parametrize("model", OUTER, ids=str)
@pytest.mark.parametrize("named", [True, False])
def test_names_that_are_missing_are_told_once_by_the_outer_one(model: Any, named: bool) -> None:
    fitted, new = (FRAME, X) if named else (X, FRAME)
    model = clone(model).fit(fitted, Y)
    for method in filter(lambda name: hasattr(model, name), METHODS):
        arguments = (new, Y) if method == "score" else (new,)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(model, method)(*arguments)
        assert len(caught) == 1, method
        assert f"{type(model).__name__} was fitted" in str(caught[0].message)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            getattr(model, method)(fitted, *arguments[1:])


@pytest.mark.parametrize("model", OUTER, ids=str)
def test_other_names_are_refused(model: Any) -> None:
    model = clone(model).fit(FRAME, Y)
    method = "predict" if hasattr(model, "predict") else "transform"
    with pytest.raises(ValueError, match="feature names should match"):
        getattr(model, method)(FRAME.rename(columns={"a": "z"}))
    assert np.array_equal(model.feature_names_in_, FRAME.columns)


@pytest.mark.parametrize("model", OUTER, ids=str)
def test_another_number_of_features_is_refused_in_the_name_of_the_outer_class(model):
    fitted = clone(model).fit(X, Y)
    for method in METHODS:
        if hasattr(fitted, method) and method != "score":
            with pytest.raises(ValueError, match=f"features, but {type(model).__name__} is exp"):
                getattr(fitted, method)(X[:, :3])
