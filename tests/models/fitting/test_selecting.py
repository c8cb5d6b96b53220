"""Sparse classifiers select the features that they use."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.pipeline import make_pipeline

from proxmargin import (
    SVC,
    ElasticNetSVC,
    ElasticNetSVCCV,
    HuberizedSVC,
    HuberizedSVCCV,
    MarginClassifier,
    MulticlassSVC,
    MulticlassSVCCV,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SquaredHingeSVC,
    SquaredHingeSVCCV,
    StabilitySelection,
    open_dataset,
)
from proxmargin.penalties import ElasticNet

SPARSE = [
    HuberizedSVC(alpha=0.02, l1_ratio=0.9),
    ElasticNetSVC(alpha=0.05, l1_ratio=1.0),
    SquaredHingeSVC(alpha=0.2, l1_ratio=0.5),
    SparseLogisticRegression(alpha=0.02, l1_ratio=1.0),
    MulticlassSVC(C=0.05),
    HuberizedSVCCV(alphas=[0.1, 0.05, 0.02], cv=3),
    ElasticNetSVCCV(alphas=[0.2, 0.1, 0.05], cv=3),
    SquaredHingeSVCCV(alphas=[0.4, 0.2], l1_ratios=(0.5, 1.0), cv=3),
    SparseLogisticRegressionCV(alphas=[0.1, 0.05, 0.02], cv=3),
    MulticlassSVCCV(Cs=[0.05, 0.1], cv=3),
]
# scikit-learn cannot know that these have zeros: they are selectors themselves
OWN = [
    MarginClassifier(penalty=ElasticNet(0.05, 0.001)),
    MulticlassSVC("group_l2", groups="features", C=0.05),
    MulticlassSVC("group_linf", groups="features", C=0.05),
    MulticlassSVC("elasticnet", C=0.05),
]


def name(model) -> str:
    return f"{type(model).__name__}-{getattr(model, 'penalty', '')}"[:40]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 9))
    y = (X @ [3, 1, 0.5, 0, 0, 0, 0, 0, 0] + rng.normal(size=120) > 0).astype(int)
    return X, y


@pytest.fixture(scope="module")
def several(data):
    X, y = data
    return X, y + (X[:, 3] > 0.5)


@pytest.mark.filterwarnings("ignore:the chosen")
@pytest.mark.parametrize("model", SPARSE, ids=name)
@pytest.mark.parametrize("given", ["data", "several"])
def test_select_from_model_keeps_the_coefficients_that_are_not_zero(model, given, request) -> None:
    X, y = request.getfixturevalue(given)
    selector = SelectFromModel(model).fit(X, y)
    used = np.any(selector.estimator_.coef_ != 0, axis=0)
    assert 0 < used.sum() < 9
    np.testing.assert_array_equal(selector.get_support(), used)
    assert selector.threshold_ == 1e-5  # of the estimator that was not fitted, too
    np.testing.assert_array_equal(selector.estimator_.get_support(), used)


@pytest.mark.filterwarnings("ignore:the chosen")
@pytest.mark.parametrize("model", [*SPARSE, *OWN], ids=name)
def test_a_sparse_classifier_selects_what_it_uses_in_any_unit(model, several) -> None:
    X, y = several
    shown = clone(model).set_params(standardize=True).fit(X * 1e9, y)
    used = np.flatnonzero(np.any(shown.coef_ != 0, axis=0))
    assert 0 < used.size < 9
    assert np.abs(shown.coef_).max() < 1e-5
    np.testing.assert_array_equal(shown.get_support(indices=True), used)
    np.testing.assert_array_equal(shown.transform(X), X[:, used])
    assert list(shown.get_feature_names_out()) == [f"x{k}" for k in used]
    every = SelectFromModel(shown, prefit=True, threshold=np.nextafter(0, 1))
    np.testing.assert_array_equal(every.transform(X), X[:, used])


@pytest.mark.parametrize("kind", [HuberizedSVC, SparseLogisticRegression, MulticlassSVC])
def test_an_empty_model_selects_nothing_and_says_so(kind, data) -> None:
    X, y = data
    model = kind(**{"C": 1e-6} if kind is MulticlassSVC else {"alpha": 100.0}).fit(X, y)
    for selector in (model, SelectFromModel(model, prefit=True).fit(X, y)):
        with pytest.warns(UserWarning, match="No features were selected"):
            assert selector.transform(X).shape == (120, 0)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5])
def test_a_ridge_is_selected_from_as_ridges_of_scikit_learn(l1_ratio, data) -> None:
    X, y = data
    selector = SelectFromModel(SparseLogisticRegression(l1_ratio=l1_ratio)).fit(X, y)
    sizes = np.abs(selector.estimator_.coef_[0])
    expected = sizes >= sizes.mean() if l1_ratio == 0 else sizes > 0
    np.testing.assert_array_equal(selector.get_support(), expected)
    assert selector.estimator_.penalty == ("l1" if l1_ratio else "l2")


def test_selectors_that_fit_again_take_sparse_classifiers(data) -> None:
    X, y = data
    model = SparseLogisticRegression(alpha=0.02, l1_ratio=1.0)
    used = model.fit(X, y).get_support()
    chosen = RFE(model, n_features_to_select=int(used.sum())).fit(X, y)
    np.testing.assert_array_equal(chosen.get_support(), used)
    for selector in (RFECV(model, cv=3), SequentialFeatureSelector(model, cv=3, tol=0.01)):
        assert 1 <= selector.fit(X, y).get_support().sum() < 9
    stable = StabilitySelection(model, n_pairs=5, threshold=0.9, q=3, random_state=0)
    assert make_pipeline(stable, model).fit(X, y).score(X, y) > 0.8


def test_a_sparse_classifier_is_a_step_of_a_pipeline(data) -> None:
    X, y = data
    model = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0)
    pipeline = make_pipeline(model, SVC(kernel="rbf")).fit(X, y)
    kept = clone(model).fit(X, y).get_support()
    assert pipeline[-1].n_features_in_ == kept.sum()
    expected = SVC(kernel="rbf").fit(X[:, kept], y).decision_function(X[:, kept])
    np.testing.assert_array_equal(pipeline.decision_function(X), expected)


def test_frames_and_sparse_matrices_keep_their_kind(data) -> None:
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    model = HuberizedSVC(alpha=0.05).set_output(transform="pandas").fit(frame, y)
    pd.testing.assert_frame_equal(model.transform(frame), frame.loc[:, model.get_support()])
    matrix = HuberizedSVC(alpha=0.05).fit(sparse.csr_matrix(X), y).transform(sparse.csr_matrix(X))
    np.testing.assert_array_equal(matrix.toarray(), X[:, model.get_support()])


def test_data_in_passes_are_refused_with_what_to_read_instead(data, tmp_path) -> None:
    X, y = data
    pd.DataFrame(X).rename(columns=str).assign(y=y).to_parquet(tmp_path / "data.parquet")
    rows = open_dataset(tmp_path / "data.parquet", target="y")
    model = HuberizedSVC(alpha=0.05).fit(rows)
    with pytest.raises(ValueError, match=r"get_support\(indices=True\) are the columns"):
        model.transform(rows)


def test_a_search_without_a_model_of_all_rows_says_so(data) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        search = HuberizedSVCCV(alphas=[0.1, 0.05], cv=3, refit=False).fit(*data)
    with pytest.raises(TypeError, match="without refit=True"):
        search.get_support()
