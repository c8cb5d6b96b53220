"""Models in order of a metric with the evidence, in numbers, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeGuard

from proxmargin.runtime.brief import Listing
from proxmargin.runtime.types import Facts, Record
from proxmargin.studies.stats.scores import INTERVAL, MAJORITY, ROPE

NONE = "–"  # where there is no number
MINUS = "−"
CERTAIN = "1.000"  # p-values that tell nothing
SMALL_P = 0.001  # p-values below are told as that


def known(value: object) -> TypeGuard[float]:
    """Whether there is a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def score(value: object, digits: int = 3) -> str:
    if not known(value):
        return NONE
    text = f"{value:.{digits}f}"
    # a difference that rounds to nothing has no sign
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def formed(form: str, value: object) -> str:
    """A number in a form of `format`, with a minus sign; `NONE` where there is none."""
    return format(value, form).replace("-", MINUS) if known(value) else NONE


signed = partial(formed, "+.3g")  # of a weight, however small
count = partial(formed, ",.0f")  # of things, or the mean of some: nobody has a third of a feature


def interval(low: object, high: object) -> str:
    """``0.940 to 0.980``, which no line end divides."""
    both = known(low) and known(high)
    return f"{score(low)}\u00a0to\u00a0{score(high)}" if both else NONE


def p_value(value: object) -> str:
    if not known(value):
        return NONE
    return f"< {SMALL_P}" if value < SMALL_P else f"{value:.3f}"


def percent(value: object) -> str:
    return f"{100 * value:.0f} %" if known(value) else NONE


def seconds(value: object) -> str:
    if not known(value):
        return NONE
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def gap(value: object) -> str:
    return formed(".1e", value).replace(f"e{MINUS}0", f"e{MINUS}")


