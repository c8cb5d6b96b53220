"""Models in order of a metric, with the evidence for that order: rows of tables and charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from proxmargin.reports import formats
from proxmargin.reports.tables import Cell, HtmlColumn, HtmlTable
from proxmargin.stats.scores import INTERVAL, ROPE

__all__ = ["Standings"]

Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Standings:
    """One metric of a comparison.

    Attributes
    ----------
    metric : dict
        ``name``, ``label``, ``larger_is_better``.
    place : int
        Of the metric in the list of metrics: names the elements of the page.
    facts : dict
    """

    metric: Row
    place: int
    facts: Row

    @cached_property
    def models(self) -> list[Row]:
        """Those with a mean, the best first."""
        done = [each for each in self.facts["models"] if formats.known(self.of(each).get("mean"))]
        sign = -1 if self.larger else 1
        return sorted(done, key=lambda each: sign * self.of(each)["mean"])

    @property
    def larger(self) -> bool:
        return bool(self.metric.get("larger_is_better", True))

    @property
    def direction(self) -> str:
        return "higher is better" if self.larger else "lower is better"

    @property
    def label(self) -> str:
        return str(self.metric["label"])

    def of(self, model: Row) -> Row:
        """The numbers of a model in this metric."""
        found = model["metrics"].get(self.metric["name"])
        return found if found is not None else {}

    @property
    def is_main(self) -> bool:
        """Whether the recommendation is by this metric."""
        return bool(self.metric["name"] == self.facts["protocol"]["scoring"])

    @property
    def majority(self) -> float | None:
        value = (self.facts.get("majority") or {}).get(self.metric["name"])
        return float(value) if formats.known(value) else None

    def role(self, model: Row) -> str:
        """What the model is to a reader, in a word or two."""
        if model["name"] == self.facts.get("recommended") and self.is_main:
            return "recommended"
        if model is self.models[0]:
            return "best"
        return "equivalent" if self.of(model).get("equivalent") else "behind"

    # For charts

    def chart(self) -> dict[str, Any]:
        """Values of the charts of this metric; all fields have fixed names."""
        return {
            "label": self.label,
            "direction": self.direction,
            "names": [_shown(each) for each in self.models],
            "means": [self._mean(each) for each in self.models],
            "folds": list(self._folds()),
            "differences": [self._difference(each) for each in self.models],
        }

    def _mean(self, model: Row) -> dict[str, Any]:
        numbers, role = self.of(model), self.role(model)
        words = formats.interval(numbers.get("low"), numbers.get("high"))
        return {
            "model": _shown(model),
            "mean": numbers["mean"],
            "low": numbers.get("low"),
            "high": numbers.get("high"),
            "group": "behind" if role == "behind" else "top",
            "role": "recommended" if role == "recommended" else "other",
            "tip": f"{_shown(model)}: {formats.score(numbers['mean'])} ({words})",
        }

    def _folds(self) -> Iterator[dict[str, Any]]:
        shown = {each["name"]: _shown(each) for each in self.models}
        for row in self.facts.get("fold_results", ()):
            value = row.get(self.metric["name"])
            if row["model"] in shown and formats.known(value):
                yield {"model": shown[row["model"]], "value": value}

    def _difference(self, model: Row) -> dict[str, Any]:
        numbers = self.of(model)
        words = formats.interval(numbers.get("difference_low"), numbers.get("difference_high"))
        return {
            "model": _shown(model),
            "difference": numbers.get("difference"),
            "low": numbers.get("difference_low"),
            "high": numbers.get("difference_high"),
            "group": "behind" if self.role(model) == "behind" else "top",
            "tip": f"{_shown(model)}: {formats.score(numbers.get('difference'))} ({words})",
        }

    # Tables

    def ranking(self) -> HtmlTable:
        columns = (
            HtmlColumn("model", number=False),
            HtmlColumn(self.label, why="mean over the test parts"),
            HtmlColumn(INTERVAL, number=False, why="of the expected score"),
            HtmlColumn("against the best", number=False),
            HtmlColumn("features used", why="mean over the folds"),
            HtmlColumn(
                "stability", why="agreement of the features over the folds (Nogueira); 1: same"
            ),
            HtmlColumn("seconds per fit", why="without compilation"),
        )
        rows = [self._ranked(each) for each in self.models]
        if self.majority is not None:
            blanks = [Cell(formats.NONE)] * (len(columns) - 4)
            guess = [Cell(GUESS), Cell.of(self.majority), Cell(formats.NONE), Cell("to be beaten")]
            rows.append([*guess, *blanks])
        caption = f"Models by {self.label}, {self.direction}"
        return HtmlTable(
            f"ranking-{self.place}", caption, columns, rows, sorted_by=1, descending=self.larger
        )

    def _ranked(self, model: Row) -> list[Cell]:
        numbers = self.of(model)
        return [
            Cell(_shown(model)),
            Cell.of(numbers["mean"]),
            Cell(formats.interval(numbers.get("low"), numbers.get("high")), numbers.get("low")),
            Cell(VERDICTS[self.role(model)]),
            Cell.of(model.get("n_features"), formats.count),
            Cell.of(model.get("stability"), _two_digits),
            Cell.of(model.get("seconds_per_fit"), formats.seconds),
        ]

    def evidence(self) -> HtmlTable:
        best = _shown(self.models[0]) if self.models else ""
        columns = (
            HtmlColumn("model", number=False),
            HtmlColumn("difference", why=f"mean minus that of {best}"),
            HtmlColumn(INTERVAL, number=False),
            HtmlColumn("p (Holm)", why="adjusted for all pairs of models"),
            HtmlColumn(
                "same in practice", why=f"posterior probability of a difference within ±{ROPE:g}"
            ),
            HtmlColumn("worse in practice", why="posterior probability of being worse by more"),
        )
        rows = [self._compared(each) for each in self.models[1:]]
        caption = f"Differences from {best} in {self.label}"
        return HtmlTable(f"evidence-{self.place}", caption, columns, rows)

    def _compared(self, model: Row) -> list[Cell]:
        numbers = self.of(model)
        low, high = numbers.get("difference_low"), numbers.get("difference_high")
        return [
            Cell(_shown(model)),
            Cell.of(numbers.get("difference")),
            Cell(formats.interval(low, high), low),
            Cell.of(numbers.get("p_holm"), formats.p_value),
            Cell.of(numbers.get("p_equal"), formats.percent),
            Cell.of(numbers.get("p_worse"), formats.percent),
        ]


GUESS = "always the largest class"
VERDICTS = {
    "recommended": "recommended",
    "best": "highest mean",
    "equivalent": "not\u00a0distinguishable",
    "behind": "behind",
}


def _shown(model: Row) -> str:
    suffix = " (baseline)" if model.get("kind") == "baseline" else ""
    return f"{model['name']}{suffix}"


def _two_digits(value: Any) -> str:
    return formats.score(value, 2)
