"""Searches, pipelines and validation of scikit-learn around every classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from proxmargin import History
from tests.cases import ESTIMATORS
from tests.laws.users.cases import CLASSIFIERS, CLOSE, RBF, every, folds_of, sample

pytestmark = pytest.mark.filterwarnings("ignore:the chosen")

# what a search varies: the first of these parameters that an estimator has
VARIED: dict[str, list[Any]] = {
    "alpha": [0.005, 0.05],
    "C": [0.1, 1.0],
    "kappa": ["0.2max", "0.5max"],
    "standardize": [False, True],
    "method": ["sigmoid", "beta"],
    "n_jobs": [None, 1],
}
SEARCHERS: dict[str, Callable[..., Any]] = {
    "grid": GridSearchCV,
    "random": lambda *given, **more: RandomizedSearchCV(*given, n_iter=2, random_state=0, **more),
    "halving": lambda *given, **more: HalvingGridSearchCV(
        *given, min_resources=40, random_state=0, **more
    ),
}


def varied(model: Any) -> dict[str, list[Any]]:
    name = next(name for name in VARIED if name in model.get_params())
    return {name: VARIED[name]}


def plain(name: str, classes: int = 2) -> tuple[Any, np.ndarray, np.ndarray]:
    data = sample(classes)
    return CLASSIFIERS[name](), data.X, np.array(["ash", "birch", "cedar"])[data.y]


def scores(model: Any, X: Any) -> np.ndarray:
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    return np.asarray(ask(X))


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    close = {"rtol": 0.0, "atol": CLOSE * np.abs(expected).max()}
    np.testing.assert_allclose(found, expected, **close)


@pytest.mark.sampled(8)
@every("searches", CLASSIFIERS, kind=SEARCHERS, classes=(2, 3))
def test_a_search_tries_what_it_is_given(name: str, kind: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    grid, folds = varied(model), folds_of(np.arange(len(y)))
    search = SEARCHERS[kind](model, grid, cv=folds if kind != "halving" else 2, error_score="raise")
    search.fit(X, y)
    best = clone(model).set_params(**search.best_params_).fit(X, y)
    assert_close(scores(search, X), scores(best, X))
    assert search.score(X, y) == search.best_estimator_.score(X, y)
    if kind != "halving":
        for tried, found in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        ):
            each = [
                clone(model).set_params(**tried).fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds
            ]
            assert found == pytest.approx(np.mean(each), abs=1e-9)


@pytest.mark.sampled(4)
@every("routing of weights", CLASSIFIERS)
def test_a_search_routes_weights_to_fits_and_scores(name: str) -> None:
    model, X, y = plain(name)
    weights = np.arange(len(y)) % 3 + 1.0
    folds = folds_of(np.arange(len(y)))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(model).set_fit_request(sample_weight=True)
        if "estimator" in asking.get_params() and asking.estimator is not None:
            asking.estimator.set_fit_request(sample_weight=True)
        scoring = get_scorer("accuracy").set_score_request(sample_weight=True)
        search = GridSearchCV(asking, varied(model), cv=folds, scoring=scoring, error_score="raise")
        search.fit(X, y, sample_weight=weights)
    best = clone(model).set_params(**search.best_params_).fit(X, y, sample_weight=weights)
    assert_close(scores(search, X), scores(best, X))
    each = []
    for a, b in folds:
        fit = clone(best).fit(X[a], y[a], sample_weight=weights[a])
        each.append(accuracy_score(y[b], fit.predict(X[b]), sample_weight=weights[b]))
    assert search.best_score_ == pytest.approx(np.mean(each), abs=1e-9)


@pytest.mark.sampled(3)
@every("callbacks", [*ESTIMATORS, *RBF])
def test_a_search_takes_callbacks(name: str) -> None:
    model, X, y = plain(name)
    model.set_params(callbacks=[History()])
    search = GridSearchCV(model, varied(model), cv=2, error_score="raise").fit(X, y)
    expected = clone(search.best_estimator_).set_params(callbacks=()).fit(X, y)
    np.testing.assert_array_equal(scores(search, X), scores(expected, X))
    assert len(search.best_estimator_.history_) > 0
    assert not hasattr(model, "history_")


@pytest.mark.sampled(4)
@every("pipelines", CLASSIFIERS, classes=(2, 3))
def test_a_pipeline_of_frames_is_its_steps(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(5)])
    frame["kind"] = np.where(X[:, 0] > 0, "round", "square")
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [f"x{k}" for k in range(5)]),
            ("kinds", OneHotEncoder(sparse_output=False), ["kind"]),
        ]
    )
    whole = make_pipeline(columns, model).set_output(transform="pandas").fit(frame, y)
    step = columns.set_output(transform="pandas")
    own = clone(model).fit(step.fit_transform(frame), y)
    np.testing.assert_array_equal(scores(whole, frame), scores(own, step.transform(frame)))
    assert whole[-1].feature_names_in_.tolist() == list(step.get_feature_names_out())
    np.testing.assert_array_equal(whole.predict(frame), own.predict(step.transform(frame)))


@pytest.mark.sampled(8)
@every("validation", CLASSIFIERS, classes=(2, 3))
def test_validation_fits_to_folds(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    folds = folds_of(np.arange(len(y)))
    found = cross_validate(
        model,
        X,
        y,
        cv=folds,
        scoring=["accuracy", "f1_macro"],
        return_train_score=True,
        error_score="raise",
    )
    predicted = cross_val_predict(model, X, y, cv=folds)
    for k, (train, test) in enumerate(folds):
        fit = clone(model).fit(X[train], y[train])
        np.testing.assert_array_equal(predicted[test], fit.predict(X[test]))
        assert found["test_accuracy"][k] == fit.score(X[test], y[test])
        assert found["train_accuracy"][k] == fit.score(X[train], y[train])
    if classes == 2:
        area = cross_validate(model, X, y, cv=folds, scoring="roc_auc", error_score="raise")
        assert (area["test_score"] > 0.5).all()


@pytest.mark.sampled(4)
@every("validation", CLASSIFIERS)
def test_curves_and_importances_are_those_of_its_scores(name: str) -> None:
    model, X, y = plain(name)
    folds = folds_of(np.arange(len(y)))
    sizes, _, held_out = learning_curve(
        model, X, y, cv=folds, train_sizes=[24, 32], error_score="raise"
    )
    for column, size in zip(held_out, sizes, strict=True):
        for score, (train, test) in zip(column, folds, strict=True):
            fit = clone(model).fit(X[train[:size]], y[train[:size]])
            assert score == fit.score(X[test], y[test])
    fit = clone(model).fit(X, y)
    found = permutation_importance(fit, X, y, n_repeats=2, random_state=0)
    assert found.importances.shape == (5, 2)
    if hasattr(fit, "coef_"):
        unused = (fit.coef_ == 0).all(axis=0)
        assert (found.importances[unused] == 0).all()
