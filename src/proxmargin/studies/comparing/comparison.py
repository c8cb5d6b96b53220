"""The result of a comparison as tables, pictures, text, and plain values."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmargin.data.inputs.preprocessing import expression
from proxmargin.runtime.brief import plain
from proxmargin.runtime.files import replaced
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Axes, Estimator, Facts, Frame, Record
from proxmargin.studies.comparing.agreement import SCOPE, WIDE
from proxmargin.studies.comparing.evidence import COLUMNS
from proxmargin.studies.comparing.results import (
    ComparisonEnding,
    Ranking,
    feature_rows,
    mean,
)
from proxmargin.studies.comparing.setup import read_run
from proxmargin.studies.comparing.work import LARGEST_WEIGHTS, PROBABILITIES, Outcome
from proxmargin.studies.reports import text
from proxmargin.studies.reports.text import first_screen
from proxmargin.studies.stats.clinical import ClinicalSummary, clinical_summary

if TYPE_CHECKING:
    from proxmargin.studies.displays.comparison import ComparisonDisplay


FORMAT = "proxmargin comparison"  # by which a file is known
VERSION = 1  # of the format
# of a model and a metric
OF_EVIDENCE = (*COLUMNS, "n", "equivalent")
OF_COSTS = ("stability", "seconds_per_fit", "relative_gap", "folds", "kind")  # in the table
OF_CERTIFICATE = (
    *("primal", "dual", "gap", "relative_gap", "kkt_residual"),
    *("converged", "stop_reason", "solver"),
)


def _drawing(kind: str, what: str) -> Callable[..., ComparisonDisplay]:
    """A method that draws this kind of picture."""

    def plot(
        self: Any, *, ax: Axes | None = None, top: int | None = None, **options: Any
    ) -> ComparisonDisplay:
        from proxmargin.studies.displays.comparison import ComparisonDisplay

        return ComparisonDisplay.from_comparison(self, kind=kind, ax=ax, top=top, **options)

    plot.__doc__ = what
    return plot


class Plots:
    """Methods that draw with `proxmargin.ComparisonDisplay`, into new axes or those given (``ax``).

    ``top`` is the number of models; ``metric`` one of those computed, by default the scoring; of
    curves ``label`` is the class, by default of more than two the mean.
    """

    plot_scores = _drawing("intervals", "Mean scores with intervals, and that of the majority.")
    plot_differences = _drawing("differences", "Differences from the best with their intervals.")
    plot_folds = _drawing("folds", "The score of every fold.")
    plot_features = _drawing("features", "Mean scores against the number of features used.")
    plot_seconds = _drawing("seconds", "Mean scores against the seconds of a fit.")
    plot_roc = _drawing("roc", "ROC curves of the held-out scores.")
    plot_precision_recall = _drawing("precision_recall", "Precision-recall curves, as `plot_roc`.")


@dataclass(frozen=True, eq=False)
class Comparison(Ranking, Plots):
    """The result of `proxmargin.compare`; printing it shows the answer, the table and what to know
    of them, a notebook the answer and the table.

    Attributes
    ----------
    table : DataFrame
        One row a model, the best first: ``score_mean, score_sd``, the interval ``score_low,
        score_high`` (Nadeau and Bengio), ``p_holm`` and ``p_equal`` against the best,
        ``equivalent`` (not distinguishable from it), the means of the other metrics,
        ``features_used`` (by the model fitted on all samples), ``stability`` (Nogueira's measure
        of the selected features), ``seconds_per_fit``, ``relative_gap`` (the worst certified one),
        ``folds``, ``kind``, and the parameters chosen on all data.
    folds : DataFrame
        One row a model and fold: ``score``, all metrics, ``features_used, seconds, relative_gap``
        and the parameters chosen inside the fold.
    best_name_ : str
        The model with the best mean score, and the simplest among equals. Being the best of
        several, its own mean score is a little optimistic.
    equivalent_ : tuple of str
        The models that are not distinguishable from the best, the best first.
    recommended_ : str
        The best mean, or a model with at most half of its features, if those that are saved are
        worth what is lost; of equals the most stable (docs/guide/recommendation.md).
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

    See Also
    --------
    compare : Makes one.
    ComparisonDisplay : Draws it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import compare
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = X[::6], y[::6]
    >>> comparison = compare(X, y, models=["DWD", "HuberizedSVC"], cv=2, quick=True, progress=False)
    >>> sorted(comparison.models_), comparison.interrupted
    (['DWD', 'HuberizedSVC'], False)
    >>> comparison.folds.shape[0]
    4
    """

    @classmethod
    def from_run(cls, run_dir: str | os.PathLike[str]) -> Comparison:
        """The comparison of a run directory, finished or not; its data are not needed.

        Raises
        ------
        ValueError
            It is no run directory, or of another version.
        """
        setup, outcomes, complete = read_run(run_dir)
        bare = [o.model for o in outcomes if o.fold is None and o.estimator is None]
        notes = [f"models of other libraries are not in the directory: {', '.join(bare)}"]
        ending = ComparisonEnding.COMPLETE if complete else ComparisonEnding.UNFINISHED
        return cls(setup, outcomes, ending, notes if bare else ())

    def tests(self, metric: str | None = None) -> Frame:
        """The models against the best, a row each: difference, interval, p-values (data frame)."""
        frame = self.evidence(metric).to_frame()
        return frame.loc[[name for name in self.names if name in frame.index]]

    @property
    def table(self) -> Frame:
        return _frame([_table_row(self, name) for name in self.names]).set_index("model")

    @property
    def folds(self) -> Frame:
        scoring, first = self.setup.protocol.scoring.name, ("model", "repeat", "fold")
        rows = [
            {**dict.fromkeys(first), "score": outcome.scores[scoring], **_fold_row(self, outcome)}
            for outcome in self.scored
        ]
        return _frame(rows).rename(columns={"n_features": "features_used"})

    @property
    def best_(self) -> Estimator:
        return self.models_.get(self.best_name_)

    @property
    def recommended_model_(self) -> Estimator:
        return self.models_.get(self.recommended_ or "")

    @property
    def best_fitted_name_(self) -> str | None:
        return next((name for name in self.names if name in self.models_), None)

    @property
    def best_fitted_(self) -> Estimator:
        return self.models_.get(self.best_fitted_name_ or "")

    @property
    def models_(self) -> Facts:
        return {o.model: o.estimator for o in self.outcomes if o.estimator is not None}

    def top_features(
        self, limit: int = text.TOP_FEATURES, model: str | None = None
    ) -> list[tuple[str, float, str]]:
        """The features that weigh most in a model, by default the best.

        Returns
        -------
        list of (name, weight, class)
            The weight is the coefficient times the standard deviation of the feature; with more
            than two classes, of the class where it is largest in size. Positive speaks for the
            class.
        """
        rows = _features(self, self.best_name_ if model is None else model, limit)
        return [(row["feature"], row["weight"], row["class"]) for row in rows]

    @property
    def predictions(self) -> Frame:
        """Predictions for samples that a model was not fitted to, of the first repeat: a data frame
        with the index of X, with ``true``, ``fold`` (from 0, as in `folds`), the class by each
        model, and where it has probabilities ``"model: probability of class"`` for each class, of
        two for the positive one, by default the second."""
        held, labels = self.held_out, np.array(self.setup.classes, object)
        columns: Record = {
            "true": labels[held["true"]],
            "fold": [k for k, fold in enumerate(self.setup.rows) for _ in fold],
        }
        for name in (each for each in self.names if each in held):
            codes = np.array([-1 if k is None else k for k in held[name]["label"]])
            columns[name] = np.where(codes < 0, None, labels[codes])
            known = [np.nan if each is None else each for each in held[name]["probabilities"]]
            for k in [self.setup.positive or 0] if labels.size == 2 else range(labels.size):
                column = [each[k] if isinstance(each, list) else each for each in known]
                if not np.isnan(column).all():
                    columns[f"{name}: probability of {labels[k]}"] = column
        index = held.get("ids") or held["rows"]
        return _frame(columns, index).iloc[np.argsort(held["rows"], kind="stable")]

    def clinical(self, model: str | None = None) -> ClinicalSummary:
        """What a clinical paper reports of a model, by default the recommended one.

        Raises
        ------
        ValueError
            The model has no held-out probabilities, or no positive class is named: compare with
            ``positive=`` where there are more than two classes.
        """
        name = (self.recommended_ or self.best_name_) if model is None else model
        found = _summary(self, name)
        if found is None:
            raise ValueError(f"{name!r} has no held-out probabilities of both classes")
        return found

    def __str__(self) -> str:
        return text.text(self.facts)

    def __repr__(self) -> str:
        return text.short(self.facts)

    def _repr_html_(self) -> str:
        return first_screen(self.facts)

    @property
    def facts(self) -> Record:
        """All of it but the predictions as plain values, from which it is printed."""
        return _facts(self)

    def to_dict(self) -> Record:
        """All of it as plain values, ready to be written as JSON; non-finite numbers are None."""
        found = {"predictions": self.held_out, "clinical": _clinical(self)}
        return dict(plain({**self.facts, **found}))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file."""
        written = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        with replaced(path) as stream:
            stream.write(written.encode())

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write a report: one HTML file that needs no network.

        Raises
        ------
        ImportError
            What draws it is not installed; the message names the command.
        OSError
            The file cannot be written.
        """
        from proxmargin.studies.reports import write_report

        write_report(self, path)


def _frame(rows: object, index: object = None) -> Frame:
    return optional("pandas", "a table of a comparison").DataFrame(rows, index=index)


def _table_row(found: Comparison, name: str) -> Record:
    scoring, *others = (metric.name for metric in found.setup.protocol.metrics)
    result, row = found.results[name], found.row(name, scoring)
    return {
        "model": name,
        **{key: result[key] for key in ("score_mean", "score_sd")},
        "score_low": row["low"],
        "score_high": row["high"],
        **{key: row[key] for key in ("p_holm", "p_equal", "equivalent")},
        **{other: found.row(name, other)["mean"] for other in others},
        "features_used": found.features_used[name],
        **{key: result[key] for key in OF_COSTS},
        **result["settings"],
    }


def _facts(found: Comparison) -> Record:
    """All of it but the predictions."""
    setup, tally, protocol = found.setup, found.tally, asdict(found.setup.protocol)
    gaps = [o.relative_gap for o in found.outcomes if not math.isnan(o.relative_gap)]
    features = {name: _features(found, name, LARGEST_WEIGHTS) for name in found.finals}
    return {
        "format": FORMAT,
        "version": VERSION,
        "data": {
            "name": setup.name,
            "n_samples": setup.n_samples,
            "n_features": setup.n_features,
            "sparse": setup.sparse,
            "classes": [
                {"label": label, "count": count}
                for label, count in zip(setup.classes, setup.class_sizes, strict=True)
            ],
            "card": dict(setup.card),
        },
        "protocol": {
            "scoring": setup.protocol.scoring.name,
            "groups": protocol.pop("grouped"),
            **protocol,
        },
        "models": [_model(found, name) for name in found.names],
        "best": found.best_name_,
        "equivalent": list(found.equivalent_),
        "recommended": found.recommended_,
        "choices": found.choices(),
        "price_of_half_the_features": found.evidence().price,
        "unit": found.evidence().unit,
        "missed": found.missed,
        "disagreements": {
            "scope": SCOPE,
            "caution": WIDE if found.agreement.is_wide else "",
            "pairs": found.agreement.against(found.evidence().best),
        },
        "majority": {name: mean(v) for name, v in setup.majority.items()},
        "fold_results": [_fold_row(found, outcome) for outcome in found.scored],
        "features": {name: rows for name, rows in features.items() if rows},
        "paths": {name: each.curve for name, each in found.finals.items() if each.curve},
        "certificates": {
            "fits": tally.fits,
            "unmet": tally.unmet,
            "worst_gap": max(gaps, default=None),
        },
        "cost": {
            "seconds": sum(outcome.spent for outcome in found.outcomes),
            "compile_seconds": sum(outcome.compiling for outcome in found.outcomes),
        },
        "versions": dict(setup.versions),
        "notes": found.notes(),
        "interrupted": found.interrupted,
    }


def _model(found: Comparison, name: str) -> Record:
    result, final = found.results[name], found.finals.get(name)
    whole = found.models_.get(name)
    certificate = getattr(whole, "certificate_", None)
    known = None if certificate is None else {n: getattr(certificate, n) for n in OF_CERTIFICATE}
    rows = {each.name: found.row(name, each.name) for each in found.setup.protocol.metrics}
    whose, told = result["probabilities"], None if certificate is None else str(certificate)
    made = {"python": None if whole is None else expression(whole), "certificate": told}
    of_final = None if final is None else {"n_features": final.features_used, **made}
    return {
        **result,
        "probabilities": {"kind": whose, "sentence": PROBABILITIES[whose]},
        "certificate": known,
        "final": of_final,  # of the fit to all rows
        "metrics": {
            metric: {key: row[key] for key in OF_EVIDENCE if key in row}
            for metric, row in rows.items()
        },
    }


def _fold_row(found: Comparison, outcome: Outcome) -> Record:
    """One model on one fold."""
    assert outcome.fold is not None
    repeat, fold = divmod(outcome.fold, found.setup.protocol.folds)
    return {
        "model": outcome.model,
        "repeat": repeat,
        "fold": fold,
        **outcome.scores,
        "n_features": outcome.features_used,
        "seconds": outcome.seconds,
        "relative_gap": outcome.relative_gap,
        "fits_unmet": outcome.tally.unmet,
        **outcome.settings,
    }


def _features(found: Comparison, model: str, limit: int) -> list[Record]:
    """The features that weigh most in a model fitted to all rows; none without such a model."""
    final, setup = found.finals.get(model), found.setup
    chosen = [outcome.used for outcome in found.scored if outcome.model == model]
    data = setup.feature_names, setup.feature_scale, setup.classes
    return [] if final is None else feature_rows(final.used, chosen, *data, limit)


def _clinical(found: Comparison) -> Record | None:
    """The clinical numbers of each model by name; None where no class is the positive one."""
    setup = found.setup
    if setup.positive is None:
        return None
    known = {name: _summary(found, name) for name in found.names}
    models = {name: each.to_dict() for name, each in known.items() if each is not None}
    return {"positive": setup.classes[setup.positive], "models": models}


def _summary(found: Comparison, name: str) -> ClinicalSummary | None:
    """Each row once, as first held out; None without probabilities, or rows of both kinds."""
    setup, held = found.setup, found.held_out.get(name, {"label": [], "probabilities": []})
    labels, positive = np.array(setup.classes, object), setup.positive
    if positive is None:
        raise ValueError(f"compare with positive=, one of {', '.join(setup.classes)}")
    rows = np.array([(row, fold) for fold, test in enumerate(setup.rows) for row in test], np.intp)
    chances = [each and each[positive] for each in held["probabilities"]]
    places = [k for k, chance in enumerate(chances) if None not in (chance, held["label"][k])]
    kept, first = np.unique(rows[places, 0], return_index=True)
    codes, at = np.asarray(setup.codes)[kept], np.array(places, np.intp)[first]
    if not 0 < np.count_nonzero(codes == positive) < codes.size:
        return None
    ids, repeats = setup.row_ids, setup.protocol.repeats
    summary = clinical_summary(
        labels[codes],
        np.clip([chances[k] for k in at], 0.0, 1.0),
        labels[positive],
        predicted=labels[[held["label"][k] for k in at]],
        ids=[ids[row] for row in kept],
        groups=None if setup.groups is None else np.asarray(setup.groups)[kept],
        folds=rows[at, 1],
        test_ratio=setup.test_ratio,
    )
    if repeats == 1:
        return summary
    of = f"Of the first of {repeats} repetitions of the folds; mean scores are of all."
    return replace(summary, method=f"{of} {summary.method}")
