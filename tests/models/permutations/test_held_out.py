"""The accuracy of permuted labels: folds that cannot be trained on are refused, metadata arrive."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import DWD, SVC, CalibratedMargin, permutation_test
from proxmargin.models.permutations.measures import EVEN, KnownFolds, Part


def noise(n: int = 30, p: int = 4, seed: int = 0, shift: float = 0.0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n - n // 3, n // 3])
    return rng.standard_normal((n, p)) + shift * y[:, None], y


def test_given_labels_that_a_fold_does_not_train_on_are_refused() -> None:
    X, y = noise()
    lists = [(np.arange(20), np.arange(20, 30)), (np.arange(10, 30), np.arange(10))]
    for model in (LogisticRegression(), SVC()):
        for cv in (KFold(3), lists, iter(lists)):
            with pytest.raises(ValueError, match=r"^cv: the training rows of fold . are without"):
                permutation_test(model, X, y, statistic="accuracy", cv=cv, n_permutations=50)


def test_the_error_comes_before_any_fit() -> None:
    class Untouched(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise AssertionError("fitted")

    X, y = noise()
    for splitter, labels in ((KFold(3), y), (KFold(2, shuffle=True), np.r_[0, 0, 1, 1, [0] * 26])):
        with pytest.raises(ValueError, match="cv: "):
            permutation_test(
                Untouched(),
                X,
                labels,
                statistic="accuracy",
                cv=splitter,
                n_permutations=100,
                random_state=3,
            )


@pytest.mark.slow
def test_permuted_labels_that_a_fold_does_not_train_on_are_counted_and_refused() -> None:
    X, _ = noise()
    y = np.zeros(30, dtype=int)
    y[[0, 29]] = 1  # permuted, both are in one third with probability 9 / 29
    options = {"statistic": "accuracy", "n_permutations": 100, "random_state": 0}
    with pytest.raises(ValueError, match=r"cv: \d+ permutations .* without class 1: .*stratified"):
        permutation_test(LogisticRegression(), X, y, cv=KFold(3), **options)
    with pytest.warns(UserWarning, match="least populated class"):
        found = permutation_test(LogisticRegression(), X, y, cv=StratifiedKFold(3), **options)
    assert np.isfinite(found.null).all()


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(4),
        StratifiedKFold(4, shuffle=True, random_state=1),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1),
        StratifiedShuffleSplit(5, train_size=0.2, random_state=1),
        StratifiedGroupKFold(3),
        StratifiedGroupKFold(3, shuffle=True, random_state=1),
    ],
)
@pytest.mark.filterwarnings("ignore:The ")
def test_even_splitters_train_on_all_classes_of_all_permutations_or_of_none(cv) -> None:
    assert type(cv) in EVEN
    rng = np.random.default_rng(0)
    groups = np.arange(36) // 4
    for counts in ([20, 9, 7], [31, 3, 2]):
        y, found = rng.permutation(np.repeat([0, 1, 2], counts)), set()
        for _ in range(20):
            trains = [train for train, _ in cv.split(y, y, groups)]
            found.add(all(np.unique(y[train]).size == 3 for train in trains))
            for rows in groups == np.arange(9)[:, None]:
                y[rows] = rng.permutation(y[rows])
        assert len(found) == 1


def test_warnings_of_a_splitter_are_heard_once() -> None:
    X, y = noise()
    options = {"statistic": "accuracy", "n_permutations": 12, "groups": np.arange(30) % 2}
    with pytest.warns(UserWarning, match="groups parameter is ignored") as told:
        permutation_test(LogisticRegression(), X, y, cv=KFold(2, shuffle=True), **options)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ([], "cv must be a number of folds"),
        ([(np.arange(30), [])], "cv: fold 0 holds out no samples"),
        ([(np.arange(31), [0])], "cv: fold 0 has row 30, but X has 30 rows"),
        ([(np.linspace(0, 1, 3), [0])], "cv: fold 0 has rows of type float64"),
    ],
)
def test_lists_that_are_no_folds_are_refused(cv, words) -> None:
    X, y = noise()
    with pytest.raises(ValueError, match=words):
        permutation_test(SVC(), X, y, statistic="accuracy", cv=cv, n_permutations=5)


def test_masks_are_folds() -> None:
    X, y = noise()
    order = np.random.default_rng(0).permutation(30)
    parts = [(order[10:], order[:10]), (order[:20], order[20:])]
    masks = [tuple(np.isin(np.arange(30), part) for part in pair) for pair in parts]
    one, two = (
        permutation_test(
            LogisticRegression(),
            X,
            y,
            statistic="accuracy",
            cv=cv,
            n_permutations=5,
            random_state=0,
        )
        for cv in (parts, masks)
    )
    np.testing.assert_array_equal(one.null, two.null)


def test_a_fit_that_fails_is_no_accuracy() -> None:
    class Fails(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("out of luck")

    X, y = noise()
    with pytest.raises(RuntimeError, match="out of luck"):
        permutation_test(Fails(), X, y, statistic="accuracy", cv=3, n_permutations=5)


class TestSeeds:
    """``random_state`` reaches whatever draws."""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "cv",
        [3, KFold(3, shuffle=True), ShuffleSplit(3, test_size=0.3), RepeatedKFold(n_repeats=2)],
    )
    def test_two_runs_are_one(self, cv) -> None:
        X, y = noise(60, shift=0.5)
        model = make_pipeline(StandardScaler(), SGDClassifier(max_iter=5, tol=None))
        options = {"statistic": "accuracy", "cv": cv, "n_permutations": 8, "random_state": 0}
        one, two = (permutation_test(model, X, y, **options) for _ in range(2))
        assert one.statistic == two.statistic
        np.testing.assert_array_equal(one.null, two.null)
        assert model[-1].random_state is None
        assert getattr(cv, "random_state", None) is None
        other = permutation_test(model, X, y, **{**options, "random_state": 1})
        assert other.statistic != one.statistic or (other.null != one.null).any()

    def test_a_state_of_its_own_is_kept(self) -> None:
        X, y = noise(60, shift=0.5)
        model = make_pipeline(StandardScaler(), SGDClassifier(max_iter=5, tol=None, random_state=7))
        folds = KFold(3, shuffle=True, random_state=5)
        found = permutation_test(model, X, y, statistic="accuracy", cv=folds, n_permutations=2)
        expected = cross_val_score(model, X, y, cv=folds, scoring="accuracy").mean()
        assert found.statistic == expected


class TestRouting:
    """Groups reach splitters and, if they ask, estimators, with metadata routing too."""

    @pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
    @pytest.mark.parametrize("cv", [3, GroupKFold(3), KFold(3, shuffle=True, random_state=0)])
    def test_the_result_is_that_without_routing(self, cv) -> None:
        X, y = noise()
        options = {"statistic": "accuracy", "cv": cv, "n_permutations": 5, "random_state": 0}
        groups = np.arange(30) % 6
        plain = permutation_test(DWD(), X, y, groups=groups, **options)
        with config_context(enable_metadata_routing=True):
            routed = permutation_test(DWD(), X, y, groups=groups, **options)
        assert routed.statistic == plain.statistic
        np.testing.assert_array_equal(routed.null, plain.null)

    def test_a_search_within_gets_the_groups_of_its_rows(self) -> None:
        X, y = noise()
        groups = np.arange(30) % 6
        search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=GroupKFold(2))
        options = {"statistic": "accuracy", "cv": GroupKFold(3), "n_permutations": 2}
        with config_context(enable_metadata_routing=True):
            found = permutation_test(search, X, y, groups=groups, random_state=0, **options)
            expected = cross_val_score(
                search, X, y, cv=GroupKFold(3), params={"groups": groups}, scoring="accuracy"
            )
        assert found.statistic == expected.mean()


def test_known_folds_tell_the_first_class_that_a_training_part_lacks() -> None:
    folds = KnownFolds([Part(np.arange(4), np.arange(4, 6)), Part(np.arange(2), np.arange(2, 6))])
    assert folds.lack(np.array([0, 1, 0, 1, 0, 1])) is None
    assert folds.lack(np.array([0, 0, 1, 1, 0, 1])) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("scorer", ["balanced_accuracy", "roc_auc", "neg_log_loss", "f1_macro"])
def test_scorers_of_scikit_learn_give_the_pvalue_of_its_own_test(scorer) -> None:
    X, y = noise(40, shift=0.6)
    y = np.array(["well", "sick"])[y]
    folds, model = StratifiedKFold(4, shuffle=True, random_state=1), LogisticRegression()
    found = permutation_test(model, X, y, statistic=scorer, cv=folds, n_permutations=99)
    score, _, pvalue = permutation_test_score(
        model, X, y, scoring=scorer, cv=folds, n_permutations=99, random_state=0
    )
    assert (found.name, found.statistic) == (scorer, pytest.approx(score))
    assert found.pvalue == pytest.approx(pvalue, abs=0.1)  # of other permutations


def test_each_permutation_is_scored_as_scikit_learn_does() -> None:
    X, y = np.array([[0.0], [2.0], [1.0], [3.0], [4.0], [1.5]]), np.array([0, 1, 0, 1, 1, 0])
    folds, model = StratifiedKFold(2), LogisticRegression()
    found = permutation_test(model, X, y, statistic="roc_auc", cv=folds)
    assert found.exact
    orders = {tuple(each) for each in permutations(y.tolist())}
    scores = [
        cross_val_score(model, X, np.array(each), cv=folds, scoring="roc_auc").mean()
        for each in orders
    ]
    np.testing.assert_allclose(np.sort(found.null), np.sort(scores))
    assert found.pvalue == np.mean(np.array(scores) >= found.statistic - 1e-9)


def test_a_loss_of_comparisons_is_negated_and_needs_probabilities() -> None:
    X, y = noise(shift=1.0)
    options = {"n_permutations": 3, "cv": 3}
    found = permutation_test(LogisticRegression(), X, y, statistic="log_loss", **options)
    assert found.name == "neg_log_loss"
    assert found.statistic < 0
    words = np.array(["a", "b"])[y]
    for scorer in ("brier", "f1", "average_precision"):
        model, options["statistic"] = LogisticRegression(), scorer
        numbered = permutation_test(model, X, y, **options)
        assert permutation_test(model, X, words, **options).statistic == numbered.statistic
    del options["statistic"]
    with pytest.raises(ValueError, match=r"SVC has none: .*CalibratedMargin"):
        permutation_test(SVC(), X, y, statistic="brier", **options)
    calibrated = CalibratedMargin(SVC(), cv=3)
    assert permutation_test(calibrated, X, y, statistic="brier", **options).statistic < 0
    with pytest.raises(ValueError, match="statistic must be one of"):
        permutation_test(SVC(), X, y, statistic="r2", **options)
