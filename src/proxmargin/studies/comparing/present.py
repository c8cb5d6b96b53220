"""A comparison in words, from its plain values: the answer, the table, what is said under it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from proxmargin.runtime.brief import Listing, number
from proxmargin.studies.comparing.candidates import MAJORITY
from proxmargin.studies.stats.scores import CONFIDENCE, INTERVAL, percent

Facts = Mapping[str, Any]  # `Comparison.facts`, or a part of them

TOP_FEATURES = 10
LINES = 20  # of `short`
SHOWN_CLASSES = 6  # in the line on the data
RECOMMENDED = "**"  # mark of the recommended model
EQUIVALENT = "*"  # of those not distinguishable from the best


def text(facts: Facts) -> str:
    """All of it."""
    parts = [answer(facts), summary(facts), listing(facts).plain(), *remarks(facts)]
    return "\n\n".join(parts)


def short(facts: Facts) -> str:
    """The answer and the table, in no more lines than a screen has."""
    lines = [answer(facts), "", summary(facts), "", *listing(facts).plain().splitlines()]
    shown = lines[: LINES - 1]
    more = f"{len(lines) - len(shown)} more rows, " if len(lines) > len(shown) else ""
    return "\n".join([*shown, f"({more}weights, certificate and notes: print it)"])


def answer(facts: Facts) -> str:
    """The recommended model, its score, and the models not distinguishable from it."""
    name, best = facts["recommended"], facts["best"]
    if name is None:
        return "No model can be recommended: no fold is complete."
    row = _row(facts, name)
    used = {model["name"]: model["n_features"] for model in facts["models"]}
    sentence = (
        f"Recommended: {name}: its {_label(facts)} is {row['mean']:.3f} {_interval(row)}, with "
        f"{number(used[name], '.3g')} of {facts['data']['n_features']} features"
    )
    others = [each for each in facts["equivalent"] if each != name]
    if not others:
        return f"{sentence}; all other models are worse." if len(used) > 1 else f"{sentence}."
    why = ""
    if name != best:
        fewer = f"; {name} uses fewer features" if used[name] < used[best] else ""
        why = f" (the best mean is that of {best}, {_row(facts, best)['mean']:.3f}{fewer})"
    return f"{sentence}{why}; not distinguishable from the best: {', '.join(others)}."


def power(facts: Facts) -> str:
    """The difference that these data would usually miss; empty where nothing is known of it."""
    missed = facts["missed"]
    if not missed or not math.isfinite(missed["difference"]):
        return ""
    once, several = (float(f"{missed[k]:.1g}") for k in ("difference", "difference_of_all"))
    repeats, models = missed["repeats"], missed["models"]
    passes = "one repetition" if repeats == 1 else f"{repeats} repetitions"
    any_pair = f" ({several:g} for any pair of these {models})" if models > 2 else ""
    return (
        f"With {missed['rows']} rows, on {missed['disagreement'] * missed['rows']:.0f} of which "
        f"two models typically disagree, {passes} would miss a difference of two models named "
        f"beforehand below about {once:g}{any_pair} more often than one time in five. Not "
        "distinguishable is therefore not equal."
    )


def rule(facts: Facts) -> str:
    """Why a model is recommended, in one sentence."""
    price = facts["price_of_half_the_features"]
    if price != price:
        return "the best mean, because nothing says what fewer features may cost in this score"
    return (
        f"the best mean, or a model with at most half of its features, if it loses no more than "
        f"{price:.2g} for each halving"
    )


def choices(facts: Facts) -> Listing:
    """The most accurate, the simplest and the most stable model, with what each costs."""
    headings = ("choice", "model", _label(facts), "costs", "features", "stability")
    rows = [
        [
            each["role"],
            each["model"],
            number(each["mean"], ".3f"),
            number(each["cost"], ".3f"),
            number(each["n_features"], ".0f"),
            number(each["stability"], ".2f"),
        ]
        for each in facts["choices"]
    ]
    return Listing(headings, rows)


def summary(facts: Facts) -> str:
    """One line on the data."""
    data, protocol = facts["data"], facts["protocol"]
    shown = [f"{each['label']} {each['count']}" for each in data["classes"]]
    listed = ", ".join(shown[:SHOWN_CLASSES]) + (", ..." if len(shown) > SHOWN_CLASSES else "")
    repeated = f", {protocol['repeats']} times" if protocol["repeats"] > 1 else ""
    grouped = " of whole groups" if protocol["groups"] else ""
    transformer = protocol["preprocess"]
    prepared = f"; each training part fits {transformer}" if transformer else ""
    how = "standardised" if protocol["standardize"] else "as they are"
    return (
        f"{data['n_samples']} samples, {data['n_features']} features ({how}), {len(shown)} classes "
        f"({listed}); {protocol['folds']} folds{grouped}{repeated}{prepared}"
    )


def listing(facts: Facts) -> Listing:
    """The table as it is printed, with always predicting the majority as its last row."""
    models, scoring = facts["models"], facts["protocol"]["scoring"]
    names = list(dict.fromkeys(name for model in models for name in model["settings"]))
    headings = ["model", "", _label(facts), INTERVAL, "features used", "stability", "seconds"]
    headings = [*headings, "certified gap", *names]
    marks = {**dict.fromkeys(facts["equivalent"], EQUIVALENT), facts["recommended"]: RECOMMENDED}
    rows = [
        [
            each["name"],
            marks.get(each["name"], ""),
            _plus_minus(each["score_mean"], each["score_sd"]),
            _interval(_row(facts, each["name"])),
            number(each["n_features"], ".1f"),
            number(each["stability"], ".2f"),
            number(each["seconds_per_fit"], ".2g"),
            number(each["relative_gap"], ".1e"),
            *(_shown(each["settings"].get(name)) for name in names),
        ]
        for each in models
    ]
    if not any(each["name"] == MAJORITY for each in models):
        spread = _plus_minus(facts["majority"][scoring], facts["majority_sd"][scoring])
        rows.append([MAJORITY, "", spread, *[""] * (len(headings) - 3)])
    return Listing(headings, rows)


def remarks(facts: Facts) -> list[str]:
    """What is printed under the table: marks, the recommended model with its certificate, and
    the notes."""
    found = [*_remarks(facts), *(f"Note: {note}." for note in facts["notes"])]
    return [remark for remark in found if remark]


def _remarks(facts: Facts) -> Iterator[str]:
    count, recommended, best = len(facts["models"]), facts["recommended"], facts["best"]
    if count > 1:
        yield (
            f"{EQUIVALENT} not distinguishable from the best (differences over the folds, "
            f"{percent(1 - CONFIDENCE)} in all pairs together); {RECOMMENDED} recommended: "
            f"{rule(facts)}. Scores are of rows that no choice has seen; that of the best is a "
            f"little optimistic, because it is the best of {count}."
        )
        yield choices(facts).plain()
        yield power(facts)
    if recommended is not None:
        same = " and best" if recommended == best else ""
        yield _model_remark(facts, recommended, f"Recommended{same}")
        yield _features_remark(facts, recommended)
        final = _model(facts, recommended)["final"]
        if final is not None and final["certificate"] is not None:
            yield f"Certificate: {final['certificate']}."
    if recommended != best:
        yield _model_remark(facts, best, "Best")


def _model_remark(facts: Facts, name: str, heading: str) -> str:
    """The model that is fitted on all samples."""
    model = _model(facts, name)
    if model["final"] is None:
        return ""
    settings = ", ".join(f"{k}={_shown(v)}" for k, v in model["settings"].items())
    return (
        f"{heading}: {name}({settings}), fitted on all samples; it uses "
        f"{model['final']['n_features']} of {facts['data']['n_features']} features."
    )


def _features_remark(facts: Facts, name: str) -> str:
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


def _label(facts: Facts) -> str:
    return str(facts["protocol"]["metrics"][0]["label"])


def _model(facts: Facts, name: str) -> Facts:
    found: Facts = next(each for each in facts["models"] if each["name"] == name)
    return found


def _row(facts: Facts, name: str) -> Facts:
    """The numbers of a model by the scoring."""
    found: Facts = _model(facts, name)["metrics"][facts["protocol"]["scoring"]]
    return found


def _interval(row: Facts) -> str:
    return "-" if row["low"] != row["low"] else f"[{row['low']:.3f}, {row['high']:.3f}]"


def _plus_minus(mean: float, spread: float) -> str:
    return f"{number(mean, '.3f')} ± {number(spread, '.3f')}"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return format(value, ".3g") if isinstance(value, float) else str(value)
