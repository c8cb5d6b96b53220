"""Coefficients as a table: units, ranks, names, and what has none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import proxmargin
from proxmargin import (
    DWD,
    SVC,
    HuberizedSVC,
    HuberizedSVCCV,
    LogisticRegression,
    MulticlassSVC,
    SparseLogisticRegression,
    load_model,
    margin_path,
    save_model,
)
from proxmargin.models.fitting.registry import CROSS_VALIDATED, model_names

CANCER = load_breast_cancer(as_frame=True)
IRIS = load_iris()


@pytest.mark.parametrize("name", [*model_names(), *CROSS_VALIDATED])
def test_every_linear_model_has_the_method(name):
    assert callable(getattr(proxmargin, name).coefficients)


def test_per_deviation_is_the_coefficient_of_scaled_features():
    X, y = CANCER.data, CANCER.target
    table = HuberizedSVC(alpha=0.05, standardize=True, tol=1e-9).fit(X, y).coefficients()
    scaled = HuberizedSVC(alpha=0.05, tol=1e-9).fit(StandardScaler().fit_transform(X), y)
    expected = pd.Series(scaled.coef_[0], X.columns)
    np.testing.assert_allclose(
        table["coefficient_per_sd"], expected[table["feature"]], rtol=1e-3, atol=1e-5
    )
    assert list(table) == ["feature", "class", "coefficient", "coefficient_per_sd", "rank"]
    assert (table["class"] == 1).all()
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert table["coefficient_per_sd"].abs().is_monotonic_decreasing
    np.testing.assert_allclose(
        table["coefficient"] * X.std(ddof=0)[table["feature"]].to_numpy(),
        table["coefficient_per_sd"],
    )


def test_each_class_has_ranks_of_its_own():
    model = SparseLogisticRegression(alpha=0.01, standardize=True).fit(
        IRIS.data, IRIS.target_names[IRIS.target]
    )
    table = model.coefficients(zeros=True)
    assert table["class"].tolist() == np.repeat(IRIS.target_names, 4).tolist()
    assert table["rank"].tolist() == [1, 2, 3, 4] * 3
    for row, name in enumerate(model.classes_):
        own = table[table["class"] == name].set_index("feature")["coefficient"]
        np.testing.assert_array_equal(own.sort_index(), model.coef_[row])
    assert len(model.coefficients()) == np.count_nonzero(model.coef_) < 12


def test_without_standardising_the_data_are_asked_for():
    X, y = CANCER.data.to_numpy(), CANCER.target.to_numpy()
    model = SVC(C=1e-4).fit(X, y)
    plain = model.coefficients()
    assert plain["coefficient_per_sd"].isna().all()
    assert plain["coefficient"].abs().is_monotonic_decreasing
    told = model.coefficients(X).set_index("feature").sort_index()
    np.testing.assert_allclose(told["coefficient_per_sd"], model.coef_[0] * X.std(axis=0))
    sparse = model.coefficients(csr_array(X)).set_index("feature").sort_index()
    np.testing.assert_allclose(sparse["coefficient_per_sd"], told["coefficient_per_sd"])
    twice = model.coefficients(np.vstack([X, X[:9]])).set_index("feature").sort_index()
    weights = np.where(np.arange(len(y)) < 9, 2.0, 1.0)
    weighted = model.coefficients(X, sample_weight=weights).set_index("feature").sort_index()
    np.testing.assert_allclose(weighted["coefficient_per_sd"], twice["coefficient_per_sd"])


def test_a_constant_feature_has_no_weight():
    X = np.column_stack([CANCER.data.to_numpy()[:, :2], np.full(569, 3.0)])
    for intercept in (True, False):
        model = SVC(standardize=True, fit_intercept=intercept).fit(X, CANCER.target)
        table = model.coefficients(zeros=True).set_index("feature")
        assert np.isfinite(table["coefficient_per_sd"]).all()
        assert model.coefficients(X, zeros=True).set_index("feature")["coefficient_per_sd"][2] == 0


def test_deviations_are_forgotten_by_a_fit_that_does_not_standardise():
    X, y = IRIS.data[:100], IRIS.target[:100]
    model = DWD(standardize=True).fit(X, y)
    assert model.coefficients()["coefficient_per_sd"].notna().all()
    model.set_params(standardize=False).fit(X, y)
    assert model.coefficients()["coefficient_per_sd"].isna().all()


def test_paths_and_choices_have_them_too():
    X, y = CANCER.data, CANCER.target
    path = margin_path(HuberizedSVC(standardize=True), X, y, n_alphas=4)
    own = HuberizedSVC(alpha=path.alphas[2], standardize=True).fit(X, y).coefficients()
    along = path.model(2).coefficients()
    assert along["feature"].tolist()[:3] == own["feature"].tolist()[:3]
    np.testing.assert_allclose(
        along["coefficient_per_sd"][:3], own["coefficient_per_sd"][:3], rtol=1e-2
    )
    search = HuberizedSVCCV(alphas=4, cv=2, standardize=True).fit(X, y)
    pd.testing.assert_frame_equal(search.coefficients(), search.best_estimator_.coefficients())


@pytest.mark.parametrize(
    "model",
    [
        HuberizedSVC(standardize=True),
        LogisticRegression(standardize=True),
        MulticlassSVC(standardize=True),
        HuberizedSVC(),
    ],
)
def test_a_model_file_keeps_the_table(model, tmp_path):
    model.fit(CANCER.data, CANCER.target)
    save_model(model, tmp_path / "m.pmz")
    pd.testing.assert_frame_equal(
        load_model(tmp_path / "m.pmz").coefficients(), model.coefficients()
    )


def test_models_without_coefficients_say_why():
    X, y = IRIS.data[:100], IRIS.target[:100]
    with pytest.raises(TypeError, match="SVC with kernel='rbf' has no coefficients of features"):
        SVC(kernel="rbf", standardize=True).fit(X, y).coefficients()
    with pytest.raises(NotFittedError):
        SVC().coefficients()
    with pytest.raises(ValueError, match="features"):
        SVC().fit(X, y).coefficients(X[:, :2])
