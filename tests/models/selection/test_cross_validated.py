"""Classifiers that choose their strength: inputs, copies, files, interruption, warnings."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GroupKFold,
)

import proxmargin
from proxmargin import (
    SVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    MulticlassSVCCV,
    SquaredHingeSVCCV,
    load_model,
    save_model,
)
from proxmargin.models.fitting.registry import CROSS_VALIDATED
from tests.models.selection.cases import interrupted_at


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


def test_an_offset_without_a_place_is_refused(sets) -> None:
    X, y = sets
    with pytest.raises(ValueError, match="offset must be one number a sample"):
        HuberizedSVCCV().fit(X, y == "ja", offset=np.zeros(3))
    with pytest.raises(ValueError, match="takes no offset"):
        MulticlassSVCCV().fit(X, y == "ja", offset=np.zeros(y.size))
