"""Calibrated classifiers: held-out scores, no leak, better than scores taken as log-odds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import confusion_matrix, log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import LinearSVC

from proxmargin import (
    DWD,
    SVC,
    SVCCV,
    CalibratedMargin,
    HuberizedSVC,
    HuberizedSVCCV,
    MarginFDA,
)
from tests.models.fitting.test_scikit_learn import checks_of


@checks_of([CalibratedMargin(SVC(), cv=2)])
def test_scikit_learn_check(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature", "beta"])
def test_new_samples_get_better_probabilities_than_guessing(load, method) -> None:
    X, y = load(return_X_y=True)
    A, B, a, b = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    model = CalibratedMargin(SVC(standardize=True), method=method).fit(A, a)
    assert log_loss(b, model.predict_proba(B)) < 0.3
    assert model.score(B, b) > 0.9
    np.testing.assert_array_equal(model.classes_, np.unique(y))


def test_it_is_no_worse_than_calibrated_classifiers_of_scikit_learn() -> None:
    X, y = load_wine(return_X_y=True)
    found = []
    for seed in range(3):
        A, B, a, b = train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)
        inner = MarginFDA(standardize=True)
        ours = CalibratedMargin(inner).fit(A, a).predict_proba(B)
        theirs = CalibratedClassifierCV(inner, cv=5).fit(A, a).predict_proba(B)
        found.append(log_loss(b, theirs) - log_loss(b, ours))
    assert np.mean(found) > 0


def test_held_out_scores_are_those_of_fits_that_did_not_see_them() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:150], y[:150]
    folds = StratifiedKFold(3)
    model = CalibratedMargin(DWD(standardize=True), cv=folds).fit(X, y)
    expected = cross_val_predict(DWD(standardize=True), X, y, cv=folds, method="decision_function")
    np.testing.assert_array_equal(model.oof_scores_, expected)


def test_labels_of_noise_get_even_probabilities() -> None:
    """A map of scores that the fit has seen would be sure of every sample."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 400)), np.tile([0, 1], 40)
    for method in ("sigmoid", "beta"):
        found = CalibratedMargin(SVC(), method=method).fit(X, y).predict_proba(X)
        assert np.abs(found - 0.5).max() < 0.45


@pytest.mark.parametrize("make", [HuberizedSVCCV, SVCCV])
def test_a_classifier_that_chooses_its_strength_chooses_once(make, monkeypatch) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    strengths = {"alphas": 5} if make is HuberizedSVCCV else {"Cs": 5}
    search = make(**strengths, cv=3, standardize=True, tol=1e-9)
    fits = []
    original = make.fit
    monkeypatch.setattr(make, "fit", lambda me, *a, **k: fits.append(1) or original(me, *a, **k))
    model = CalibratedMargin(search, cv=3).fit(X, y)
    assert len(fits) == 1
    kept = original(clone(search).set_params(keep_scores=True), X, y)
    scores = kept.oof_scores_.reshape(-1, 200)[kept.best_index_]
    np.testing.assert_allclose(model.oof_scores_, scores, atol=1e-4 * np.abs(scores).max())


def test_probabilities_are_the_mean_over_folds_or_those_of_one_fit() -> None:
    X, y = load_wine(return_X_y=True)
    model = CalibratedMargin(DWD(standardize=True), cv=3).fit(X, y)
    each = [model.calibrator_.probabilities(one.decision_function(X)) for one in model.estimators_]
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0))
    single = CalibratedMargin(DWD(standardize=True), cv=3, ensemble=False).fit(X, y)
    scores = DWD(standardize=True).fit(X, y).decision_function(X)
    expected = single.calibrator_.probabilities(scores)
    np.testing.assert_array_equal(single.predict_proba(X), expected)


def test_kernel_matrices_have_one_fit() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:100] / X.std(axis=0)
    K = X @ X.T
    model = CalibratedMargin(SVC(kernel="precomputed"), cv=3).fit(K, y[:100])
    linear = CalibratedMargin(SVC(), cv=3, ensemble=False).fit(X, y[:100])
    np.testing.assert_allclose(model.predict_proba(K), linear.predict_proba(X), atol=1e-3)
    assert model.n_features_in_ == 100
    with pytest.raises(ValueError, match="ensemble must be False or 'auto'"):
        CalibratedMargin(SVC(kernel="precomputed"), ensemble=True).fit(K, y[:100])
    with pytest.raises(ValueError, match="ensemble, if not True or False, must be one of 'auto'"):
        CalibratedMargin(SVC(), ensemble="mean").fit(X, y[:100])


