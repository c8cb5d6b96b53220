"""A comparison as pages of a PDF, drawn by matplotlib: no browser is needed."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from proxmargin.runtime.files import replaced
from proxmargin.studies.displays.axes import figure, pages, titled
from proxmargin.studies.displays.comparison import ComparisonDisplay
from proxmargin.studies.publishing.methods import clinical_of, estimate
from proxmargin.studies.reports.text import answer, listing, summary
from proxmargin.studies.stats.clinical import RATES

Facts = Mapping[str, Any]

WIDTH, HEIGHT = 8.27, 11.69  # inches: A4
LINES, LETTERS, SIZE = 74, 96, 8.5  # of a page of text
TABLE_SIZE, TABLE_LETTERS = 6.5, 130  # points, and letters of a line that fits
FEATURES = 25  # in the chart of weights


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


def _pages(facts: Facts, methods: str, checklist: Sequence[tuple[str, str, str]]) -> Iterator[Any]:
    yield _front(facts)
    yield _charts(facts, ("differences", "folds"))
    yield _charts(facts, ("roc", "precision_recall"))
    found = clinical_of(facts)
    if found is not None:
        yield _clinical(found)
        yield from _text("Misclassified samples", _mistakes(found))
    features = facts["features"].get(facts["recommended"])
    if features:
        yield _weights(facts["recommended"], features[:FEATURES])
    yield from _text("Methods and results", methods.split("\n\n"))
    yield from _text(
        "TRIPOD+AI", [f"{number}  {asked}: {told}" for number, asked, told in checklist]
    )


def _front(facts: Facts) -> Any:
    page = figure(WIDTH, HEIGHT)
    top, bottom = page.subfigures(2, 1, height_ratios=(0.6, 0.4))
    lines = [*_wrapped(answer(facts)), "", *_wrapped(summary(facts))]
    _put(top, 0.98, str(facts["data"]["name"] or "Comparison"), 13, weight="bold")
    _put(top, 0.94, "\n".join(lines), SIZE)
    down = 0.94 - 0.0225 * len(lines) - 0.03
    table = listing(facts).plain()
    size = TABLE_SIZE * min(1.0, TABLE_LETTERS / max(map(len, table.splitlines())))
    _put(top, down, table, size, family="monospace")
    ComparisonDisplay(facts).plot(bottom.subplots())
    return page


def _charts(facts: Facts, kinds: Sequence[str]) -> Any:
    page = figure(WIDTH, HEIGHT)
    for ax, kind in zip(page.subplots(2, 1), kinds, strict=True):
        ComparisonDisplay(facts).plot(ax, kind=kind)
    return page


def _clinical(found: Facts) -> Any:
    """Rates with their intervals along the threshold, and the net benefit."""
    page = figure(WIDTH, HEIGHT)
    text, upper, lower = page.subfigures(3, 1, height_ratios=(0.24, 0.38, 0.38))
    point, columns = found["predicted"], found["thresholds"]
    told = [
        f"{found['n']} samples, {found['events']} of the class {found['positive']}; as the model "
        f"predicts: {point['tp']} true and {point['fp']} false positives, {point['fn']} false and "
        f"{point['tn']} true negatives.",
        *(f"{name}: {estimate(point[name])}" for name in ("sensitivity", "specificity")),
        f"PPV: {estimate(point['ppv'])}; NPV: {estimate(point['npv'])}",
        f"Area under the ROC curve: {estimate(found['auc'])}",
        f"Calibration slope: {estimate(found['slope'], 2)}, intercept: "
        f"{estimate(found['intercept'], 2)}; expected events: {found['expected']:.1f}",
        found["method"],
    ]
    _put(text, 0.98, f"Clinical numbers: {found['positive']}", 13, weight="bold")
    _put(text, 0.86, "\n".join(line for each in told for line in _wrapped(each)), SIZE)
    x, ax = columns["threshold"], upper.subplots()
    for name in RATES:
        middle, low, high = np.array(columns[name], dtype=float).T
        (line,) = ax.plot(x, middle, label=name.upper() if name in ("ppv", "npv") else name)
        ax.fill_between(x, low, high, alpha=0.15, color=line.get_color(), linewidth=0)
    _named(ax, "Rates with 95 % intervals", "rate")
    ax = lower.subplots()
    ax.plot(x, columns["net_benefit"], label="model")
    ax.plot(x, columns["net_benefit_all"], label="call all positive", linestyle="--")
    ax.axhline(0.0, color="grey", linewidth=1, label="call none")
    share = found["events"] / found["n"]  # the largest net benefit there is
    ax.set_ylim(-0.1 * share, 1.1 * share)
    _named(ax, "Net benefit (decision curve)", "net benefit")
    return page


def _named(ax: Any, title: str, label: str) -> None:
    titled(ax, title)
    ax.set_xlabel("probability from which a sample is called positive")
    ax.set_ylabel(label)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)


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
    page = figure(WIDTH, HEIGHT)
    ax = page.subplots()
    places = np.arange(len(rows))[::-1]
    ax.barh(places, [row["weight"] for row in rows])
    names = [f"{row['feature']} ({row['class']}; {row['frequency']:.0%})" for row in rows]
    ax.set_yticks(places, [name.replace("$", r"\$") for name in names])
    ax.set_xlabel("coefficient per standard deviation of the feature")
    titled(ax, f"Largest weights of {model} (class; share of the folds)")
    ax.spines[["top", "right"]].set_visible(False)
    return page


def _text(title: str, paragraphs: Sequence[str]) -> Iterator[Any]:
    """Pages of text."""
    lines = [line for each in paragraphs for line in _wrapped(each)]
    for start in range(0, len(lines), LINES):
        page = figure(WIDTH, HEIGHT)
        _put(page, 0.97, title if start == 0 else f"{title} (continued)", 13, weight="bold")
        _put(page, 0.94, "\n".join(lines[start : start + LINES]), SIZE)
        yield page


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, LETTERS) or [""]


def _put(place: Any, height: float, text: str, size: float, **style: Any) -> None:
    put = place.text(0.06, height, text, fontsize=size, va="top", **style)
    put.set_parse_math(False)  # dollar signs are no formulas
