"""Paths: what they prove, and that warm starts change nothing but the time."""

from __future__ import annotations

import signal
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from proxmargin import (
    L2SVC,
    SVC,
    ElasticNetSVC,
    History,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    MulticlassSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
    alpha_max,
    critical_C,
    load_model,
    margin_path,
    save_model,
)
from proxmargin.models.paths.compute import compute_path
from proxmargin.paths import alpha_grid

ESTIMATORS = (HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_point_of_a_path_is_certified_and_agrees_with_a_cold_fit(kind, data):
    X, y = data
    model = kind(l1_ratio=0.8, standardize=True, tol=1e-9)
    path = margin_path(model, X, y, n_alphas=4, eps=0.02)
    assert all(c.converged and c.relative_gap <= 1e-9 for c in path.certificates)
    for index, alpha in enumerate(path.alphas):
        cold = kind(alpha=alpha, l1_ratio=0.8, standardize=True, tol=1e-9).fit(X, y)
        assert path.certificates[index].primal == pytest.approx(cold.certificate_.primal, rel=1e-8)
        warm = path.model(index)
        assert warm.alpha == alpha
        assert path.coefs[index].shape == cold.coef_.shape
        assert (warm.predict(X) == cold.predict(X)).mean() > 0.99


def test_a_path_starts_without_features_and_counts_each_feature_once():
    X, y = load_wine(return_X_y=True)
    path = margin_path(SquaredHingeSVC(standardize=True), X, y, n_alphas=6)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[-1] > 5
    np.testing.assert_array_equal(path.n_nonzero, (path.coefs != 0).any(axis=1).sum(axis=1))
    assert path.coefs.shape == (6, 3, 13)
    assert path.intercepts.shape == (6, 3)
    np.testing.assert_array_equal(path.classes, [0, 1, 2])
    assert len(path) == 6


def test_results_come_in_the_order_of_the_given_alphas():
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(standardize=True)
    shuffled = margin_path(model, X, y, alphas=[0.01, 1.0, 0.1])
    ordered = margin_path(model, X, y, alphas=[1.0, 0.1, 0.01])
    np.testing.assert_array_equal(shuffled.alphas, [0.01, 1.0, 0.1])
    np.testing.assert_array_equal(shuffled.coefs, ordered.coefs[[2, 0, 1]])


def test_sparse_data_give_the_same_path_as_dense_data():
    X, y = load_wine(return_X_y=True)
    model = HuberizedSVC(standardize=True, tol=1e-9)
    dense = margin_path(model, X, y, n_alphas=3, eps=0.05)
    thin = margin_path(model, sparse.csr_array(X), y, n_alphas=3, eps=0.05)
    np.testing.assert_allclose(thin.alphas, dense.alphas, rtol=1e-9)
    np.testing.assert_allclose(thin.coefs, dense.coefs, atol=1e-3 * np.abs(dense.coefs).max())


def test_the_estimator_stays_as_it_was_and_its_callbacks_are_called():
    X, y = load_breast_cancer(return_X_y=True)
    history = History()
    model = HuberizedSVC(alpha=0.5, standardize=True, callbacks=[history])
    margin_path(model, X, y, n_alphas=2)
    assert model.alpha == 0.5
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")
    assert len(history) > 0


def test_a_path_that_does_not_converge_warns_once_with_the_worst_gap():
    X, y = load_breast_cancer(return_X_y=True)
    model = HuberizedSVC(standardize=True, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="of 5 fits of the HuberizedSVC path") as caught:
        path = margin_path(model, X, y, n_alphas=5)
    assert len(caught) == 1
    worst = max(c.relative_gap for c in path.certificates)
    assert f"{worst:.2e}" in str(caught[0].message)


def test_a_converged_path_is_silent(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        margin_path(SparseLogisticRegression(standardize=True), *data, n_alphas=3)


@pytest.mark.parametrize(
    "alphas", [[1e101, 1.0], [], [[0.1]], [-1.0], [np.nan], 0.5, "abc", [None]]
)
def test_unusable_alphas_are_refused(alphas):
    with pytest.raises(ValueError, match="alphas must be"):
        margin_path(HuberizedSVC(), *load_wine(return_X_y=True), alphas=alphas)


def test_coefficients_are_kept_sparse_and_made_dense_on_demand():
    X, y = load_wine(return_X_y=True)
    path = margin_path(SquaredHingeSVC(l1_ratio=1.0, standardize=True), X, y, n_alphas=5)
    assert all(sparse.issparse(coef) and coef.format == "csr" for coef in path.coefs_sparse)
    stored = [coef.nnz for coef in path.coefs_sparse]
    np.testing.assert_array_equal(stored, np.count_nonzero(path.coefs, axis=(1, 2)))
    for index, coef in enumerate(path.coefs):
        np.testing.assert_array_equal(path.model(index).coef_, coef)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_scores_and_predictions_are_those_of_each_model(kind, data):
    X, y = data
    path = margin_path(HuberizedSVC(l1_ratio=1.0, standardize=True), X, y, n_alphas=4)
    scores, labels = path.scores(kind(X)), path.predict(kind(X))
    for index in range(len(path)):
        model = path.model(index)
        np.testing.assert_allclose(scores[index], model.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(labels[index], model.predict(X))


def test_a_frame_has_one_row_for_each_nonzero_coefficient():
    X, y = load_wine(return_X_y=True, as_frame=True)
    path = margin_path(SquaredHingeSVC(standardize=True), X, y, n_alphas=4)
    frame = path.to_frame()
    assert list(frame.columns) == ["alpha", "class", "feature", "coef"]
    wide = frame.pivot(index="alpha", columns=["class", "feature"], values="coef").fillna(0.0)
    for index, alpha in enumerate(path.alphas[1:], start=1):
        for (k, name), value in wide.loc[alpha].items():
            assert path.coefs[index, k, X.columns.get_loc(name)] == value


def test_a_path_that_was_interrupted_at_once_can_be_shown() -> None:
    X, y = load_wine(return_X_y=True)
    path = margin_path(SquaredHingeSVC(standardize=True), X, y, n_alphas=2)
    empty = path._picked(np.arange(0))
    assert repr(empty) == "<Path of SquaredHingeSVC: no alphas>"
    assert empty.n_nonzero.dtype == path.n_nonzero.dtype
    assert len(empty.to_frame()) == 0


def test_a_frame_without_pandas_says_what_to_install(data, monkeypatch) -> None:
    path = margin_path(HuberizedSVC(standardize=True), *data, n_alphas=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas, which is not installed: "):
        path.to_frame()


def test_a_path_may_end_without_a_penalty_and_does_not_ask_for_that_of_the_estimator(data) -> None:
    X, y = data[0][:, :3], data[1]
    grid = [0.1, 0.01, 0.0]
    usual = margin_path(SquaredHingeSVC(standardize=True), X, y, alphas=grid, stop_at=1.0)
    path = margin_path(SquaredHingeSVC(0.0, standardize=True), X, y, alphas=grid, stop_at=1.0)
    assert all(certificate.converged for certificate in path.certificates)
    np.testing.assert_array_equal(path.coefs, usual.coefs)
    assert path.ended == usual.ended == "complete"


@pytest.mark.parametrize(
    "model",
    [
        SVC(standardize=True, tol=1e-9),
        L2SVC(standardize=True, tol=1e-9),
        LogisticRegression(standardize=True, tol=1e-9),
        MulticlassSVC(standardize=True, tol=1e-9),
        MulticlassSVC(penalty="l2", loss="logistic", standardize=True, tol=1e-9),
    ],
    ids=repr,
)
def test_paths_in_C_rise_and_agree_with_cold_fits(model, data):
    X, y = data
    X = X[::2] if len(X) > 200 else X
    y = y[::2] if len(y) > 200 else y
    path = margin_path(model, X, y, n_alphas=3)
    assert (np.diff(path.Cs) > 0).all()
    for index, C in enumerate(path.Cs):
        cold, warm = clone(model).set_params(C=C).fit(X, y), path.model(index)
        assert warm.C == C
        assert warm.coef_.shape == cold.coef_.shape
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-7)
        np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-2)
    with pytest.raises(AttributeError, match="path in C"):
        _ = path.alphas


def test_a_path_of_sparse_multiclass_machines_starts_at_critical_C():
    X, y = load_wine(return_X_y=True)
    model = MulticlassSVC(standardize=True)
    path = margin_path(model, X, y, n_alphas=2, eps=0.5)
    start = critical_C(model, X, y)
    np.testing.assert_allclose(path.Cs, [start, 2 * start], rtol=1e-6)
    assert path.n_nonzero[1] > 0


def test_given_Cs_are_fitted_in_their_order_and_of_the_other_kind_refused():
    X, y = load_breast_cancer(return_X_y=True)
    path = margin_path(SVC(standardize=True), X, y, Cs=[0.1, 0.001, 0.01])
    np.testing.assert_array_equal(path.Cs, [0.1, 0.001, 0.01])
    assert np.linalg.norm(path.coefs, axis=2)[:, 0].argsort().tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match="path is one in C"):
        margin_path(SVC(), X, y, alphas=[0.1])
    with pytest.raises(ValueError, match="Cs must be"):
        margin_path(SVC(), X, y, Cs=[0.0])
    with pytest.raises(TypeError, match="linear"):
        margin_path(SVC(kernel="rbf"), X, y)


def test_a_path_ends_where_the_loss_is_explained():
    X, y = load_breast_cancer(return_X_y=True)
    model = SparseLogisticRegression(standardize=True, l1_ratio=1.0)
    whole = margin_path(model, X, y, n_alphas=12)
    short = margin_path(model, X, y, n_alphas=12, stop_at=0.5)
    np.testing.assert_array_equal(short.alphas, whole.alphas[: len(short)])
    probability = [whole.model(i).predict_proba(X) for i in range(12)]
    null = log_loss(y, np.tile(np.bincount(y) / y.size, (y.size, 1)))
    explained = np.array([1 - log_loss(y, p) / null for p in probability])
    assert len(short) == 1 + np.argmax(explained >= 0.5)


def test_a_path_ends_where_the_loss_no_longer_falls():
    X, y = load_breast_cancer(return_X_y=True)
    model = SparseLogisticRegression(standardize=True, l1_ratio=1.0, tol=1e-8)
    falling = alpha_max(model, X[:, :1], y) * np.geomspace(1.0, 1e-9, 60)
    path = margin_path(model, X[:, :1], y, alphas=falling, stop_at=1.0)
    assert path.ended == "flat"
    loss = [log_loss(y, path.model(i).predict_proba(X[:, :1])) for i in range(len(path))]
    explained = 1 - np.array(loss) / loss[0]
    assert explained[-1] - explained[-2] < 1e-5 * explained[-1]  # neighbours: a factor of 1.42
    assert explained[-3] - explained[-4] > 1e-5 * explained[-1]
    whole = margin_path(model, X[:, :1], y, alphas=falling)
    assert len(whole) == 60
    assert whole.ended == "complete"


@pytest.mark.parametrize("model", [SparseLogisticRegression, HuberizedSVC, ElasticNetSVC])
def test_neither_dense_grids_nor_null_models_are_flat(model):
    X, y = make_classification(60, 200, n_informative=8, random_state=0)
    estimator = model(l1_ratio=0.9)
    start = alpha_max(estimator, X, y)
    coarse = margin_path(estimator, X, y, alphas=start * np.geomspace(1, 0.2, 20), stop_at=0.3)
    assert coarse.ended == "explained"
    dense = start * np.geomspace(1, 0.2, 400)
    path = margin_path(estimator, X, y, alphas=dense, stop_at=0.3)
    assert path.ended == "explained"
    assert path.alphas[-1] <= 1.1 * coarse.alphas[-2]
    empty = np.r_[start * np.linspace(3, 1.01, 12), coarse.alphas]
    path = margin_path(estimator, X, y, alphas=empty, stop_at=0.3)
    assert path.ended == "explained"
    assert path.alphas[-1] == coarse.alphas[-1]


def test_an_interruption_after_the_last_strength_loses_nothing(monkeypatch):
    def computed(*given):
        path = compute_path(*given)
        signal.raise_signal(signal.SIGINT)
        return path

    monkeypatch.setattr("proxmargin.models.paths.compute.compute_path", computed)
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="interrupted: nothing is missing, as it was complete"):
        path = margin_path(HuberizedSVC(standardize=True), X, y, alphas=[1.0, 0.1])
    assert path.ended == "complete"
    assert len(path) == 2


