"""The result of a comparison."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from proxmargin.comparing.evaluating.work import Outcome, Tally
from proxmargin.comparing.evidence import Evidence
from proxmargin.comparing.results import facts, printed
from proxmargin.comparing.results.layout import Listing
from proxmargin.comparing.results.plots import Plots
from proxmargin.comparing.results.standings import ModelResult, evidence_of, row_of, standings_of
from proxmargin.comparing.running.setup import Setup
from proxmargin.runtime.files import replaced
from proxmargin.runtime.optional import optional

__all__ = ["Comparison", "ComparisonEnding"]


class ComparisonEnding(Enum):
    """How a comparison ended; the value is the note that says so."""

    COMPLETE = ""
    INTERRUPTED = "interrupted; the table holds what was finished"
    WORKER_DIED = (
        "a worker process died, perhaps for want of memory; the table holds what was finished"
    )
    TIME_LIMIT = "the time limit was reached; the table holds what was finished"
    UNFINISHED = "the run is not finished; the table holds what was finished"


@dataclass(frozen=True, eq=False)
class Comparison(Plots):
    """The result of `proxmargin.compare`; printing it shows the answer and the table.

    Attributes
    ----------
    table : DataFrame
        One row a model, the best first: ``score_mean, score_sd``, the interval ``score_low,
        score_high`` (Nadeau and Bengio), ``p_holm`` and ``p_equal`` against the best,
        ``equivalent`` (not distinguishable from it), the means of the other metrics,
        ``features_used``, ``stability`` (Nogueira's measure of the selected features),
        ``seconds_per_fit``, ``relative_gap`` (the worst certified one), ``folds``, ``kind``, and
        the parameters chosen on all data.
    folds : DataFrame
        One row a model and fold: ``score``, all metrics, ``features_used, seconds, relative_gap``
        and the parameters chosen inside the fold.
    best_name_ : str
        The model with the best mean score, and the simplest among equals. Being the best of
        several, its own mean score is a little optimistic.
    equivalent_ : tuple of str
        The models that are not distinguishable from the best, the best first.
    recommended_ : str
        The simplest of those that are not almost certainly worse by more than 0.01: the fewest
        features, then without a kernel.
    best_ : estimator, or None after an interruption
        The best model fitted on all data, with parameters chosen by cross-validation on all data.
    recommended_model_ : estimator, or None after an interruption
        The recommended model, fitted likewise.
    best_fitted_name_ : str or None
        The best of the models in ``models_``: that of ``best_name_`` unless interrupted.
    best_fitted_ : estimator or None
    models_ : dict
        All models fitted in this way, by name.
    majority : float
        The mean score of always predicting the largest class.
    tally : Tally
        How many fits there were, and how many ended before their tolerance was met.
    interrupted : bool
        Only a part was finished.
    setup : Setup
    outcomes : list of Outcome
    ending : Ending
    """

    setup: Setup
    outcomes: Sequence[Outcome]
    ending: ComparisonEnding = ComparisonEnding.COMPLETE
    further_notes: Sequence[str] = field(default=())

    @classmethod
    def from_run(cls, run_dir: str | os.PathLike[str]) -> Comparison:
        """The comparison of a run directory, finished or not; its data are not needed.

        Raises
        ------
        ValueError
            It is no run directory, or of another version.
        """
        from proxmargin.comparing.running.directory import read_run

        setup, outcomes, complete = read_run(run_dir)
        bare = [o.model for o in outcomes if o.fold is None and o.estimator is None]
        notes = [f"models of other libraries are not in the directory: {', '.join(bare)}"]
        ending = ComparisonEnding.COMPLETE if complete else ComparisonEnding.UNFINISHED
        return cls(setup, outcomes, ending, notes if bare else ())

    # -- results ----------------------------------------------------------------------------

    @property
    def interrupted(self) -> bool:
        return self.ending is not ComparisonEnding.COMPLETE

    @cached_property
    def scored(self) -> list[Outcome]:
        """The outcomes on folds."""
        return [outcome for outcome in self.outcomes if outcome.fold is not None]

    @cached_property
    def standings(self) -> list[ModelResult]:
        """One a model, the best first; models without a finished fold last."""
        sign = 1.0 if self.setup.protocol.scoring.larger_is_better else -1.0
        return sorted(standings_of(self.outcomes, self.setup), key=lambda each: _rank(each, sign))

    @property
    def names(self) -> list[str]:
        """The models, the best first."""
        return [standing.model for standing in self.standings]

    @cached_property
    def _evidence(self) -> dict[str, Evidence]:
        return {
            metric.name: evidence_of(metric, self.outcomes, self.setup, self._in_order)
            for metric in self.setup.protocol.metrics
        }

    @cached_property
    def _in_order(self) -> list[ModelResult]:
        return standings_of(self.outcomes, self.setup)

    def evidence(self, metric: str | None = None) -> Evidence:
        """Intervals, differences and the recommended model by one metric, the scoring by default.

        Raises
        ------
        ValueError
            The metric was not computed.
        """
        name = self.setup.protocol.scoring.name if metric is None else metric
        if name not in self._evidence:
            raise ValueError(
                f"metric {name!r} was not computed; there are "
                f"{', '.join(map(repr, self._evidence))}"
            )
        return self._evidence[name]

    def row(self, model: str, metric: str | None = None) -> dict[str, Any]:
        """The numbers of one model by one metric: mean, interval, difference from the best."""
        evidence = self.evidence(metric)
        name = self.setup.protocol.scoring.name if metric is None else metric
        scores = [each.scores[name] for each in self.scored if each.model == model]
        return row_of(evidence, model, scores)

    def tests(self, metric: str | None = None) -> Any:
        """The models against the best, a row each: difference, interval, p-values (data frame)."""
        frame = self.evidence(metric).to_frame()
        return frame.loc[[name for name in self.names if name in frame.index]]

    @property
    def table(self) -> Any:
        return _frame(list(printed.table_rows(self)), index="model")

    @property
    def folds(self) -> Any:
        rows = [printed.fold_row(outcome, self.setup) for outcome in self.scored]
        return _frame(rows)

    @property
    def best_name_(self) -> str:
        best = self.evidence().best if self.scored else None
        return self.standings[0].model if best is None else best

    @property
    def equivalent_(self) -> tuple[str, ...]:
        return self.evidence().equivalent

    @property
    def recommended_(self) -> str | None:
        return self.evidence().recommended

    @property
    def best_(self) -> Any:
        return self.models_.get(self.best_name_)

    @property
    def recommended_model_(self) -> Any:
        return self.models_.get(self.recommended_ or "")

    @property
    def best_fitted_name_(self) -> str | None:
        return next((each.model for each in self.standings if each.model in self.models_), None)

    @property
    def best_fitted_(self) -> Any:
        return self.models_.get(self.best_fitted_name_ or "")

    @property
    def models_(self) -> Mapping[str, Any]:
        return {o.model: o.estimator for o in self.outcomes if o.estimator is not None}

    @property
    def majority(self) -> float:
        return float(np.mean(self.setup.majority[self.setup.protocol.scoring.name]))

    @property
    def tally(self) -> Tally:
        return sum((outcome.tally for outcome in self.outcomes), Tally())

    def final(self, model: str) -> Outcome | None:
        """The fit of a model to all rows."""
        found = (o for o in self.outcomes if o.fold is None and o.model == model)
        return next(found, None)

    # -- shown ------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [self.answer(), self.setup.summary(), self.listing().plain(), *self.remarks()]
        return "\n\n".join(part for part in parts if part)

    def answer(self) -> str:
        """The recommended model in a sentence."""
        return printed.answer(self)

    def listing(self) -> Listing:
        """The table as it is printed, with always predicting the majority as its last row."""
        return printed.listing(self)

    def remarks(self) -> list[str]:
        """What is printed under the table: marks, the recommended model with its certificate, and
        the notes."""
        found = [*printed.remarks(self), *(f"Note: {note}." for note in self.notes())]
        return [remark for remark in found if remark]

    def notes(self) -> list[str]:
        """What a reader must know to judge the results: folds, interruptions, unmet tolerances."""
        notes = [*self.setup.notes, *self.further_notes, *self.evidence().notes]
        if self.interrupted:
            notes.append(self.ending.value)
        if self.tally.unmet:
            notes.append(str(self.tally))
        return list(dict.fromkeys(notes))

    def top_features(
        self, limit: int = printed.TOP_FEATURES, model: str | None = None
    ) -> list[tuple[str, float, str]]:
        """The features that weigh most in a model, by default the best.

        Returns
        -------
        list of (name, weight, class)
            The weight is the coefficient times the standard deviation of the feature; with more
            than two classes, of the class where it is largest in size. Positive speaks for the
            class.
        """
        final = self.final(self.best_name_ if model is None else model)
        rows = [] if final is None else facts.features_of(self, final, limit)
        return [(row["feature"], row["weight"], row["class"]) for row in rows]

    # -- written ----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready to be written as JSON."""
        return facts.facts_of(self)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        with replaced(path) as stream:
            stream.write(text.encode())

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a report: one HTML file that needs no network.

        Raises
        ------
        ImportError
            What draws it is not installed; the message names the command.
        OSError
            The file cannot be written.
        """
        from proxmargin.reports import write_report

        write_report(self, path)


def _rank(standing: ModelResult, sign: float) -> tuple[bool, float, float]:
    unknown = np.isnan(standing.score_mean)
    # rounding, so that equal means of the same fractions count as equal
    score = 0.0 if unknown else -sign * round(standing.score_mean, 12)
    return bool(unknown), score, standing.features_used


def _frame(rows: list[dict[str, Any]], index: str | None = None) -> Any:
    frame = optional("pandas", "a table of a comparison").DataFrame(rows)
    return frame if index is None else frame.set_index(index)
