"""Values with labels of their own: factors, bounds and groups by the names of the features, and
weights, offsets and groups by the index of the samples."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import proxmargin
from proxmargin import (
    SVC,
    CalibratedMargin,
    DDAGClassifier,
    HuberizedSVC,
    HuberizedSVCCV,
    MulticlassSVC,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
    alpha_max,
    certify,
    compare,
    kappa_max,
    load_model,
    margin_path,
    permutation_test,
    save_model,
)

NAMES = [f"g{j}" for j in range(6)]
STRONG = {"alpha": 10.0, "l1_ratio": 1.0}  # leaves unpenalised features alone
Frame = tuple[pd.DataFrame, np.ndarray]


@pytest.fixture(scope="module")
def frame() -> Frame:
    X, y = make_classification(60, 6, n_informative=3, n_redundant=0, random_state=3)
    rows = [f"patient {i}" for i in range(60)]
    return pd.DataFrame(X, index=rows, columns=NAMES), np.where(y > 0, "case", "control")


def used(model: Any) -> list[int]:
    return np.flatnonzero(model.coef_.any(axis=0)).tolist()


def free(name: str) -> pd.Series:
    """Factors 0 for one feature and 1 for the others, in another order than the columns."""
    factors = pd.Series(1.0, index=NAMES[::-1])
    factors[name] = 0.0
    return factors


# -- features -------------------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [free("g4"), {"g4": 0.0}, [1, 1, 1, 1, 0, 1]])
def test_a_factor_is_that_of_the_feature_of_its_name(frame: Frame, factors: Any) -> None:
    model = SparseLogisticRegression(**STRONG, penalty_factor=factors).fit(*frame)
    assert used(model) == [4]
    assert used(clone(model).fit(*frame)) == [4]
    assert used(pickle.loads(pickle.dumps(model)).fit(*frame)) == [4]


def test_a_series_numbered_from_zero_is_in_the_order_of_the_columns(frame: Frame) -> None:
    factors = pd.Series([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    assert used(HuberizedSVC(**STRONG, penalty_factor=factors).fit(*frame)) == [2]
    X, y = frame
    assert used(HuberizedSVC(**STRONG, penalty_factor=factors).fit(X.to_numpy(), y)) == [2]


def test_features_without_names_have_numbers(frame: Frame) -> None:
    X, y = frame
    for factors in ({3: 0.0}, pd.Series([0.0, 1, 1, 1, 1, 1], index=[3, 0, 1, 2, 5, 4])):
        assert used(HuberizedSVC(**STRONG, penalty_factor=factors).fit(X.to_numpy(), y)) == [3]


def test_columns_with_numbers_for_names_are_found_by_them(frame: Frame) -> None:
    X, y = frame
    X = X.set_axis([2, 0, 1, 5, 4, 3], axis=1)
    factors = pd.Series([0.0, 1, 1, 1, 1, 1])  # of the column called 0
    model = HuberizedSVC(**STRONG, penalty_factor=factors).fit(X, y)
    assert used(model) == [1]
    assert used(model.set_params(penalty_factor={0: 0.0}).fit(X.to_numpy(), y)) == [0]


def test_bounds_by_name_hold_for_their_features(frame: Frame) -> None:
    plain = HuberizedSVC(alpha=0.01).fit(*frame)
    largest = int(np.abs(plain.coef_).argmax())
    name, sign = NAMES[largest], np.sign(plain.coef_[0, largest])
    sides = (None, {name: 0.0}) if sign > 0 else ({name: 0.0}, None)
    series = pd.Series(sign * np.inf, index=NAMES[::-1])
    series[name] = 0.0
    pair = (None, 0.0) if sign > 0 else [0.0, None]
    for bounds in (sides, (None, series) if sign > 0 else (series, None), {name: pair}):
        bounded = HuberizedSVC(alpha=0.01, bounds=bounds).fit(*frame)
        assert bounded.coef_[0, largest] == 0.0
        assert len(used(bounded)) == 5


def test_pairs_of_bounds_by_name_are_those_of_arrays(frame: Frame, tmp_path: Path) -> None:
    X, y = frame
    named: Any = {"g4": (0, 0), "g1": (-0.01, 0.2), "g0": (None, 0.1)}
    lower, upper = np.full(6, -np.inf), np.full(6, np.inf)
    lower[[1, 4]], upper[[0, 1, 4]] = (-0.01, 0.0), (0.1, 0.2, 0.0)
    model = HuberizedSVC(alpha=0.01, bounds=named).fit(X, y)
    same = HuberizedSVC(alpha=0.01, bounds=(lower, upper)).fit(X, y)
    assert np.array_equal(model.coef_, same.coef_)
    assert model.coef_[0, 4] == 0.0
    save_model(model, tmp_path / "model.pmz")
    assert load_model(tmp_path / "model.pmz").bounds == named
    search = HuberizedSVCCV([0.1, 0.01, 0.001], bounds=named, cv=3).fit(X, y)
    same_search = HuberizedSVCCV([0.1, 0.01, 0.001], bounds=(lower, upper), cv=3).fit(X, y)
    assert np.array_equal(search.cv_scores_, same_search.cv_scores_)
    numbered = {NAMES.index(name): pair for name, pair in named.items()}
    without = HuberizedSVC(alpha=0.01, bounds=numbered).fit(X.to_numpy(), y)
    assert np.array_equal(without.coef_, model.coef_)


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({"age": (0, None)}, "bounds: lower names 'age', which is no feature of X: X has 'g0'"),
        ({"age": (None, None)}, "bounds: lower names 'age', which is no feature of X: X has 'g0'"),
        ({"g0": 1.0}, r"bounds\['g0'\] must be a pair .* got 1.0: \(0, None\) for"),
        ({"g0": (0.5, 1.0)}, r"bounds: lower must be <= 0, got 0.5"),
        (1.0, r"or a dict of such pairs of numbers by feature, \{'age': \(0, None\)\}, got 1.0"),
    ],
)
def test_pairs_of_bounds_that_do_not_fit_say_what_would(
    frame: Frame, bounds: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        HuberizedSVC(bounds=bounds).fit(*frame)
    if isinstance(bounds, dict) and "age" in bounds:
        with pytest.raises(ValueError, match=r"X has no feature names.*give X as a data frame"):
            HuberizedSVC(bounds=bounds).fit(frame[0].to_numpy(), frame[1])


def test_groups_by_name_are_those_of_their_features(frame: Frame) -> None:
    X, y = frame
    labels = pd.Series(["a", "a", "b", "b", "c", "c"], index=NAMES)
    expected = MulticlassSVC("group_l2", groups=labels.to_numpy()).fit(X, y).coef_
    for groups in (labels[::-1], labels.sample(frac=1, random_state=0).to_dict()):
        assert np.array_equal(MulticlassSVC("group_l2", groups=groups).fit(X, y).coef_, expected)
    with pytest.raises(ValueError, match="groups has no entry for feature 'g5'"):
        MulticlassSVC("group_l2", groups=dict.fromkeys(NAMES[:5], 1)).fit(X, y)


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        ({"gene": 0.0}, "penalty_factor names 'gene', which is no feature of X"),
        (free("gene"), "penalty_factor names 'gene'"),
        (free("g4")[1:], "penalty_factor has no entry for feature 'g5'"),
        (pd.Series(1.0, index=["g1", *NAMES]), "several entries for feature 'g1'"),
        (pd.Series(1.0, index=range(1, 7)), "penalty_factor names 1,"),
    ],
)
def test_names_that_do_not_match_are_refused(frame: Frame, factors: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        HuberizedSVC(penalty_factor=factors).fit(*frame)
    with pytest.raises(ValueError, match=told.replace("penalty_factor", "bounds: upper")):
        HuberizedSVC(bounds=(None, factors)).fit(*frame)


def test_names_need_features_with_names(frame: Frame) -> None:
    X, y = frame
    with pytest.raises(ValueError, match=r"no feature names.*data frame.*penalty_factor.to_numpy"):
        HuberizedSVC(penalty_factor=free("g4")).fit(X.to_numpy(), y)


def test_names_reach_every_fit_of_many(frame: Frame, tmp_path: Any) -> None:
    X, y = frame
    net = SparseLogisticRegression(l1_ratio=1.0, penalty_factor=free("g4"))
    ordered = clone(net).set_params(penalty_factor=[1, 1, 1, 1, 0, 1])
    assert alpha_max(net, X, y) == alpha_max(ordered, X, y)
    path, other = margin_path(net, X, y, n_alphas=4), margin_path(ordered, X, y, n_alphas=4)
    assert np.array_equal(path.coefs, other.coefs)
    search, same = (
        SparseLogisticRegressionCV(3, penalty_factor=factors, cv=3).fit(X, y)
        for factors in (free("g4"), ordered.penalty_factor)
    )
    assert np.array_equal(search.cv_scores_, same.cv_scores_)
    assert np.array_equal(search.coef_, same.coef_)
    assert search.best_estimator_.penalty_factor is search.penalty_factor
    assert search.feature_names_in_.tolist() == NAMES
    stable = StabilitySelection(net, n_pairs=5, threshold=0.75, q=1, alphas=3, random_state=0).fit(
        X, y
    )
    assert np.flatnonzero(stable.frequencies_[:, 0] == 1.0).tolist() == [4]
    pairs = DDAGClassifier(net.set_params(alpha=10.0)).fit(X, y)
    assert used(pairs.estimators_[0]) == [4]
    assert certify(net.fit(X, y), X, y).converged
    tests = (
        permutation_test(HuberizedSVC(penalty_factor=each), X, y, n_permutations=5, random_state=0)
        for each in (free("g4"), ordered.penalty_factor)
    )
    assert len({test.statistic for test in tests}) == 1
    found, same = (
        compare(X, y, models={"m": SparseLogisticRegression(penalty_factor=each)}, cv=2)
        for each in (free("g4"), ordered.penalty_factor)
    )
    assert found.folds["relative_gap"].equals(same.folds["relative_gap"])
    save_model(net, tmp_path / "model.pmz")
    assert load_model(tmp_path / "model.pmz").penalty_factor == free("g4").to_dict()


# -- samples --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def weights(frame: Frame) -> pd.Series:
    return pd.Series(np.random.default_rng(1).integers(1, 4, 60), frame[0].index, float)


@pytest.mark.parametrize("model", [HuberizedSVC(0.05), SVC(), SVC(kernel="rbf")], ids=repr)
def test_weights_and_offsets_are_aligned_with_the_rows(
    frame: Frame, weights: pd.Series, model: Any
) -> None:
    X, y = frame
    offset = np.sin(weights * np.arange(60))
    shuffled = np.random.default_rng(0).permutation(60)
    expected = clone(model).fit(X, y, weights.to_numpy(), offset.to_numpy())
    found = clone(model).fit(X, y, weights.iloc[shuffled], offset.iloc[shuffled])
    assert np.array_equal(found.intercept_, expected.intercept_)
    scores = expected.decision_function(X, offset.to_numpy())
    assert np.array_equal(found.decision_function(X, offset.iloc[shuffled]), scores)
    told = found.score(X, y, weights.iloc[shuffled], offset.iloc[shuffled])
    assert told == expected.score(X, y, weights.to_numpy(), offset.to_numpy())


def calls(X: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    """What takes weights of samples, each as a function of them."""
    three = pd.qcut(X["g0"], 3, labels=False)
    net = HuberizedSVC(0.05)
    fitted = HuberizedSVC(0.05).fit(X, y)
    other = proxmargin.LogisticRegression()
    return {
        "path": lambda w: margin_path(net, X, y, n_alphas=3, sample_weight=w).coefs,
        "nu path": lambda w: (
            margin_path(proxmargin.NuSVC(), X, y, n_alphas=2, sample_weight=w).coefs
        ),
        "alpha_max": lambda w: alpha_max(net, X, y, w),
        "kappa_max": lambda w: kappa_max(X, y, "fda", w),
        "search": lambda w: HuberizedSVCCV(3, cv=3).fit(X, y, w).cv_scores_,
        "search score": lambda w: HuberizedSVCCV(3, cv=3).fit(X, y).score(X, y, w),
        "stability": lambda w: (
            StabilitySelection(net, n_pairs=5, threshold=0.75, q=1, alphas=3, random_state=0)
            .fit(X, y, w)
            .frequencies_
        ),
        "calibrated": lambda w: CalibratedMargin(net, cv=3).fit(X, y, w).predict_proba(X),
        "calibrated score": lambda w: CalibratedMargin(net, cv=3).fit(X, y).score(X, y, w),
        "pairs": lambda w: DDAGClassifier(net).fit(X, three, w).decision_function(X),
        "pairs score": lambda w: DDAGClassifier(net).fit(X, three).score(X, three, w),
        "certify": lambda w: certify(other.fit(X, y), X, y, sample_weight=w).primal,
        "coefficients": lambda w: fitted.coefficients(X, sample_weight=w)[
            "coefficient_per_sd"
        ].to_numpy(),
        "report": lambda w: proxmargin.feature_report(fitted, X, y, cv=None, sample_weight=w)[
            "auc"
        ].to_numpy(),
        "compare": lambda w: (
            compare(X, y, models=["LogisticRegression"], cv=3, sample_weight=w, random_state=0)
            .folds["accuracy"]
            .to_numpy()
        ),
    }


WAYS = list(calls(*(pd.DataFrame({"g0": [0.0, 1, 2, 3]}), np.array([0, 1, 0, 1]))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_every_entry_point_aligns_weights(frame: Frame, weights: pd.Series, way: str) -> None:
    call = calls(*frame)[way]
    assert np.array_equal(call(weights[::-1]), call(weights.to_numpy()))
    with pytest.raises(ValueError, match=r"'patient 0' of X.*sample_weight.to_numpy\(\)"):
        call(weights.set_axis(range(60)))


LABELLED: dict[str, Callable[[Any, Any], object]] = {
    "fit": HuberizedSVC(0.05).fit,
    "search": HuberizedSVCCV(3, cv=3).fit,
    "pairs": DDAGClassifier(HuberizedSVC(0.05)).fit,
    "calibrated": CalibratedMargin(HuberizedSVC(0.05), cv=3).fit,
    "stability": StabilitySelection(HuberizedSVC(0.05), n_pairs=5).fit,
    "path": lambda X, y: margin_path(HuberizedSVC(), X, y, alphas=[0.1]),
    "largest strength": lambda X, y: alpha_max(HuberizedSVC(), X, y),
    "permutations": lambda X, y: permutation_test(HuberizedSVC(0.05), X, y, n_permutations=9),
    "comparison": lambda X, y: compare(X, y, models=["L2SVC"], cv=3),
    "score": lambda X, y: HuberizedSVC(0.05).fit(X, y.loc[X.index]).score(X, y),
    "certificate": lambda X, y: certify(HuberizedSVC(0.05).fit(X, y.loc[X.index]), X, y),
}


@pytest.mark.parametrize("way", LABELLED)
def test_labels_that_name_the_rows_in_another_order_are_refused(frame: Frame, way: str) -> None:
    X, labels = frame
    y = pd.Series(labels, X.index)
    with pytest.raises(ValueError, match=r"y has the index of X in another order: .*loc\[X.index"):
        LABELLED[way](X, y[::-1])
    HuberizedSVC(0.05).fit(X, y[::-1].loc[X.index]).score(X, y[::-1].to_numpy())  # as advised


@pytest.mark.filterwarnings("ignore")
def test_groups_of_samples_are_aligned(frame: Frame) -> None:
    X, y = frame
    groups = pd.Series(np.repeat(range(12), 5), X.index)
    mixed, net = groups.sample(frac=1, random_state=0), HuberizedSVC(0.05)
    search = HuberizedSVCCV(3, cv=GroupKFold(3))
    own = clone(search).fit(X, y, groups=groups.to_numpy()).cv_scores_
    assert np.array_equal(clone(search).fit(X, y, groups=mixed).cv_scores_, own)
    calibrated = CalibratedMargin(net, cv=3)
    own = clone(calibrated).fit(X, y, groups=groups.to_numpy()).oof_scores_
    assert np.array_equal(clone(calibrated).fit(X, y, groups=mixed).oof_scores_, own)
    one, other = (
        permutation_test(
            net, X, y, statistic="accuracy", cv=3, groups=g, n_permutations=3, random_state=0
        )
        for g in (groups.to_numpy(), mixed)
    )
    assert one.statistic == other.statistic
    with pytest.raises(ValueError, match=r"row 'patient 0' of X.*groups.to_numpy\(\)"):
        clone(calibrated).fit(X, y, groups=groups.reset_index(drop=True))


def test_without_labels_on_both_sides_the_order_is_that_of_the_rows(
    frame: Frame, weights: pd.Series
) -> None:
    X, y = frame
    expected = SVC().fit(X, y, weights.to_numpy()).coef_
    numbered = weights.reset_index(drop=True)
    assert np.array_equal(SVC().fit(X.to_numpy(), y, weights).coef_, expected)
    assert np.array_equal(SVC().fit(X.reset_index(drop=True), y, numbered).coef_, expected)


def test_repeated_labels_are_refused_unless_both_have_them(
    frame: Frame, weights: pd.Series
) -> None:
    X, y = frame
    drawn = np.random.default_rng(0).integers(0, 60, 60)
    model = SVC().fit(X.iloc[drawn], y[drawn], weights.iloc[drawn])
    assert model.certificate_.converged
    with pytest.raises(ValueError, match="X has several rows"):
        SVC().fit(X.iloc[drawn], y[drawn], weights)


def test_searches_of_scikit_learn_align_the_rows_of_their_parts(
    frame: Frame, weights: pd.Series
) -> None:
    X, y = frame
    grid = GridSearchCV(HuberizedSVC(), {"alpha": [0.01, 0.1]}, cv=3)
    found = grid.fit(X, y, sample_weight=weights).best_score_
    assert found == grid.fit(X, y, sample_weight=weights.to_numpy()).best_score_
    scores = cross_val_score(SVC(), X, y, params={"sample_weight": weights}, cv=3)
    assert np.all(scores > 0.5)


def test_labels_that_are_numbers_are_told_as_they_are_typed():
    X = pd.DataFrame(np.eye(4), index=[7, 7, 8, 9])
    with pytest.raises(ValueError, match="X has several rows 7: give"):
        HuberizedSVC().fit(X, [0, 1, 0, 1], sample_weight=pd.Series(np.ones(4)))
    with pytest.raises(ValueError, match="no entry for row 4 of X: give it the index of X"):
        HuberizedSVC().fit(X.set_axis([4, 5, 6, 7]), [0, 1, 0, 1], pd.Series(np.ones(4)))
