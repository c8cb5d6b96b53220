"""The estimators are scikit-learn estimators, with no check excused."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from joblib import parallel_backend
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    DDAGClassifier,
    ElasticNetSVC,
    HuberizedSVC,
    LogisticRegression,
    MarginClassifier,
    MarginFDA,
    MarginMPM,
    MulticlassSVC,
    NuSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.losses import Logistic, SquaredHinge
from proxmargin.optimality.certificates.certificate import CertificateList
from proxmargin.penalties import Ball, ElasticNet, Ridge

# asks of sparse matrices what check_estimator_sparse_array asks of sparse arrays
REPEATED = "check_estimator_sparse_matrix"
EVERY = [HuberizedSVC, ElasticNetSVC, SquaredHingeSVC, SparseLogisticRegression, MarginClassifier]


def checks_of(estimators: list[Any]) -> pytest.MarkDecorator:
    """`parametrize_with_checks`, of which the repeated one is slow."""
    every = parametrize_with_checks(estimators)
    names, pairs = every.args
    cases = [
        pytest.param(*pair, marks=pytest.mark.slow if _name(pair[1]) == REPEATED else ())
        for pair in pairs
    ]
    return pytest.mark.parametrize(names, cases, ids=every.kwargs["ids"])


def _name(check: Any) -> str:
    return getattr(check, "func", check).__name__


@pytest.mark.sampled(3)
@checks_of(
    [
        HuberizedSVC(),
        ElasticNetSVC(),
        SquaredHingeSVC(),
        SparseLogisticRegression(),
        MarginClassifier(),
        SVC(),
        L2SVC(),
        LogisticRegression(),
        NuSVC(),
        DWD(),
        MarginFDA(),
        MarginMPM(),
        # gamma='scale' would see repeated rows, and not weights
        L2SVC(kernel="rbf", gamma=0.3),
        DDAGClassifier(SVC()),
        MulticlassSVC(),
    ]
)
def test_scikit_learn_check(estimator, check) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        HuberizedSVC(multi_class="ovr"),
        HuberizedSVC(standardize=True),
        SparseLogisticRegression(multi_class="ovr"),
        MarginClassifier(loss=SquaredHinge(), penalty=ElasticNet(0.01, 0.01)),
        MarginClassifier(loss=Logistic(), penalty=Ridge(0.01), multi_class="ovr"),
        MarginClassifier(loss=Logistic(), penalty=Ball(2.0, 1.0), multi_class="ovr"),
        MulticlassSVC(penalty="group_l2", groups="features", loss="squared_hinge"),
        # weights and repeated rows are compared to 1e-7
        MulticlassSVC(penalty="l2", loss="lee", tol=1e-13),
    ]
)
def test_scikit_learn_check_of_other_parameters(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize("make", EVERY)
def test_data_frames_arrays_and_sparse_matrices_give_the_same_model(make) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X / X.std()
    expected = make(tol=1e-9).fit(X.to_numpy(), y.to_numpy())
    forms = {
        "pandas": X,
        "polars": pl.DataFrame({name: X[name].to_numpy() for name in X}),
        "fortran": np.asfortranarray(X.to_numpy()),
        "csr": sparse.csr_matrix(X.to_numpy()),
        "csc array": sparse.csc_array(X.to_numpy()),
        "coo": sparse.coo_matrix(X.to_numpy()),
        "list": X.to_numpy().tolist(),
    }
    for name, form in forms.items():
        model = make(tol=1e-9).fit(form, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4, err_msg=name)
        assert np.mean(model.predict(form) == expected.predict(X.to_numpy())) == 1.0
    named = make().fit(X, y)
    assert list(named.feature_names_in_) == list(X.columns)


@pytest.mark.parametrize("make", EVERY)
def test_int64_indices_and_float32_data_are_taken_as_they_are(make) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    model = make().fit(wide, y)
    assert model.certificate_.converged
    single = make().fit(X.astype(np.float32), y)
    assert single.certificate_.converged
    np.testing.assert_allclose(single.coef_, model.coef_, atol=2e-3)


def test_string_labels_come_back_and_the_larger_one_is_positive() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    model = HuberizedSVC(standardize=True).fit(X, names)
    assert list(model.classes_) == ["benign", "malignant"]
    positive = model.decision_function(X) > 0
    np.testing.assert_array_equal(model.predict(X), np.where(positive, "malignant", "benign"))
    assert model.score(X, names) > 0.95


def test_scores_are_the_stated_formula_and_more_classes_take_the_largest() -> None:
    X, y = load_wine(return_X_y=True)
    for multi_class in ("joint", "ovr"):
        model = HuberizedSVC(standardize=True, multi_class=multi_class).fit(X, y)
        assert model.coef_.shape == (3, X.shape[1])
        scores = X @ model.coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-10)
        np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
        assert model.score(X, y) > 0.97


def test_one_vs_rest_certifies_every_class() -> None:
    X, y = load_wine(return_X_y=True)
    certificate = SquaredHingeSVC(standardize=True).fit(X, y).certificate_
    assert isinstance(certificate, CertificateList)
    assert len(certificate) == 3
    assert certificate.converged
    assert certificate.gap == pytest.approx(sum(c.gap for c in certificate))
    assert certificate.relative_gap == max(c.relative_gap for c in certificate)
    assert "worst of 3 class problems" in str(certificate)


def test_joint_coefficients_and_intercepts_sum_to_zero_over_the_classes() -> None:
    X, y = load_wine(return_X_y=True)
    model = HuberizedSVC(alpha=0.02).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-12)
    assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)


def test_balanced_class_weights_are_inverse_to_class_sizes() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    share = {k: y.size / (2 * np.sum(y == k)) for k in (0, 1)}
    balanced = HuberizedSVC(class_weight="balanced", tol=1e-9).fit(X, y)
    explicit = HuberizedSVC(class_weight=share, tol=1e-9).fit(X, y)
    weighted = HuberizedSVC(tol=1e-9).fit(X, y, sample_weight=[share[k] for k in y])
    np.testing.assert_allclose(balanced.coef_, explicit.coef_, atol=1e-7)
    np.testing.assert_allclose(balanced.coef_, weighted.coef_, atol=1e-7)


# processes that are started for a test take seconds to import what it needs
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_they_work_in_pipelines_searches_and_parallel_cross_validation(backend: str) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), HuberizedSVC())
    search = GridSearchCV(pipeline, {"huberizedsvc__alpha": [0.003, 0.03]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    alone = cross_val_score(pipeline, X, y, cv=3)
    with parallel_backend(backend):
        together = cross_val_score(pipeline, X, y, cv=3, n_jobs=2)
    np.testing.assert_array_equal(alone, together)


def test_a_custom_pair_of_parts_is_the_estimator_it_spells() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    parts = MarginClassifier(Logistic(), ElasticNet(0.02, 0.01), standardize=True).fit(X, y)
    named = SparseLogisticRegression(alpha=0.03, l1_ratio=2 / 3, standardize=True).fit(X, y)
    np.testing.assert_allclose(parts.coef_, named.coef_, atol=1e-10)
