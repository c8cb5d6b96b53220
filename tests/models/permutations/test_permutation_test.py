"""The permutation test: right p-values, the same for any number of jobs, clear errors."""

from __future__ import annotations

import warnings
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import kstest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import (
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    NuSVC,
    permutation_test,
)
from proxmargin.models.permutations.measures import OneByOne, SideBySide
from proxmargin.models.permutations.permutation_test import _measure


def noise(n: int = 24, p: int = 60, seed: int = 0, shift: float = 0.0):
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b"], [n // 2, n - n // 2])
    X = rng.standard_normal((n, p))
    X[y == "b", :5] += shift
    return X, y


@pytest.mark.parametrize(
    "model",
    [
        DWD(),
        DWD(nu=0.1),
        L2SVC(C=0.1),
        LogisticRegression(),
        SVC(C=0.01),
        SVC(),
        NuSVC(),
        MarginFDA(),
        MarginFDA(kappa=0.1),
        MarginFDA(kappa=9.0),
    ],
)
@pytest.mark.parametrize("standardize", [False, True])
def test_side_by_side_is_one_by_one(model, standardize) -> None:
    X, y = noise(shift=1.0)
    X = X * np.geomspace(0.1, 10.0, X.shape[1])
    model = model.set_params(standardize=standardize, tol=1e-10)
    codes = (y == "b").astype(int)
    rng = np.random.default_rng(0)
    labelings = np.column_stack([codes, *(rng.permutation(codes) for _ in range(4))])
    together = _measure(model, X, codes, np.array(["a", "b"]), "mean-difference", 5)
    assert isinstance(together, SideBySide)
    found = together(labelings)
    np.testing.assert_allclose(found.statistics, together.single(labelings).statistics, rtol=1e-4)
    assert (found.gaps <= 1e-10).all()


@pytest.mark.parametrize(
    "model",
    [
        DWD(),
        SVC(),
        SVC(class_weight="balanced", standardize=True),
        MarginFDA(standardize=True),
        HuberizedSVC(alpha=0.1),
        SVC(kernel="rbf", standardize=True),
        LinearSVC(),
    ],
)
def test_classes_that_differ_are_told_from_classes_that_do_not(model) -> None:
    X, y = noise(shift=2.5)
    assert permutation_test(model, X, y, n_permutations=60, random_state=0).pvalue < 0.05
    X, y = noise(seed=3)
    found = permutation_test(model, X, y, n_permutations=60, random_state=0)
    assert found.pvalue > 0.05
    assert found.null.shape == (60,)
    assert np.ptp(found.null) > 0


def test_the_direction_is_that_of_the_model() -> None:
    X, y = noise(shift=1.0)
    for model, stored in ((DWD(), X), (SVC(), sparse.csr_array(X)), (MarginFDA(), X)):
        fitted = model.fit(stored, y)
        scores = X @ fitted.coef_[0] / np.linalg.norm(fitted.coef_)
        expected = scores[y == "b"].mean() - scores[y == "a"].mean()
        found = permutation_test(model, stored, y, n_permutations=5)
        np.testing.assert_allclose(found.statistic, expected, rtol=1e-4)


def test_the_direction_of_a_kernel_has_length_one_in_its_space() -> None:
    X, y = noise(shift=1.0)
    linear = permutation_test(SVC(C=0.1, tol=1e-9), X, y, n_permutations=5, random_state=0)
    model = SVC(C=0.1, kernel="poly", degree=1, gamma=1.0, tol=1e-9)
    same = permutation_test(model, X, y, n_permutations=5, random_state=0)
    np.testing.assert_allclose(same.null, linear.null, rtol=1e-3)


@pytest.mark.parametrize("model", [DWD(), pytest.param(SVC(), marks=pytest.mark.slow)])
def test_the_result_has_the_same_bits_for_every_number_of_jobs(model) -> None:
    X, y = noise()
    one, two = (
        permutation_test(model, X, y, n_permutations=130, n_jobs=jobs, random_state=7)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.null, two.null)
    assert (one.pvalue, one.statistic) == (two.pvalue, two.statistic)


def test_few_labelings_are_all_taken() -> None:
    X, y = noise(8, 5, shift=9.0)
    found = permutation_test(DWD(), X, y, n_permutations=100)
    assert found.exact
    assert found.n_permutations == comb(8, 4)
    assert (found.asked, found.interrupted) == (100, False)
    # the given labels, and the same with the classes interchanged
    assert found.pvalue == pytest.approx(2 / comb(8, 4))
    assert "70 all orders of the labels" in str(found)


