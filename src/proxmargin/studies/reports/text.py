"""A comparison in words, from its plain values: the answer, the table, what is said under it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from math import inf
from pathlib import Path
from typing import cast

from proxmargin.runtime.brief import Listing
from proxmargin.runtime.types import Facts
from proxmargin.studies.reports.details import feature_table
from proxmargin.studies.reports.standings import (
    MINUS,
    NONE,
    Column,
    HtmlTable,
    Standings,
    certified,
    interval,
    joined,
    known,
    leaning,
    main_of,
    score,
    setting,
    settings_of,
    used,
)
from proxmargin.studies.stats.scores import FEWER, INTERVAL, TIE

TOP_FEATURES = 10
LINES = 20  # of `short`
SHOWN_CLASSES = 6  # in the line on the data
# what a terminal may lack, and what searches for numbers would miss
TYPED = str.maketrans({"\u00a0": " ", MINUS: "-", NONE: "-"})


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
    found = answer_of(facts, main_of(facts))
    if found.model is None:
        return found.caution
    told = (
        f"Recommended: {found.model}: {found.label} {found.score} ({INTERVAL} {found.interval}), "
        f"features used: {found.features} {found.of_features}.",
        *(found.choice, found.equals, found.power, found.caution),
    )
    return " ".join(each for each in told if each).translate(TYPED)


def summary(facts: Facts) -> str:
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


def listing(facts: Facts) -> Listing:
    """The ranking as it is printed."""
    gaps = Column("largest gap", "relative_gap", certified)
    shown = main_of(facts).ranking(gaps, Column("settings", settings_of, None)).listing()
    return Listing(shown.headings, [[cell.translate(TYPED) for cell in row] for row in shown.rows])


def remarks(facts: Facts) -> list[str]:
    """What is printed under the table: other choices, the models with their settings, the features
    and the certificate of the recommended one, and the notes."""
    found = [*_remarks(facts), *(f"Note: {note}." for note in facts["notes"])]
    return [remark for remark in found if remark]


def _remarks(facts: Facts) -> Iterator[str]:
    models, recommended, best = _models(facts), facts["recommended"], facts["best"]
    if len(models) > 1:
        yield choices(facts, main_of(facts)).listing().plain().translate(TYPED)
        yield (
            "Scores are of rows that no choice has seen; that of the best is a little optimistic, "
            f"because it is the best of {len(models)}."
        )
    if recommended is not None:
        same = " and best" if recommended == best else ""
        yield _model_remark(facts, models[recommended], f"Recommended{same}")
        yield _features_remark(facts, recommended)
        certificate = (models[recommended]["final"] or {}).get("certificate")
        yield f"Certificate: {certificate}." if certificate is not None else ""
    if recommended != best:
        yield _model_remark(facts, models[best], "Best")


def _model_remark(facts: Facts, model: Facts, heading: str) -> str:
    """The model that is fitted on all samples, and the strongest penalty within one standard error
    of its choice, if it is another one."""
    if model["final"] is None:
        return ""
    name, curve = model["name"], facts["paths"].get(model["name"])
    settings = ", ".join(f"{k}={setting(v)}" for k, v in model["settings"].items())
    made = model["final"].get("python") or f"{name}({settings})"
    named = "" if made.startswith(f"{name}(") else f"{name}, "
    told = (
        f"{heading}: {named}{made}, fitted on all samples; it uses "
        f"{model['final']['n_features']} of {facts['data']['n_features']} features."
    )
    if not curve or curve["parameter"] not in ("alpha", "C"):
        return told
    place = curve["one_standard_error"]
    value, features = curve["strengths"][place], curve["n_features"][place]
    if value == curve["chosen"]:
        return told
    plural = "s" if round(features) != 1 else ""
    simpler = f"{curve['parameter']}={setting(value)} with about {features:.0f} feature{plural}"
    return f"{told} Within one standard error of it: {simpler}."


def _features_remark(facts: Facts, name: str) -> str:
    top = facts["features"].get(name, ())[:TOP_FEATURES]
    labels = [str(each["label"]) for each in facts["data"]["classes"]]
    whole = feature_table("", name, top, labels).listing()
    # the rest of the table is on the page
    rows = [[feature, weight.translate(TYPED), side] for feature, weight, side, *_ in whole.rows]
    speaks = f"; positive speaks for {labels[1]}" if len(labels) == 2 else ""
    title = f"Largest weights (coefficient per standard deviation of the feature{speaks}):"
    return f"{title}\n{Listing(whole.headings[:3], rows).plain()}" if top else ""


def _models(facts: Facts) -> dict[str, Facts]:
    return {each["name"]: each for each in facts["models"]}


NAMED = 3  # features that are named at the top of the page
NAMED_EQUALS = 5  # models that are named as equals
RARE = 0.1  # share of a class from which labels are seldom of it
OF_LABELS = ("accuracy", "balanced_accuracy", "matthews_corrcoef")
AGREED = 0.5  # share of the folds whose models use a feature, from which it is named


@dataclass(frozen=True)
class Answer:
    """The first screen; sentences are empty where there is nothing to say."""

    model: str | None
    label: str = ""
    score: str = NONE
    interval: str = NONE
    features: str = NONE
    of_features: str = ""
    plain: str = ""  # what the score means, for a reader who does not know it
    equals: str = ""
    choice: str = ""
    power: str = ""  # the difference that the data would miss
    weighs: str = ""
    caution: str = ""


def first_screen(facts: Facts) -> str:
    """The answer and the ranking for a notebook: HTML without a style sheet."""
    main = main_of(facts)
    answer = answer_of(facts, main)
    head = (
        f"<b>{escape(answer.model)}</b>: {escape(answer.label)} <b>{answer.score}</b>, "
        f"{INTERVAL} {answer.interval}; {answer.features} {answer.of_features} features"
        if answer.model
        else ""
    )
    told = (answer.plain, answer.weighs, answer.choice, answer.equals, answer.power, answer.caution)
    sentences = map(escape, [*told, *(facts.get("notes") or ())])
    paragraphs = "".join(f"<p>{each}</p>" for each in (head, *sentences) if each)
    return f"{paragraphs}{choices(facts, main).listing().html()}{main.ranking().listing().html()}"


def answer_of(facts: Facts, main: Standings) -> Answer:
    """The answer by the main metric of a comparison."""
    models = _models(facts)
    name = str(facts.get("recommended") or facts.get("best"))
    if name not in models or not main.models:
        return Answer(None, caution=say("unfinished"))
    numbers = main.of(models[name])
    features, _, folds = used(models[name]).text.partition(" (")
    of = f"of {facts['data']['n_features']:,}"
    return Answer(
        model=name,
        label=main.label,
        score=score(numbers.get("mean")),
        interval=interval(numbers.get("low"), numbers.get("high")),
        features=features,
        of_features=f"{of}; {folds.rstrip(')')} in the folds" if folds else of,
        plain=_meaning(main, numbers),
        equals=_equals(facts, name),
        choice=_choice(facts, main, models, name),
        power=power(facts),
        weighs=_weighs(facts, name),
        caution=_caution(facts, main, models[name], numbers),
    )


def choices(facts: Facts, main: Standings) -> HtmlTable:
    """The most accurate, the simplest and the most stable model, with what each costs."""
    models = _models(facts)
    found = [row for row in facts.get("choices") or () if row["model"] in models]
    roles: dict[str, list[str]] = {}
    for row in found:
        roles.setdefault(row["model"], []).append(row["role"])
    columns = (
        Column("choice", lambda row: ", ".join(roles[row["model"]]), None),
        Column("model", "model", None),
        Column(main.label, "mean"),
        Column("costs", "cost", why="mean score below the best"),
        Column("features used", lambda row: used(models[row["model"]])),
        Column(
            "stability",
            lambda row: models[row["model"]].get("stability"),
            lambda value: score(value, 2),
        ),
    )
    rows = {row["model"]: row for row in found}.values()
    return HtmlTable.of("choices", "Other choices, and what they cost", columns, rows)


@cache
def _sentences() -> Mapping[str, str]:
    file = Path(__file__).parent / "template" / "sentences.json"
    return cast("Mapping[str, str]", json.loads(file.read_text("utf-8")))


def say(name: str, **values: object) -> str:
    """One of the sentences beside the code, with its values."""
    return _sentences()[name].format(**values)


def power(facts: Facts) -> str:
    """The difference that these data would usually miss; empty where nothing is known of it."""
    told = facts.get("missed")
    if not told or not known(told["difference"]):
        return ""
    rows, apart = told["rows"], told["disagreement"] * told["rows"]
    if apart < 1:
        return say("alike", rows=rows)
    once, several = (float(f"{told[k]:.1g}") for k in ("difference", "difference_of_all"))
    models, largest = told["models"], told["largest"] if known(told["largest"]) else inf
    missed = say("every")
    if once < largest:
        many = models > 2 and several < largest
        pair = say("pair", several=several, models=models) if many else ""
        missed = say("missed", once=once, pair=pair)
    if several >= largest:
        missed = say("hopeless", missed=missed, models=models, largest=largest)
    passes = "one repetition" if told["repeats"] == 1 else f"{told['repeats']} repetitions"
    return say("power", rows=rows, apart=apart, passes=passes, missed=missed)


def _choice(facts: Facts, main: Standings, models: Facts, name: str) -> str:
    """Why the model is recommended (`comparing.evidence.recommended`)."""
    if len(models) == 1:
        return say("alone")
    best, price = models[str(facts["best"])], facts.get("price_of_half_the_features")
    if best["name"] == name:
        final = (best.get("final") or {}).get("n_features", best["n_features"])
        return say("best_for_its_features" if known(price) and final > 1 else "best")
    ours, unit = main.of(models[name]), facts.get("unit")
    difference = ours.get("difference")
    if models[name]["n_features"] <= FEWER * best["n_features"]:
        why = say("fewer_at_a_price", price=price) if known(price) else say("fewer")
    elif known(unit) and known(difference) and abs(difference) <= TIE * unit:
        why = say("tie")
    else:
        why = say("multiclass", best=best["name"])
    ends = interval(ours.get("difference_low"), ours.get("difference_high"))
    mean = score(main.of(best)["mean"])
    difference = score(difference)
    return say("another", best=best["name"], mean=mean, difference=difference, ends=ends, why=why)


def _meaning(main: Standings, numbers: Facts) -> str:
    """The score for someone who has not met it."""
    mean, kind = numbers.get("mean"), main.metric["name"]
    if not known(mean) or kind not in ("balanced_accuracy", "accuracy", "roc_auc"):
        return ""
    hundred = round(100 * mean)  # all of them only where none is missing
    sentence = say(
        kind, share="more than 99" if hundred == 100 and mean < 1 else f"about {hundred}"
    )
    if main.majority is None or kind == "roc_auc":
        return sentence
    return f"{sentence} {say('guess', guess=100 * main.majority)}"


def _equals(facts: Facts, name: str) -> str:
    others = [each for each in facts.get("equivalent") or () if each != name]
    count, some = len(others), joined(others[:NAMED_EQUALS])
    if len(facts["models"]) == 1:
        return ""
    if not others:
        return say("no_equals")
    if count > NAMED_EQUALS:
        whole = count == len(facts["models"]) - 1
        return say("all_equal" if whole else "many_equals", count=count, some=some)
    return say("one_equal" if count == 1 else "equals", some=some)


def _weighs(facts: Facts, name: str) -> str:
    """Features of large weight that most folds agree on, and what they speak for."""
    listed = (facts.get("features") or {}).get(name) or []
    agreed = [row for row in listed if row.get("frequency") is None or row["frequency"] >= AGREED]
    if not agreed:
        return say("no_weights") if listed else ""
    labels = [str(each["label"]) for each in facts["data"]["classes"]]
    sides: dict[str, list[str]] = {}
    for row in agreed[:NAMED]:
        sides.setdefault(leaning(row, labels), []).append(str(row["feature"]))
    (side, first), *others = ((side, joined(named)) for side, named in sides.items())
    rest = "".join(f"; those of {named}, {side}" for side, named in others)
    return say("weights", first=first, side=side, rest=rest)


def _caution(facts: Facts, main: Standings, model: Facts, numbers: Facts) -> str:
    guess, low, high = main.majority, numbers.get("low"), numbers.get("high")
    if guess is None or not (known(low) and known(high)):
        return ""
    if low > guess if main.larger else high < guess:
        return ""
    told, all_of = [say("nothing")], facts["data"]["n_samples"]
    if (model.get("final") or {}).get("n_features") == 0:
        told.append(say("no_features"))
    least = min(facts["data"]["classes"], key=lambda each: each["count"])
    if main.metric["name"] in OF_LABELS and least["count"] < RARE * all_of:
        told.append(say("rare", **least, all=all_of))
    return " ".join(told)
