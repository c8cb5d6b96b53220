"""The answer in sentences: which model, how good, what is as good, what it looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxmargin.reports import formats
from proxmargin.reports.standings import Standings

__all__ = ["Answer", "answer_of", "leaning"]

# features that are named at the top of the page
NAMED = 3
# models that are named as equals
NAMED_EQUALS = 5
# share of the folds whose models use a feature, from which it is named
AGREED = 0.5
# of a hundred samples or pairs
HUNDRED = 100


@dataclass(frozen=True)
class Answer:
    """The first screen; sentences are empty where there is nothing to say.

    Attributes
    ----------
    model : str or None
    score, interval, label, features : str
    plain : str
        What the score means, for a reader who does not know it.
    equals, choice, weighs, caution : str
    """

    model: str | None
    label: str = ""
    score: str = formats.NONE
    interval: str = formats.NONE
    features: str = formats.NONE
    of_features: str = ""
    plain: str = ""
    equals: str = ""
    choice: str = ""
    weighs: str = ""
    caution: str = ""


def answer_of(facts: Mapping[str, Any], main: Standings) -> Answer:
    """The answer by the main metric of a comparison."""
    models = {each["name"]: each for each in facts["models"]}
    name = str(facts.get("recommended") or facts.get("best"))
    if name not in models or not main.models:
        return Answer(None, caution="No model was finished on all folds, so there is no answer.")
    model = models[name]
    numbers = main.of(model)
    n_features = facts["data"]["n_features"]
    return Answer(
        model=name,
        label=main.label,
        score=formats.score(numbers.get("mean")),
        interval=formats.interval(numbers.get("low"), numbers.get("high")),
        features=formats.count(model.get("n_features")),
        of_features=f"of {n_features:,}",
        plain=_plain(main, numbers),
        equals=_equals(facts, name),
        choice=_choice(main, models, name),
        weighs=_weighs(facts, name),
        caution=_caution(main, numbers),
    )


def _plain(main: Standings, numbers: Mapping[str, Any]) -> str:
    """The score for someone who has not met it."""
    mean, kind = numbers.get("mean"), main.metric["name"]
    if not formats.known(mean) or kind not in MEANINGS:
        return ""
    sentence = MEANINGS[kind].format(of_hundred=_of_hundred(mean))
    guess = main.majority
    if guess is None or kind == "roc_auc":
        return sentence
    return f"{sentence} Always naming the largest class would reach {HUNDRED * guess:.0f}."


def _of_hundred(share: float) -> str:
    """All of them only where none is missing."""
    rounded = round(HUNDRED * share)
    return "more than 99" if rounded == HUNDRED and share < 1 else f"about {rounded}"


MEANINGS = {
    "balanced_accuracy": "Of 100 samples that it had not seen, it put {of_hundred} into the "
    "right class, with every class counted as equally large.",
    "accuracy": "Of 100 samples that it had not seen, it put {of_hundred} into the right class.",
    "roc_auc": "Of 100 pairs of samples of different classes that it had not seen, it put "
    "{of_hundred} in the right order.",
}


def _equals(facts: Mapping[str, Any], name: str) -> str:
    others = [each for each in facts.get("equivalent") or () if each != name]
    if not others:
        return "Every other model is distinguishably worse on these data."
    if len(others) > NAMED_EQUALS and len(others) == len(facts["models"]) - 1:
        return f"None of the other {len(others)} models is distinguishable from the best."
    if len(others) > NAMED_EQUALS:
        some = formats.joined(others[:NAMED_EQUALS])
        return f"{len(others)} others, {some} among them, are not distinguishable from the best."
    verb = "is" if len(others) == 1 else "are"
    return f"{formats.joined(others)} {verb} not distinguishable from the best on these data."


def _choice(main: Standings, models: Mapping[str, Any], name: str) -> str:
    """Why the recommended model is not the one with the best mean."""
    best = main.models[0]
    if best["name"] == name:
        return "It has the best mean, and no simpler model is as good."
    ours = main.of(models[name])
    return (
        f"{best['name']} has the best mean ({formats.score(main.of(best)['mean'])}), but the "
        f"difference, {formats.score(ours.get('difference'))} "
        f"({formats.interval(ours.get('difference_low'), ours.get('difference_high'))}), may be "
        f"chance; {name} is the simplest of those that are not almost certainly worse in practice."
    )


def _weighs(facts: Mapping[str, Any], name: str) -> str:
    """Features of large weight that most folds agree on, and what they speak for."""
    listed = (facts.get("features") or {}).get(name) or []
    agreed = [row for row in listed if row.get("frequency") is None or row["frequency"] >= AGREED]
    rows = agreed[:NAMED]
    if not rows:
        return "No feature is used by the models of most folds." if listed else ""
    labels = [str(each["label"]) for each in facts["data"]["classes"]]
    sides: dict[str, list[str]] = {}
    for row in rows:
        sides.setdefault(leaning(row, labels), []).append(str(row["feature"]))
    if len(sides) == 1:
        named = formats.joined([str(row["feature"]) for row in rows])
        return f"It looks most at {named}: higher values speak {next(iter(sides))}."
    first, *others = ((formats.joined(named), side) for side, named in sides.items())
    rest = "".join(f"; those of {named}, {side}" for named, side in others)
    return f"It looks most at these: higher values of {first[0]} speak {first[1]}{rest}."


def leaning(row: Mapping[str, Any], labels: Sequence[str]) -> str:
    """What higher values of a feature say: ``for malignant``; with two classes never against."""
    if row["weight"] > 0:
        return f"for {row['class']}"
    others = [label for label in labels if label != str(row["class"])]
    return f"for {others[0]}" if len(others) == 1 else f"against {row['class']}"


def _caution(main: Standings, numbers: Mapping[str, Any]) -> str:
    guess, low, high = main.majority, numbers.get("low"), numbers.get("high")
    if guess is None or not (formats.known(low) and formats.known(high)):
        return ""
    no_better = low <= guess if main.larger else high >= guess
    if no_better:
        return (
            "The interval reaches the score of always naming the largest class: perhaps there is "
            "nothing to learn in these data."
        )
    return ""