def test_pairs_are_permuted_within_themselves() -> None:
    X, y = noise(16, 5, shift=9.0)
    pairs = np.tile(np.arange(8), 2)
    found = permutation_test(DWD(), X, y, n_permutations=1000, groups=pairs)
    assert found.exact
    assert found.n_permutations == 2**8


def test_accuracy_is_that_of_held_out_samples_of_any_classes() -> None:
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), LinearSVC())
    found = permutation_test(model, X, y, statistic="accuracy", n_permutations=9, cv=3)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert found.statistic == cross_val_score(model, X, y, cv=folds, scoring="accuracy").mean()
    assert found.pvalue == 0.1
    noise_found = permutation_test(
        SVC(), *noise(), statistic="accuracy-cv", n_permutations=19, random_state=0
    )
    assert noise_found.pvalue > 0.05  # a leak would make it perfect
    assert np.isnan(noise_found.largest_gap)
    assert "nan" not in str(noise_found)


def test_accuracy_is_that_of_whole_groups_held_out() -> None:
    X, y = noise(shift=1.0)
    groups = np.tile(np.arange(6), 4)
    options = {"statistic": "accuracy", "groups": groups, "n_permutations": 5, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = permutation_test(SVC(), X, y, cv=3, **options)
    again = permutation_test(
        SVC(), X, y, cv=StratifiedGroupKFold(3, shuffle=True, random_state=0), **options
    )
    np.testing.assert_array_equal(found.null, again.null)
    assert found.statistic == again.statistic


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.repeat([0, 1, 2], 8), "as many groups, and there are 3"),
        (np.r_[np.zeros(12), 1, np.arange(11)], "without class a: give fewer folds"),
    ],
)
def test_groups_that_do_not_make_the_folds_are_refused(groups, words) -> None:
    with pytest.raises(ValueError, match=words):
        permutation_test(SVC(), *noise(), statistic="accuracy", groups=groups, n_permutations=2)


def test_frames_give_the_result_of_arrays() -> None:
    X, y = noise()
    for model in (DWD(), LinearSVC(random_state=0, tol=1e-9)):
        one, two = (
            permutation_test(model, each, y, n_permutations=5, random_state=0)
            for each in (X, pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]))
        )
        np.testing.assert_allclose(one.null, two.null, rtol=1e-5)


def test_tall_data_have_as_few_axes_as_features() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    codes = y.astype(int)
    measure = _measure(DWD(standardize=True), X, codes, np.array([0, 1]), "auc", 5)
    assert isinstance(measure, SideBySide)
    assert measure.axes.squares.size == 30


@pytest.mark.parametrize("kappa", ["0.5max", 0.1])
@pytest.mark.parametrize("rank", [8, 23, 60])
def test_fisher_by_spectra_has_the_kappa_of_single_fits(kappa, rank) -> None:
    """With fewer features than samples, n - 1, and more: kappa_max is finite for the first."""
    X, y = noise(p=rank, shift=0.5)
    y[:3] = "b"  # classes of unequal sizes
    model = MarginFDA(kappa=kappa, tol=1e-9)
    labelings = np.column_stack([np.random.default_rng(k).permutation(y == "b") for k in range(5)])
    together = _measure(model, X, labelings[:, 0].astype(int), np.array([0, 1]), "t", 5)
    assert isinstance(together, SideBySide)
    axes, signs = together.axes, np.where(labelings, 1.0, -1.0)
    found = model._of_labelings(axes, signs)(axes, signs, tol=model.tol)
    assert (found.gaps <= model.tol).all()
    for k, column in enumerate(labelings.T):
        alone = MarginFDA(kappa=kappa, tol=1e-11).fit(X, column)
        assert found.norms[k] == pytest.approx(np.linalg.norm(alone.coef_), rel=1e-5)


def test_labelings_without_a_margin_end_in_the_error_of_a_single_fit() -> None:
    X, y = noise(p=8)
    with pytest.raises(ValueError, match="not below kappa_max"):
        permutation_test(MarginFDA(kappa=5.0), X, y, n_permutations=5)


@pytest.mark.parametrize(
    "model",
    [
        DWD(solver="fapg-star"),
        DWD(norm=3.0),
        L2SVC(class_weight="balanced"),
        SVC(fit_intercept=False),
        NuSVC(norm=3.0),
        MarginFDA(kappa=0.0),
    ],
)
def test_settings_of_a_single_fit_are_respected(model) -> None:
    X, y = noise()
    codes = (y == "b").astype(int)
    assert isinstance(_measure(model, X, codes, np.array(["a", "b"]), "t", 5), OneByOne)


