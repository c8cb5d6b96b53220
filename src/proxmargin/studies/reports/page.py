"""A comparison as one page of HTML that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Protocol

from proxmargin.runtime.brief import plain
from proxmargin.runtime.files import replaced
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Facts, Record
from proxmargin.studies.reports import standings
from proxmargin.studies.reports.details import (
    ModelPredictions,
    class_of_curves,
    confusion_of,
    curves_of,
    feature_chart,
    feature_table,
    path_chart,
    path_table,
)
from proxmargin.studies.reports.standings import Column, HtmlTable, Standings, main_of
from proxmargin.studies.reports.text import answer_of, choices
from proxmargin.studies.stats.scores import ROPE

FORMAT = "proxmargin comparison"
FOLDER = Path(__file__).parent / "template"
USE = "A report"  # what needs the libraries, in messages
EXTRA = "report"  # of the package, that installs them
# what the library is asked for; the rest is left out of the bundle
SNIPPET = "window.vegaEmbed = vegaEmbed;"
# held-out scores that are kept in the page, about 1 MB; more of them stay in the run directory
KEPT_PREDICTIONS = 50_000


class HasFacts(Protocol):
    """A comparison."""

    def to_dict(self) -> Record: ...


def write_report(comparison: HasFacts | Facts, path: str | os.PathLike[str]) -> None:
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

    See Also
    --------
    proxmargin.Comparison.to_html : The same of a comparison.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import compare
    >>> from proxmargin.reports import write_report
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = X[::6], y[::6]
    >>> comparison = compare(X, y, models=["DWD", "HuberizedSVC"], cv=2, quick=True, progress=False)
    >>> file = Path(tempfile.mkdtemp(), "report.html")
    >>> write_report(comparison, file)
    >>> file.stat().st_size > 10_000
    True
    """
    check_libraries()
    facts = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
    # names may hold halves of surrogate pairs, which no encoding of text has
    content = page_of(facts).encode("utf-8", errors="backslashreplace")
    with replaced(path) as stream:
        stream.write(content)


def page_of(facts: Facts) -> str:
    """The text of the page."""
    if facts.get("format") != FORMAT:
        raise ValueError(f"these are not the facts of a comparison: format {facts.get('format')!r}")
    view = View(facts)
    style, charts, behaviour = (
        (FOLDER / name).read_text(encoding="utf-8") for name in ("page.css", "charts.js", "page.js")
    )
    script = charts + behaviour
    charting = charting_library()
    page = templates(FOLDER, autoescape=True).get_template("page.html")
    return str(
        page.render(
            view=view,
            rope=ROPE,
            facts=facts,
            formats=standings,
            style=style,
            script=script,
            charting=charting,
            policy=policy(style, [charting, script]),
            island=island(view.island()),
        )
    )


