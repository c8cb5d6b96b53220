"""The graph of binary classifiers: what it asks, what it answers, and which data it takes."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_backend
from sklearn import svm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from proxmargin import SVC, DDAGClassifier, LogisticRegression, MarginMPM, NuSVC
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList


class Counting(ClassifierMixin, BaseEstimator):
    """A binary classifier that counts the samples it is asked about."""

    asked = 0

    def fit(self, X: Any, y: Any) -> Counting:
        self.model_ = SVC(tol=1e-3).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        Counting.asked += X.shape[0]
        return self.model_.predict(X)


def walked(model: DDAGClassifier, X: np.ndarray) -> np.ndarray:
    """Predictions by the definition: a list of classes for each sample, and its two ends."""
    found = []
    for x in X:
        left = list(range(len(model.classes_)))
        while len(left) > 1:
            first, last = left[0], left[-1]
            judge = model.estimators_[model.pairs_.index((first, last))]
            left.remove(last if judge.predict(x[None])[0] == model.classes_[first] else first)
        found.append(model.classes_[left[0]])
    return np.array(found)


def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(n_class=6, return_X_y=True)
    return X[:240] / 16.0, y[:240]


def test_predictions_are_those_of_a_walk_through_the_graph() -> None:
    X, y = digits()
    model = DDAGClassifier(SVC(tol=1e-3)).fit(X[:180], y[:180])
    np.testing.assert_array_equal(model.predict(X[180:]), walked(model, X[180:]))
    assert model.score(X[180:], y[180:]) > 0.9
    assert len(model.estimators_) == len(model.pairs_) == 15


def test_a_prediction_asks_one_classifier_less_than_there_are_classes() -> None:
    X, y = digits()
    model = DDAGClassifier(Counting()).fit(X, y)
    Counting.asked = 0
    model.predict(X)
    assert Counting.asked == 5 * X.shape[0]


def test_where_the_pairs_agree_it_is_the_vote_of_all_of_them() -> None:
    X, y = digits()
    graph = DDAGClassifier(SVC(kernel="rbf", tol=1e-3)).fit(X, y)
    votes = np.zeros((y.size, 6))
    for (i, j), judge in zip(graph.pairs_, graph.estimators_, strict=True):
        later = judge.predict(X) == graph.classes_[j]
        votes[:, j] += later
        votes[:, i] += ~later
    clear = votes.max(axis=1) == 5  # one class wins against all others
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(graph.predict(X)[clear], votes.argmax(axis=1)[clear])
    vote = OneVsOneClassifier(SVC(kernel="rbf", tol=1e-3)).fit(X, y)
    np.testing.assert_array_equal(graph.predict(X)[clear], vote.predict(X)[clear])


def test_two_classes_are_the_binary_classifier() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    graph, alone = DDAGClassifier(SVC()).fit(X, y), SVC().fit(X, y)
    np.testing.assert_array_equal(graph.predict(X), alone.predict(X))
    assert isinstance(graph.certificate_, Certificate)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_pair_is_the_classifier_of_its_samples(weighted: bool) -> None:
    X, y = load_iris(return_X_y=True)
    weights = 0.5 + np.arange(y.size) % 3 if weighted else None
    graph = DDAGClassifier(SVC(kernel="rbf")).fit(X, y, sample_weight=weights)
    for pair, judge in zip(graph.pairs_, graph.estimators_, strict=True):
        rows = np.isin(y, pair)
        alone = SVC(kernel="rbf").fit(X[rows], y[rows], weights[rows] if weighted else None)
        np.testing.assert_array_equal(judge.decision_function(X), alone.decision_function(X))
        assert judge.n_features_in_ == 4


def test_magnitudes_are_checked_for_the_classifier_of_a_pair() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="where products overflow"):
        DDAGClassifier(SVC()).fit(1e120 * X, y)


def test_labels_of_any_kind_come_back() -> None:
    X, y = load_wine(return_X_y=True)
    names = np.array(["red", "blue", "green"])[y]
    model = DDAGClassifier(SVC(standardize=True)).fit(X, names)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert model.score(X, names) > 0.98
    assert isinstance(model.certificate_, CertificateList)
    assert len(model.certificate_) == 3
    assert model.certificate_.converged


def test_sample_weights_reach_every_pair() -> None:
    X, y = load_iris(return_X_y=True)
    times = np.arange(y.size) % 3
    weighted = DDAGClassifier(SVC(tol=1e-9)).fit(X, y, sample_weight=times.astype(float))
    repeated = DDAGClassifier(SVC(tol=1e-9)).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    for one, other in zip(weighted.estimators_, repeated.estimators_, strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)
    without = DDAGClassifier(SVC()).fit(X, y, sample_weight=(y != 1).astype(float))
    assert without.classes_.tolist() == [0, 2]


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, np.asfortranarray])
def test_every_form_of_the_data_is_taken(form: Any) -> None:
    X, y = digits()
    dense = DDAGClassifier(SVC(tol=1e-6)).fit(X, y)
    other = DDAGClassifier(SVC(tol=1e-6)).fit(form(X), y)
    assert np.mean(dense.predict(X) == other.predict(form(X))) > 0.99


def test_a_precomputed_kernel_is_cut_to_each_pair() -> None:
    X, y = load_iris(return_X_y=True)
    train, test = np.arange(0, 150, 2), np.arange(1, 150, 2)
    K = rbf_kernel(X[train], gamma=0.5)
    stored = DDAGClassifier(SVC(kernel="precomputed")).fit(K, y[train])
    computed = DDAGClassifier(SVC(kernel="rbf", gamma=0.5)).fit(X[train], y[train])
    against = rbf_kernel(X[test], X[train], gamma=0.5)
    np.testing.assert_array_equal(stored.predict(against), computed.predict(X[test]))


def test_classifiers_of_other_libraries_are_taken() -> None:
    X, y = load_iris(return_X_y=True)
    model = DDAGClassifier(svm.SVC()).fit(X, y)
    assert model.score(X, y) > 0.95
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("inner", [SVC(kernel="rbf"), LogisticRegression(), MarginMPM()])
def test_it_works_in_pipelines_searches_and_parallel_fits(inner: Any) -> None:
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), DDAGClassifier(inner))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.93
    name = next(k for k in ("C", "kappa") if k in inner.get_params())
    values = [0.5, 2.0] if name == "C" else ["0.3max", "0.6max"]
    search = GridSearchCV(model, {f"ddagclassifier__estimator__{name}": values}, cv=3).fit(X, y)
    assert search.best_score_ > 0.93
    one = clone(model).fit(X, y)
    with parallel_backend("threading"):
        two = clone(model).set_params(ddagclassifier__n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_one_class_and_bad_weights_are_refused_in_a_sentence() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="one class only"):
        DDAGClassifier(SVC()).fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        DDAGClassifier(SVC()).fit(X, y, sample_weight=np.linspace(-1, 1, 150))
    with pytest.raises(ValueError, match="NaN"):
        DDAGClassifier(SVC()).fit(np.where(X.max() > X, X, np.nan), y)


@pytest.mark.parametrize("inner", [SVC(kernel="rbf"), LogisticRegression(), svm.SVC(), Counting()])
def test_the_largest_score_is_that_of_the_class_predicted(inner: Any) -> None:
    X, y = digits()
    model = DDAGClassifier(inner).fit(X[:150], y[:150])
    scores = model.decision_function(X)
    assert scores.shape == (240, 6)
    np.testing.assert_array_equal(model.classes_[scores.argmax(axis=1)], model.predict(X))
    assert ((scores > 0).sum(axis=1) == 1).all()  # of all others it is known by how much they lost
    names = np.array(list("abcdef"))[y]
    named = DDAGClassifier(inner).fit(X[:150], names[:150])
    np.testing.assert_array_equal(named.decision_function(X), scores)


def test_the_scores_are_the_margins_on_the_way() -> None:
    X, y = load_iris(return_X_y=True)
    model = DDAGClassifier(SVC()).fit(X, y)
    first, second, third = (judge.decision_function(X) for judge in model.estimators_)
    assert model.pairs_ == [(0, 1), (0, 2), (1, 2)]
    scores, kept = model.decision_function(X), second > 0  # 2 against 0 is asked of everyone
    np.testing.assert_allclose(scores[kept, 0], -second[kept])
    np.testing.assert_allclose(scores[~kept, 2], second[~kept])
    np.testing.assert_allclose(scores[kept, 1], -third[kept])
    np.testing.assert_allclose(scores[~kept, 1], first[~kept])
    np.testing.assert_allclose(scores[kept, 2], np.minimum(second, third)[kept])
    assert cross_val_score(DDAGClassifier(), X, y == 1, scoring="roc_auc").mean() > 0.6


def test_two_classes_have_one_score() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    graph, alone = DDAGClassifier().fit(X, y), SVC().fit(X, y)
    np.testing.assert_array_equal(graph.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize(
    ("estimator", "sentence"),
    [
        (SVC, r"estimator must be a classifier, got the class SVC: SVC\(\) is one"),
        (LinearRegression(), r"estimator must be a classifier, got LinearRegression\(\)"),
        ("svc", "estimator must be a classifier, got 'svc'"),
    ],
)
def test_what_is_no_classifier_is_refused_in_a_sentence(estimator: Any, sentence: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=sentence):
        DDAGClassifier(estimator).fit(X, y)


def test_a_graph_that_is_not_fitted_says_so() -> None:
    for ask in (DDAGClassifier().predict, DDAGClassifier().decision_function):
        with pytest.raises(NotFittedError):
            ask(np.ones((2, 2)))


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_pairs_that_end_early_are_warned_of_once(n_jobs: int | None, rng) -> None:
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 3
    model = DDAGClassifier(SVC(max_iter=1, tol=1e-9), n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="3 of 3 pairs of classes") as said:
        model.fit(X, y)
    assert len(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_time_limit_is_that_of_all_pairs(n_jobs: int | None) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6_000, 40)), np.arange(6_000) % 8
    model = DDAGClassifier(SVC(kernel="rbf", tol=0.0, time_limit=0.7), n_jobs=n_jobs)
    with warnings.catch_warnings(), parallel_backend("threading"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)  # compiles what pairs of this size need
        start = perf_counter()
        model.fit(X, y)
    assert perf_counter() - start < 8 * 0.7  # on a busy machine; limits of 28 pairs: 19.6 s
    assert all(one.time_limit == 0.7 for one in model.estimators_)


def test_pairs_that_are_quick_leave_their_time_to_the_others() -> None:
    given = []

    class Noting(Counting):
        def __init__(self, time_limit: float | None = None) -> None:
            self.time_limit = time_limit

        def fit(self, X: Any, y: Any) -> Noting:
            given.append(self.time_limit)
            return super().fit(X, y)

    X, y = load_iris(return_X_y=True)
    DDAGClassifier(Noting(30.0)).fit(X, y)
    assert 9.0 < given[0] <= 10.0 < 13.0 < given[1] <= 15.0 < 25.0 < given[2] <= 30.0
    given.clear()
    DDAGClassifier(Noting()).fit(X, y)
    assert given == [None] * 3


@pytest.mark.parametrize("make", [SVC, svm.SVC])
def test_each_pair_gets_the_class_weights_of_its_labels(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    weights = {0: 3.0, 2: 0.25}
    graph = DDAGClassifier(make(kernel="linear", class_weight=weights)).fit(X, y)
    for (i, j), judge in zip(graph.pairs_, graph.estimators_, strict=True):
        rows = (y == i) | (y == j)
        part = {label: weights.get(label, 1.0) for label in (i, j)}
        alone = make(kernel="linear", class_weight=part).fit(X[rows], y[rows])
        np.testing.assert_array_equal(judge.coef_, alone.coef_)
    DDAGClassifier(make(class_weight={0: 2.0, 1: 1.0, 2: 1.0, 7: 1.0})).fit(X, y)
    for misspelt in ({7: 1.0}, {0: 2.0, 7: 1.0}):
        with pytest.raises(ValueError, match=r"class_weight names \[7\], none of which is among"):
            DDAGClassifier(make(class_weight=misspelt)).fit(X, y)


def test_a_single_class_is_named() -> None:
    with pytest.raises(ValueError, match="y holds one class only, 0: a classifier"):
        DDAGClassifier(SVC()).fit(np.eye(3), np.zeros(3, dtype=int))


def test_a_nu_that_one_pair_does_not_admit_is_refused_before_any_fit() -> None:
    class Untouched(NuSVC):
        def _fit_recorded(self, *given: Any) -> None:
            pytest.fail("a pair was fitted")

    X, y = np.zeros((50, 2)), np.repeat([0, 1, 2], [24, 24, 2])
    with pytest.raises(ValueError, match=r"nu=0.5 is above nu_max=0.153846 .* of 3, of class '2'"):
        DDAGClassifier(Untouched(nu=0.5)).fit(X, y)
    uneven = np.repeat(["a", "b", "c"], [30, 15, 5])  # two pairs refuse it, and one names the least
    with pytest.raises(ValueError, match=r"nu_max=0.285714 .* of class 'c' against 'a': choose"):
        DDAGClassifier(Untouched(nu=0.6)).fit(X, uneven)


TEXTS = ["red apple", "green apple", "blue sky", "clear sky", "deep sea", "salt sea"] * 4
OF_TEXTS = ["fruit", "fruit", "air", "air", "water", "water"] * 4


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
def test_a_pipeline_that_encodes_text_gets_the_text(kind: Any) -> None:
    model = make_pipeline(TfidfVectorizer(), SVC(kernel="linear"))
    graph = DDAGClassifier(model).fit(kind(TEXTS), OF_TEXTS)
    assert graph.score(kind(TEXTS), OF_TEXTS) == 1.0
    pair = [k for k, label in enumerate(OF_TEXTS) if label != "water"]
    alone = model.fit([TEXTS[k] for k in pair], [OF_TEXTS[k] for k in pair])
    scores = graph.estimators_[0].decision_function(TEXTS)
    np.testing.assert_allclose(scores, alone.decision_function(TEXTS))


@pytest.mark.parametrize("kind", [np.array, pd.DataFrame])
def test_a_pipeline_that_encodes_columns_gets_their_levels(kind: Any) -> None:
    columns = kind([text.split() for text in TEXTS])
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), SVC(kernel="linear"))
    assert DDAGClassifier(model).fit(columns, OF_TEXTS).score(columns, OF_TEXTS) == 1.0
