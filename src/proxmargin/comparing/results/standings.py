"""The results of each model over the folds, and the evidence in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.comparing.evaluating.candidates import MAJORITY
from proxmargin.comparing.evaluating.work import Outcome
from proxmargin.comparing.evidence import COLUMNS, Evidence, basis_of
from proxmargin.comparing.results.selected import selection_stability
from proxmargin.comparing.running.setup import MetricFacts, Setup
from proxmargin.stats.scores import CONFIDENCE, ROPE

__all__ = ["ModelResult", "evidence_of", "row_of", "standings_of"]


@dataclass(frozen=True)
class ModelResult:
    """The results of one model over the folds.

    Attributes
    ----------
    model : str
    kind : str
        'model' or 'baseline'.
    is_kernel : bool
    folds : int
        Number of finished folds, over all repeats.
    score_mean, score_sd, features_used, seconds_per_fit, passes : float
        Means over the folds, and the sample standard deviation of the score. Seconds are without
        those in which kernels were compiled.
    stability : float
        Of the selected features (`selection_stability`).
    relative_gap : float
        The largest certified relative gap of these models; NaN without a certificate.
    certified : bool or None
        Whether all of them met their tolerance.
    settings : dict
        Chosen on all data; empty when that was not finished.
    """

    model: str
    kind: str
    is_kernel: bool
    folds: int
    score_mean: float
    score_sd: float
    features_used: float
    stability: float
    seconds_per_fit: float
    passes: float
    relative_gap: float
    certified: bool | None
    settings: dict[str, Any]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], setup: Setup) -> ModelResult:
        facts = setup.model(outcomes[0].model)
        scored = [outcome for outcome in outcomes if outcome.fold is not None]
        final = [outcome for outcome in outcomes if outcome.fold is None]
        scores = [outcome.scores[setup.protocol.scoring.name] for outcome in scored]
        told = [each.certified for each in outcomes if each.certified is not None]
        return cls(
            model=facts.name,
            kind=facts.kind,
            is_kernel=facts.is_kernel,
            folds=len(scored),
            score_mean=mean(scores),
            score_sd=deviation(scores),
            features_used=mean([outcome.features_used for outcome in scored]),
            stability=selection_stability([outcome.used for outcome in scored], setup.n_features),
            seconds_per_fit=mean([outcome.seconds for outcome in scored]),
            passes=mean([outcome.passes for outcome in scored]),
            relative_gap=float(np.max([outcome.relative_gap for outcome in outcomes])),
            certified=all(told) if told else None,
            settings=final[0].settings if final else {},
        )


def standings_of(outcomes: Sequence[Outcome], setup: Setup) -> list[ModelResult]:
    """One a model with an outcome, in the order of the setup."""
    by_model: dict[str, list[Outcome]] = {facts.name: [] for facts in setup.models}
    for outcome in outcomes:
        by_model[outcome.model].append(outcome)
    return [ModelResult.of(own, setup) for own in by_model.values() if own]


def evidence_of(
    metric: MetricFacts,
    outcomes: Sequence[Outcome],
    setup: Setup,
    standings: Sequence[ModelResult],
    confidence: float = CONFIDENCE,
    rope: float = ROPE,
) -> Evidence:
    """The models judged by one metric, without the majority, which nobody would take for one.

    Simpler is one with fewer features, then one without a kernel, then the earlier; seconds would
    differ from run to run.
    """
    standings = [standing for standing in standings if standing.model != MAJORITY]
    names = [standing.model for standing in standings]
    keys = [(each.features_used, each.is_kernel, k) for k, each in enumerate(standings)]
    return Evidence.of(
        _scores(metric.name, names, outcomes, len(setup.splits)),
        names,
        test_ratio=setup.test_ratio,
        repeats=setup.protocol.repeats,
        larger_is_better=metric.larger_is_better,
        simplicity=np.array(keys, np.float64),
        basis=basis_of(metric.name, _tested(outcomes, setup)),
        confidence=confidence,
        rope=rope,
    )


def _tested(outcomes: Sequence[Outcome], setup: Setup) -> NDArray[np.float64]:
    """Independent samples of each class that finished folds have tested, one at least.

    Repeats test the same rows again, so those of the first one count. Of groups, the share of
    their rows.
    """
    done = {outcome.fold for outcome in outcomes if outcome.fold is not None}
    rows = [row for fold, each in enumerate(setup.rows) if fold in done for row in each]
    counts = [
        np.bincount(np.asarray(setup.codes)[part], minlength=len(setup.classes))
        for part in (np.unique(np.array(rows, dtype=np.intp)), slice(None))
    ]
    return np.maximum(np.asarray(setup.tested) * counts[0] / counts[1], 1.0)


def _scores(
    metric: str, names: Sequence[str], outcomes: Sequence[Outcome], n_splits: int
) -> NDArray[np.float64]:
    """(n_splits, n_models), NaN where not finished."""
    place = {name: column for column, name in enumerate(names)}
    scores = np.full((n_splits, len(names)), np.nan)
    for outcome in outcomes:
        if outcome.fold is not None and outcome.model in place:
            scores[outcome.fold, place[outcome.model]] = outcome.scores[metric]
    return scores


def row_of(evidence: Evidence, model: str, scores: Sequence[float]) -> dict[str, Any]:
    """The numbers of one model; of the majority its mean alone."""
    if model in evidence.models:
        return evidence.row(model)
    blank = dict.fromkeys(COLUMNS, np.nan)
    told = {"mean": mean(scores), "sd": deviation(scores), "n": len(scores), "equivalent": False}
    return {**blank, **told}


def mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def deviation(values: Any) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
