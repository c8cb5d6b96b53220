"""The methods paragraph of a comparison with its numbers, the TRIPOD+AI checklist, and a PDF.

The PDF has both and the pictures, drawn by matplotlib: no browser is needed.

Collins et al. (2024), TRIPOD+AI statement: updated guidance for reporting clinical prediction
models that use regression or machine learning methods. BMJ 385, e078378.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.runtime.files import replaced
from proxmargin.runtime.types import Axes
from proxmargin.studies.displays.axes import figure, pages, titled
from proxmargin.studies.displays.comparison import ComparisonDisplay
from proxmargin.studies.reports.standings import main_of
from proxmargin.studies.reports.text import answer, answer_of, listing, power, summary
from proxmargin.studies.stats.clinical import RATES

Facts = Mapping[str, Any]
AUTHORS = "For the authors."
# the 52 items by their numbers in Table 2 of the statement, in words of our own
ITEMS = Path(__file__).with_name("tripod-ai.txt")


def methods(facts: Facts, record: Facts) -> str:
    """How the models were made and judged, and what was found, in paragraphs."""
    return "\n\n".join((_how(facts, record), _found(facts, record)))


def _how(facts: Facts, record: Facts) -> str:
    data, protocol, versions = facts["data"], facts["protocol"], record["versions"]
    names = ", ".join(each["name"] for each in facts["models"])
    label = protocol["metrics"][0]["label"]
    repeated = f", repeated {protocol['repeats']} times" if protocol["repeats"] > 1 else ""
    whole = " of whole groups" if protocol["groups"] else ""
    prepared = protocol["preprocess"]
    told = [
        f"Data: {_size(data)} ({data['name'] or 'no name'}; SHA-256 of {record['data']['of']} "
        f"{record['data']['sha256']}).",
        f"{len(facts['models'])} models ({names}) were compared by nested cross-validation with "
        f"{protocol['folds']} outer folds{whole}{repeated}. In each training part the parameters "
        f"were chosen by {protocol['inner']}, and the model was then fitted to that part and "
        f"judged on the part held out by {label}; random seed {protocol['random_state']}.",
        f"Each training part fits {prepared} before anything else{_missing(data)}."
        if prepared
        else "",
        "Features were standardised in each training part." if protocol["standardize"] else "",
        "Samples have weights in fits and scores; counts, clinical numbers and curves take each "
        "once."
        if protocol.get("weighted")
        else "",
        "Intervals of mean scores and tests of differences between models are those of Nadeau and "
        "Bengio (2003), which allow for the overlap of training parts; p-values are adjusted by "
        "Holm's procedure.",
        _of(facts)["probabilities"]["sentence"].replace("its scores", "the scores"),
        _certificates(facts),
        f"proxmargin {versions['proxmargin']}, scikit-learn {versions['scikit-learn']}, SciPy "
        f"{versions['scipy']}, NumPy {versions['numpy']}, Python {versions['python']}.",
    ]
    return " ".join(each for each in told if each)


def _found(facts: Facts, record: Facts) -> str:
    found, clinical = answer_of(facts, main_of(facts)), clinical_of(facts)
    stability, count = _of(facts)["stability"], len(facts["models"])
    told = [
        f"The recommended model is {found.model}: {found.label} {found.score} (95 % interval "
        f"{found.interval}), features used {found.features} {found.of_features}.",
        found.choice,
        found.equals,
        power(facts),
        found.caution,
        f"The mean of the best of {count} models is a little optimistic." if count > 1 else "",
        "" if clinical is None else _clinical(clinical, facts["protocol"]["repeats"]),
        ""
        if stability is None or stability != stability
        else f"Stability of the selected features over the folds {stability:.2f} (Nogueira et al. "
        "2018; 1: the same in each fold, 0: as by chance).",
        facts["permutation_test"],
    ]
    return " ".join(each for each in told if each)


def _clinical(found: Facts, repeats: int) -> str:
    point = found["predicted"]
    first = f" (first of {repeats} repetitions of the folds)" if repeats > 1 else ""
    shown = "; ".join(f"{word} {estimate(point[rate])}" for rate, word in RATES.items())
    return (
        f"Of {found['n']} held-out samples{first}, {found['events']} of the class "
        f"{found['positive']}: area under the ROC curve {estimate(found['auc'])}; where the model "
        f"predicts the class ({point['tp']} right, {point['fp']} wrong, {point['fn']} missed) "
        f"{shown}. Calibration slope {estimate(found['slope'], 2)}, "
        f"intercept {estimate(found['intercept'], 2)}, {found['expected']:.1f} events expected; "
        f"Brier score {found['brier']:.3f}. {found['method']}"
    )


def estimate(value: Facts, digits: int = 3) -> str:
    """``0.912 [0.850, 0.951]``."""
    if value["value"] is None:
        return "not estimable"
    return "{value:.{d}f} [{low:.{d}f}, {high:.{d}f}]".format(**value, d=digits)


def permutation_sentence(test: Facts | None) -> str:
    """What a test says, and what it has inside, in sentences; empty without one."""
    if test is None:
        return ""
    of, compared = test["model"], test["compared"]
    what = "its parameters chosen" if test["chooses"] else ""
    what = f"the choice among the {compared} models made" if test["inside"] > 1 else what
    again = f", {what} again for each permutation of the labels" if what else ""
    found = (
        f"Permutation test of the {test['metric']} of {of}{again}: {test['score']:.3f} on held-out "
        f"samples; {test['answer']}."
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


def _of(facts: Facts) -> Facts:
    found: Facts = next(m for m in facts["models"] if m["name"] == facts["recommended"])
    return found


def _missing(data: Facts) -> str:
    found = (data["card"] or {}).get("missing") or {"entries": 0}
    if not found["entries"]:
        return ""
    return f"; {found['entries']} entries of {found['count']} features are missing"


def _size(data: Facts) -> str:
    counts = ", ".join(f"{each['count']} {each['label']}" for each in data["classes"])
    return f"{data['n_samples']} samples ({counts}), {data['n_features']} features"


def _certificates(facts: Facts) -> str:
    found = facts["certificates"]
    return (
        f"Of {found['fits']} fits {found['unmet']} missed their tolerance; the largest certified "
        f"relative duality gap is {found['worst_gap'] or 0.0:.1e}."
    )


def checklist(facts: Facts, record: Facts) -> list[tuple[str, str, str]]:
    """Item, what it asks for, and the answer where the run knows it."""
    known = dict(_answers(facts, record))
    items = (each.split("\t") for each in ITEMS.read_text("utf-8").splitlines())
    return [(number, asked, known.get(number, AUTHORS)) for number, asked in items]


def _answers(facts: Facts, record: Facts) -> Iterator[tuple[str, str]]:
    data, protocol, clinical = facts["data"], facts["protocol"], clinical_of(facts)
    prepared = protocol["preprocess"]
    yield "7", f"Fitted in each training part: {prepared}." if prepared else "None by this run."
    yield "10", f"{_size(data)}. No sample size was calculated by this run. {power(facts)}".strip()
    yield (
        "11",
        f"Filled in by {prepared}{_missing(data)}."
        if prepared
        else "None: there were no missing entries.",
    )
    yield "12a", "Nested cross-validation: methods.md, first paragraph."
    scaled = "standardised" if protocol["standardize"] else "in the units of the data"
    yield "12b", f"Features are {scaled}; linear models are linear in them."
    yield "12c", "Linear margin classifiers and kernel machines; see 12a and tables/scores.csv."
    yield "12e", ", ".join(str(each["label"]) for each in protocol["metrics"])
    yield "12f", "None."
    yield "12g", f"model.pmz. {_of(facts)['probabilities']['sentence']}"
    chosen = protocol["metrics"][0]["label"]
    yield "13", f"Models are chosen by {chosen}; no class was resampled."
    points = "" if clinical is None else "; thresholds: tables/thresholds.csv"
    yield "15", f"Predicted class and probability of each class{points}."
    yield "18f", f"`{record['command'] or 'proxmargin.compare'}`; versions in provenance.json."
    yield "21", _size(data)
    yield "22", "model.pmz (settings, coefficients); tables/coefficients.csv for linear models."
    yield "23a", "methods.md, second paragraph; report.html; tables."
    if clinical is not None:
        yield (
            "8a",
            f"Class {clinical['positive']} against the rest; its definition is the authors'.",
        )


WIDTH = 8.27  # inches: A4
HEIGHT = 11.69  # inches
LINES = 74  # of a page of text
LETTERS = 96  # of its lines
SIZE = 8.5  # points
TABLE_SIZE = 6.5  # points
TABLE_LETTERS = 130  # of a line that fits
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
        yield _clinical_page(found, facts["protocol"]["repeats"])
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


def _clinical_page(found: Facts, repeats: int) -> Any:
    """Rates with their intervals along the threshold, and the net benefit."""
    page = figure(WIDTH, HEIGHT)
    text, upper, lower = page.subfigures(3, 1, height_ratios=(0.24, 0.38, 0.38))
    columns = found["thresholds"]
    _put(text, 0.98, f"Clinical numbers: {found['positive']}", 13, weight="bold")
    _put(text, 0.86, "\n".join(_wrapped(_clinical(found, repeats))), SIZE)
    x, ax = columns["threshold"], upper.subplots()
    for name, label in RATES.items():
        middle, low, high = np.array(columns[name], dtype=float).T
        (line,) = ax.plot(x, middle, label=label)
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


def _named(ax: Axes, title: str, label: str) -> None:
    titled(ax, title)
    ax.set_xlabel("probability from which a sample is called positive")
    ax.set_ylabel(label)
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
