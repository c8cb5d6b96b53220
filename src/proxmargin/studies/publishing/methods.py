"""The methods paragraph of a comparison with its numbers, the TRIPOD+AI checklist, and a PDF.

The PDF has both and the pictures, drawn by matplotlib: no browser is needed.

Collins et al. (2024), TRIPOD+AI statement: updated guidance for reporting clinical prediction
models that use regression or machine learning methods. BMJ 385, e078378.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.runtime.files import replaced
from proxmargin.runtime.types import Axes, Facts
from proxmargin.studies.displays.axes import figure, pages, titled
from proxmargin.studies.displays.comparison import ComparisonDisplay
from proxmargin.studies.reports.details import ModelPredictions, calibration, class_of_curves
from proxmargin.studies.reports.page import templates
from proxmargin.studies.reports.standings import main_of
from proxmargin.studies.reports.text import answer, answer_of, summary
from proxmargin.studies.stats.clinical import RATES

# what is told of a run, and the 52 items by their numbers in Table 2 of the statement, in words of
# our own
FOLDER = Path(__file__).parent / "template"


def methods(facts: Facts, record: Facts) -> str:
    """How the models were made and judged, and what was found, in paragraphs of one line."""
    paragraphs = _rendered("methods.txt", facts, record).split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


def read_me(facts: Facts, record: Facts) -> str:
    """What each file of the folder holds, and which of them name samples."""
    return _rendered("read-me.txt", facts, record)


def _rendered(name: str, facts: Facts, record: Facts) -> str:
    protocol = facts["protocol"]
    values = {
        **{key: facts[key] for key in ("data", "models", "protocol")},
        "facts": facts,
        "record": record,
        "found": answer_of(facts, main_of(facts)),
        "model": next(m for m in facts["models"] if m["name"] == facts["recommended"]),
        "clinical": clinical_of(facts),
        "rates": RATES,
        "scoring": protocol["metrics"][0]["label"],
    }
    template = templates(FOLDER, finalize=_on_a_line, keep_trailing_newline=True).get_template(name)
    return str(template.render(**values))


def _on_a_line(value: object) -> str:
    """A value in a template, whose tabs and line ends part items and answers."""
    return str(value).translate(dict.fromkeys(map(ord, "\t\n\r"), " "))


def permutation_sentence(test: Facts | None) -> str:
    """What a test says, and what it has inside, in sentences; empty without one."""
    if test is None:
        return ""
    of, compared = test["model"], test["compared"]
    what = "its parameters chosen" if test["chooses"] else ""
    what = f"the choice among the {compared} models made" if test["inside"] > 1 else what
    again = f", {what} again for each permutation of the labels" if what else ""
    found = (
        f"Permutation test of the {test['metric']} of {of}{again}: {test['score']:.3f} on samples "
        f"held out in one repetition of the folds; {test['answer']}."
    )
    if test["inside"] > 1 or compared == 1:
        return found
    return (
        f"{found} That {of} was chosen among {compared} models by these labels is not inside, so "
        "that p is a little too small (publish --permute all puts it inside)."
    )


def clinical_of(facts: Facts) -> Facts | None:
    """The clinical numbers of the recommended model, if there are such."""
    found: Facts | None = ((facts["clinical"] or {}).get("models") or {}).get(facts["recommended"])
    return found


def checklist(facts: Facts, record: Facts) -> list[tuple[str, str, str]]:
    """Item, what it asks for, and the answer where the run knows it."""
    lines = _rendered("tripod-ai.txt", facts, record).splitlines()
    return [(number, asked, told) for number, asked, told in (line.split("\t") for line in lines)]


WIDTH = 8.27  # inches: A4
HEIGHT = 11.69  # inches
MARGINS = (0.08, 0.05, 0.86, 0.87)  # left, bottom, width and height of what is drawn
LINES = 74  # of a page of text
LETTERS = 112  # of its lines
NAME_LETTERS = 36  # of a line of the name of a feature
SIZE = 8.5  # points
TABLE_SIZE = 7.5  # points
TABLE_LETTERS = 110  # of a line that fits
FEATURES = 25  # in the chart of weights
ROWS = 12  # that its height has room for at least
THRESHOLD = "probability from which a sample is called positive"


def write_paper(
    path: str | os.PathLike[str],
    facts: Facts,
    methods: str,
    checklist: Sequence[tuple[str, str, str]],
) -> None:
    """Answer and table, curves, clinical numbers, weights, methods, checklist."""
    with replaced(path) as stream, pages(stream) as document:
        for page in _pages(facts, methods, checklist):
            document.savefig(page)


def _pages(
    facts: Facts, methods: str, checklist: Sequence[tuple[str, str, str]]
) -> Iterator[object]:
    yield _front(facts)
    yield _charts(facts, "Is the best really better?", ("differences", "folds"))
    yield _charts(facts, "Curves", ("roc", "precision_recall"))
    found = clinical_of(facts)
    if found is not None:
        yield _clinical_page(facts, found)
        yield from _text("Misclassified samples", _mistakes(found))
    features = facts["features"].get(facts["recommended"])
    if features:
        yield _weights(facts["recommended"], features[:FEATURES])
    told = methods.replace("**", "").split("\n\n")
    yield from _text("Methods and results", [line for each in told for line in (each, "")])
    yield from _text(
        "TRIPOD+AI", [f"{number}  {asked}: {told}" for number, asked, told in checklist]
    )


def _page(title: str) -> Any:
    page = figure(WIDTH, HEIGHT)
    page.get_layout_engine().set(rect=MARGINS)
    _put(page, 0.97, title, 13, weight="bold")
    return page


def _front(facts: Facts) -> Any:
    page = _page(f"{facts['data']['name'] or 'Data'}: comparison of models")
    _, bottom = page.subfigures(2, 1, height_ratios=(0.55, 0.45))
    lines = [*_wrapped(answer(facts)), "", *_wrapped(summary(facts))]
    _put(page, 0.94, "\n".join(lines), SIZE)
    table = main_of(facts).ranking().listing().plain()
    size = TABLE_SIZE * min(1.0, TABLE_LETTERS / max(map(len, table.splitlines())))
    _put(page, 0.92 - 0.0125 * len(lines), table, size, family="monospace")
    ComparisonDisplay(facts).plot(bottom.subplots())
    return page


def _charts(facts: Facts, title: str, kinds: Sequence[str]) -> Any:
    page = _page(title)
    for ax, kind in zip(page.subplots(len(kinds), 1), kinds, strict=True):
        ComparisonDisplay(facts).plot(ax, kind=kind)
    return page


def _clinical_page(facts: Facts, found: Facts) -> Any:
    """Rates with their intervals along the threshold, the net benefit, and the calibration."""
    page = _page(f"Clinical numbers: {found['positive']}")
    _, upper, lower = page.subfigures(3, 1, height_ratios=(0.2, 0.4, 0.4))
    columns = found["thresholds"]
    told = f"{_rendered('clinical.txt', facts, {})} {found['method']}"
    _put(page, 0.94, "\n".join(_wrapped(told)), SIZE)
    x, ax = columns["threshold"], upper.subplots()
    for name, label in RATES.items():
        middle, low, high = np.array(columns[name], dtype=float).T
        (line,) = ax.plot(x, middle, label=label)
        ax.fill_between(x, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
    _named(ax, "Rates with 95 % intervals", THRESHOLD, "rate")
    ax, judged = lower.subplots(1, 2)
    ax.plot(x, columns["net_benefit"], label="model")
    ax.plot(x, columns["net_benefit_all"], label="call all positive", linestyle="--")
    ax.axhline(0.0, color="grey", linewidth=1, label="call none")
    share = found["events"] / found["n"]  # the largest net benefit there is
    ax.set_ylim(-0.1 * share, 1.1 * share)
    _named(ax, "Net benefit (decision curve)", THRESHOLD, "net benefit")
    held_out = ModelPredictions.of(
        facts["predictions"], facts["recommended"], len(facts["data"]["classes"])
    )
    points = held_out and calibration(held_out, class_of_curves(facts))
    judged.plot([0, 1], [0, 1], color="grey", linestyle=":", linewidth=1, label="ideal")
    judged.plot(*zip(*points or (), strict=True), "o-", label=facts["recommended"])
    _named(judged, "Calibration", "predicted probability", "observed share")
    return page


def _named(ax: Axes, title: str, across: str, up: str) -> None:
    titled(ax, title)
    ax.set(xlabel=across, ylabel=up)
    ax.legend(frameon=False, fontsize="small")


def _mistakes(found: Facts) -> list[str]:
    rows = found["misclassified"]
    if not rows:
        return ["None."]
    head = f"{len(rows)} of {found['n']}, the surest first; probability of {found['positive']}:"
    each = (
        f"{row['id']}: {row['true']} taken for {row['predicted']}, {row['probability']:.3f}"
        for row in rows
    )
    return [head, *each]


def _weights(model: str, rows: Sequence[Facts]) -> Any:
    page = _page(f"Largest weights of {model}")
    ax = page.subplots()
    places = np.arange(len(rows))[::-1]
    ax.barh(places, [row["weight"] for row in rows])
    names = [f"{row['feature']} ({row['class']}; {row['frequency']:.0%})" for row in rows]
    ax.set_yticks(places, ["\n".join(textwrap.wrap(name, NAME_LETTERS)) for name in names])
    for name in ax.get_yticklabels():
        name.set(parse_math=False, fontsize="small")
    ax.set_ylim(min(0, len(rows) - ROWS) - 0.6, len(rows) - 0.4)
    titled(ax, "coefficient per standard deviation of the feature (class; share of the folds)")
    return page


def _text(title: str, paragraphs: Sequence[str]) -> Iterator[object]:
    """Pages of text."""
    lines = [line for each in paragraphs for line in _wrapped(each)]
    for start in range(0, len(lines), LINES):
        page = _page(title if start == 0 else f"{title} (continued)")
        _put(page, 0.94, "\n".join(lines[start : start + LINES]), SIZE)
        yield page


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, LETTERS) or [""]


def _put(place: Any, height: float, text: str, size: float, **style: Any) -> None:
    put = place.text(0.06, height, text, fontsize=size, va="top", **style)
    put.set_parse_math(False)  # dollar signs are no formulas
