"""A comparison as plain values: the contract of JSON files and of reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmargin.comparing.evaluating.work import Outcome
from proxmargin.comparing.evidence import COLUMNS
from proxmargin.comparing.results.selected import feature_rows
from proxmargin.runtime.brief import plain

if TYPE_CHECKING:
    from proxmargin.comparing.comparison import Comparison
    from proxmargin.comparing.results.standings import ModelResult

__all__ = ["facts_of", "fold_row"]

FORMAT = "proxmargin comparison"  # by which a file is known
VERSION = 1  # of the format
LARGEST_WEIGHTS = 50  # features a model
OF_EVIDENCE = (*COLUMNS, "n", "equivalent")  # of a model and a metric
OF_CERTIFICATE = (
    "primal",
    "dual",
    "gap",
    "relative_gap",
    "kkt_residual",
    "converged",
    "stop_reason",
    "solver",
)


def facts_of(comparison: Comparison) -> dict[str, Any]:
    """All of it; numbers that are not finite are None."""
    setup = comparison.setup
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "data": _data(comparison),
        "protocol": _protocol(comparison),
        "models": [_model(comparison, each) for each in comparison.standings],
        "best": comparison.best_name_,
        "equivalent": list(comparison.equivalent_),
        "recommended": comparison.recommended_,
        "majority": {name: float(np.mean(v)) for name, v in setup.majority.items()},
        "fold_results": [fold_row(o, setup.n_folds) for o in comparison.scored],
        "predictions": _predictions(comparison),
        "features": _features(comparison),
        "paths": {o.model: o.curve for o in comparison.outcomes if o.fold is None and o.curve},
        "certificates": _certificates(comparison),
        "cost": _cost(comparison),
        "versions": dict(setup.versions),
        "notes": comparison.notes(),
        "interrupted": comparison.interrupted,
    }
    return dict(plain(facts))


def fold_row(outcome: Outcome, n_folds: int) -> dict[str, Any]:
    """One model on one fold."""
    assert outcome.fold is not None
    return {
        "model": outcome.model,
        "repeat": outcome.fold // n_folds,
        "fold": outcome.fold % n_folds,
        **outcome.scores,
        "n_features": outcome.features_used,
        "seconds": outcome.seconds,
        "relative_gap": outcome.relative_gap,
        "fits_unmet": outcome.tally.unmet,
        **outcome.settings,
    }


def _data(comparison: Comparison) -> dict[str, Any]:
    setup = comparison.setup
    sizes = zip(setup.classes, setup.class_sizes, strict=True)
    return {
        "name": setup.name,
        "n_samples": setup.n_samples,
        "n_features": setup.n_features,
        "sparse": setup.sparse,
        "classes": [{"label": label, "count": count} for label, count in sizes],
        "card": dict(setup.card),
    }


def _protocol(comparison: Comparison) -> dict[str, Any]:
    protocol = comparison.setup.protocol
    return {
        "scoring": protocol.scoring.name,
        "metrics": [vars(each) for each in protocol.metrics],
        "folds": protocol.folds,
        "repeats": protocol.repeats,
        "groups": protocol.grouped,
        "preprocess": protocol.preprocess,
        "random_state": protocol.random_state,
        "inner": protocol.inner,
        "standardize": protocol.standardize,
        "quick": protocol.quick,
        "baselines": protocol.baselines,
        "command": protocol.command,
    }


def _model(comparison: Comparison, standing: ModelResult) -> dict[str, Any]:
    metrics = [metric.name for metric in comparison.setup.protocol.metrics]
    rows = {name: comparison.row(standing.model, name) for name in metrics}
    return {
        "name": standing.model,
        "kind": standing.kind,
        "settings": standing.settings,
        "n_features": standing.features_used,
        "stability": standing.stability,
        "seconds_per_fit": standing.seconds_per_fit,
        "passes": standing.passes,
        "relative_gap": standing.relative_gap,
        "certified": standing.certified,
        "folds": standing.folds,
        "certificate": _certificate(comparison.models_.get(standing.model)),
        "metrics": {
            name: {key: row[key] for key in OF_EVIDENCE if key in row} for name, row in rows.items()
        },
    }


def _certificate(model: Any) -> dict[str, Any] | None:
    """Of the fit to all rows."""
    found = getattr(model, "certificate_", None)
    return None if found is None else {name: getattr(found, name) for name in OF_CERTIFICATE}


def _predictions(comparison: Comparison) -> dict[str, Any]:
    """Those for the test rows of the first repeat, fold by fold; None where not finished."""
    setup = comparison.setup
    rows = [row for fold in setup.rows for row in fold]
    numbers = rows if setup.numbers is None else [setup.numbers[row] for row in rows]
    found = {name: _of_model(comparison, name) for name in comparison.names}
    told = {name: each for name, each in found.items() if each}
    return {"true": [setup.codes[row] for row in rows], "rows": numbers, **told}


def _of_model(comparison: Comparison, name: str) -> dict[str, Any]:
    setup = comparison.setup
    known = {o.fold: o.held for o in comparison.scored if o.model == name and o.held}
    if not known:
        return {}
    joined: dict[str, list[Any]] = {"label": [], "scores": [], "probabilities": []}
    for fold, test in enumerate(setup.rows):
        held = known.get(fold, {})
        blank = [None] * len(test)
        joined["label"] += held.get("labels") or blank
        joined["scores"] += [_row(each) for each in held.get("scores") or blank]
        joined["probabilities"] += [_row(each) for each in held.get("probabilities") or blank]
    return joined


def _row(value: Any) -> Any:
    return value if value is None or isinstance(value, list) else [value]


def _features(comparison: Comparison) -> dict[str, Any]:
    return {name: each for name, each in _each_features(comparison) if each}


def _each_features(comparison: Comparison) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for outcome in comparison.outcomes:
        if outcome.fold is None:
            yield outcome.model, features_of(comparison, outcome, LARGEST_WEIGHTS)


def features_of(comparison: Comparison, final: Outcome, limit: int) -> list[dict[str, Any]]:
    """The features that weigh most in a model fitted to all rows."""
    setup = comparison.setup
    chosen = [o.used for o in comparison.scored if o.model == final.model]
    return feature_rows(
        final.used, chosen, setup.feature_names, setup.feature_scale, setup.classes, limit
    )


def _certificates(comparison: Comparison) -> dict[str, Any]:
    tally = comparison.tally
    gaps = [o.relative_gap for o in comparison.outcomes if not math.isnan(o.relative_gap)]
    return {"fits": tally.fits, "unmet": tally.unmet, "worst_gap": max(gaps, default=None)}


def _cost(comparison: Comparison) -> dict[str, Any]:
    return {
        "seconds": sum(outcome.spent for outcome in comparison.outcomes),
        "compile_seconds": sum(outcome.compiling for outcome in comparison.outcomes),
    }