def test_samples_that_are_held_out_often_have_the_mean_of_their_scores() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:90], y[:90]
    folds = ShuffleSplit(4, test_size=0.3, random_state=0)
    model = CalibratedMargin(SVC(standardize=True), cv=folds).fit(X, y)
    held = np.array([np.isin(np.arange(90), test) for _, test in folds.split(X)])
    np.testing.assert_array_equal(np.isnan(model.oof_scores_), ~held.any(axis=0))
    row = int(np.argmax(held.sum(axis=0)))
    each = [
        one.decision_function(X[row : row + 1])[0]
        for one, out in zip(model.estimators_, held, strict=True)
        if out[row]
    ]
    assert len(each) > 1
    np.testing.assert_allclose(model.oof_scores_[row], np.mean(each))


def test_uncertain_samples_are_rejected_by_chows_rule() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedMargin(SVC(standardize=True), reject_cost=0.2).fit(X[:300], y[:300])
    rest, labels = X[300:], y[300:]
    predicted = model.predict(rest)
    risk = 1 - model.predict_proba(rest).max(axis=1)
    np.testing.assert_array_equal(np.ma.getmaskarray(predicted), risk > 0.2)
    np.testing.assert_array_equal(model.rejects(rest), risk > 0.2)
    assert 0 < model.rejects(rest).sum() < 60
    kept = predicted.compressed() == labels[~model.rejects(rest)]
    assert kept.mean() > (model.set_params(reject_cost=None).predict(rest) == labels).mean()


def test_rejected_samples_have_no_part_in_the_score() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedMargin(SVC(standardize=True), reject_cost=0.1).fit(X[:300], y[:300])
    kept = ~model.rejects(X[300:])
    right = np.ma.getdata(model.predict(X[300:])) == y[300:]
    assert model.score(X[300:], y[300:]) == right[kept].mean()
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()


def test_classes_without_weight_are_absent_and_missing_ones_are_named() -> None:
    X, y = load_wine(return_X_y=True)
    weights = np.where(y == 0, 0.0, 1.0)
    model = CalibratedMargin(SVC(standardize=True), cv=3).fit(X, y, weights)
    np.testing.assert_array_equal(model.classes_, [1, 2])
    assert model.score(X[y > 0], y[y > 0]) > 0.9
    with pytest.raises(ValueError, match="fold 0 has no sample of class 0"):
        CalibratedMargin(SVC(standardize=True), cv=KFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="only 3 of 2"):
        CalibratedMargin(SVC()).fit(X, y, np.where((y == 2) & (np.arange(178) > 132), 0.0, 1.0))


def test_scores_of_pairs_of_classes_are_refused() -> None:
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="ovo"):
        CalibratedMargin(ScikitSVC(decision_function_shape="ovo")).fit(X, y)


def test_weights_that_are_shares_are_warned_of() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="weights count samples"):
        CalibratedMargin(SVC(standardize=True)).fit(X, y, np.full(569, 1 / 569))


def test_another_fit_is_needed_for_one_classifier() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedMargin(SVC(standardize=True)).fit(X[:99], y[:99])
    with pytest.raises(NotFittedError, match="ensemble"):
        model.set_params(ensemble=False).predict_proba(X)


def test_weights_are_repeated_rows() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:120], y[:120]
    weights = np.where(np.arange(120) < 60, 2.0, 1.0)
    index = np.repeat(np.arange(120), weights.astype(int))
    folds = [(np.arange(k % 2, 120, 2), np.arange(1 - k % 2, 120, 2)) for k in range(2)]
    repeated = [
        (np.flatnonzero(np.isin(index, a)), np.flatnonzero(np.isin(index, b))) for a, b in folds
    ]
    inner = SVC(standardize=True, tol=1e-10)
    one = CalibratedMargin(inner, cv=folds).fit(X, y, weights)
    two = CalibratedMargin(inner, cv=repeated).fit(X[index], y[index])
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-4)


def test_pipelines_frames_sparse_data_words_and_groups() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    words = np.where(y == 1, "benign", "malignant")
    X, words = X.iloc[:150], words[:150]
    model = CalibratedMargin(make_pipeline(StandardScaler(), LinearSVC())).fit(X, words)
    assert set(model.predict(X)) == {"benign", "malignant"}
    framed = CalibratedMargin(HuberizedSVC(standardize=True)).fit(X, words)
    assert list(framed.feature_names_in_) == list(X)
    dense = framed.predict_proba(X)
    stored = CalibratedMargin(HuberizedSVC(standardize=True)).fit(sparse.csr_array(X), words)
    np.testing.assert_allclose(stored.predict_proba(sparse.csr_array(X)), dense, atol=1e-4)
    groups = np.arange(150) % 7
    CalibratedMargin(DWD(standardize=True), cv=GroupKFold(3)).fit(X, words, groups=groups)