def test_an_interrupted_path_keeps_the_strengths_that_are_complete():
    X, y = load_breast_cancer(return_X_y=True)
    begun = []

    def press_ctrl_c(report):
        begun.append(report.n_iter == 0)
        if sum(begun) == 4:
            signal.raise_signal(signal.SIGINT)

    model = HuberizedSVC(standardize=True, callbacks=[press_ctrl_c])
    alphas = [0.01, 1.0, 0.1, 0.001, 0.0001]
    with pytest.warns(UserWarning, match="interrupted: it has 3 of 5"):
        path = margin_path(model, X, y, alphas=alphas)
    np.testing.assert_array_equal(path.alphas, [0.01, 1.0, 0.1])
    assert all(certificate.converged for certificate in path.certificates)
    begun.clear()
    begun.extend([True] * 3)
    with pytest.raises(KeyboardInterrupt):
        margin_path(model, X, y, alphas=alphas)


def test_a_path_says_what_it_is_in_one_line():
    X, y = load_breast_cancer(return_X_y=True)
    text = repr(margin_path(HuberizedSVC(standardize=True), X, y, n_alphas=3))
    assert text.startswith("<Path of HuberizedSVC: 3 alphas from 1.")
    assert text.endswith("features>")
    assert "\n" not in text


def test_a_path_that_takes_long_says_how_many_strengths_are_done(capsys, monkeypatch):
    monkeypatch.setattr("proxmargin.runtime.progress.SHOW_AFTER", 0.0)
    X, y = load_breast_cancer(return_X_y=True)
    margin_path(HuberizedSVC(standardize=True, verbose=1), X, y, n_alphas=3)
    assert "HuberizedSVC path: strengths: 3 of 3 done" in capsys.readouterr().err


