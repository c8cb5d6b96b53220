"""Scores of held-out rows are those of a grid search, with weights, offsets and any scorer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    get_scorer,
    log_loss,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterGrid,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)

from proxmargin import (
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegressionCV,
    SparseLogisticRegressionCV,
)
from tests.models.selection.cases import EXACT, MODELS, grid_of, negated_loss, plain_of

THREE = StratifiedKFold(3, shuffle=True, random_state=0)  # those of cv=3


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "settings"), MODELS, ids=lambda case: str(case)[-40:])
@pytest.mark.parametrize("scoring", [None, "accuracy", "balanced_accuracy"])
def test_every_score_is_that_of_a_grid_search(kind, settings, scoring, sets) -> None:
    X, y = sets
    model = kind(**settings, **EXACT, scoring=scoring, cv=3).fit(X, y)
    search = GridSearchCV(
        plain_of(model), grid_of(model), scoring=scoring or negated_loss, cv=THREE, refit=False
    ).fit(X, y)
    for fold in range(3):
        expected = search.cv_results_[f"split{fold}_test_score"]
        np.testing.assert_allclose(model.cv_scores_[0, :, fold], expected, atol=1e-6)
    means = model.cv_scores_[0].mean(axis=1)
    assert model.best_index_ == np.argmax(means >= means.max() - 1e-12)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_log_loss_and_deviance_are_those_of_the_probabilities(multi_class, sets) -> None:
    X, y = sets
    model = SparseLogisticRegressionCV(
        alphas=[0.1, 0.01], cv=3, scoring="neg_log_loss", multi_class=multi_class, **EXACT
    )
    model.fit(X, y)
    search = GridSearchCV(plain_of(model), grid_of(model), scoring="neg_log_loss", cv=THREE)
    search.fit(X, y)
    means = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(model.cv_scores_[0].mean(axis=1), means, atol=1e-6)
    deviance = clone(model).set_params(scoring="deviance").fit(X, y)
    np.testing.assert_allclose(deviance.cv_scores_, 2 * model.cv_scores_)
    with pytest.raises(ValueError, match="probabilities"):
        HuberizedSVCCV(scoring="deviance").fit(X, y)


def test_scores_of_held_out_rows_are_kept_on_request(sets) -> None:
    X, y = sets
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = HuberizedSVCCV(alphas=[0.1, 0.01], cv=cv, keep_scores=True, **EXACT).fit(X, y)
    expected = np.zeros_like(model.oof_scores_)
    for train, test in cv.split(X, y):
        for index, alpha in enumerate(model.alphas):
            fit = HuberizedSVC(alpha=alpha, l1_ratio=1.0, **EXACT).fit(X[train], y[train])
            expected[0, index, test] += fit.decision_function(X[test]) / 2
    np.testing.assert_allclose(model.oof_scores_, expected, atol=1e-4)
    assert not hasattr(HuberizedSVCCV(alphas=[0.1]).fit(X, y), "oof_scores_")


def test_weights_are_those_of_repeated_rows(sets) -> None:
    X, y = sets
    times = np.random.default_rng(0).integers(0, 3, y.size)
    fold = np.arange(y.size) * 3 // y.size
    model = SparseLogisticRegressionCV(alphas=[0.1, 0.01], **EXACT)
    for scoring in (None, "neg_log_loss", "accuracy", "balanced_accuracy"):
        one, other = (clone(model).set_params(scoring=scoring) for _ in range(2))
        one.set_params(
            cv=[(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
        )
        many = fold.repeat(times)
        other.set_params(
            cv=[(np.flatnonzero(many != k), np.flatnonzero(many == k)) for k in range(3)]
        )
        one.fit(X, y, sample_weight=times)
        other.fit(X.repeat(times, axis=0), y.repeat(times))
        np.testing.assert_allclose(one.cv_scores_, other.cv_scores_, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SparseLogisticRegressionCV, {"alphas": [0.1, 0.01]}),
        (LogisticRegressionCV, {"Cs": [0.1, 1.0]}),
        (LogisticRegressionCV, {"Cs": [0.1, 1.0], "kernel": "rbf", "gamma": 0.1}),
    ],
)
def test_class_weights_are_in_the_mean_loss_of_held_out_rows_and_in_no_other_score(
    kind, settings, weighted, data
) -> None:
    X, y = data
    rare = (y != np.unique(y)[0]) | (np.arange(y.size) % 3 == 0)
    X, y = X[rare], y[rare]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, y.size) if weighted else np.ones(y.size)
    cv = KFold(3, shuffle=True, random_state=0)  # other shares of the classes in each fold
    codes = np.unique(y, return_inverse=True)[1]
    balanced = (weights.sum() / 2 / np.bincount(codes, weights))[codes]  # of all rows
    model = kind(**settings, **EXACT, cv=cv, class_weight="balanced")
    for scoring, factors in ((None, balanced), ("neg_log_loss", np.ones(y.size))):
        model.set_params(scoring=scoring).fit(X, y, weights if weighted else None)
        for fold, (train, test) in enumerate(cv.split(X)):
            for index, point in enumerate(ParameterGrid(grid_of(model))):
                plain = plain_of(model).set_params(**point)
                plain.fit(X[train], y[train], weights[train])
                losses = -plain.predict_log_proba(X[test])[np.arange(test.size), codes[test]]
                expected = -np.average(losses, weights=(weights * factors)[test])
                found = model.cv_scores_[0, index, fold]
                np.testing.assert_allclose(found, expected, atol=1e-5)


def test_rows_that_a_splitter_repeats_count_as_often(sets) -> None:
    X, y = sets
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, y.size, y.size) for _ in range(3)]
    cv = [(np.sort(rows), np.setdiff1d(np.arange(y.size), rows)) for rows in draws]
    for kind, settings in MODELS:
        if settings.get("penalty") == "l2":
            continue  # nothing that the others lack
        model = kind(**settings, **EXACT, cv=cv, class_weight="balanced", scoring="accuracy")
        model.fit(X, y)
        search = GridSearchCV(plain_of(model), grid_of(model), scoring="accuracy", cv=cv)
        search.fit(X, y)
        for fold in range(3):
            expected = search.cv_results_[f"split{fold}_test_score"]
            np.testing.assert_allclose(model.cv_scores_[0, :, fold], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (SparseLogisticRegressionCV, {"alphas": [0.1, 0.01]}),
        (LogisticRegressionCV, {"Cs": [0.1, 1.0], "kernel": "rbf", "gamma": 0.1}),
    ],
)
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc", "accuracy", "f1_macro"])
def test_an_offset_is_part_of_fits_and_of_held_out_scores(kind, settings, scoring, data) -> None:
    X, y = data
    offset = np.random.default_rng(2).normal(0, 3, y.size)
    model = kind(**settings, **EXACT, cv=3, scoring=scoring, keep_scores=True)
    grid = list(ParameterGrid(grid_of(model.fit(X, y, offset=offset))))
    metric = {
        None: lambda y, scores: -log_loss(y, expit(scores)),
        "neg_log_loss": lambda y, scores: -log_loss(y, expit(scores)),
        "roc_auc": roc_auc_score,
        "accuracy": lambda y, scores: accuracy_score(y, scores > 0),
        "f1_macro": lambda y, scores: f1_score(y, scores > 0, average="macro"),
    }[scoring]
    for fold, (train, test) in enumerate(THREE.split(X, y)):
        for index, setting in enumerate(grid):
            plain = (
                plain_of(model).set_params(**setting).fit(X[train], y[train], None, offset[train])
            )
            scores = plain.decision_function(X[test], offset[test])
            np.testing.assert_allclose(model.oof_scores_[0, index, test], scores, atol=1e-4)
            expected = metric(y[test] == "nein", scores)
            assert model.cv_scores_[0, index, fold] == pytest.approx(expected, abs=1e-6)
    best = plain_of(model).set_params(**grid[model.best_index_]).fit(X, y, offset=offset)
    scores = best.decision_function(X, offset)
    np.testing.assert_allclose(model.decision_function(X, offset), scores, atol=1e-4)
    of_scoring = best.score(X, y, offset=offset) if scoring is None else metric(y == "nein", scores)
    assert model.score(X, y, offset=offset) == pytest.approx(of_scoring, abs=1e-5)
    np.testing.assert_array_equal(model.predict(X, offset), best.predict(X, offset))
    for name in ("predict_proba", "predict_log_proba"):
        expected = getattr(best, name)(X, offset)
        np.testing.assert_allclose(getattr(model, name)(X, offset), expected, atol=1e-4)


@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "accuracy",
        "balanced_accuracy",
        "roc_auc",
        "neg_log_loss",
        "f1_macro",
        "average_precision",
    ],
)
@pytest.mark.parametrize("kind", [SparseLogisticRegressionCV, LogisticRegressionCV])
def test_a_search_scores_by_its_scoring_as_a_grid_search_does(kind, scoring, data) -> None:
    X, y = data
    y = (y == "nein").astype(int)
    grid = {"Cs": [0.1]} if kind is LogisticRegressionCV else {"alphas": [0.1]}
    model = kind(**grid, cv=3, scoring=scoring).fit(X, y)
    weights = np.random.default_rng(0).uniform(0.5, 2, y.size)
    scorer = get_scorer(scoring or "accuracy")
    assert model.score(X, y) == pytest.approx(scorer(model.best_estimator_, X, y))
    expected = scorer(model.best_estimator_, X, y, sample_weight=weights)
    assert model.score(X, y, weights) == pytest.approx(expected)
    if scoring == "neg_log_loss":
        deviance = clone(model).set_params(scoring="deviance").fit(X, y)
        assert deviance.score(X, y, weights) == pytest.approx(2 * expected)
        with pytest.raises(ValueError, match="labels that are not among the classes"):
            deviance.score(X, y + 1)


def test_a_search_scores_by_a_callable_without_weights_with_a_warning(data) -> None:
    X, y = data
    model = HuberizedSVCCV(alphas=[0.1], cv=3, scoring=lambda model, X, y: float(len(y)))
    assert model.fit(X, y).score(X, y) == len(y)
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        assert model.score(X, y, np.ones(y.size)) == len(y)


def test_a_scorer_without_weights_is_asked_without_and_it_is_told(data) -> None:
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 2, y.size)
    model = HuberizedSVCCV(alphas=[0.1], cv=3, scoring=lambda model, X, y: model.score(X, y))
    with pytest.warns(UserWarning, match="takes no sample_weight: held-out rows") as caught:
        model.fit(X, y, sample_weight=weights)
    assert sum("takes no sample_weight" in str(each.message) for each in caught) == 1
    splits = list(THREE.split(X, y))
    for fold, (train, test) in enumerate(splits):
        plain = HuberizedSVC(alpha=0.1, l1_ratio=1.0).fit(X[train], y[train], weights[train])
        assert model.cv_scores_[0, 0, fold] == pytest.approx(plain.score(X[test], y[test]))
    metric = make_scorer(lambda y, predicted: np.mean(y == predicted))
    with pytest.warns(UserWarning, match="takes no sample_weight: held-out rows"):
        same = clone(model).set_params(scoring=metric).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(same.cv_scores_, model.cv_scores_)
    taken = []

    def weighted(model, X, y, sample_weight=None):
        taken.append(sample_weight)
        return model.score(X, y, sample_weight)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(scoring=weighted).fit(X, y, sample_weight=weights)
    for (_, test), found in zip(splits, taken, strict=True):
        np.testing.assert_array_equal(found, weights[test])
