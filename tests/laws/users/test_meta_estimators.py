"""scikit-learn's meta-estimators do with every classifier what they say, told by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from tests.laws.users.cases import (
    CLASSIFIERS,
    CLOSE,
    LINEAR,
    SPARSE,
    every,
    sample,
)

# folds of searches warn that a grid of few strengths ends where it ends
pytestmark = pytest.mark.filterwarnings("ignore:the chosen")


def plain(name: str, classes: int = 2) -> tuple[Any, np.ndarray, np.ndarray]:
    """An estimator, samples, and labels that are no numbers."""
    data = sample(classes)
    return CLASSIFIERS[name](), data.X, np.array(["ash", "birch", "cedar"])[data.y]


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    return np.asarray(ask(X))


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    close = {"rtol": 0.0, "atol": CLOSE * np.abs(expected).max()}
    np.testing.assert_allclose(found, expected, **close)


@pytest.mark.sampled(5)
@every("bagging", CLASSIFIERS, classes=(2, 3))
def test_bagging_fits_to_rows_drawn_again(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    bag = BaggingClassifier(model, n_estimators=2, random_state=0).fit(X, y)
    for fit, rows in zip(bag.estimators_, bag.estimators_samples_, strict=True):
        drawn = np.bincount(rows, minlength=len(y))  # as weights, so that folds are the same
        assert_close(scores(fit, X), scores(clone(fit).fit(X, y, sample_weight=drawn), X))
    assert set(bag.predict(X)) <= set(y)
    subset = BaggingClassifier(model, n_estimators=2, max_features=3, random_state=0).fit(X, y)
    assert subset.predict_proba(X).shape == (len(y), classes)


@pytest.mark.sampled(4)
@every("voting", CLASSIFIERS, classes=(2, 3))
def test_voting_counts_votes_or_probabilities(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    other = LogisticRegression()
    one, two = clone(model).fit(X, y), clone(other).fit(X, y)
    members = [("one", model), ("two", other)]
    hard = VotingClassifier(members, weights=[2, 1]).fit(X, y)
    np.testing.assert_array_equal(hard.predict(X), one.predict(X))
    soft = VotingClassifier(members, voting="soft").fit(X, y)
    if hasattr(one, "predict_proba"):
        mean = (one.predict_proba(X) + two.predict_proba(X)) / 2
        np.testing.assert_allclose(soft.predict_proba(X), mean)
    else:
        with pytest.raises(AttributeError):
            soft.predict_proba(X)


@pytest.mark.sampled(6)
@every("stacking", CLASSIFIERS, classes=(2, 3))
def test_stacking_learns_of_held_out_scores(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    stack = StackingClassifier([("one", model)], cv=2).fit(X, y)
    (how,) = stack.stack_method_
    held_out = cross_val_predict(clone(model), X, y, cv=2, method=how)
    if how == "predict_proba" and classes == 2:
        held_out = held_out[:, 1]
    final = LogisticRegression().fit(held_out.reshape(len(y), -1), y)
    assert_close(stack.final_estimator_.coef_, final.coef_)
    assert stack.predict(X).shape == y.shape


@pytest.mark.sampled(4)
@every("boosting", CLASSIFIERS, classes=(2, 3))
def test_boosting_fits_to_weights(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    boost = AdaBoostClassifier(model, n_estimators=2).fit(X, y)
    first = clone(boost.estimators_[0])  # its folds are shuffled by the seed that it was given
    first.fit(X, y, sample_weight=np.full(len(y), 1.0 / len(y)))
    assert_close(scores(boost.estimators_[0], X), scores(first, X))
    assert 0.0 <= boost.estimator_errors_[0] < 1.0 - 1.0 / classes
    assert set(boost.predict(X)) <= set(y)


@pytest.mark.sampled(6)
@every("calibration", CLASSIFIERS, method=["sigmoid", "isotonic"], classes=(2, 3))
def test_calibration_maps_scores_of_fits_to_folds(name: str, classes: int, method: str) -> None:
    model, X, y = plain(name, classes)
    each = np.arange(len(y)) % 2
    folds = [(np.flatnonzero(each != k), np.flatnonzero(each == k)) for k in range(2)]
    calibrated = CalibratedClassifierCV(model, method=method, cv=folds).fit(X, y)
    for part, (train, _) in zip(calibrated.calibrated_classifiers_, folds, strict=True):
        assert_close(scores(part.estimator, X), scores(clone(model).fit(X[train], y[train]), X))
    found = calibrated.predict_proba(X)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.sampled(3)
@every("thresholds", CLASSIFIERS)
def test_thresholds_are_of_the_scores(name: str) -> None:
    model, X, y = plain(name)
    own = clone(model).fit(X, y)
    by_probability = hasattr(own, "predict_proba")
    found = own.predict_proba(X)[:, 1] if by_probability else own.decision_function(X)
    threshold = float(np.median(found))
    fixed = FixedThresholdClassifier(model, threshold=threshold).fit(X, y)
    expected = np.where(found >= threshold, "birch", "ash")
    clear = np.abs(found - threshold) > CLOSE * np.abs(found).max()
    np.testing.assert_array_equal(fixed.predict(X)[clear], expected[clear])
    tuned = TunedThresholdClassifierCV(model, cv=2, thresholds=5).fit(X, y)
    expected = np.where(found >= tuned.best_threshold_, "birch", "ash")
    clear = np.abs(found - tuned.best_threshold_) > CLOSE * np.abs(found).max()
    np.testing.assert_array_equal(tuned.predict(X)[clear], expected[clear])


@pytest.mark.sampled(4)
@every("problems of two", CLASSIFIERS)
def test_several_classes_become_several_problems_of_two(name: str) -> None:
    model, X, y = plain(name, 3)
    rest = OneVsRestClassifier(model).fit(X, y)
    pairs = OneVsOneClassifier(model).fit(X, y)
    codes = OutputCodeClassifier(model, code_size=2, random_state=0).fit(X, y)
    for fit, label in zip(rest.estimators_, rest.classes_, strict=True):
        assert_close(scores(fit, X), scores(clone(model).fit(X, (y == label).astype(int)), X))
    kept = np.isin(y, ["ash", "cedar"])
    expected = clone(model).fit(X[kept], (y[kept] == "cedar").astype(int))
    assert_close(scores(pairs.estimators_[1], X), scores(expected, X))
    for several in (rest, pairs, codes):
        assert np.mean(several.predict(X) == y) > 0.4
        assert set(several.predict(X)) <= set(y)


@pytest.mark.sampled(3)
@every("several outputs", CLASSIFIERS)
def test_several_outputs_become_several_problems(name: str) -> None:
    model, X, y = plain(name)
    both = np.column_stack([y, np.where(X[:, 1] > 0, "up", "down")])
    several = MultiOutputClassifier(model).fit(X, both)
    for k, fit in enumerate(several.estimators_):
        assert_close(scores(fit, X), scores(clone(model).fit(X, both[:, k]), X))
    bits = (both == both[0]).astype(int)
    chain = ClassifierChain(model, order=[1, 0]).fit(X, bits)
    more = np.column_stack([X, bits[:, 1]])
    last = clone(model).fit(more, bits[:, 0])
    assert_close(scores(chain.estimators_[1], more), scores(last, more))


@pytest.mark.sampled(8)
@every("elimination of features", LINEAR, classes=(2, 3))
def test_features_are_eliminated_by_their_coefficients(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    found = RFE(model, n_features_to_select=2).fit(X, y)
    for rank in range(found.ranking_.max(), 1, -1):
        left = np.flatnonzero(found.ranking_ <= rank)
        squares = (clone(model).fit(X[:, left], y).coef_ ** 2).sum(axis=0)
        gone = squares[found.ranking_[left] == rank]
        assert (gone <= squares.min() + CLOSE * squares.max()).all()
    by_folds = RFECV(model, cv=2).fit(X, y)
    assert 1 <= by_folds.n_features_ <= X.shape[1]


@pytest.mark.sampled(3)
@every("selection", SPARSE, classes=(2, 3))
def test_a_sparse_model_selects_what_it_uses(name: str, classes: int) -> None:
    model, X, y = plain(name, classes)
    for scale in (1.0, np.array([1.0, 1e-2, 1.0, 1e2, 1.0])):
        found = SelectFromModel(model).fit(X * scale, y)
        used = (found.estimator_.coef_ != 0).any(axis=0)
        np.testing.assert_array_equal(found.get_support(), used)


@pytest.mark.sampled(4)
@every("addition of features", CLASSIFIERS)
def test_features_are_added_by_their_scores(name: str) -> None:
    model, X, y = plain(name)
    X = X[:, [0, 3, 4]]
    found = SequentialFeatureSelector(model, n_features_to_select=1, cv=2).fit(X, y)
    each = [cross_val_score(clone(model), X[:, [j]], y, cv=2).mean() for j in range(3)]
    assert found.get_support().tolist() == [j == int(np.argmax(each)) for j in range(3)]