@pytest.mark.parametrize("model", [SVC(tol=1e-9), L2SVC(tol=1e-9), LogisticRegression(tol=1e-9)])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_a_path_in_C_are_whole(model, wide, classes, rng, tmp_path):
    X, y = rng.standard_normal((30, 60 if wide else 4)), np.arange(30) % classes
    weights = np.where(np.arange(30) % 7 == 3, 0.0, 1.0)
    path = margin_path(model, X, y, Cs=[0.1, 0.01], sample_weight=weights)
    for index in range(2):
        one = path.model(index)
        alone = clone(one).fit(X, y, weights)
        assert set(vars(alone)) == set(vars(one))
        np.testing.assert_allclose(one.dual_coef_ @ X[one.support_], one.coef_, atol=1e-4)
        assert weights[one.support_].all()
        save_model(one, tmp_path / "model.pmz")
        loaded = load_model(tmp_path / "model.pmz")
        np.testing.assert_array_equal(loaded.dual_coef_, one.dual_coef_)


@pytest.mark.parametrize(
    "foreign",
    [svm.LinearSVC(), svm.NuSVC(), SGDClassifier(), make_pipeline(SVC()), HuberizedSVCCV(), None],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("function", [margin_path, alpha_max, alpha_grid, critical_C])
def test_estimators_without_a_path_here_are_refused_in_a_sentence(function, foreign) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=f"need.* an estimator with .*{type(foreign).__name__}"):
        function(foreign, X, y)


def test_a_class_in_place_of_an_estimator_is_refused() -> None:
    with pytest.raises(TypeError, match=r"HuberizedSVC is a class: HuberizedSVC\(\) is an"):
        margin_path(HuberizedSVC, *load_iris(return_X_y=True))
