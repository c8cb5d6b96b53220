"""The pictures show what they are made of."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError

from proxmargin import (
    CVDisplay,
    PathDisplay,
    SparseLogisticRegressionCV,
    SquaredHingeSVC,
    margin_path,
)

matplotlib = pytest.importorskip("matplotlib")
from proxmargin.studies.displays.axes import APART, apart, figure  # noqa: E402


@pytest.fixture(scope="module")
def model():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    chosen = SparseLogisticRegressionCV(alphas=8, l1_ratios=(1.0, 0.5), cv=3, standardize=True)
    return chosen.fit(X, y)


def test_a_picture_of_a_path_has_a_line_for_each_feature(model):
    display = PathDisplay.from_estimator(model, ax=figure().subplots(), n_names=3)
    path = model.path_
    assert len(display.lines_) == np.count_nonzero(path.coefs.any(axis=(0, 1)))
    scaled = path.coefs[:, 0] * path.scale
    drawn = {tuple(line.get_ydata()) for line in display.lines_}
    assert drawn == {tuple(column) for column in scaled.T if column.any()}
    names = [text.get_text() for text in display.ax_.texts]
    largest = np.argsort(-np.abs(scaled).max(axis=0))[:3]
    assert set(names) == set(model.feature_names_in_[largest])
    ends = path.alphas.max(), path.alphas.min()
    assert display.ax_.get_xlim() == pytest.approx(ends)
    assert display.ax_.get_title(loc="left") == "Coefficients of SparseLogisticRegression"
    assert display.figure_ is display.ax_.figure


def test_features_without_a_penalty_are_dashed_and_named(model):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    factors = np.where(np.isin(X.columns, ["mean radius", "worst area"]), 0.0, 1.0)
    free = SquaredHingeSVC(penalty_factor=factors, standardize=True)
    display = PathDisplay.from_estimator(free, X, y, n_alphas=4, n_names=3)
    dashed = [line for line in display.lines_ if line.get_linestyle() == "--"]
    assert len(dashed) == 2
    names = [text.get_text() for text in display.ax_.texts]
    assert len(names) == 5
    assert {"mean radius", "worst area"} < set(names)


def test_a_picture_of_more_classes_shows_their_norm_or_one_of_them():
    X, y = load_wine(return_X_y=True)
    path = margin_path(SquaredHingeSVC(), X / X.std(axis=0), y, alphas=[0.01, 0.1, 0.05])
    order = [1, 2, 0]
    norm = PathDisplay(path).plot(figure().subplots(), n_names=13)
    expected = np.linalg.norm(path.coefs[order], axis=1).T
    assert {tuple(line.get_ydata()) for line in norm.lines_} == set(map(tuple, expected))
    one = PathDisplay(path).plot(figure().subplots(), label=2)
    drawn = {tuple(line.get_ydata()) for line in one.lines_}
    assert drawn == {tuple(column) for column in path.coefs[order, 2].T if column.any()}


def test_a_picture_of_scores_marks_the_best_and_one_standard_error(model):
    display = CVDisplay.from_estimator(model, ax=figure().subplots())
    assert len(display.errorbars_) == 2
    means = model.cv_scores_.mean(axis=2)
    for row, bar in enumerate(display.errorbars_):
        np.testing.assert_array_equal(bar.lines[0].get_ydata(), means[row])
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"best: alpha={model.alpha_:.3g}" in labels
    assert any(label.startswith("one standard error: alpha=") for label in labels)


def test_a_picture_without_axes_is_one_of_pyplot(model):
    matplotlib.use("agg")
    from matplotlib import pyplot

    display = CVDisplay.from_estimator(model)
    assert pyplot.fignum_exists(display.figure_.number)
    pyplot.close(display.figure_)


def test_what_is_not_fitted_has_no_picture():
    with pytest.raises(NotFittedError):
        CVDisplay.from_estimator(SparseLogisticRegressionCV(), ax=figure().subplots())


def test_names_are_moved_apart_in_their_order():
    heights = np.array([0.5, 0.5, 0.51, 0.9])
    moved = apart(heights)
    assert np.all(np.diff(np.sort(moved)) >= APART - 1e-5)
    assert moved[2] > moved[0]
    assert moved[3] == 0.9


def test_a_class_of_two_is_drawn_and_an_unknown_one_is_refused(model):
    first, second = (PathDisplay(model.path_).plot(figure().subplots(), label=k) for k in (0, 1))
    for one, other in zip(first.lines_, second.lines_, strict=True):
        np.testing.assert_array_equal(one.get_ydata(), -np.asarray(other.get_ydata()))
    assert "class 0" in first.ax_.get_ylabel()
    wine = load_wine(return_X_y=True)
    for path in (model.path_, margin_path(SquaredHingeSVC(), *wine, alphas=[0.1])):
        with pytest.raises(ValueError, match=r"label must be one of the classes \[0, 1.*got 'zzz'"):
            PathDisplay(path).plot(figure().subplots(), label="zzz")


def test_a_model_without_a_penalty_has_no_place_on_a_logarithmic_axis():
    X, y = load_breast_cancer(return_X_y=True)
    X, estimator = X[:, :3], SquaredHingeSVC(standardize=True)
    ax = figure().subplots()
    display = PathDisplay.from_estimator(estimator, X, y, alphas=[0.0, 0.01, 0.1], ax=ax)
    assert all(len(line.get_xdata()) == 2 for line in display.lines_)
    assert display.ax_.get_xlim() == pytest.approx((0.1, 0.01))
    assert sorted(display.ax_.child_axes[0].get_xticks()) == [0.01, 0.1]
    low, high = display.ax_.get_ylim()
    ends = [(line.get_ydata()[-1] - low) / (high - low) for line in display.lines_]
    heights = [text.xy[1] for text in display.ax_.texts]
    np.testing.assert_array_equal(np.argsort(ends), np.argsort(heights))
    with pytest.raises(ValueError, match="alpha=0 has no place on a logarithmic axis"):
        PathDisplay.from_estimator(estimator, X, y, alphas=[0.0], ax=ax)


def test_unusable_requests_for_a_path_are_refused_in_words(model):
    with pytest.raises(ValueError, match="n_names must be an integer >= 0, got -1"):
        PathDisplay(model.path_).plot(figure().subplots(), n_names=-1)
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(SparseLogisticRegressionCV(), X, y, ax=figure().subplots())
    chosen = SparseLogisticRegressionCV(alphas=2, cv=2, refit=False).fit(X, y)
    with pytest.raises(ValueError, match="has no path of all rows: it was fitted with refit=False"):
        PathDisplay.from_estimator(chosen, ax=figure().subplots())


def test_counts_belong_to_the_chosen_ratio_and_say_so(model):
    display = CVDisplay.from_estimator(model, ax=figure().subplots())
    (top,) = display.ax_.child_axes
    assert top.get_xlabel() == f"features, l1_ratio={model.l1_ratio_:g}"
    counts = [text.get_text() for text in top.get_xticklabels()]
    assert counts == [str(count) for count in model.path_.n_nonzero]


def test_the_complete_folds_of_an_interrupted_search_are_drawn(model):
    stopped = copy(model)
    for name in ("best_index_", "path_", "l1_ratio_", "alpha_"):
        delattr(stopped, name)
    stopped.cv_scores_ = model.cv_scores_.copy()
    stopped.cv_scores_[1, 3:, 2] = np.nan
    display = CVDisplay.from_estimator(stopped, ax=figure().subplots())
    means = model.cv_scores_[:, :, :2].mean(axis=2)
    for row, bar in enumerate(display.errorbars_):
        np.testing.assert_array_equal(bar.lines[0].get_ydata(), means[row])
    assert "2 folds" in display.ax_.get_ylabel()
    assert stopped.cv_scores_.shape[2] == 3
    stopped.cv_scores_[1, 3:] = np.nan
    with pytest.raises(ValueError, match="no fold has all its scores"):
        CVDisplay.from_estimator(stopped, ax=figure().subplots())


def test_scores_without_a_penalty_are_not_drawn():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {"alphas": [0.1, 0.01, 0.0], "cv": 2, "standardize": True}
    model = SparseLogisticRegressionCV(**settings).fit(X[:, :3], y)
    display = CVDisplay.from_estimator(model, ax=figure().subplots())
    assert display.errorbars_[0].lines[0].get_xdata().tolist() == [0.1, 0.01]
    assert display.ax_.child_axes[0].get_xticks().tolist() == [0.1, 0.01]
    assert np.isfinite(display.ax_.get_xlim()).all()
