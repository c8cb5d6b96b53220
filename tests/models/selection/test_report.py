"""The report has what can be computed for each feature by other means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.svm import SVC as ScikitSVC

from proxmargin import (
    SVC,
    HuberizedSVC,
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    StabilitySelection,
    feature_report,
)

pandas = pytest.importorskip("pandas")
LASSO = SparseLogisticRegression(alpha=0.05, l1_ratio=1.0, standardize=True)


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X[:200], y[:200]


def test_coefficients_areas_and_partners_are_those_of_the_data(data) -> None:
    X, y = data
    model = clone(LASSO).fit(X, y)
    report = feature_report(model, X, y, cv=None)
    used = np.flatnonzero(model.coef_[0])
    assert set(report["feature"]) == set(X.columns[used])
    assert set(report["class"]) == {1}
    assert (report["coef_per_sd"].abs().diff().dropna() <= 0).all()
    correlations = X.corr()
    for row in report.to_dict("records"):
        name, j = row["feature"], X.columns.get_loc(row["feature"])
        assert row["coef"] == model.coef_[0, j]
        assert row["coef_per_sd"] == pytest.approx(row["coef"] * X[name].std(ddof=0))
        assert row["sign"] == np.sign(row["coef"])
        assert row["auc"] == pytest.approx(roc_auc_score(y == 1, X[name]))
        near = correlations[name].drop(name)
        near = near[near.abs() >= 0.8].sort_values(key=np.abs, ascending=False)
        words = ", ".join(f"{other} ({value:.2f})" for other, value in near[:5].items())
        more = f" and {near.size - 5} more" if near.size > 5 else ""
        assert row["partners"] == words + more


def test_ranks_are_those_of_models_of_training_rows_alone(data) -> None:
    X, y = data
    model = clone(LASSO).fit(X, y)
    report = feature_report(model, X, y, cv=StratifiedKFold(3)).set_index("feature")
    scale, ranks = X.std(ddof=0).to_numpy(), []
    for train, _ in StratifiedKFold(3).split(X, y):
        sizes = np.abs(clone(LASSO).fit(X.iloc[train], y.iloc[train]).coef_[0]) * scale
        order = np.argsort(-sizes)
        ranks.append({X.columns[j]: place + 1 for place, j in enumerate(order) if sizes[j] > 0})
    for name, row in report.iterrows():
        own = [each[name] for each in ranks if name in each]
        assert row["folds"] == pytest.approx(len(own) / 3)
        assert np.isnan(row["rank"]) if not own else row["rank"] == pytest.approx(np.mean(own))


def test_stable_features_outside_of_the_model_are_listed_too(data) -> None:
    X, y = data
    model = clone(LASSO).set_params(alpha=0.3).fit(X, y)
    stable = StabilitySelection(LASSO, n_pairs=10, threshold=0.7, q=6, random_state=0).fit(X, y)
    report = feature_report(model, X, y, stability=stable, cv=None).set_index("feature")
    names = X.columns[stable.get_support()]
    assert set(names) <= set(report.index)
    absent = report.loc[report["coef"] == 0]
    assert len(absent) > 0
    assert absent["stable"].all()
    for name, row in report.iterrows():
        assert row["frequency"] == stable.max_frequencies_[X.columns.get_loc(name)]


def test_each_class_has_its_own_rows_and_cross_validated_models_are_taken(tmp_path) -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = np.array(["red", "white", "green"])[y]
    model = HuberizedSVC(alpha=0.1, l1_ratio=1.0, standardize=True).fit(X, y)
    report = feature_report(model, X, y, cv=3)
    assert len(report) == np.count_nonzero(model.coef_)
    assert set(report["class"]) == {"red", "white", "green"}
    path = tmp_path / "report.csv"
    report.to_csv(path, index=False)
    assert list(pandas.read_csv(path)["feature"]) == list(report["feature"])
    two = y != "green"
    chosen = SparseLogisticRegressionCV(alphas=[0.1, 0.05], cv=3, standardize=True)
    chosen.fit(X[two], y[two])
    assert len(feature_report(chosen, X[two], y[two], cv=2)) == np.count_nonzero(chosen.coef_)


def test_weights_and_sparse_data_are_taken(data) -> None:
    X, y = data
    weights = np.ones(200)
    weights[150:] = 0.0
    model = clone(LASSO).fit(X.to_numpy(), y, weights)
    few = feature_report(model, X.to_numpy()[:150], y[:150], cv=2)
    whole = feature_report(model, X.to_numpy(), y, sample_weight=weights, cv=2)
    stored = feature_report(model, sparse.csr_array(X.to_numpy()[:150]), y[:150], cv=2)
    for other in (whole, stored):
        assert list(other["feature"]) == list(few["feature"])
        for name in ("coef_per_sd", "auc", "rank", "folds"):
            np.testing.assert_allclose(other[name], few[name])


def test_what_has_no_report_is_refused_in_words(data) -> None:
    X, y = data
    model = clone(LASSO).fit(X, y)
    with pytest.raises(NotFittedError):
        feature_report(clone(LASSO), X, y)
    with pytest.raises(TypeError, match="SVC has no coefficients"):
        feature_report(SVC(kernel="rbf").fit(X, y), X, y)
    with pytest.raises(ValueError, match=r"y must be one label a row, \(200,\)"):
        feature_report(model, X, y[:10])
    with pytest.raises(ValueError, match="the model has no such class"):
        feature_report(model, X, np.full(200, 7))
    with pytest.raises(ValueError, match="partners must be"):
        feature_report(model, X, y, partners=0.0)
    stable = StabilitySelection(LASSO, n_pairs=5, q=3, random_state=0).fit(X.iloc[:, :9], y)
    with pytest.raises(ValueError, match="stability was fitted to 9 features"):
        feature_report(model, X, y, stability=stable)
    late = np.argsort(y.to_numpy(), kind="stable")
    halves = [(late[:20], late[20:])]
    with pytest.raises(ValueError, match="training rows of a fold have no sample of class 1"):
        feature_report(model, X, y, cv=halves)


def test_a_stable_feature_that_is_not_used_stands_by_the_class_that_it_tells_best() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.standard_normal((60, 4))
    X[:, 3] += 2.0 * (y == 2)
    model = SparseLogisticRegression(alpha=10.0, multi_class="ovr").fit(X, y)
    assert not model.coef_[:, 3].any()
    stable = StabilitySelection(
        SparseLogisticRegression(multi_class="ovr"), n_pairs=10, threshold=0.9, q=1, random_state=0
    ).fit(X, y)
    assert stable.get_support()[3]
    frame = feature_report(model, X, y, stability=stable)
    row = frame[frame["feature"] == 3].iloc[0]
    assert row["class"] == 2
    assert row["auc"] > 0.8


def test_the_selection_is_matched_by_name_or_refused(data) -> None:
    X, y = data
    stable = StabilitySelection(LASSO, n_pairs=10, q=3, threshold=0.7, random_state=0)
    model = clone(LASSO).fit(X, y)
    turned = clone(stable).fit(X[X.columns[::-1]], y)
    report = feature_report(model, X, y, stability=turned, cv=None).set_index("feature")
    expected = turned.to_frame().set_index("feature").loc[report.index]
    assert report["frequency"].tolist() == expected["frequency"].tolist()
    assert report["stable"].tolist() == expected["stable"].tolist()
    assert report["stable"].any()
    renamed = clone(stable).fit(X.rename(columns={"mean area": "size"}), y)
    with pytest.raises(ValueError, match=r"stability was fitted to other features.*'mean area'"):
        feature_report(model, X, y, stability=renamed)
    with pytest.raises(ValueError, match="stability was fitted to the classes"):
        feature_report(model, X, y, stability=clone(stable).fit(X, y + 1))
    with pytest.raises(TypeError, match="stability must be a fitted StabilitySelection, got str"):
        feature_report(model, X, y, stability="x")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classifiers_of_scikit_learn_are_reported(data) -> None:
    X, y = data
    model = LogisticRegression(max_iter=300).fit(X, y)
    report = feature_report(model, X, y, cv=StratifiedKFold(3)).set_index("feature")
    scale, ranks = X.std(ddof=0).to_numpy(), []
    for train, _ in StratifiedKFold(3).split(X, y):
        coef = clone(model).fit(X.to_numpy()[train], y.iloc[train]).coef_[0]
        ranks.append(rankdata(-np.abs(coef * scale)))
    np.testing.assert_allclose(report["rank"].loc[X.columns], np.mean(ranks, axis=0))
    wine, classes = load_wine(return_X_y=True)
    pairs = ScikitSVC(kernel="linear").fit(wine, classes)
    with pytest.raises(TypeError, match="pairs of classes"):
        feature_report(pairs, wine, classes)


def test_folds_of_ranks_keep_groups_whole(data) -> None:
    X, y = data
    model, groups = clone(LASSO).fit(X, y), np.arange(200) // 5
    found = feature_report(model, X, y, cv=3, groups=groups)
    splitter = StratifiedGroupKFold(3, shuffle=True, random_state=0)
    folds = list(splitter.split(X, y, groups))
    pandas.testing.assert_frame_equal(found, feature_report(model, X, y, cv=folds))
    with pytest.raises(ValueError, match="groups must be one a row"):
        feature_report(model, X, y, groups=groups[:3])
