"""Cross-validation along paths: the scores of a grid search, choices, and what is published."""

from __future__ import annotations

import pickle
import signal
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, log_loss, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    ParameterGrid,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)

import proxmargin
from proxmargin import (
    SVCCV,
    ElasticNetSVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegressionCV,
    MulticlassSVCCV,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
    load_model,
    margin_path,
    save_model,
)
from proxmargin.estimators.registry import CROSS_VALIDATED

EXACT = {"standardize": True, "tol": 1e-11}
MODELS = [
    (HuberizedSVCCV, {"alphas": [0.3, 0.03, 0.01]}),
    (ElasticNetSVCCV, {"alphas": [0.3, 0.03], "l1_ratios": (0.5,)}),
    (SquaredHingeSVCCV, {"alphas": [0.3, 0.03]}),
    (SparseLogisticRegressionCV, {"alphas": [0.1, 0.01]}),
    (MulticlassSVCCV, {"Cs": [0.01, 0.1], "penalty": "l2", "loss": "squared_hinge"}),
    (SVCCV, {"Cs": [0.01, 1.0]}),
    (SVCCV, {"Cs": [0.1, 1.0], "kernel": "rbf"}),
    (LogisticRegressionCV, {"Cs": [0.01, 1.0]}),
]


@pytest.fixture(
    scope="module", params=["binary", pytest.param("multiclass", marks=pytest.mark.slow)]
)
def sets(request):
    return made(2 if request.param == "binary" else 3)


@pytest.fixture(scope="module")
def data():
    return made(2)


def made(count):
    """Classes that overlap, in features of different scales."""
    rng = np.random.default_rng(3)
    y = np.arange(72) % count
    X = rng.standard_normal((72, 12)) * np.linspace(0.5, 20, 12)
    X[:, 0] += 3 * y
    X[:, 1] -= 4 * (y == 1)
    return X, np.array(["ja", "nein", "oft"])[y]


def interrupted_at(call):
    """A scorer in one of whose calls Ctrl-C is pressed."""
    calls = []

    def scorer(model, X, y):
        calls.append(model)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return model.score(X, y)

    return scorer


def plain_of(model):
    """The plain classifier with the parameters that both have."""
    kind = getattr(proxmargin, CROSS_VALIDATED[type(model).__name__])
    shared = set(kind().get_params()) & set(model.get_params())
    return kind(**{name: getattr(model, name) for name in shared})


def grid_of(model):
    grid = {name[:-1]: getattr(model, name) for name in ("alphas", "Cs") if hasattr(model, name)}
    if model.strength.name == "alpha":
        grid["l1_ratio"] = list(model.l1_ratios)
    return {name: sorted(values, reverse=name == "alpha") for name, values in grid.items()}


