"""A comparison as one page of HTML that loads nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from proxmargin.reports import assets, formats
from proxmargin.reports.answer import answer_of
from proxmargin.reports.charts import SPECS
from proxmargin.reports.curves import ModelPredictions, curves_of
from proxmargin.reports.details import (
    confusion_of,
    feature_chart,
    feature_table,
    path_chart,
    path_table,
)
from proxmargin.reports.standings import Standings
from proxmargin.reports.tables import Cell, HtmlColumn, HtmlTable
from proxmargin.runtime.files import replaced
from proxmargin.stats.scores import ROPE

__all__ = ["page_of", "write_report"]

FORMAT = "proxmargin comparison"
# held-out scores that are kept in the page, about 1 MB; more of them stay in the run directory
KEPT_PREDICTIONS = 50_000


def write_report(comparison: Any, path: str | os.PathLike[str]) -> None:
    """Write a comparison as one HTML file, to be opened by any browser without a network.

    Parameters
    ----------
    comparison : Comparison, or the dictionary of its ``to_dict``
    path : path-like
        Replaced in one step.

    Raises
    ------
    ImportError
        A library of the extra ``report`` is missing; the message says how to install it.
    ValueError
        These are not the facts of a comparison.
    OSError
        The file cannot be written.
    """
    assets.check_libraries()
    facts = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    # names may hold halves of surrogate pairs, which no encoding of text has
    content = page_of(facts).encode("utf-8", errors="backslashreplace")
    with replaced(path) as stream:
        stream.write(content)


def page_of(facts: Mapping[str, Any]) -> str:
    """The text of the page."""
    if facts.get("format") != FORMAT:
        raise ValueError(f"these are not the facts of a comparison: format {facts.get('format')!r}")
    view = View(facts)
    style, script = assets.text_of("page.css"), assets.text_of("page.js")
    charting = assets.charting_library()
    return str(
        assets.template("page.html").render(
            view=view,
            rope=ROPE,
            facts=facts,
            formats=formats,
            style=style,
            script=script,
            charting=charting,
            policy=assets.policy([style], [charting, script]),
            island=assets.island(view.island()),
        )
    )


class View:
    """What the template shows, derived from the facts."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self.models: list[Mapping[str, Any]] = list(facts["models"])
        self.labels = [str(each["label"]) for each in facts["data"]["classes"]]
        self.standings = [
            Standings(metric, place, facts)
            for place, metric in enumerate(facts["protocol"]["metrics"])
        ]

    @cached_property
    def main(self) -> Standings:
        return next((each for each in self.standings if each.is_main), self.standings[0])

    @cached_property
    def answer(self) -> Any:
        return answer_of(self.facts, self.main)

    @cached_property
    def first(self) -> int:
        """The index of the model whose details are shown first."""
        names = [each["name"] for each in self.models]
        return names.index(self.answer.model) if self.answer.model in names else 0

    # Held-out predictions

    @cached_property
    def held_out(self) -> dict[int, ModelPredictions]:
        predictions = self.facts.get("predictions") or {}
        found = {
            m: ModelPredictions.of(predictions, each["name"], len(self.labels))
            for m, each in enumerate(self.models)
        }
        known = {m: each for m, each in found.items() if each is not None}
        # the recommended model has the first colour
        return {m: known[m] for m in sorted(known, key=lambda m: (m != self.first, m))}

    @cached_property
    def _curves(self) -> tuple[list[dict[str, Any]], list[int]]:
        counts = [each["count"] for each in self.facts["data"]["classes"]]
        return curves_of(self.held_out, counts)

    @property
    def curve_classes(self) -> list[int]:
        return self._curves[1] if self._curves[0] else []

    @property
    def shown_curves(self) -> list[int]:
        """Models whose curves are drawn at first: the recommended one and the best two others."""
        return list(self.held_out)[:3]

    def curve_table(self) -> HtmlTable:
        """Areas under the curves: what they say in numbers."""
        columns = [
            HtmlColumn("model", number=False),
            HtmlColumn("class", number=False),
            HtmlColumn("area under ROC"),
            HtmlColumn("average precision"),
            HtmlColumn("share of the class", why="average precision of guessing"),
        ]
        rows = [
            [
                Cell(str(self.models[each["m"]]["name"])),
                Cell(self.labels[each["k"]]),
                Cell.of(each["auc"]),
                Cell.of(each["average_precision"]),
                Cell.of(each["share"]),
            ]
            for each in self._curves[0]
        ]
        return HtmlTable("areas", "Areas under the curves", columns, rows)

    def calibration_table(self) -> HtmlTable:
        columns = [
            HtmlColumn("model", number=False),
            HtmlColumn("class", number=False),
            HtmlColumn("predicted probability"),
            HtmlColumn("observed share"),
        ]
        rows = [
            [
                Cell(str(self.models[each["m"]]["name"])),
                Cell(self.labels[each["k"]]),
                Cell.of(predicted),
                Cell.of(observed),
            ]
            for each in self._curves[0]
            for predicted, observed in each["calibration"] or ()
        ]
        return HtmlTable(
            "calibration", "Predicted probabilities and observed shares", columns, rows
        )

    # One model in detail

    @cached_property
    def details(self) -> list[dict[str, Any]]:
        return [self._detail(m, model) for m, model in enumerate(self.models)]

    def _detail(self, m: int, model: Mapping[str, Any]) -> dict[str, Any]:
        name = model["name"]
        features = (self.facts.get("features") or {}).get(name)
        path = (self.facts.get("paths") or {}).get(name)
        return {
            "name": name,
            "m": m,
            "confusion": confusion_of(self.held_out[m], self.labels)
            if m in self.held_out
            else None,
            "features": feature_table(f"features-{m}", name, features, self.labels)
            if features
            else None,
            "path": path_table(f"path-{m}", name, path) if path and path["strengths"] else None,
        }

    # Trust, cost, settings

    def cost_table(self) -> HtmlTable:
        columns = (
            HtmlColumn("model", number=False),
            HtmlColumn("seconds per fit"),
            HtmlColumn("passes", why="over the data, for a fit"),
            HtmlColumn("largest gap", why="certified, relative, of all its fits"),
            HtmlColumn("settings", number=False, why="chosen on all samples"),
        )
        rows = [
            [
                Cell(str(each["name"])),
                Cell.of(each.get("seconds_per_fit"), formats.seconds),
                Cell.of(each.get("passes"), formats.count),
                Cell.of(each.get("relative_gap"), formats.gap)
                if each.get("relative_gap") is not None
                else Cell("no certificate"),
                Cell(_settings(each.get("settings") or {})),
            ]
            for each in self.models
        ]
        return HtmlTable("cost", "Cost, certificates and settings of each model", columns, rows)

    def fold_table(self) -> HtmlTable:
        metrics = self.facts["protocol"]["metrics"]
        columns = [
            HtmlColumn("model", number=False),
            HtmlColumn("repeat"),
            HtmlColumn("fold"),
            *(HtmlColumn(str(each["label"])) for each in metrics),
            HtmlColumn("features"),
            HtmlColumn("seconds"),
        ]
        rows = [
            [
                Cell(str(row["model"])),
                Cell.of(row.get("repeat", 0) + 1, formats.count),
                Cell.of(row["fold"] + 1, formats.count),
                *(Cell.of(row.get(each["name"])) for each in metrics),
                Cell.of(row.get("n_features"), formats.count),
                Cell.of(row.get("seconds"), formats.seconds),
            ]
            for row in self.facts.get("fold_results", ())
        ]
        return HtmlTable("folds", "Scores of every fold", columns, rows)

    def certificate(self) -> str:
        """The largest gap of all fits, in a sentence."""
        found = self.facts.get("certificates") or {}
        fits, unmet, worst = (found.get(key) for key in ("fits", "unmet", "worst_gap"))
        if not fits:
            return "No fit carries a certificate."
        if not unmet:
            return (
                f"All {fits:,} fits met their tolerance: each is certified to be within a relative "
                f"duality gap of {formats.gap(worst)} of its optimum."
            )
        return (
            f"{unmet:,} of {fits:,} fits ended before their tolerance was met; the largest "
            f"certified relative gap is {formats.gap(worst)}."
        )

    # For the script

    def island(self) -> dict[str, Any]:
        """Values of the charts, and the facts for a download."""
        features, paths = (self.facts.get(key) or {} for key in ("features", "paths"))
        by_index = {each["name"]: m for m, each in enumerate(self.models)}
        return {
            "specs": SPECS,
            "rope": ROPE,
            "models": [str(each["name"]) for each in self.models],
            "labels": self.labels,
            "standings": [each.chart() for each in self.standings],
            "curves": self._curves[0],
            "features": {
                by_index[name]: feature_chart(rows, self.labels)
                for name, rows in features.items()
                if name in by_index
            },
            "paths": {
                by_index[name]: chart
                for name, path in paths.items()
                if name in by_index and (chart := path_chart(path))
            },
            "facts": self.kept_facts(),
        }

    def kept_facts(self) -> dict[str, Any]:
        """The facts, with rounded predictions, or none where the page would grow too large."""
        kept = {key: value for key, value in self.facts.items() if key != "predictions"}
        if sum(each.scores.size for each in self.held_out.values()) <= KEPT_PREDICTIONS:
            kept["predictions"] = _rounded(self.facts.get("predictions"))
        return kept


def _rounded(value: Any) -> Any:
    """Six digits of every number are enough for any curve, and a third of the characters."""
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _settings(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {formats.setting(value)}" for name, value in settings.items())
