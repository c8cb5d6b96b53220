"""Models in order of a metric with the evidence, in numbers, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import Any, TypeGuard

from proxmargin.runtime.brief import Listing
from proxmargin.studies.stats.scores import INTERVAL, ROPE

NONE = "–"  # where there is no number
MINUS = "−"
SMALL_P = 0.001  # p-values below are told as that


def known(value: Any) -> TypeGuard[float]:
    """Whether there is a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def score(value: Any, digits: int = 3) -> str:
    if not known(value):
        return NONE
    text = f"{value:.{digits}f}"
    # a difference that rounds to nothing has no sign
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def interval(low: Any, high: Any) -> str:
    """``0.940 to 0.980``, which no line end divides."""
    both = known(low) and known(high)
    return f"{score(low)}\u00a0to\u00a0{score(high)}" if both else NONE


def p_value(value: Any) -> str:
    if not known(value):
        return NONE
    return f"< {SMALL_P}" if value < SMALL_P else f"{value:.3f}"


def percent(value: Any) -> str:
    return f"{100 * value:.0f} %" if known(value) else NONE


def seconds(value: Any) -> str:
    if not known(value):
        return NONE
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def gap(value: Any) -> str:
    return f"{value:.1e}".replace("e-0", "e-").replace("-", MINUS) if known(value) else NONE


def count(value: Any) -> str:
    """A mean number of things: with a decimal only where it has one."""
    if not known(value):
        return NONE
    return f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.1f}"