def negated_loss(model, X, y):
    """The mean loss of each model, from its definition."""
    codes = np.searchsorted(model.classes_, y)
    scores = model.decision_function(X)
    one = scores.ndim == 1
    signs = (
        np.where(codes == 1, 1.0, -1.0)[:, None]
        if one
        else np.where(codes[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    )
    margins = signs * (scores[:, None] if one else scores)
    name = type(model).__name__
    rows = np.arange(len(y))
    if name == "HuberizedSVC":
        short = 1 - margins
        if not one:  # of the other classes alone
            short[rows, codes] = 0.0
        each = np.where(short > 1, short - 0.5, 0.5 * np.maximum(short, 0) ** 2)
    elif name == "MulticlassSVC":
        both = scores if not one else scores[:, None] * np.array([-0.5, 0.5])
        short = 1 + both - both[rows, codes][:, None]
        short[rows, codes] = 0.0
        each = np.maximum(short, 0) ** 2
    elif name == "SparseLogisticRegression":
        return -log_loss(y, model.predict_proba(X))
    elif name == "LogisticRegression":
        each = np.logaddexp(0.0, -margins)
    else:
        each = np.maximum(1 - margins, 0) ** (2 if name == "SquaredHingeSVC" else 1)
    return -each.sum(axis=1).mean()


@pytest.mark.parametrize(("kind", "settings"), MODELS, ids=lambda case: str(case)[-40:])
@pytest.mark.parametrize("scoring", [None, "accuracy", "balanced_accuracy"])
def test_every_score_is_that_of_a_grid_search(kind, settings, scoring, sets) -> None:
    X, y = sets
    model = kind(**settings, **EXACT, scoring=scoring, cv=3).fit(X, y)
    search = GridSearchCV(
        plain_of(model), grid_of(model), scoring=scoring or negated_loss, cv=3, refit=False
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
    search = GridSearchCV(plain_of(model), grid_of(model), scoring="neg_log_loss", cv=3).fit(X, y)
    means = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(model.cv_scores_[0].mean(axis=1), means, atol=1e-6)
    deviance = clone(model).set_params(scoring="deviance").fit(X, y)
    np.testing.assert_allclose(deviance.cv_scores_, 2 * model.cv_scores_)
    with pytest.raises(ValueError, match="probabilities"):
        HuberizedSVCCV(scoring="deviance").fit(X, y)


def test_the_grid_is_that_of_all_rows_for_each_l1_ratio(data) -> None:
    model = HuberizedSVCCV(alphas=4, l1_ratios=(1.0, 0.5), cv=3, standardize=True).fit(*data)
    for row, ratio in enumerate(model.l1_ratios):
        plain = HuberizedSVC(l1_ratio=ratio, standardize=True)
        path = margin_path(plain, *data, n_alphas=4)
        np.testing.assert_allclose(model.alphas_[row], path.alphas)
    assert model.cv_scores_.shape == (2, 4, 3)
    assert model.l1_ratio_ in (1.0, 0.5)
    np.testing.assert_array_equal(model.path_.alphas, model.alphas_[model.best_index_ // 4])


def test_the_chosen_model_is_the_plain_one_fitted_to_all_rows(sets) -> None:
    X, y = sets
    for model in (
        HuberizedSVCCV(alphas=4, cv=3, **EXACT),
        SVCCV(Cs=4, cv=3, **EXACT),
        SVCCV(Cs=3, cv=3, kernel="rbf", **EXACT),
        MulticlassSVCCV(Cs=3, cv=3, **EXACT),
    ):
        name = model.fit(X, y).strength.name
        plain = plain_of(model).set_params(**{name: getattr(model, f"{name}_")})
        if hasattr(model, "l1_ratio_"):
            plain.set_params(l1_ratio=model.l1_ratio_)
        plain.fit(X, y)
        assert type(model.best_estimator_) is type(plain)
        np.testing.assert_allclose(
            model.decision_function(X), plain.decision_function(X), atol=1e-3
        )
        learned = {n for n in vars(plain) if n.endswith("_") and n[0] != "_"}
        assert learned <= set(vars(model))
        assert model.certificate_.converged
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))


def test_held_out_rows_have_no_part_in_their_fold() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:120], y[:120]
    splits = list(StratifiedKFold(3).split(X, y))
    for kind, more in [
        (HuberizedSVCCV, {"alphas": [0.1, 0.01]}),
        (SVCCV, {"Cs": [0.01, 1.0]}),
        (SVCCV, {"Cs": [0.1, 1.0], "kernel": "rbf"}),
    ]:
        model = kind(**more, cv=splits[:1], standardize=True, keep_scores=True, refit=False)
        train, test = splits[0]
        honest = clone(model).fit(X, y).oof_scores_
        poisoned, labels = X.copy(), y.copy()
        poisoned[test[1:]] = 1e30
        labels[test] = 1 - labels[test]
        found = clone(model).fit(poisoned, labels).oof_scores_
        assert np.isnan(honest[0, :, train]).all()
        np.testing.assert_array_equal(found[0, :, test[0]], honest[0, :, test[0]])


@pytest.mark.parametrize("shape", [(60, 150), (90, 12)])
@pytest.mark.parametrize("storage", ["C", "F", "CSR"])
def test_giants_in_held_out_rows_do_not_change_a_bit(shape, storage) -> None:
    """Neither standardisation nor screening, nor bounds, nor Gram matrices read them."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal(shape) * (rng.random(shape) < 0.6)
    y = np.where(X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(shape[0]) > 0, 1, 0)
    train, test = next(StratifiedKFold(5).split(X, y))
    poisoned = X.copy()
    poisoned[test[1:]] = rng.choice([-1e60, 1e60], (test.size - 1, shape[1]))
    stored = sparse.csr_array if storage == "CSR" else lambda A: np.array(A, order=storage)
    for kind in (SparseLogisticRegressionCV, SquaredHingeSVCCV, HuberizedSVCCV):
        model = kind(
            alphas=[0.1, 0.03, 0.01],
            l1_ratios=(1.0, 0.5),
            cv=[(train, test)],
            standardize=True,
            keep_scores=True,
            refit=False,
        )
        honest = clone(model).fit(stored(X), y).oof_scores_[:, :, test[0]]
        found = clone(model).fit(stored(poisoned), y).oof_scores_[:, :, test[0]]
        np.testing.assert_array_equal(found, honest)


@pytest.mark.slow
def test_labels_without_a_relation_are_predicted_by_chance() -> None:
    rng = np.random.default_rng(0)
    model = SparseLogisticRegressionCV(alphas=10, l1_ratios=(1.0, 0.5), cv=4, standardize=True)
    rates = []
    for _ in range(6):
        X, y = rng.standard_normal((80, 400)), np.arange(80) % 2
        rates.append(cross_val_score(model, X, y, cv=StratifiedKFold(4, shuffle=True)).mean())
    # 480 guesses: three standard errors
    assert np.mean(rates) == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(480))


def test_threads_do_not_change_a_bit(data) -> None:
    for model in (
        HuberizedSVCCV(alphas=5, l1_ratios=(1.0, 0.5), cv=4, keep_scores=True, standardize=True),
        SVCCV(Cs=3, cv=4, kernel="rbf", keep_scores=True),
    ):
        one = clone(model).fit(*data)
        two = clone(model).set_params(n_jobs=2).fit(*data)
        np.testing.assert_array_equal(one.cv_scores_, two.cv_scores_)
        np.testing.assert_array_equal(one.oof_scores_, two.oof_scores_)
        np.testing.assert_array_equal(
            one.decision_function(data[0]), two.decision_function(data[0])
        )


def test_one_standard_error_takes_a_stronger_penalty(data) -> None:
    best = SparseLogisticRegressionCV(alphas=12, cv=4, standardize=True).fit(*data)
    simple = clone(best).set_params(selection="1se").fit(*data)
    frame = best.cv_results_
    top = frame.iloc[best.best_index_]
    enough = top["mean_test_score"] - top["standard_error"]
    expected = frame.alpha[frame.mean_test_score >= enough].max()
    assert simple.alpha_ == pytest.approx(expected)
    assert simple.alpha_ > best.alpha_


def test_the_results_are_a_frame_with_a_row_for_each_strength(data) -> None:
    model = HuberizedSVCCV(alphas=3, l1_ratios=(1.0, 0.5), cv=3, standardize=True).fit(*data)
    frame = model.cv_results_
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 6
    np.testing.assert_array_equal(frame.alpha, model.alphas_.ravel())
    np.testing.assert_array_equal(frame.l1_ratio.unique(), [1.0, 0.5])
    assert frame.rank_test_score[model.best_index_] == 1
    assert frame.rank_test_score.dtype == np.int32
    np.testing.assert_array_equal(
        frame.rank_test_score, frame.mean_test_score.rank(ascending=False, method="min")
    )
    assert frame.alpha[model.best_index_] == model.alpha_
    folds = frame[[f"split{k}_test_score" for k in range(3)]].to_numpy()
    np.testing.assert_array_equal(folds, model.cv_scores_.reshape(6, 3))


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


def test_groups_reach_the_splitter_with_and_without_routing(data) -> None:
    X, y = data
    groups = np.arange(y.size) // 6
    model = HuberizedSVCCV(alphas=[0.1], cv=GroupKFold(3), standardize=True)
    plain = clone(model).fit(X, y, groups=groups).cv_scores_
    splits = list(GroupKFold(3).split(X, y, groups))
    np.testing.assert_array_equal(clone(model).set_params(cv=splits).fit(X, y).cv_scores_, plain)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, y, groups=groups).cv_scores_
        scored = clone(model).set_params(scoring="balanced_accuracy").fit(X, y, groups=groups)
        assert scored.cv_scores_.shape == (1, 1, 3)
    np.testing.assert_array_equal(routed, plain)
    with pytest.raises(ValueError, match="other"):
        clone(model).fit(X, y, other=groups)


@pytest.mark.parametrize(
    "wrong",
    [
        {"selection": "2se"},
        {"alphas": []},
        {"alphas": 0},
        {"alphas": [-1.0]},
        {"l1_ratios": (2.0,)},
        {"l1_ratios": ()},
        {"eps": 0.0},
        {"keep_scores": "yes"},
        {"n_jobs": 1.5},
        {"n_jobs": 0},
        {"delta": -1.0},
        {"scoring": "no_such"},
    ],
    ids=str,
)
def test_unusable_parameters_are_refused_by_name(wrong) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name if name != "scoring" else "no_such"):
        HuberizedSVCCV(**wrong).fit(*load_wine(return_X_y=True))


def test_frames_and_sparse_data_are_taken_and_names_are_kept() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    model = SquaredHingeSVCCV(alphas=3, cv=3, standardize=True, tol=1e-9)
    named = clone(model).fit(X, y)
    assert list(named.feature_names_in_) == list(X.columns)
    assert set(named.path_.to_frame().feature) <= set(X.columns)
    thin = clone(model).fit(sparse.csr_array(X.to_numpy()), y)
    np.testing.assert_allclose(thin.cv_scores_, named.cv_scores_, atol=1e-5)
    np.testing.assert_array_equal(named.predict(X), thin.predict(X.to_numpy()))


def test_a_kernel_of_the_samples_is_cut_by_rows_and_columns(data) -> None:
    X, y = data
    ready = SVCCV(Cs=[0.1, 1.0], cv=3, kernel="precomputed").fit(X @ X.T, y)
    linear = SVCCV(Cs=[0.1, 1.0], cv=3).fit(X, y)
    np.testing.assert_allclose(ready.cv_scores_, linear.cv_scores_, atol=1e-3)


def test_copies_and_files_predict_the_same(data, tmp_path) -> None:
    X, y = data
    model = HuberizedSVCCV(alphas=3, cv=3, standardize=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.path_.coefs, model.path_.coefs)
    save_model(model, tmp_path / "m.pmz")
    stored = load_model(tmp_path / "m.pmz")
    assert type(stored) is HuberizedSVC
    assert stored.alpha == model.alpha_
    np.testing.assert_array_equal(stored.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_without_a_refit_there_is_a_choice_and_no_model(data) -> None:
    model = LogisticRegressionCV(Cs=3, cv=3, refit=False).fit(*data)
    assert model.C_ in model.Cs_
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(data[0])


def test_an_interrupted_search_keeps_what_is_complete(data) -> None:
    model = HuberizedSVCCV(alphas=[0.1, 0.03, 0.01], cv=4, scoring=interrupted_at(5))
    with pytest.raises(KeyboardInterrupt, match="6 of 15 fits"):
        model.fit(*data)
    assert np.isfinite(model.cv_scores_[:, :, :2]).all()
    assert np.isnan(model.cv_scores_[:, :, 2:]).all()
    assert not hasattr(model, "alpha_")


def test_an_old_result_does_not_outlive_another_fit(data) -> None:
    model = SVCCV(Cs=2, cv=3).fit(*data)
    assert hasattr(model, "path_")
    model.set_params(kernel="rbf").fit(*data)
    assert not hasattr(model, "path_")
    assert not hasattr(model, "coef_")


def test_fits_that_end_early_are_told_of_once(data) -> None:
    with pytest.warns(sklearn.exceptions.ConvergenceWarning) as caught:
        HuberizedSVCCV(alphas=3, cv=3, max_iter=1, refit=False).fit(*data)
    (told,) = (each for each in caught if each.category is sklearn.exceptions.ConvergenceWarning)
    assert "of 9 fits of HuberizedSVCCV stopped" in str(told.message)


def test_progress_counts_all_fits(data, capsys, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.runtime.progress.SHOW_AFTER", 0.0)
    HuberizedSVCCV(alphas=3, cv=3, verbose=1).fit(*data)
    assert "HuberizedSVCCV: fits: 12 of 12 done" in capsys.readouterr().err


def test_parameters_are_those_of_the_plain_classifier_but_for_its_strength() -> None:
    for name, plain in CROSS_VALIDATED.items():
        kind, other = getattr(proxmargin, name), getattr(proxmargin, plain)
        shared = set(other().get_params()) - {"alpha", "C", "l1_ratio", "eta"}
        assert shared <= set(kind().get_params())
        assert {"alpha", "C", "l1_ratio"}.isdisjoint(kind().get_params())
        assert {"cv", "scoring", "selection", "n_jobs", "eps"} <= set(kind().get_params())
        assert "cv_scores_" in kind.__doc__


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_all_fits_that_end_early_are_told_of_once(kernel: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 4)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match="fits of SVCCV stopped before") as caught:
        model = SVCCV(Cs=[10.0], kernel=kernel, max_iter=1, tol=1e-12).fit(X, y)
    assert len(caught) == 1
    assert not model.best_estimator_.certificate_.converged


def test_a_search_interrupted_with_scores_to_keep_ends_in_the_same_words(data) -> None:
    settings = {"alphas": [0.1, 0.03, 0.01], "l1_ratios": (1.0, 0.5), "cv": 4}
    model = HuberizedSVCCV(**settings, scoring=interrupted_at(5), keep_scores=True)
    with pytest.raises(KeyboardInterrupt, match="cv_scores_ holds what is complete"):
        model.fit(*data)
    assert np.isfinite(model.cv_scores_[:, :, 0]).all()
    assert np.isnan(model.cv_scores_[:, :, 2:]).all()
    assert not hasattr(model, "oof_scores_")


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


def test_a_scorer_that_fails_leaves_no_old_model_behind(data) -> None:
    model = HuberizedSVCCV(alphas=[0.1], cv=3).fit(*data)

    def fails(model, X, y):
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        model.set_params(scoring=fails).fit(*data)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "cv_scores_")


def test_results_without_pandas_say_what_to_install(data, monkeypatch) -> None:
    model = HuberizedSVCCV(alphas=[0.1], cv=3).fit(*data)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas, which is not installed: "):
        _ = model.cv_results_


def test_an_unknown_scoring_is_refused_in_a_sentence(data) -> None:
    for wrong in ("no_such", ["accuracy", "f1"], {"a": "accuracy"}, 3):
        with pytest.raises(ValueError, match="scoring must be None, 'deviance', a name") as caught:
            HuberizedSVCCV(scoring=wrong).fit(*data)
        assert len(str(caught.value)) < 160


def test_a_choice_at_the_edge_of_the_grid_is_told_of(data) -> None:
    X, y = data
    lasso = SquaredHingeSVCCV(cv=3, standardize=True)
    with pytest.warns(UserWarning, match="weakest penalty of its grid: a weaker one may") as caught:
        lasso.set_params(alphas=[0.5, 0.4]).fit(X, y)
    assert [each.filename for each in caught] == [__file__]
    noise = np.random.default_rng(1).permutation(y)
    with pytest.warns(UserWarning, match="the strongest penalty .* its model has no features"):
        lasso.set_params(alphas=5).fit(X, noise)
    assert not lasso.coef_.any()
    ridge = SquaredHingeSVCCV(cv=3, standardize=True, l1_ratios=(0.0,), alphas=[1.0, 0.1])
    with pytest.warns(UserWarning, match="strongest penalty of its grid: a stronger one may be"):
        ridge.fit(X, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lasso.set_params(alphas=[0.2]).fit(X, y)
        lasso.set_params(alphas=[0.9, 0.01, 1e-4]).fit(X, y)


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
    for fold, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
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
    assert model.score(X, y, offset=offset) == best.score(X, y, offset=offset)
    np.testing.assert_array_equal(model.predict(X, offset), best.predict(X, offset))
    for name in ("predict_proba", "predict_log_proba"):
        expected = getattr(best, name)(X, offset)
        np.testing.assert_allclose(getattr(model, name)(X, offset), expected, atol=1e-4)


def test_an_offset_without_a_place_is_refused(sets) -> None:
    X, y = sets
    with pytest.raises(ValueError, match="offset must be one number a sample"):
        HuberizedSVCCV().fit(X, y == "ja", offset=np.zeros(3))
    with pytest.raises(ValueError, match="takes no offset"):
        MulticlassSVCCV().fit(X, y == "ja", offset=np.zeros(y.size))


def test_a_scorer_without_weights_is_asked_without_and_it_is_told(data) -> None:
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 2, y.size)
    model = HuberizedSVCCV(alphas=[0.1], cv=3, scoring=lambda model, X, y: model.score(X, y))
    with pytest.warns(UserWarning, match="takes no sample_weight: held-out rows") as caught:
        model.fit(X, y, sample_weight=weights)
    assert len(caught) == 1
    splits = list(StratifiedKFold(3).split(X, y))
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
