"""The scores of compared models, with their intervals, folds, costs and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from textwrap import fill
from typing import Any, Self

import numpy as np

from proxmargin.data.inputs.parameters import check_choice, check_number
from proxmargin.runtime.types import Array, Axes, Facts, Record
from proxmargin.studies.displays.axes import apart, axes_for, finish
from proxmargin.studies.reports.details import ModelPredictions, class_of_curves, curve_of
from proxmargin.studies.reports.standings import Standings, main_of
from proxmargin.studies.stats.scores import INTERVAL

ROW = 0.34  # inches of a new figure's height, a model
FRAME = 1.6  # inches above and below the rows
FEWEST = 6  # rows of the lowest figure
SPREAD = 0.5  # of the height of a row, over which its folds are drawn
WIDE = 20  # ratio of costs from which their axis is logarithmic
COLOURS = {"model": "C0", "baseline": "C1"}
MAJORITY = "0.4"  # a grey
FAINT = 0.45  # opacity of folds
LETTERS = 26  # of a line of the name of a class
GRID = 200  # values of x at which the curves of several classes are averaged
LEGEND: Record = {"fontsize": "x-small", "edgecolor": "none", "framealpha": 0.9}
CHANCE: Record = {"color": "0.4", "linestyle": ":", "linewidth": 0.8}


@dataclass(frozen=True)
class Drawn:
    """The models of a comparison that are drawn, by a metric, and the class of their curves."""

    standings: Standings
    models: Sequence[Facts]
    class_: object

    @property
    def facts(self) -> Facts:
        return self.standings.facts

    @property
    def label(self) -> str:
        return f"{self.standings.label} ({self.standings.direction})"

    @property
    def protocol(self) -> str:
        folds, repeats = (self.facts["protocol"][name] for name in ("folds", "repeats"))
        return f"{folds} folds" + (f", {repeats} times" if repeats > 1 else "")

    def numbers(self, *names: str) -> Array:
        """Of each model, (n_names, n_models); NaN where there are none."""
        of = self.standings.of
        rows = [[_number(of(model).get(name)) for model in self.models] for name in names]
        return np.array(rows).reshape(len(names), len(self.models))

    def groups(self) -> dict[tuple[str, str, str], list[int]]:
        """Places of the models that are drawn alike, by their legend, colour and filling."""
        found: dict[tuple[str, str, str], list[int]] = {}
        for place, model in enumerate(self.models):
            equal, colour = self.standings.of(model).get("equivalent"), COLOURS[model["kind"]]
            how = "not distinguishable from the best" if equal else "worse than the best"
            alike = f"{model['kind']}, {how}", colour, colour if equal else "white"
            found.setdefault(alike, []).append(place)
        return found


class ComparisonDisplay:
    """Compared models, the best at the top: scores, differences, folds, costs or curves.

    Full marks are models that are not distinguishable from the best, hollow ones are worse.
    Baselines have a colour of their own, and the recommended model has a star.

    Parameters
    ----------
    facts : mapping
        What `Comparison.to_dict` returned.
    metric : str, optional
        One of the comparison's; by default the one by which its models are ordered.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    marks_ : list of matplotlib artists
        Error bars of each group of models; dots of the folds of each model; or a line a curve.
    labels_ : list of str
        The models that are drawn, in their order.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import ComparisonDisplay, compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = ["HuberizedSVC", "DWD"]
    >>> found = compare(X[::6], y[::6], models=models, cv=2, quick=True, progress=False)
    >>> sorted(ComparisonDisplay.from_comparison(found).labels_)
    ['DWD', 'HuberizedSVC']
    >>> display = ComparisonDisplay.from_comparison(found, kind="roc")
    """

    marks_: Sequence[object]
    labels_: list[str]

    def __init__(self, facts: Facts, *, metric: str | None = None) -> None:
        if metric is not None:
            check_choice("metric", metric, [each["name"] for each in facts["protocol"]["metrics"]])
        self.standings = main_of(facts, metric)

    @classmethod
    def from_comparison(
        cls,
        comparison: Any,
        *,
        metric: str | None = None,
        ax: Axes | None = None,
        kind: str = "intervals",
        top: int | None = None,
        label: Any = None,
    ) -> Self:
        """Draw a finished comparison; other arguments as in `plot`."""
        return cls(comparison.to_dict(), metric=metric).plot(ax, kind=kind, top=top, label=label)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "intervals",
        top: int | None = None,
        label: object = None,
    ) -> Self:
        """Draw it into the axes, or into a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {'intervals', 'differences', 'folds', 'features', 'seconds', 'roc', \
'precision_recall'}
            Mean scores with their intervals and a line at the score of the majority class;
            differences from the best; the score of every fold; mean scores against the number of
            features or the seconds of a fit; curves of the held-out scores of the first repetition,
            all folds together.
        top : int, optional
            The number of models; by default 5 for curves and all for the rest.
        label : optional
            The class of the curves: by default the positive one of two, and the mean over all
            classes of more.

        Raises
        ------
        ValueError
            Another kind, or a class that there is none of; no predictions for curves.
        """
        check_choice("kind", kind, KINDS)
        check_number("top", top, low=1, integer=True, optional=True)
        draw, usual, is_rows, title = KINDS[kind]
        limit = usual if top is None else top
        if label is not None and kind not in OF_CLASSES:
            raise ValueError(f"label={label!r} is for curves, and kind is {kind!r}")
        drawn = Drawn(self.standings, self.standings.models[:limit], label)
        is_new, ax = ax is None, axes_for(ax)
        if is_new and is_rows:
            figure: Any = ax.figure
            figure.set_figheight(height_of(len(drawn.models)))
        self.labels_ = [str(model["name"]) for model in drawn.models]
        self.marks_ = draw(drawn, ax)
        if ax.get_legend() is None and ax.get_legend_handles_labels()[0]:
            ax.legend(**LEGEND)
        source = drawn.facts["data"].get("name")
        finish(self, ax, title if source is None else f"{title}: {source}")
        _plain(ax)
        return self


def height_of(models: int) -> float:
    """Inches of a figure with a row for each model."""
    return FRAME + ROW * max(models, FEWEST)


def _draw_intervals(drawn: Drawn, ax: Axes) -> Sequence[object]:
    marks = _draw_rows(drawn, ax, "mean", "low", "high")
    majority = drawn.standings.majority
    if majority is not None:
        ax.axvline(majority, color=MAJORITY, linestyle=":", label="majority class")
    ax.set_xlabel(f"{drawn.label}, {INTERVAL}; {drawn.protocol}")
    return marks


def _draw_differences(drawn: Drawn, ax: Axes) -> Sequence[object]:
    marks = _draw_rows(drawn, ax, "difference", "difference_low", "difference_high")
    ax.axvline(0.0, color=MAJORITY, linewidth=0.8)
    ax.set_xlabel(
        f"difference from the best in {drawn.standings.label}, {INTERVAL}; {drawn.protocol}"
    )
    return marks


def _draw_folds(drawn: Drawn, ax: Axes) -> Sequence[object]:
    marks = []
    for place, model in enumerate(drawn.models):
        rows = [row for row in drawn.facts["fold_results"] if row["model"] == model["name"]]
        scores = np.array([_number(row.get(drawn.standings.metric["name"])) for row in rows])
        spread = np.linspace(-0.5, 0.5, scores.size) if scores.size > 1 else np.zeros(scores.size)
        style: Record = {"color": COLOURS[model["kind"]], "alpha": FAINT, "markersize": 4}
        marks += ax.plot(scores, place + SPREAD * spread, "o", **style)
    (means,) = drawn.numbers("mean")
    ax.plot(means, np.arange(means.size), "k|", markersize=12, label="mean")
    _name_rows(drawn, ax)
    ax.set_xlabel(f"{drawn.label} of each fold; {drawn.protocol}")
    return marks


def _draw_rows(drawn: Drawn, ax: Axes, *names: str) -> Sequence[object]:
    """A row with an interval for each model."""
    centre, low, high = drawn.numbers(*names)
    ends = {"xerr": np.abs([centre - low, high - centre])}
    marks = _error_bars(drawn, ax, centre, np.arange(centre.size, dtype=np.float64), ends)
    _name_rows(drawn, ax)
    return marks


def _error_bars(
    drawn: Drawn, ax: Axes, x: Array, y: Array, ends: dict[str, Array]
) -> Sequence[object]:
    """Those of each group of models; ``ends``, (2, n_models), are ``xerr`` or ``yerr``."""
    marks = []
    for (label, colour, face), places in drawn.groups().items():
        style: Record = {name: each[:, places] for name, each in ends.items()}
        style |= {"color": colour, "markerfacecolor": face, "markeredgecolor": colour}
        marks.append(ax.errorbar(x[places], y[places], fmt="o", capsize=2, label=label, **style))
    return marks


def _name_rows(drawn: Drawn, ax: Axes) -> None:
    names = [_starred(drawn, model) for model in drawn.models]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def _draw_costs(
    drawn: Drawn, ax: Axes, of: Callable[[Facts], object], label: str
) -> Sequence[object]:
    """Scores against what models cost."""
    costs = np.array([_number(of(model)) for model in drawn.models])
    least = np.min(costs[costs > 0], initial=np.inf)
    if np.nanmax(costs, initial=0.0) > WIDE * least:
        ax.set_xscale("symlog", linthresh=least)
    mean, low, high = drawn.numbers("mean", "low", "high")
    marks = _error_bars(drawn, ax, costs, mean, {"yerr": np.abs([mean - low, high - mean])})
    ax.set(xlabel=label, ylabel=drawn.label)
    _name_points(drawn, ax, costs, mean)
    return marks


def _features_of(model: Facts) -> object:
    """Of the model that one gets; of one that is not finished the mean over the folds."""
    return (model.get("final") or {}).get("n_features", model.get("n_features"))


def _name_points(drawn: Drawn, ax: Axes, x: Array, y: Array) -> None:
    """Names at the right, moved apart, each with a line to its point."""
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    low, high = ax.get_ylim()
    ax.set_ylim(low, high)
    for place, height in zip(there, apart((y[there] - low) / (high - low)), strict=True):
        ax.annotate(
            _starred(drawn, drawn.models[int(place)]),
            (x[place], y[place]),
            xytext=(1.03, height),
            textcoords="axes fraction",
            fontsize="x-small",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.8", "linewidth": 0.5},
        )


def _draw_roc(drawn: Drawn, ax: Axes) -> Sequence[object]:
    ax.plot([0, 1], [0, 1], **CHANCE)
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    return _draw_curves(drawn, ax, "roc")


def _draw_precision_recall(drawn: Drawn, ax: Axes) -> Sequence[object]:
    ax.set(xlabel="recall", ylabel="precision", ylim=(0.0, 1.03))
    return _draw_curves(drawn, ax, "precision_recall")


def _draw_curves(drawn: Drawn, ax: Axes, kind: str) -> Sequence[object]:
    """Curves of one class, or their mean over the classes, with the areas in the legend."""
    labels = [str(each["label"]) for each in drawn.facts["data"]["classes"]]
    chosen = list(range(len(labels))) if len(labels) != 2 else [class_of_curves(drawn.facts)]
    if drawn.class_ is not None:
        check_choice("label", str(drawn.class_), labels)
        chosen = [labels.index(str(drawn.class_))]
    grid, marks = np.linspace(0.0, 1.0, GRID), []
    predictions = drawn.facts.get("predictions") or {}
    for model in drawn.models:
        held_out = ModelPredictions.of(predictions, str(model["name"]), len(labels))
        if held_out is None:
            continue
        members = [(k, held_out.true == k) for k in chosen]
        found = [curve_of(kind, m, held_out.scores[:, k]) for k, m in members if 0 < m.mean() < 1]
        if not found:
            continue
        x, y, area = found[0]
        if len(found) > 1:
            x, y = grid, np.mean([np.interp(grid, *each[:2]) for each in found], axis=0)
            area = float(np.mean([each[2] for each in found]))
        marks += ax.plot(x, y, label=f"{model['name']} ({area:.3f})")
    if not marks:
        raise ValueError("there are no held-out scores of these models to draw curves of")
    of = labels[chosen[0]] if len(chosen) == 1 else f"mean of {len(chosen)} classes"
    # beside a square picture there is room
    ax.set(aspect="equal", anchor="W")
    ax.legend(
        title=fill(f"{of} (area)", LETTERS), loc="center left", bbox_to_anchor=(1.02, 0.5), **LEGEND
    )
    return marks


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def _starred(drawn: Drawn, model: Facts) -> str:
    star = " ★" if model["name"] == drawn.facts.get("recommended") else ""
    return f"{model['name']}{star}"


def _plain(ax: Axes) -> None:
    """Names as they are: dollar signs in them are no formulas."""
    legend = ax.get_legend()
    named = (*legend.get_texts(), legend.get_title()) if legend else ()
    for text in [*ax.get_yticklabels(), *ax.texts, *named]:
        text.set_parse_math(False)


OF_CLASSES = ("roc", "precision_recall")
# of each kind: how it is drawn, the usual number of models, whether each has a row, its title
KINDS: dict[str, tuple[Callable[[Drawn, Axes], Sequence[object]], int | None, bool, str]] = {
    "intervals": (_draw_intervals, None, True, "Mean scores of held-out samples"),
    "differences": (_draw_differences, None, True, "Differences from the best model"),
    "folds": (_draw_folds, None, True, "Scores of every fold"),
    "features": (
        partial(_draw_costs, of=_features_of, label="features used"),
        None,
        False,
        "Score and number of features",
    ),
    "seconds": (
        partial(_draw_costs, of=itemgetter("seconds_per_fit"), label="seconds of a fit"),
        None,
        False,
        "Score and time",
    ),
    "roc": (_draw_roc, 5, False, "ROC curves of held-out samples"),
    "precision_recall": (_draw_precision_recall, 5, False, "Precision and recall, held out"),
}