@pytest.fixture
def weighted():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:120], y[:120], np.random.default_rng(0).integers(1, 4, 120).astype(float)


def test_weights_reach_the_last_step_of_a_pipeline(weighted) -> None:
    X, y, weights = weighted
    X = StandardScaler().fit_transform(X)
    inner = SVC(tol=1e-10)
    plain = CalibratedMargin(inner, cv=3).fit(X, y, weights)
    for pipeline in (
        make_pipeline("passthrough", inner),
        make_pipeline("passthrough", make_pipeline(inner)),
        GridSearchCV(make_pipeline("passthrough", inner), {"svc__C": [1.0]}, cv=3),
    ):
        model = CalibratedMargin(pipeline, cv=3).fit(X, y, weights)
        np.testing.assert_allclose(model.oof_scores_, plain.oof_scores_, atol=1e-8)
        np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-8)
    unweighted = CalibratedMargin(inner, cv=3).fit(X, y)
    assert np.abs(unweighted.oof_scores_ - plain.oof_scores_).max() > 1e-3
    with pytest.raises(TypeError, match="LinearDiscriminantAnalysis takes no sample_weight"):
        CalibratedMargin(make_pipeline(LinearDiscriminantAnalysis())).fit(X, y, weights)


class TestRouting:
    @pytest.fixture(autouse=True)
    def routing(self):
        with config_context(enable_metadata_routing=True):
            yield

    def test_weights_and_groups_go_where_they_are_asked_for(self, weighted) -> None:
        X, y, weights = weighted
        groups = np.arange(120) // 4
        inner = SVC(standardize=True).set_fit_request(sample_weight=True)
        model = CalibratedMargin(inner, cv=GroupKFold(3)).fit(
            X, y, sample_weight=weights, groups=groups
        )
        folds = list(GroupKFold(3).split(X, y, groups))
        with config_context(enable_metadata_routing=False):
            expected = CalibratedMargin(SVC(standardize=True), cv=folds).fit(X, y, weights)
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))

    def test_weights_that_the_classifier_does_not_want_are_those_of_the_map(self, weighted) -> None:
        X, y, weights = weighted
        plain = CalibratedMargin(SVC(standardize=True), cv=3).fit(X, y)
        inner = SVC(standardize=True).set_fit_request(sample_weight=False)
        model = CalibratedMargin(inner, cv=3).fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(model.oof_scores_, plain.oof_scores_)
        assert not np.array_equal(model.predict_proba(X), plain.predict_proba(X))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            CalibratedMargin(SVC(), cv=3).fit(X, y, sample_weight=weights)

    def test_the_steps_of_a_pipeline_say_which_of_them_are_weighted(self, weighted) -> None:
        X, y, weights = weighted
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        svc = SVC(tol=1e-10).set_fit_request(sample_weight=True)
        model = CalibratedMargin(make_pipeline(scaler, svc), cv=3)
        model.fit(X, y, sample_weight=weights)
        expected = CalibratedMargin(clone(svc).set_params(standardize=True), cv=3)
        expected.fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.oof_scores_, expected.oof_scores_, atol=1e-4)

    def test_a_search_gets_weights_and_no_groups(self, weighted) -> None:
        X, y, weights = weighted
        search = HuberizedSVCCV(alphas=4, standardize=True, cv=GroupKFold(3))
        search.set_fit_request(sample_weight=True)
        model = CalibratedMargin(search, cv=GroupKFold(3))
        model.fit(X, y, sample_weight=weights, groups=np.arange(120) // 4)
        assert model.predict_proba(X).shape == (120, 2)

    def test_cross_validation_passes_both_on(self, weighted) -> None:
        X, y, weights = weighted
        inner = SVC(standardize=True).set_fit_request(sample_weight=True)
        model = CalibratedMargin(inner, cv=GroupKFold(2)).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        params = {"sample_weight": weights, "groups": np.arange(120) // 4}
        assert (cross_val_score(model, X, y, cv=GroupKFold(3), params=params) > 0.8).all()

    def test_an_offset_is_refused(self, weighted) -> None:
        X, y, weights = weighted
        inner = HuberizedSVC(standardize=True).set_fit_request(offset=True)
        with pytest.raises(ValueError, match="offset"):
            CalibratedMargin(inner, cv=3).fit(X, y, offset=weights)


def test_without_routing_other_metadata_are_refused(weighted) -> None:
    X, y, weights = weighted
    with pytest.raises(ValueError, match=r"\[sample_weight, offset\]|offset"):
        CalibratedMargin(HuberizedSVC(), cv=3).fit(X, y, offset=weights)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (CalibratedMargin(SVC(), method="platt"), ValueError, "method must be"),
        (CalibratedMargin(SVC(), reject_cost=0.7), ValueError, "reject_cost must be"),
        (CalibratedMargin(KNeighborsClassifier()), TypeError, "decision_function"),
        (CalibratedMargin(LinearRegression()), TypeError, "decision_function"),
        (CalibratedMargin(SVC(), cv=200), ValueError, "only 90 of 1"),
    ],
)
def test_what_is_wrong_is_named(model, error, words) -> None:
    X, _ = load_breast_cancer(return_X_y=True)
    with pytest.raises(error, match=words):
        model.fit(X[:300], np.where(np.arange(300) < 90, 1, 0))


