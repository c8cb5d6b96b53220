"""The result of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.comparing.fits import features_used
from proxmargin.comparing.layout import Listing, number
from proxmargin.comparing.work import Outcome, Tally
from proxmargin.runtime.optional import optional

__all__ = ["Comparison", "Ending", "Setup", "Standing"]

TOP_FEATURES = 10


class Ending(Enum):
    """How a comparison ended; the value is the note that says so."""

    COMPLETE = ""
    INTERRUPTED = "interrupted; the table holds what was finished"
    WORKER_DIED = (
        "a worker process died, perhaps for want of memory; the table holds what was finished"
    )


@dataclass(frozen=True, eq=False)
class Setup:
    """The data and the settings of a comparison.

    Attributes
    ----------
    scoring : str
        The name of the score, in words.
    n_folds, n_features : int
    classes : (n_classes,)
    class_sizes : (n_classes,) integers
    feature_names : list of str
        Made up (``x0``, ``x1``, ...) where the data had none.
    feature_scale : (n_features,)
        Standard deviations of the features.
    baseline : (n_folds,)
        Score of always predicting the largest class, for each fold.
    notes : list of str
    """

    scoring: str
    n_folds: int
    classes: NDArray[Any]
    class_sizes: NDArray[np.intp]
    feature_names: Sequence[str]
    feature_scale: NDArray[np.float64]
    baseline: NDArray[np.float64]
    notes: Sequence[str] = ()

    @property
    def n_samples(self) -> int:
        return int(self.class_sizes.sum())

    @property
    def n_features(self) -> int:
        return len(self.feature_names)

    def summary(self) -> str:
        """One line on the data."""
        sizes = zip(self.classes, self.class_sizes, strict=True)
        shown = [f"{label} {size}" for label, size in sizes]
        listed = ", ".join(shown[:6]) + (", ..." if len(shown) > 6 else "")
        return (
            f"{self.n_samples} samples, {self.n_features} features, {len(shown)} classes "
            f"({listed}); {self.n_folds} folds"
        )


@dataclass(frozen=True)
class Standing:
    """The results of one model over the folds.

    Attributes
    ----------
    model : str
    folds : int
        Number of finished folds.
    score_mean, score_sd, features_used, seconds_per_fit : float
        Means over the folds, and the sample standard deviation of the score. Seconds are without
        those in which kernels were compiled.
    relative_gap : float
        The largest certified relative gap of these models.
    settings : dict
        Chosen on all data; empty when that was not finished.
    """

    model: str
    folds: int
    score_mean: float
    score_sd: float
    features_used: float
    seconds_per_fit: float
    relative_gap: float
    settings: dict[str, Any]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Standing:
        scored = [outcome for outcome in outcomes if outcome.fold is not None]
        final = [outcome for outcome in outcomes if outcome.fold is None]
        scores = [outcome.score for outcome in scored]
        return cls(
            model=outcomes[0].model,
            folds=len(scored),
            score_mean=_mean(scores),
            score_sd=_deviation(scores),
            features_used=_mean([outcome.features_used for outcome in scored]),
            seconds_per_fit=_mean([outcome.seconds for outcome in scored]),
            relative_gap=float(np.max([outcome.relative_gap for outcome in outcomes])),
            settings=final[0].settings if final else {},
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """The result of `proxmargin.compare`; printing it shows the table and the best model.

    Attributes
    ----------
    table : DataFrame
        One row a model, the best first: ``score_mean, score_sd, features_used, seconds_per_fit,
        relative_gap`` (the worst certified one), ``folds``, and the parameters chosen on all data.
    folds : DataFrame
        One row a model and fold: ``score, features_used, seconds, relative_gap`` and the
        parameters chosen inside the fold.
    best_name_ : str
        The model with the highest mean score, and with fewer features among equals. Being the
        best of several, its own mean score is a little optimistic.
    best_ : estimator, or None after an interruption
        That model fitted on all data, with parameters chosen by cross-validation on all data.
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
    ending: Ending = Ending.COMPLETE

    @property
    def interrupted(self) -> bool:
        return self.ending is not Ending.COMPLETE

    @cached_property
    def standings(self) -> list[Standing]:
        """One a model, the best first; models without a finished fold last."""
        names = dict.fromkeys(outcome.model for outcome in self.outcomes)
        standings = [Standing.of([o for o in self.outcomes if o.model == name]) for name in names]
        return sorted(standings, key=_rank)

    @property
    def table(self) -> Any:
        return _frame(list(_table_rows(self.standings)), index="model")

    @property
    def folds(self) -> Any:
        scored = [outcome for outcome in self.outcomes if outcome.fold is not None]
        return _frame([_fold_row(outcome) for outcome in scored])

    @property
    def best_name_(self) -> str:
        return self.standings[0].model

    @property
    def best_(self) -> Any:
        return self.models_.get(self.best_name_)

    @property
    def best_fitted_name_(self) -> str | None:
        return next((each.model for each in self.standings if each.model in self.models_), None)

    @property
    def best_fitted_(self) -> Any:
        return self.models_.get(self.best_fitted_name_ or "")

    @property
    def models_(self) -> dict[str, Any]:
        return {o.model: o.estimator for o in self.outcomes if o.estimator is not None}

    @property
    def majority(self) -> float:
        return _mean(self.setup.baseline)

    @property
    def tally(self) -> Tally:
        parts = [outcome.tally for outcome in self.outcomes]
        return Tally(
            sum(part.fits for part in parts),
            sum(part.unmet for part in parts),
            max(part.worst_gap for part in parts),
        )

    def __str__(self) -> str:
        parts = [self.setup.summary(), self.listing().plain(), *self.remarks()]
        return "\n\n".join(parts)

    def listing(self) -> Listing:
        """The table as it is printed, with the baseline as its last row."""
        names = list(dict.fromkeys(name for s in self.standings for name in s.settings))
        headings = ["model", self.setup.scoring, "features used", "seconds", "certified gap"]
        blanks = [""] * (3 + len(names))
        spread = _plus_minus(self.majority, _deviation(self.setup.baseline))
        rows = [[*_cells(s), *(_shown(s.settings.get(n)) for n in names)] for s in self.standings]
        return Listing([*headings, *names], [*rows, ["majority class", spread, *blanks]])

    def remarks(self) -> list[str]:
        """What is printed under the table: the best model, its certificate, the notes."""
        found = [*self._best_remarks(), *(f"Note: {note}." for note in self.notes())]
        return [remark for remark in found if remark]

    def notes(self) -> list[str]:
        """What a reader must know to judge the results: folds, interruptions, unmet tolerances."""
        notes = [*self.setup.notes]
        if self.interrupted:
            notes.append(self.ending.value)
        if self.tally.unmet:
            notes.append(str(self.tally))
        return notes

    def top_features(self, limit: int = TOP_FEATURES) -> list[tuple[str, float, str]]:
        """The features that weigh most in the best model.

        Returns
        -------
        list of (name, weight, class)
            The weight is the coefficient times the standard deviation of the feature; with more
            than two classes, of the class where it is largest in size. Positive speaks for the
            class.
        """
        coef = getattr(self.best_, "coef_", None)
        if coef is None:
            return []
        weights = coef * self.setup.feature_scale
        rows = np.abs(weights).argmax(axis=0)
        largest = weights[rows, np.arange(weights.shape[1])]
        labels = self.setup.classes[1:] if len(weights) == 1 else self.setup.classes
        order = np.argsort(-np.abs(largest), kind="stable")[:limit]
        return [
            (str(self.setup.feature_names[j]), float(largest[j]), str(labels[rows[j]]))
            for j in order
            if largest[j] != 0
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready to be written as JSON."""
        return {
            "scoring": self.setup.scoring,
            "folds": self.setup.n_folds,
            "table": list(_table_rows(self.standings)),
            "majority": self.majority,
            "best": None if self.best_ is None else self._best_facts(),
            "fold_results": [_fold_row(o) for o in self.outcomes if o.fold is not None],
            "notes": self.notes(),
            "interrupted": self.interrupted,
        }

    def _best_facts(self) -> dict[str, Any]:
        certificate = getattr(self.best_, "certificate_", None)
        return {
            "model": self.best_name_,
            "parameters": self.standings[0].settings,
            "features_used": features_used(self.best_),
            "top_features": [
                {"feature": name, "weight": weight, "class": label}
                for name, weight, label in self.top_features()
            ],
            "certificate": None if certificate is None else _certificate_facts(certificate),
        }

    def _best_remarks(self) -> Iterator[str]:
        if self.best_ is None:
            return
        settings = ", ".join(f"{k}={_shown(v)}" for k, v in self.standings[0].settings.items())
        used = features_used(self.best_)
        yield (
            f"Best: {self.best_name_}({settings}, standardize=True), fitted on all samples; "
            f"it uses {used} of {self.setup.n_features} features."
        )
        yield self._features_remark()
        if hasattr(self.best_, "certificate_"):
            yield f"Certificate: {self.best_.certificate_}."

    def _features_remark(self) -> str:
        top = self.top_features()
        if not top:
            return ""
        if len(self.setup.classes) == 2:
            headings = ["feature", "weight"]
            rows = [[name, f"{weight:+.3g}"] for name, weight, _ in top]
            positive = f"; positive speaks for {self.setup.classes[1]}"
        else:
            headings = ["feature", "weight", "class"]
            rows = [[name, f"{weight:+.3g}", label] for name, weight, label in top]
            positive = ", for the class where it is largest"
        title = f"Largest weights (coefficient per standard deviation of the feature{positive}):"
        return f"{title}\n{Listing(headings, rows).plain()}"


def _rank(standing: Standing) -> tuple[bool, float, float]:
    unknown = np.isnan(standing.score_mean)
    # rounding, so that equal means of the same fractions count as equal
    score = 0.0 if unknown else -round(standing.score_mean, 12)
    return bool(unknown), score, standing.features_used


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _deviation(values: Any) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def _cells(standing: Standing) -> list[str]:
    return [
        standing.model,
        _plus_minus(standing.score_mean, standing.score_sd),
        number(standing.features_used, ".1f"),
        number(standing.seconds_per_fit, ".2g"),
        number(standing.relative_gap, ".1e"),
    ]


def _plus_minus(mean: float, deviation: float) -> str:
    return f"{number(mean, '.3f')} ± {number(deviation, '.3f')}"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return format(value, ".3g") if isinstance(value, float) else str(value)


def _table_rows(standings: Sequence[Standing]) -> Iterator[dict[str, Any]]:
    for standing in standings:
        row = {**vars(standing)}
        settings = row.pop("settings")
        row["folds"] = row.pop("folds")  # behind the results
        yield {**row, **settings}


def _certificate_facts(certificate: Any) -> dict[str, Any]:
    names = ("primal", "dual", "gap", "relative_gap", "kkt_residual", "converged", "stop_reason")
    return {name: getattr(certificate, name) for name in names}


def _fold_row(outcome: Outcome) -> dict[str, Any]:
    return {
        "model": outcome.model,
        "fold": outcome.fold,
        "score": outcome.score,
        "features_used": outcome.features_used,
        "seconds": outcome.seconds,
        "relative_gap": outcome.relative_gap,
        "fits_unmet": outcome.tally.unmet,
        **outcome.settings,
    }


def _frame(rows: list[dict[str, Any]], index: str | None = None) -> Any:
    frame = optional("pandas", "a table of a comparison").DataFrame(rows)
    return frame if index is None else frame.set_index(index)
