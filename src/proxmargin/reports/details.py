"""One model in detail: confusion of classes, features, path of its strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxmargin.reports import formats
from proxmargin.reports.answer import leaning
from proxmargin.reports.curves import ModelPredictions
from proxmargin.reports.tables import Cell, HtmlColumn, HtmlTable

__all__ = [
    "Confusion",
    "confusion_of",
    "feature_chart",
    "feature_table",
    "path_chart",
    "path_table",
]

# features in a chart: more have no room for their names
CHARTED = 20
# classes of a confusion matrix that is shown
MOST_CLASSES = 30
# shades of a cell
SHADES = 8

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Confusion:
    """Counts of true and predicted classes, with a shade from 0 to 8 for each share of a row."""

    labels: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[tuple[int, str, int]]]]
    summary: str


def confusion_of(held_out: ModelPredictions, labels: Sequence[str]) -> Confusion | None:
    """None where there are too many classes for a table."""
    if len(labels) > MOST_CLASSES:
        return None
    counts = held_out.confusion(len(labels))
    sizes = counts.sum(axis=1)
    rows = []
    for k, label in enumerate(labels):
        shares = counts[k] / max(1, sizes[k])
        cells = [
            (int(c), formats.percent(s) if sizes[k] else formats.NONE, round(SHADES * s))
            for c, s in zip(counts[k], shares, strict=True)
        ]
        rows.append((label, int(sizes[k]), cells))
    right = int(counts.trace())
    summary = f"{right:,} of {counts.sum():,} samples are in the right class."
    return Confusion(labels, rows, f"{summary} {_most_confused(counts, labels)}")


def _most_confused(counts: Any, labels: Sequence[str]) -> str:
    wrong = counts.copy()
    for k in range(len(labels)):
        wrong[k, k] = 0
    if not wrong.any():
        return "None is in a wrong one."
    row, column = divmod(int(wrong.argmax()), len(labels))
    often = int(wrong[row, column])
    times = "once" if often == 1 else f"{often:,} times"
    return f"The most frequent mistake: {labels[row]} taken for {labels[column]}, {times}."


def feature_chart(rows: Sequence[Facts], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Values of the chart of the largest weights."""
    return [
        {
            "row": place,
            "feature": row["feature"] if len(labels) == 2 else f"{row['feature']} · {row['class']}",
            "weight": row["weight"],
            "sign": "for" if row["weight"] > 0 else "against",
            "frequency": row.get("frequency"),
            "tip": f"{row['feature']}: {formats.score(row['weight'])}, {leaning(row, labels)}; "
            f"in {formats.percent(row.get('frequency'))} of the folds",
        }
        for place, row in enumerate(rows[:CHARTED])
    ]


def feature_table(name: str, model: str, rows: Sequence[Facts], labels: Sequence[str]) -> HtmlTable:
    columns = (
        HtmlColumn("feature", number=False),
        HtmlColumn("weight", why="change of the score per standard deviation of the feature"),
        HtmlColumn("higher values speak", number=False),
        HtmlColumn("used in folds", why="share of the outer folds whose model uses it"),
    )
    cells = [
        [
            Cell(str(row["feature"])),
            Cell.of(row["weight"]),
            Cell(leaning(row, labels)),
            Cell.of(row.get("frequency"), formats.percent),
        ]
        for row in rows
    ]
    return HtmlTable(name, f"Features of {model}, the largest weights first", columns, cells)


def path_chart(path: Facts) -> dict[str, Any] | None:
    """Values of the chart of scores along the strengths; None where these are no numbers."""
    count = len(path["strengths"])
    columns = [path.get(key) or [None] * count for key in ("mean", "se", "n_features")]
    rows = [
        {
            "strength": strength,
            "mean": mean,
            "low": mean - se if formats.known(se) else mean,
            "high": mean + se if formats.known(se) else mean,
            "n": n,
            "tip": f"{path['parameter']} {strength:.3g}: {formats.score(mean)} ± "
            f"{formats.score(se)}, {formats.count(n)} features",
        }
        for strength, mean, se, n in zip(path["strengths"], *columns, strict=True)
        # a logarithmic axis has no place for zero
        if formats.known(mean) and formats.known(strength) and strength > 0
    ]
    if not rows:
        return None
    chosen = path.get("chosen")
    return {
        "rows": rows,
        "chosen": [{"strength": chosen}] if formats.known(chosen) and chosen > 0 else [],
        "parameter": str(path["parameter"]),
        # strong penalties at the left: fewer features there, as everywhere in the library
        "falls": str(path["parameter"]) != "C",
    }


def path_table(name: str, model: str, path: Facts) -> HtmlTable:
    columns = (
        HtmlColumn(str(path["parameter"])),
        HtmlColumn("mean score"),
        HtmlColumn("standard error"),
        HtmlColumn("features used"),
    )
    count = len(path["strengths"])
    lists = [path.get(key) or [None] * count for key in ("mean", "se", "n_features")]
    cells = [
        [
            Cell.of(strength, formats.setting),
            Cell.of(mean),
            Cell.of(se),
            Cell.of(n, formats.count),
        ]
        for strength, mean, se, n in zip(path["strengths"], *lists, strict=True)
    ]
    return HtmlTable(name, f"Path of {model}", columns, cells)