def setting(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def joined(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, final = words or [""]
    return f"{', '.join(first)} and {final}" if first else final


@dataclass(frozen=True)
class Cell:
    """The words in a cell, and the number that they are sorted and downloaded by, if any."""

    text: str
    value: float | None = None

    @classmethod
    def of(cls, value: Any, form: Any = score) -> Cell:
        return cls(form(value), value if known(value) else None)


@dataclass(frozen=True)
class HtmlColumn:
    """A heading, and the cell of a row. Columns of numbers are aligned right, sorted by value."""

    title: str
    cell: Callable[[Any], Cell]
    number: bool = True
    why: str = ""


def number_column(title: str, of: Any, form: Any = score, why: str = "") -> HtmlColumn:
    """A column of numbers; ``of`` is a key of a row, or a function of it."""
    return HtmlColumn(title, lambda row: Cell.of(_part(row, of), form), why=why)


def word_column(title: str, of: Any, why: str = "") -> HtmlColumn:
    return HtmlColumn(title, lambda row: Cell(str(_part(row, of))), number=False, why=why)


def _part(row: Any, of: Any) -> Any:
    return of(row) if callable(of) else row.get(of)


@dataclass(frozen=True)
class HtmlTable:
    """Rows of cells; the first cell of a row is its heading."""

    name: str  # of the element and the file of a download: letters, digits and hyphens
    caption: str
    columns: Sequence[HtmlColumn]
    rows: list[list[Cell]]
    sorted_by: int | None = None  # the column that the rows are in order of
    descending: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        caption: str,
        columns: Sequence[HtmlColumn],
        rows: Iterable[Any],
        **order: Any,
    ) -> HtmlTable:
        cells = [[column.cell(row) for column in columns] for row in rows]
        return cls(name, caption, columns, cells, **order)


Row = Mapping[str, Any]

GUESS = "always the largest class"
VERDICTS = {
    "recommended": "recommended",
    "best": "best mean",
    "equivalent": "not\u00a0distinguishable",
    "behind": "behind",
}
MEANINGS = {
    "balanced_accuracy": "Of 100 samples that it had not seen, it put {of_hundred} into the "
    "right class, with every class counted as equally large.",
    "accuracy": "Of 100 samples that it had not seen, it put {of_hundred} into the right class.",
    "roc_auc": "Of 100 pairs of samples of different classes that it had not seen, it put "
    "{of_hundred} in the right order.",
}
NAMED = 3  # features that are named at the top of the page
NAMED_EQUALS = 5  # models that are named as equals
AGREED = 0.5  # share of the folds whose models use a feature, from which it is named


@dataclass(frozen=True, eq=False)
class Standings:
    """One metric of a comparison: ``name``, ``label``, ``larger_is_better``."""

    metric: Row
    place: int  # in the list of metrics: names the elements of the page
    facts: Row

    @cached_property
    def models(self) -> list[Row]:
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

    def of(self, model: Row) -> Row:
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

    def role(self, model: Row) -> str:
        """What the model is to a reader, in a word or two."""
        if model["name"] == self.facts.get("recommended") and self.is_main:
            return "recommended"
        if model is self.models[0]:
            return "best"
        return "equivalent" if self.of(model).get("equivalent") else "behind"

    # For charts

    def chart(self) -> dict[str, Any]:
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

    def _bar(self, model: Row, centre: str, low: str, high: str) -> dict[str, Any]:
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

    def _folds(self) -> Iterator[dict[str, Any]]:
        shown = {each["name"]: _shown(each) for each in self.models}
        for row in self.facts.get("fold_results", ()):
            value = row.get(self.metric["name"])
            if row["model"] in shown and known(value):
                yield {"model": shown[row["model"]], "value": value}

    # Tables

    def ranking(self) -> HtmlTable:
        columns = (
            word_column("model", _shown),
            number_column(self.label, self._number("mean"), why="mean over the test parts"),
            self._interval("low", "high", "of the expected score"),
            word_column("against the best", lambda model: VERDICTS[self.role(model)]),
            number_column("features used", "n_features", count, "mean over the folds"),
            number_column(
                "stability",
                "stability",
                partial(score, digits=2),
                "agreement of the features over the folds (Nogueira); 1: same",
            ),
            number_column("seconds per fit", "seconds_per_fit", seconds, "without compilation"),
        )
        caption, order = f"Models by {self.label}, {self.direction}", {"descending": self.larger}
        name = f"ranking-{self.place}"
        table = HtmlTable.of(name, caption, columns, self.models, sorted_by=1, **order)
        if self.majority is not None:
            none = Cell(NONE)
            guess = [Cell(GUESS), Cell.of(self.majority), none, Cell("to be beaten")]
            table.rows.append([*guess, none, none, none])
        return table

    def evidence(self) -> HtmlTable:
        best = _shown(self.models[0]) if self.models else ""
        equal = f"posterior probability of a difference within ±{ROPE:g}"
        columns = (
            word_column("model", _shown),
            number_column(
                "difference", self._number("difference"), why=f"mean minus that of {best}"
            ),
            self._interval("difference_low", "difference_high"),
            number_column(
                "p (Holm)",
                self._number("p_holm"),
                p_value,
                "adjusted for all pairs of models",
            ),
            number_column("same in practice", self._number("p_equal"), percent, equal),
        )
        caption = f"Differences from {best} in {self.label}"
        return HtmlTable.of(f"evidence-{self.place}", caption, columns, self.models[1:])

    def _number(self, key: str) -> Callable[[Row], Any]:
        return lambda model: self.of(model).get(key)

    def _interval(self, low: str, high: str, why: str = "") -> HtmlColumn:
        def cell(model: Row) -> Cell:
            ends = (self.of(model).get(low), self.of(model).get(high))
            return Cell(interval(*ends), ends[0])

        return HtmlColumn(INTERVAL, cell, number=False, why=why)


def _shown(model: Row) -> str:
    suffix = " (baseline)" if model.get("kind") == "baseline" else ""
    return f"{model['name']}{suffix}"


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
    weighs: str = ""
    caution: str = ""


def first_screen(facts: Mapping[str, Any]) -> str:
    """The answer and the ranking for a notebook: HTML without a style sheet."""
    place = [each["name"] for each in facts["protocol"]["metrics"]].index(
        facts["protocol"]["scoring"]
    )
    main = Standings(facts["protocol"]["metrics"][place], place, facts)
    answer = answer_of(facts, main)
    head = (
        f"<b>{escape(answer.model)}</b>: {escape(answer.label)} <b>{answer.score}</b>, "
        f"{INTERVAL} {answer.interval}; {answer.features} {answer.of_features} features"
        if answer.model
        else ""
    )
    told = (answer.plain, answer.weighs, answer.choice, answer.equals, answer.caution)
    sentences = [head, *(escape(each) for each in told), *map(escape, facts.get("notes") or ())]
    table = main.ranking()
    rows = [[cell.text for cell in row] for row in table.rows]
    listing = Listing([column.title for column in table.columns], rows).html()
    return "".join(f"<p>{each}</p>" for each in sentences if each) + listing


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
        score=score(numbers.get("mean")),
        interval=interval(numbers.get("low"), numbers.get("high")),
        features=count(model.get("n_features")),
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
    if not known(mean) or kind not in MEANINGS:
        return ""
    hundred = round(100 * mean)  # all of them only where none is missing
    of_hundred = "more than 99" if hundred == 100 and mean < 1 else f"about {hundred}"
    sentence, guess = MEANINGS[kind].format(of_hundred=of_hundred), main.majority
    if guess is None or kind == "roc_auc":
        return sentence
    return f"{sentence} Always naming the largest class would reach {100 * guess:.0f}."


def _equals(facts: Mapping[str, Any], name: str) -> str:
    others = [each for each in facts.get("equivalent") or () if each != name]
    if not others:
        return "Every other model is distinguishably worse on these data."
    if len(others) > NAMED_EQUALS and len(others) == len(facts["models"]) - 1:
        return f"None of the other {len(others)} models is distinguishable from the best."
    if len(others) > NAMED_EQUALS:
        some = joined(others[:NAMED_EQUALS])
        return f"{len(others)} others, {some} among them, are not distinguishable from the best."
    verb = "is" if len(others) == 1 else "are"
    return f"{joined(others)} {verb} not distinguishable from the best on these data."


def _choice(main: Standings, models: Mapping[str, Any], name: str) -> str:
    """Why the recommended model is not the one with the best mean."""
    best = main.models[0]
    if best["name"] == name:
        return "It has the best mean, and no simpler model is as good."
    ours = main.of(models[name])
    return (
        f"{best['name']} has the best mean ({score(main.of(best)['mean'])}), but the "
        f"difference, {score(ours.get('difference'))} "
        f"({interval(ours.get('difference_low'), ours.get('difference_high'))}), may be "
        f"chance, and fewer features are worth it: {name} is recommended."
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
        named = joined([str(row["feature"]) for row in rows])
        return f"It looks most at {named}: higher values speak {next(iter(sides))}."
    first, *others = ((joined(named), side) for side, named in sides.items())
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
    if guess is None or not (known(low) and known(high)):
        return ""
    no_better = low <= guess if main.larger else high >= guess
    if no_better:
        return (
            "The interval reaches the score of always naming the largest class: perhaps there is "
            "nothing to learn in these data."
        )
    return ""