class View:
    """What the template shows, derived from the facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.models: list[Facts] = list(facts["models"])
        self.names = [str(each["name"]) for each in self.models]
        self.labels = [str(each["label"]) for each in facts["data"]["classes"]]
        metrics = enumerate(facts["protocol"]["metrics"])
        self.standings = [Standings(metric, place, facts) for place, metric in metrics]
        self.main = main_of(facts)
        self.answer = answer_of(facts, self.main)
        self.choices = choices(facts, self.main)
        # the model whose details are shown first
        self.first = self.names.index(self.answer.model) if self.answer.model in self.names else 0
        self.features = self._by_index(facts.get("features"))
        self.paths = self._by_index(facts.get("paths"))
        # numbers for clinical papers, of each model that has probabilities
        self.clinical = self._by_index((facts.get("clinical") or {}).get("models"))

    def _by_index(self, of_models: Facts | None) -> dict[int, Any]:
        found = of_models or {}
        return {m: found[name] for m, name in enumerate(self.names) if name in found}

    # Held-out predictions

    @cached_property
    def held_out(self) -> dict[int, ModelPredictions]:
        """By index; the recommended model is the first, and has the first colour."""
        predictions = self.facts.get("predictions") or {}
        order = sorted(range(len(self.names)), key=lambda m: m != self.first)
        found = (
            (m, ModelPredictions.of(predictions, self.names[m], len(self.labels))) for m in order
        )
        return {m: each for m, each in found if each is not None}

    @cached_property
    def curves(self) -> list[Record]:
        return self._curves[0]

    @cached_property
    def _curves(self) -> tuple[list[Record], list[int]]:
        counts = [each["count"] for each in self.facts["data"]["classes"]]
        return curves_of(self.held_out, counts, class_of_curves(self.facts))

    @property
    def curve_classes(self) -> list[int]:
        return self._curves[1] if self.curves else []

    @property
    def curve_class(self) -> int:
        """The class that is shown first."""
        first = class_of_curves(self.facts)
        return first if first in self.curve_classes else self.curve_classes[0]

    def curve_table(self) -> HtmlTable:
        """Areas under the curves: what they say in numbers."""
        columns = (
            *self._of_curves(),
            Column("area under ROC", "auc"),
            Column("average precision", "average_precision"),
            Column("share of the class", "share", why="average precision of guessing"),
        )
        return HtmlTable.of("areas", "Areas under the curves", columns, self.curves)

    def calibration_table(self) -> HtmlTable:
        columns = (
            *self._of_curves(),
            Column("predicted probability", "predicted"),
            Column("observed share", "observed"),
        )
        rows = [
            {**each, "predicted": predicted, "observed": observed}
            for each in self.curves
            for predicted, observed in each["calibration"] or ()
        ]
        caption = "Predicted probabilities and observed shares"
        return HtmlTable.of("calibration", caption, columns, rows)

    def _of_curves(self) -> tuple[Column, Column]:
        return (
            Column("model", lambda curve: self.names[curve["m"]], None),
            Column("class", lambda curve: self.labels[curve["k"]], None),
        )

    # One model

    def confusion(self, m: int) -> Record | None:
        return confusion_of(self.held_out[m], self.labels) if m in self.held_out else None

    def feature_table(self, m: int) -> HtmlTable | None:
        rows = self.features.get(m)
        return feature_table(f"features-{m}", self.names[m], rows, self.labels) if rows else None

    def path_table(self, m: int) -> HtmlTable | None:
        path = self.paths.get(m)
        if not path or not path["strengths"]:
            return None
        return path_table(f"path-{m}", self.names[m], path)

    def misclassified(self, m: int) -> HtmlTable:
        columns = (
            Column("sample", "id", None),
            Column("class", "true", None),
            Column("predicted", "predicted", None),
            Column(f"probability of {self.clinical[m]['positive']}", "probability"),
        )
        name = self.names[m]
        caption = f"Samples that {name} takes for the wrong class, the surest mistakes first"
        return HtmlTable.of(f"wrong-{m}", caption, columns, self.clinical[m]["misclassified"])

    # Trust, cost, settings

    def cost_table(self) -> HtmlTable:
        columns = (
            Column("model", "name", None),
            Column("seconds per fit", "seconds_per_fit", standings.seconds),
            Column("passes", "passes", standings.count, "over the data, for a fit"),
            Column(
                "largest gap",
                "relative_gap",
                standings.certified,
                "certified, relative, of all its fits",
            ),
            Column("settings", standings.settings_of, None, "chosen on all samples"),
        )
        caption = "Cost, certificates and settings of each model"
        return HtmlTable.of("cost", caption, columns, self.models)

    def fold_table(self) -> HtmlTable:
        columns = (
            Column("model", "model", None),
            Column("repeat", lambda row: row.get("repeat", 0) + 1, standings.count),
            Column("fold", lambda row: row["fold"] + 1, standings.count),
            *(Column(each.label, each.metric["name"]) for each in self.standings),
            Column("features", "n_features", standings.count),
            Column("seconds", "seconds", standings.seconds),
        )
        rows = self.facts.get("fold_results", ())
        return HtmlTable.of("folds", "Scores of every fold", columns, rows)

    # For the script

    def island(self) -> Record:
        """Values of the charts, and the facts for a download."""
        paths = {m: path_chart(path) for m, path in self.paths.items()}
        return {
            "rope": ROPE,
            "models": self.names,
            "labels": self.labels,
            "standings": [each.chart() for each in self.standings],
            "curves": self.curves,
            "features": {m: feature_chart(rows, self.labels) for m, rows in self.features.items()},
            "paths": {m: chart for m, chart in paths.items() if chart},
            "facts": self.kept_facts(),
        }

    def kept_facts(self) -> Record:
        """The facts, with rounded predictions, or none where the page would grow too large."""
        kept = {key: value for key, value in self.facts.items() if key != "predictions"}
        if sum(each.scores.size for each in self.held_out.values()) <= KEPT_PREDICTIONS:
            kept["predictions"] = _rounded(self.facts.get("predictions"))
        return kept


def _rounded(value: object) -> object:
    """Six digits of every number are enough for any curve, and a third of the characters."""
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def check_libraries() -> None:
    """Raise ImportError, with the command that installs them, where a library is missing.

    Examples
    --------
    >>> from proxmargin.reports import check_libraries
    >>> check_libraries()  # nothing where they are installed
    """
    for library in ("jinja2", "vl_convert"):
        optional(library, USE, EXTRA)


@cache
def charting_library() -> str:
    """Vega-Lite with all that it needs, as one script that loads nothing."""
    bundle = optional("vl_convert", USE, EXTRA).javascript_bundle(SNIPPET)
    # within a string or a regular expression, the same; in HTML, no end of the element
    return str(bundle).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def templates(folder: Path, **options: object) -> Any:
    """The Jinja environment of a folder, in which unknown names are errors."""
    jinja2 = optional("jinja2", USE, EXTRA)
    loader, undefined = jinja2.FileSystemLoader(folder), jinja2.StrictUndefined
    told = {"trim_blocks": True, "lstrip_blocks": True, **options}
    return jinja2.Environment(loader=loader, undefined=undefined, **told)


def island(value: Record) -> str:
    """JSON for a script element: no character of it can end the element, a line or a string."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def policy(style: str, scripts: list[str]) -> str:
    """A content security policy: these by their digests, and nothing else."""
    sources = f"script-src {' '.join(map(_source, scripts))}; style-src {_source(style)}"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _source(text: str) -> str:
    # browsers hash the text after its line ends are made \n
    digest = hashlib.sha256(text.replace("\r\n", "\n").encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
