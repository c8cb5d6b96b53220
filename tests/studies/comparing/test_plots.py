"""The pictures of a comparison are those of its display."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import compare

pytest.importorskip("matplotlib")
from proxmargin.studies.displays.axes import figure


@pytest.fixture(scope="module")
def found():
    X, y = load_breast_cancer(return_X_y=True)
    return compare(X[::3], y[::3], models=["L2SVC", "DWD"], quick=True, progress=False)


@pytest.mark.parametrize(
    "kind", ["scores", "differences", "folds", "features", "seconds", "roc", "precision_recall"]
)
def test_every_picture_can_be_drawn_of_a_comparison(found, kind) -> None:
    display = getattr(found, f"plot_{kind}")(ax=figure().subplots(), top=2)
    assert sorted(display.labels_) == ["DWD", "L2SVC"]
    assert display.marks_


def test_a_picture_is_of_the_metric_asked_for(found) -> None:
    display = found.plot_scores(metric="log_loss", ax=figure().subplots())
    assert display.ax_.get_xlabel().startswith("log-loss (lower is better)")
    means = found.evidence("log_loss")
    best = display.marks_[0][0].get_xdata().min()
    assert best == pytest.approx(means.mean.min())


def test_the_classes_of_curves_are_known(found) -> None:
    with pytest.raises(ValueError, match="label must be one of '0', '1', got '7'"):
        found.plot_roc(label=7, ax=figure().subplots())