def setting(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def joined(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, final = words or [""]
    return f"{', '.join(first)} and {final}" if first else final


class Cell(NamedTuple):
    """The words in a cell, and the number that they are sorted and downloaded by, if any."""

    text: str
    value: float | None = None


class Column(NamedTuple):
    """A heading, and what rows have below it: a key of theirs, or a function of them. Numbers have
    a form, are aligned right and sorted by value; the others are words."""

    title: str
    of: str | Callable[[Facts], object]
    form: Callable[[Any], str] | None = score
    why: str = ""

    def cell(self, row: Facts) -> Cell:
        found = self.of(row) if callable(self.of) else row.get(self.of)
        if isinstance(found, Cell):
            return found
        if self.form is None:
            return Cell(str(found))
        return Cell(self.form(found), found if known(found) else None)


@dataclass(frozen=True)
class HtmlTable:
    """Rows of cells; the first cell of a row is its heading."""

    name: str  # of the element and the file of a download: letters, digits and hyphens
    caption: str
    columns: Sequence[Column]
    rows: list[list[Cell]]
    sorted_by: int | None = None  # the column that the rows are in order of
    descending: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        columns: Iterable[Column],
        rows: Iterable[Facts],
        **order: Any,
    ) -> HtmlTable:
        """Without columns of p-values that tell nothing."""
        rows = list(rows)
        cells = [(column, [column.cell(row) for row in rows]) for column in columns]
        told = [
            (column, found)
            for column, found in cells
            if column.form is not p_value or {each.text for each in found} - {CERTAIN, NONE}
        ]
        lines = zip(*(found for _, found in told), strict=True)
        return cls(name, caption, [column for column, _ in told], [*map(list, lines)], **order)

    def listing(self) -> Listing:
        """The same as words."""
        rows = [[cell.text for cell in row] for row in self.rows]
        return Listing([column.title for column in self.columns], rows)


def main_of(facts: Facts, metric: str | None = None) -> Standings:
    """Those by a metric, by default the one that models are chosen by."""
    metrics = facts["protocol"]["metrics"]
    names = [each["name"] for each in metrics]
    place = names.index(facts["protocol"]["scoring"] if metric is None else metric)
    return Standings(metrics[place], place, facts)


GUESS = "always the largest class"
VERDICTS = {
    "recommended": "recommended",
    "best": "best mean",
    "equivalent": "not\u00a0distinguishable",
    "behind": "behind",
}


@dataclass(frozen=True, eq=False)
class Standings:
    """One metric of a comparison: ``name``, ``label``, ``larger_is_better``."""

    metric: Facts
    place: int  # in the list of metrics: names the elements of the page
    facts: Facts

    @cached_property
    def models(self) -> list[Facts]:
        """Those with a mean, the best first."""
        done = [each for each in self.facts["models"] if known(self.of(each).get("mean"))]
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

    def of(self, model: Facts) -> Facts:
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
        return float(value) if known(value) else None

    def role(self, model: Facts) -> str:
        """What the model is to a reader, in a word or two."""
        if model["name"] == self.facts.get("recommended") and self.is_main:
            return "recommended"
        if model is self.models[0]:
            return "best"
        return "equivalent" if self.of(model).get("equivalent") else "behind"

    # For charts

    def chart(self) -> Record:
        """Values of the charts of this metric; all fields have fixed names."""
        return {
            "label": self.label,
            "direction": self.direction,
            "names": [_shown(each) for each in self.models],
            "means": [self._bar(each, "mean", "low", "high") for each in self.models],
            "folds": list(self._folds()),
            "differences": [
                self._bar(each, "difference", "difference_low", "difference_high")
                for each in self.models
            ],
        }

    def _bar(self, model: Facts, centre: str, low: str, high: str) -> Record:
        role, ends = self.role(model), [self.of(model).get(name) for name in (low, high)]
        value = self.of(model).get(centre)
        return {
            "model": _shown(model),
            centre: value,
            "low": ends[0],
            "high": ends[1],
            "group": "behind" if role == "behind" else "top",
            "role": "recommended" if role == "recommended" else "other",
            "tip": f"{_shown(model)}: {score(value)} ({interval(*ends)})",
        }

    def _folds(self) -> Iterator[Record]:
        shown = {each["name"]: _shown(each) for each in self.models}
        for row in self.facts.get("fold_results", ()):
            value = row.get(self.metric["name"])
            if row["model"] in shown and known(value):
                yield {"model": shown[row["model"]], "value": value}

    # Tables

    def ranking(self, *more: Column) -> HtmlTable:
        """One row a model, with further columns, and a last row to be beaten by all."""
        columns = (
            Column("model", _shown, None),
            self._number(self.label, "mean", why="mean over the test parts"),
            self._interval("low", "high", "of the expected score"),
            Column("against the best", lambda model: VERDICTS[self.role(model)], None),
            Column("features used", used, why="by the model fitted to all samples (in the folds)"),
            Column(
                "stability",
                "stability",
                partial(score, digits=2),
                "agreement of the features over the folds (Nogueira); 1: same",
            ),
            Column("seconds per fit", "seconds_per_fit", seconds, "without compilation"),
            *more,
        )
        caption, order = f"Models by {self.label}, {self.direction}", {"descending": self.larger}
        name = f"ranking-{self.place}"
        table = HtmlTable.of(name, caption, columns, self.models, sorted_by=1, **order)
        if self.majority is not None and MAJORITY not in (each["name"] for each in self.models):
            guess = [Cell(GUESS), Cell(score(self.majority), self.majority), Cell(NONE)]
            rest = len(columns) - len(guess) - 1
            table.rows.append([*guess, Cell("to be beaten"), *[Cell(NONE)] * rest])
        return table

    def evidence(self) -> HtmlTable:
        best = _shown(self.models[0]) if self.models else ""
        equal = f"posterior probability of a difference within ±{ROPE:g}"
        columns = (
            Column("model", _shown, None),
            self._number("difference", "difference", why=f"mean minus that of {best}"),
            self._interval("difference_low", "difference_high"),
            self._number("p (Holm)", "p_holm", p_value, "adjusted for all pairs of models"),
            self._number("same in practice", "p_equal", percent, equal),
        )
        caption = f"Differences from {best} in {self.label}"
        return HtmlTable.of(f"evidence-{self.place}", caption, columns, self.models[1:])

    def disagreements(self) -> HtmlTable:
        """Rows on which one of two models alone is right, and the exact test of their counts."""
        found = self.facts.get("disagreements") or {}
        pairs = found.get("pairs") or ()
        best = pairs[0]["best"] if pairs else ""
        columns = (
            Column("model", "model", None),
            Column(f"only {best} right", "best_alone", count),
            Column("only this one right", "model_alone", count),
            Column("exact p (Holm)", "p_holm", p_value, "McNemar, for all pairs of models"),
        )
        caption = f"Rows that one model alone has right, {found.get('scope', '')}"
        return HtmlTable.of("disagreements", caption, columns, pairs)

    def _number(
        self, title: str, key: str, form: Callable[[Any], str] = score, why: str = ""
    ) -> Column:
        return Column(title, lambda model: self.of(model).get(key), form, why)

    def _interval(self, low: str, high: str, why: str = "") -> Column:
        def cell(model: Facts) -> Cell:
            ends = (self.of(model).get(low), self.of(model).get(high))
            return Cell(interval(*ends), ends[0])

        return Column(INTERVAL, cell, None, why)


def used(model: Facts) -> Cell:
    """Features of the model that one gets, and those of the folds where they differ."""
    final, folds = (model.get("final") or {}).get("n_features"), model.get("fold_features") or ()
    ends = list(dict.fromkeys(count(each) for each in folds))
    in_folds = " to ".join(ends)
    if not known(final):
        return Cell(f"{in_folds} in the folds" if ends else NONE)
    return Cell(
        count(final) if ends in ([], [count(final)]) else f"{count(final)} ({in_folds})", final
    )


def certified(relative_gap: object) -> str:
    return gap(relative_gap) if known(relative_gap) else "no certificate"


def settings_of(model: Facts) -> str:
    given = (model.get("settings") or {}).items()
    return ", ".join(f"{name} = {setting(value)}" for name, value in given)


def leaning(row: Facts, labels: Sequence[str]) -> str:
    """What higher values of a feature say: ``for malignant``; with two classes never against."""
    if row["weight"] > 0:
        return f"for {row['class']}"
    others = [label for label in labels if label != str(row["class"])]
    return f"for {others[0]}" if len(others) == 1 else f"against {row['class']}"


def _shown(model: Facts) -> str:
    suffix = " (baseline)" if model.get("kind") == "baseline" else ""
    return f"{model['name']}{suffix}"