def test_a_number_of_folds_keeps_groups_whole() -> None:
    """Copies of a sample in the training part would make noise look separable."""
    rng = np.random.default_rng(0)
    X, y, groups = rng.standard_normal((30, 100)), np.arange(30) % 2, np.arange(30)
    X, y, groups = (np.repeat(each, 3, axis=0) for each in (X, y, groups))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    expected = CalibratedMargin(SVC(), cv=folds).fit(X, y, groups=groups)
    found = CalibratedMargin(SVC(), cv=5).fit(X, y, groups=groups)
    np.testing.assert_array_equal(found.oof_scores_, expected.oof_scores_)
    search = HuberizedSVCCV(alphas=4, keep_scores=True)
    found = clone(search).fit(X, y, groups=groups)
    expected = clone(search).set_params(cv=folds).fit(X, y, groups=groups)
    np.testing.assert_array_equal(found.oof_scores_, expected.oof_scores_)
    for model in (search, CalibratedMargin(SVC())):
        with pytest.raises(ValueError, match="there are 3"):
            model.fit(X, y, groups=groups % 3)
    with config_context(enable_metadata_routing=True):
        routed = CalibratedMargin(SVC(), cv=5).fit(X, y, groups=groups)
        direct = clone(search).fit(X, y, groups=groups)
    np.testing.assert_array_equal(direct.oof_scores_, expected.oof_scores_)
    assert np.corrcoef(routed.oof_scores_, y)[0, 1] < 0.8


def test_weights_and_folds_that_cannot_be_are_refused() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100], y[:100]
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        CalibratedMargin(LinearSVC()).fit(X, y, np.where(np.arange(100) == 3, -1.0, 1.0))
    folds = [(np.arange(80), np.arange(79, 100))]
    with pytest.raises(ValueError, match="cv: fold 0 holds out row 79"):
        CalibratedMargin(SVC(), cv=folds).fit(X, y)


def test_a_map_that_reverses_the_classifier_is_warned_of() -> None:
    rng = np.random.default_rng(1)
    y, told, falling = np.arange(40) % 2, 0, 0
    for _ in range(4):
        X = rng.standard_normal((40, 300))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = CalibratedMargin(SVC()).fit(X, y)
        words = [str(each.message) for each in caught if "reverses" in str(each.message)]
        first, last = model.calibrator_.probabilities(np.array([-1.0, 1.0]))[:, 1]
        assert len(words) == (last < first)
        if words:
            assert f"AUC is {roc_auc_score(y, model.oof_scores_):.3f}" in words[0]
        told, falling = told + len(words), falling + (last < first)
    assert told == falling > 0


def test_rejected_samples_are_left_out_of_metrics_by_the_mask() -> None:
    """As in the recipe of docs/guide/probabilities.md."""
    X, y = load_breast_cancer(return_X_y=True)
    model = CalibratedMargin(SVC(standardize=True), reject_cost=0.1)
    np.testing.assert_array_equal(
        cross_val_score(model, X, y, cv=3),
        cross_val_score(model, X, y, cv=3, scoring=lambda m, X, y: m.score(X, y)),
    )
    model.fit(X[:300], y[:300])
    kept = ~model.rejects(X[300:])
    table = confusion_matrix(y[300:][kept], model.predict(X[300:])[kept])
    assert 0 < table.sum() == kept.sum() < kept.size
    assert np.trace(table) / table.sum() == model.score(X[300:], y[300:])