def test_fits_that_end_early_are_counted_in_one_warning() -> None:
    X, y = noise(shift=1.0)
    with pytest.warns(ConvergenceWarning, match="of 11 fits missed their tolerance") as told:
        permutation_test(SVC(max_iter=1, tol=1e-12), X, y, n_permutations=10)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"statistic": "mean"}, ValueError, "statistic must be"),
        ({"n_permutations": 0}, ValueError, "n_permutations must be"),
        ({"groups": [0, 1]}, ValueError, "groups must have one entry a sample"),
        ({"groups": ["a", None, "b"] * 8}, ValueError, "groups has no value in row 1 "),
        ({"groups": [0.0, 1.0, np.nan] * 8}, ValueError, "groups has no value in row 2 "),
        ({"groups": pd.Series([1, 2, pd.NA] * 8, dtype="Int64")}, ValueError, "value in row 2 "),
        ({"groups": ["a", "b", 3] * 8}, ValueError, "groups must be of one type: row 2 .* has 3"),
        ({"groups": [{k: 1} for k in range(24)]}, ValueError, "groups must be .* have an order"),
        ({"y": ["a"] * 24}, ValueError, "one class"),
        ({"y": ["a", "b", "c"] * 8}, ValueError, "statistic='accuracy'"),
        ({"estimator": StandardScaler()}, TypeError, "must be a classifier"),
        ({"estimator": SVC(C=-1.0)}, ValueError, "C must be"),
        ({"estimator": make_pipeline(SVC())}, TypeError, "standardize=True"),
        ({"statistic": "accuracy", "cv": 13}, ValueError, "only 12 of a, 12 of b"),
    ],
)
def test_what_is_wrong_is_named(change, error, words) -> None:
    X, y = noise()
    given = {"estimator": DWD(), "X": X, "y": y, "n_permutations": 5, **change}
    with pytest.raises(error, match=words):
        permutation_test(given.pop("estimator"), given.pop("X"), given.pop("y"), **given)


def test_data_that_are_not_finite_are_refused_by_row() -> None:
    X, y = noise()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"row 3"):
        permutation_test(DWD(), X, y)


def test_groups_of_one_class_each_exchange_their_labels_as_wholes() -> None:
    rng = np.random.default_rng(4)
    groups = rng.permutation(np.repeat(np.arange(6), [1, 2, 3, 1, 2, 3]))
    of_group = np.array([0, 1, 0, 1, 0, 1])
    X = rng.standard_normal((groups.size, 4)) + of_group[groups][:, None]
    test = permutation_test(DWD(), X, of_group[groups], groups=groups, n_permutations=50)
    assert test.exact
    assert test.n_permutations == comb(6, 3)
    own = []
    for members in combinations(range(6), 3):
        labels = np.isin(groups, members)
        direction = DWD().fit(X, labels).coef_[0]
        along = X @ direction / np.linalg.norm(direction)
        own.append(along[labels].mean() - along[~labels].mean())
    assert test.pvalue == np.mean(np.array(own) >= test.statistic * (1 - 1e-6))


def test_an_exact_p_value_counts_the_given_labels_whatever_the_solver_draws() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((8, 30)), np.repeat([0, 1], 4)
    X[y == 1] += 1.5
    for model in (LinearSVC(), SGDClassifier()):
        found = {permutation_test(model, X, y, n_permutations=100, random_state=0).pvalue}
        found |= {permutation_test(model, X, y, n_permutations=100, random_state=0).pvalue}
        assert len(found) == 1
        assert min(found) >= 1 / comb(8, 4)


@pytest.mark.parametrize(
    "given",
    [
        lambda pairs: pairs.tolist(),
        lambda pairs: [f"p{each:02}" for each in pairs],
        lambda pairs: pd.Series(pairs).astype("category"),
        lambda pairs: pd.Series([f"p{each:02}" for each in pairs], dtype=object),
        lambda pairs: pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(pairs, unit="D")),
    ],
)
def test_groups_may_be_of_any_type_with_an_order(given) -> None:
    X, y = noise()
    pairs = np.tile(np.arange(12), 2)
    options = {"n_permutations": 5, "random_state": 0}
    expected = permutation_test(DWD(), X, y, groups=pairs, **options)
    found = permutation_test(DWD(), X, y, groups=given(pairs), **options)
    np.testing.assert_array_equal(found.null, expected.null)
    permutation_test(SVC(), X, y, groups=given(pairs), statistic="accuracy", cv=3, **options)


