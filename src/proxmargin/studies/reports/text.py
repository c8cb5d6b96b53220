"""A comparison in words, from its plain values: the answer, the table, what is said under it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proxmargin.runtime.brief import Listing
from proxmargin.studies.reports.answer import answer_of, choices
from proxmargin.studies.reports.standings import (
    MINUS,
    NONE,
    Row,
    certified,
    main_of,
    number_column,
    setting,
    settings_of,
    word_column,
)
from proxmargin.studies.stats.scores import INTERVAL

TOP_FEATURES = 10
LINES = 20  # of `short`
SHOWN_CLASSES = 6  # in the line on the data
# what a terminal may lack, and what searches for numbers would miss
TYPED = str.maketrans({"\u00a0": " ", MINUS: "-", NONE: "-"})


def text(facts: Row) -> str:
    """All of it."""
    parts = [answer(facts), summary(facts), listing(facts).plain(), *remarks(facts)]
    return "\n\n".join(parts)


def short(facts: Row) -> str:
    """The answer and the table, in no more lines than a screen has."""
    lines = [answer(facts), "", summary(facts), "", *listing(facts).plain().splitlines()]
    shown = lines[: LINES - 1]
    more = f"{len(lines) - len(shown)} more rows, " if len(lines) > len(shown) else ""
    return "\n".join([*shown, f"({more}weights, certificate and notes: print it)"])


def answer(facts: Row) -> str:
    """The recommended model, its score, and the models not distinguishable from it."""
    found = answer_of(facts, main_of(facts))
    if found.model is None:
        return found.caution
    told = (
        f"Recommended: {found.model}: {found.label} {found.score} ({INTERVAL} {found.interval}), "
        f"features used: {found.features} {found.of_features}.",
        *(found.choice, found.equals, found.power, found.caution),
    )
    return " ".join(each for each in told if each).translate(TYPED)


def summary(facts: Row) -> str:
    """One line on the data."""
    data, protocol = facts["data"], facts["protocol"]
    shown = [f"{each['label']} {each['count']}" for each in data["classes"]]
    listed = ", ".join(shown[:SHOWN_CLASSES]) + (", ..." if len(shown) > SHOWN_CLASSES else "")
    repeats, seconds = protocol["repeats"], facts["cost"]["seconds"]
    repeated = f", {repeats} times, in {seconds:.0f} s" if repeats > 1 else ""
    grouped = " of whole groups" if protocol["groups"] else ""
    transformer = protocol["preprocess"]
    prepared = f"; each training part fits {transformer}" if transformer else ""
    how = "standardised" if protocol["standardize"] else "as they are"
    return (
        f"{data['n_samples']} samples, {data['n_features']} features ({how}), {len(shown)} classes "
        f"({listed}); {protocol['folds']} folds{grouped}{repeated}{prepared}"
    )


def listing(facts: Row) -> Listing:
    """The ranking as it is printed."""
    gaps = number_column("certified gap", "relative_gap", certified)
    return _typed(main_of(facts).ranking(gaps, word_column("settings", settings_of)).listing())


def _typed(shown: Listing) -> Listing:
    return Listing(shown.headings, [[cell.translate(TYPED) for cell in row] for row in shown.rows])


def remarks(facts: Row) -> list[str]:
    """What is printed under the table: other choices, the models with their settings, the features
    and the certificate of the recommended one, and the notes."""
    found = [*_remarks(facts), *(f"Note: {note}." for note in facts["notes"])]
    return [remark for remark in found if remark]


def _remarks(facts: Row) -> Iterator[str]:
    count, recommended, best = len(facts["models"]), facts["recommended"], facts["best"]
    if count > 1:
        yield _typed(choices(facts, main_of(facts)).listing()).plain()
        yield (
            "Scores are of rows that no choice has seen; that of the best is a little optimistic, "
            f"because it is the best of {count}."
        )
    if recommended is not None:
        same = " and best" if recommended == best else ""
        yield _model_remark(facts, recommended, f"Recommended{same}")
        yield _features_remark(facts, recommended)
        final = _model(facts, recommended)["final"]
        if final is not None and final["certificate"] is not None:
            yield f"Certificate: {final['certificate']}."
    if recommended != best:
        yield _model_remark(facts, best, "Best")


def _model_remark(facts: Row, name: str, heading: str) -> str:
    """The model that is fitted on all samples."""
    model = _model(facts, name)
    if model["final"] is None:
        return ""
    settings = ", ".join(f"{k}={setting(v)}" for k, v in model["settings"].items())
    return (
        f"{heading}: {name}({settings}), fitted on all samples; it uses "
        f"{model['final']['n_features']} of {facts['data']['n_features']} features."
        f"{_simpler(facts, name)}"
    )


def _simpler(facts: Row, name: str) -> str:
    """The strongest penalty within one standard error of the choice, if it is another one."""
    curve = facts["paths"].get(name)
    if not curve or curve["parameter"] not in ("alpha", "C"):
        return ""
    place = curve["one_standard_error"]
    value, parameter = curve["strengths"][place], curve["parameter"]
    if value == curve["chosen"]:
        return ""
    used = f" with about {curve['n_features'][place]:.0f} features"
    return f" Within one standard error of it: {parameter}={setting(value)}{used}."


def _features_remark(facts: Row, name: str) -> str:
    top = facts["features"].get(name, ())[:TOP_FEATURES]
    classes = [each["label"] for each in facts["data"]["classes"]]
    if not top:
        return ""
    headings, speaks = ["feature", "weight"], f"; positive speaks for {classes[1]}"
    rows = [[row["feature"], f"{row['weight']:+.3g}"] for row in top]
    if len(classes) > 2:
        headings, speaks = [*headings, "class"], ", for the class where it is largest"
        rows = [[*cells, row["class"]] for cells, row in zip(rows, top, strict=True)]
    title = f"Largest weights (coefficient per standard deviation of the feature{speaks}):"
    return f"{title}\n{Listing(headings, rows).plain()}"


def _model(facts: Row, name: str) -> Any:
    return next(each for each in facts["models"] if each["name"] == name)
