"""The pictures of stability show the frequencies and the threshold."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError

from proxmargin import (
    MulticlassSVC,
    SparseLogisticRegression,
    StabilityDisplay,
    StabilitySelection,
)

matplotlib = pytest.importorskip("matplotlib")
from proxmargin.studies.displays.axes import figure  # noqa: E402

LASSO = SparseLogisticRegression(l1_ratio=1.0, standardize=True)


@pytest.fixture(scope="module")
def data():
    return load_breast_cancer(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def model(data):
    return StabilitySelection(LASSO, n_pairs=10, threshold=0.7, q=5, random_state=0).fit(*data)


def test_paths_have_a_line_for_each_selected_feature_and_name_the_stable(model):
    display = StabilityDisplay.from_estimator(model, ax=figure().subplots())
    selected = model.frequencies_[model.max_frequencies_ > 0]
    drawn = sorted(tuple(line.get_ydata()) for line in display.lines_)
    assert drawn == sorted(map(tuple, selected))
    names = {text.get_text() for text in display.ax_.texts}
    assert names == set(model.feature_names_in_[model.get_support()])
    levels = [line.get_ydata()[0] for line in display.ax_.lines if line.get_linestyle() == "--"]
    assert levels == [model.threshold_]
    (label,) = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert label.startswith("threshold 0.7: ")
    few = StabilityDisplay(model).plot(figure().subplots(), top=1)
    assert len(few.ax_.texts) == 1
    assert len(few.lines_) == len(display.lines_)


def test_bars_are_the_largest_frequencies(model):
    display = StabilityDisplay.from_estimator(model, ax=figure().subplots(), kind="bars", top=7)
    heights = [bar.get_width() for bar in display.bars_]
    assert heights == sorted(model.max_frequencies_, reverse=True)[:7]
    colours = [bar.get_facecolor() for bar in display.bars_]
    stable = sum(height >= 0.7 for height in heights)
    assert len(set(colours[:stable])) == 1
    assert set(colours[:stable]).isdisjoint(colours[stable:])
    legend = display.ax_.get_legend().get_texts()[0].get_text()
    assert legend == f"threshold 0.7: at most {model.pfer_:.2g} false expected"


def test_a_cluster_is_drawn_once_with_the_number_of_its_others(data):
    model = StabilitySelection(
        LASSO, n_pairs=10, threshold=0.9, q=4, cluster=0.9, random_state=0
    ).fit(*data)
    display = StabilityDisplay.from_estimator(model, ax=figure().subplots(), kind="bars", top=3)
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(labels) == 3
    assert any(" + " in label for label in labels)
    assert display.figure_ is display.ax_.figure


def test_strengths_of_a_weight_grow_to_the_right_and_one_is_a_mark(data):
    X, y = data[0].to_numpy()[:, :6], data[1]
    machine = MulticlassSVC(penalty="l1", loss="squared_hinge", standardize=True)
    model = StabilitySelection(machine, n_pairs=2, threshold=0.9, q=2, alphas=2, random_state=0)
    display = StabilityDisplay.from_estimator(model.fit(X, y), ax=figure().subplots())
    assert not display.ax_.xaxis_inverted()
    assert display.ax_.get_xlabel().startswith("C ")
    model = StabilitySelection(LASSO, n_pairs=2, threshold=0.9, q=2, alphas=[0.1], random_state=0)
    single = StabilityDisplay.from_estimator(model.fit(X, y), ax=figure().subplots())
    assert {line.get_marker() for line in single.lines_} == {"o"}


def test_unusable_requests_are_refused_in_words(model):
    with pytest.raises(NotFittedError):
        StabilityDisplay.from_estimator(StabilitySelection(LASSO), ax=figure().subplots())
    with pytest.raises(ValueError, match="kind must be one of 'paths', 'bars'"):
        StabilityDisplay(model).plot(figure().subplots(), kind="pie")
    with pytest.raises(ValueError, match="top must be an integer >= 1"):
        StabilityDisplay(model).plot(figure().subplots(), kind="bars", top=0)
    assert np.isfinite(model.threshold_)