class TestPiles:
    """Where labels can be separated, t is that of the spread that overfitting leaves."""

    @pytest.mark.parametrize("model", [SVC(), MarginFDA()])
    def test_they_are_told_once_with_numbers(self, model) -> None:
        X, y = noise(p=400, shift=1.0)
        words = r"of \d+ of 40 permutations the spread within the classes is less than 0\.1"
        with pytest.warns(UserWarning, match=words) as told:
            permutation_test(model, X, y, statistic="t", n_permutations=40, random_state=0)
        assert len(told) == 1

    @pytest.mark.parametrize(("model", "p"), [(DWD(), 8), (SVC(C=1e-5), 100), (SVC(), 4)])
    def test_directions_without_piles_are_not(self, model, p) -> None:
        X, y = noise(p=p, shift=1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            permutation_test(model, X, y, statistic="t", n_permutations=40, random_state=0)

    def test_nor_are_classes_that_lie_far_apart(self) -> None:
        X, y = noise(8, 2, shift=99.0)  # all labelings, the given one with classes interchanged too
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = permutation_test(SVC(), X, y, statistic="t", n_permutations=100)
        assert found.pvalue == 2 / comb(8, 4)


def test_a_statistic_that_is_not_finite_has_no_p_value() -> None:
    class Broken(LinearSVC):
        """Has no direction for labels that begin with a class ``of``."""

        def __init__(self, of="a"):
            super().__init__()
            self.of = of

        def fit(self, X, y):
            super().fit(X, y)
            self.coef_ = self.coef_ * (np.nan if y[0] == self.of else 1.0)
            return self

    X, y = noise()
    with pytest.raises(ValueError, match="'mean-difference' of the given labels is nan"):
        permutation_test(Broken("a"), X, y, n_permutations=10, random_state=0)
    with pytest.raises(ValueError, match=r"of \d of 10 permutations is not finite"):
        permutation_test(Broken("b"), X, y, n_permutations=10, random_state=0)


@pytest.mark.parametrize("statistic", ["mean-difference", "accuracy"])
def test_an_interruption_leaves_the_test_of_what_is_complete(statistic, monkeypatch) -> None:
    X, y = noise()
    fits = []
    original = HuberizedSVC._fit_recorded

    def interrupted(self, *arguments):
        fits.append(1)
        if len(fits) == 61:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(HuberizedSVC, "_fit_recorded", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        found = permutation_test(
            HuberizedSVC(alpha=0.1), X, y, statistic=statistic, n_permutations=200, cv=3
        )
    complete = 59 if statistic == "mean-difference" else 19
    assert found.n_permutations == complete
    assert found.interrupted
    assert found.asked == 200
    assert f"{complete} random orders of the labels, interrupted of 200" in str(found)
    assert 1 / (1 + complete) <= found.pvalue <= 1.0


def test_a_splitter_with_a_generator_gives_every_labeling_the_same_folds() -> None:
    X, y = noise()
    options = {"statistic": "accuracy", "n_permutations": 12, "random_state": 0}
    one, two = (
        permutation_test(
            SVC(),
            X,
            y,
            cv=StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(0)),
            **options,
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.null, two.null)
    pairs = np.tile(np.arange(12), 2)
    permutation_test(SVC(), X, y, groups=pairs, cv=GroupKFold(3), **options)
    folds = (pair for pair in StratifiedKFold(3).split(X, y))
    permutation_test(SVC(), X, y, cv=folds, **options)


@pytest.mark.slow
def test_p_values_are_uniform_where_classes_do_not_differ() -> None:
    found = [
        permutation_test(DWD(), *noise(20, 40, seed), n_permutations=99, random_state=seed).pvalue
        for seed in range(2000, 2200)
    ]
    spread = np.random.default_rng(0).uniform(0.0, 0.01, 200)  # p-values are multiples of 1/100
    assert kstest(np.array(found) - spread, "uniform").pvalue > 0.01


def test_a_generator_draws_the_permutations() -> None:
    X, y = noise()

    def null(random_state):
        return permutation_test(DWD(), X, y, n_permutations=20, random_state=random_state).null

    generator = np.random.default_rng(3)
    first = null(generator)
    np.testing.assert_array_equal(first, null(np.random.default_rng(3)))
    assert not np.array_equal(first, null(generator))  # which has moved on
    with pytest.raises(ValueError, match=r"random_state must be an int .*Generator.* got 'seed'"):
        null("seed")


def test_other_packages_get_a_seed_that_they_take() -> None:
    X, y = noise()
    options = {"n_permutations": 5, "statistic": "accuracy", "cv": 2}
    for seed in range(3):
        permutation_test(SGDClassifier(), X, y, random_state=np.random.default_rng(seed), **options)


def test_groups_that_keep_their_labels_beside_others_are_counted() -> None:
    X, y = noise(24)
    groups = np.arange(24) // 3
    y = groups % 2
    y[0] = 1 - y[0]  # one patient of two classes freezes the labels of seven
    with pytest.warns(UserWarning, match="7 of 8 groups hold one class and keep its label"):
        permutation_test(DWD(), X, y, groups=groups, n_permutations=5)
