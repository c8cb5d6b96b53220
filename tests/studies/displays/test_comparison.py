"""The pictures of comparisons show what their facts say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from proxmargin.studies.comparing.evidence import Evidence

matplotlib = pytest.importorskip("matplotlib")
from proxmargin import ComparisonDisplay  # noqa: E402
from proxmargin.studies.displays.axes import figure  # noqa: E402

NAMES = ("SVC", "DWD", "RidgeClassifier", "L2SVC")
ROWS = 60  # held-out samples


def facts(classes: int = 2, columns: int | None = None) -> dict[str, Any]:
    """A comparison of four models, of which the third is a baseline, over 10 folds."""
    rng = np.random.default_rng(0)
    scores = rng.normal([0.90, 0.895, 0.88, 0.6], 0.02, (10, 4))
    found = Evidence.of(scores, NAMES, test_ratio=1 / 9)
    true = np.arange(ROWS) % classes
    width = classes if columns is None else columns
    noise = rng.standard_normal((len(NAMES), ROWS, width))
    signal = (true == 1)[:, None] if width == 1 else true[:, None] == np.arange(classes)
    return {
        "data": {"classes": [{"label": f"class {k}", "count": 20} for k in range(classes)]},
        "protocol": {
            "scoring": "accuracy",
            "metrics": [
                {"name": "accuracy", "label": "accuracy", "larger_is_better": True},
                {"name": "log_loss", "label": "log-loss", "larger_is_better": False},
            ],
            "folds": 10,
            "repeats": 1,
        },
        "models": [
            {
                "name": name,
                "kind": "baseline" if name == "RidgeClassifier" else "model",
                "n_features": 3.0 * place,
                "seconds_per_fit": 0.1 * (place + 1),
                "metrics": {"accuracy": found.row(name), "log_loss": {"mean": None}},
            }
            for place, name in enumerate(NAMES)
        ],
        "recommended": "DWD",
        "majority": {"accuracy": 0.5},
        "fold_results": [
            {"model": name, "repeat": 0, "fold": fold, "accuracy": scores[fold, place]}
            for place, name in enumerate(NAMES)
            for fold in range(10)
        ],
        "predictions": {
            "true": true.tolist(),
            **{
                name: {"label": true.tolist(), "scores": (2 * signal + noise[place]).tolist()}
                for place, name in enumerate(NAMES)
            },
        },
    }


def drawn(given: dict[str, Any], metric: str | None = None, **options: Any) -> ComparisonDisplay:
    return ComparisonDisplay(given, metric=metric).plot(figure().subplots(), **options)


def test_intervals_stand_in_the_order_of_the_models() -> None:
    given = facts()
    display = drawn(given)
    means = {m["name"]: m["metrics"]["accuracy"]["mean"] for m in given["models"]}
    assert display.labels_ == sorted(NAMES, key=lambda name: -means[name])
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["DWD ★", "SVC", "RidgeClassifier", "L2SVC"]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top  # the best is at the top
    for bar in display.marks_:
        (line, _, (spans,)) = bar
        for place, span in zip(line.get_ydata(), spans.get_segments(), strict=True):
            name = display.labels_[int(place)]
            row = given["models"][NAMES.index(name)]["metrics"]["accuracy"]
            np.testing.assert_allclose(span[:, 0], [row["low"], row["high"]])


def test_equals_are_full_and_baselines_have_their_own_colour() -> None:
    display = drawn(facts())
    told = {bar.get_label(): bar[0] for bar in display.marks_}
    assert set(told) == {
        "model, not distinguishable from the best",
        "model, worse than the best",
        "baseline, not distinguishable from the best",
    }
    worse = told["model, worse than the best"]
    assert (worse.get_markerfacecolor(), list(worse.get_ydata())) == ("white", [3])
    colours = {line.get_color() for line in told.values()}
    assert len(colours) == 2
    legend = {text.get_text() for text in display.ax_.get_legend().get_texts()}
    assert "majority class" in legend


def test_differences_are_from_the_best() -> None:
    display = drawn(facts(), kind="differences")
    centres = np.concatenate([bar[0].get_xdata() for bar in display.marks_])
    assert centres.max() == 0.0
    assert "difference from the best" in display.ax_.get_xlabel()


def test_folds_have_a_dot_each() -> None:
    given = facts()
    display = drawn(given, kind="folds", top=3)
    assert len(display.marks_) == 3
    scores = [row["accuracy"] for row in given["fold_results"] if row["model"] == "DWD"]
    marks = display.marks_[display.labels_.index("DWD")]
    np.testing.assert_allclose(marks.get_xdata(), scores)


@pytest.mark.parametrize(
    ("kind", "cost"), [("features", "n_features"), ("seconds", "seconds_per_fit")]
)
def test_costs_are_against_scores(kind: str, cost: str) -> None:
    given = facts()
    display = drawn(given, kind=kind)
    points = {tuple(p) for bar in display.marks_ for p in np.transpose(bar[0].get_data())}
    expected = {(m[cost], m["metrics"]["accuracy"]["mean"]) for m in given["models"]}
    assert points == expected
    assert len(display.ax_.texts) == 4


@pytest.mark.parametrize("columns", [1, 2])
def test_curves_of_two_classes_are_those_of_the_second(columns: int) -> None:
    given = facts(columns=columns)
    true = np.array(given["predictions"]["true"])
    scores = np.array(given["predictions"]["SVC"]["scores"])[:, -1]
    roc = drawn(given, kind="roc")
    assert len(roc.marks_) == 4
    line = roc.marks_[roc.labels_.index("SVC")]
    assert line.get_label() == f"SVC ({roc_auc_score(true, scores):.3f})"
    x, y = line.get_data()
    assert np.trapezoid(y, x) == pytest.approx(roc_auc_score(true, scores))
    line = drawn(given, kind="precision_recall").marks_[roc.labels_.index("SVC")]
    assert line.get_label() == f"SVC ({average_precision_score(true, scores):.3f})"
    x, y = line.get_data()
    assert np.trapezoid(y, x) == pytest.approx(average_precision_score(true, scores))


def test_curves_of_more_classes_are_their_mean_or_those_of_one() -> None:
    given = facts(classes=3)
    true = np.array(given["predictions"]["true"])
    scores = np.array(given["predictions"]["DWD"]["scores"])
    areas = [roc_auc_score(true == k, scores[:, k]) for k in range(3)]
    mean = drawn(given, kind="roc", top=1)
    assert mean.marks_[0].get_label() == f"DWD ({np.mean(areas):.3f})"
    x, y = mean.marks_[0].get_data()
    assert np.trapezoid(y, x) == pytest.approx(np.mean(areas), abs=0.02)
    one = drawn(given, kind="roc", top=1, label="class 2")
    assert one.marks_[0].get_label() == f"DWD ({areas[2]:.3f})"
    drawn(given, kind="precision_recall")


def test_models_and_samples_without_numbers_are_left_blank() -> None:
    given = facts()
    given["models"][1]["metrics"]["accuracy"] = dict.fromkeys(("mean", "low", "high"))
    given["predictions"]["SVC"]["scores"][:5] = [None] * 5
    del given["predictions"]["DWD"]
    for kind in ("intervals", "differences", "folds", "features", "seconds"):
        drawn(given, kind=kind)
    assert len(drawn(given, kind="roc").marks_) == 3
    drawn(given, metric="log_loss")


def test_a_loss_has_its_least_at_the_top() -> None:
    given = facts()
    for place, loss in enumerate((0.5, 0.1, 0.9, None)):
        given["models"][place]["metrics"]["log_loss"] = {"mean": loss}
    # a model without a number has no place
    assert drawn(given, metric="log_loss").labels_ == ["DWD", "SVC", "RidgeClassifier"]


def test_names_are_drawn_as_they_are() -> None:
    given = facts()
    given["models"][0]["name"] = r"$\frac{<script>$"
    given["predictions"][r"$\frac{<script>$"] = given["predictions"].pop("SVC")
    given["data"]["classes"][1]["label"] = r"$\bad{$"
    for kind in ("intervals", "features", "roc"):
        drawn(given, kind=kind).figure_.canvas.draw()  # raises on a bad formula


def test_a_new_figure_is_as_high_as_its_models_need() -> None:
    class Comparison:
        def to_dict(self) -> dict[str, Any]:
            given = facts()
            given["models"] = given["models"] * 6
            return given

    matplotlib.use("Agg")
    display = ComparisonDisplay.from_comparison(Comparison())
    assert display.figure_.get_figheight() > 8
    matplotlib.pyplot.close(display.figure_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "f1"}, "metric must be one of 'accuracy', 'log_loss', got 'f1'"),
        ({"kind": "pie"}, "kind must be one of 'intervals'"),
        ({"top": 0}, "top"),
        ({"kind": "roc", "label": "cats"}, "label must be one of 'class 0'"),
        ({"label": "class 0"}, "label='class 0' is for curves"),
    ],
)
def test_bad_input_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drawn(facts(), **options)


def test_without_predictions_there_are_no_curves() -> None:
    with pytest.raises(ValueError, match="no held-out scores"):
        drawn({**facts(), "predictions": {}}, kind="roc")
