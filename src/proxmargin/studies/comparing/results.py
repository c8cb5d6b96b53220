"""What was measured, the order that it puts the models in, and the evidence for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from proxmargin.runtime.types import Array, Facts, Record
from proxmargin.studies.comparing.agreement import Agreement
from proxmargin.studies.comparing.evidence import COLUMNS, Evidence, Traits
from proxmargin.studies.comparing.metrics import basis_of
from proxmargin.studies.comparing.searches import Tally
from proxmargin.studies.comparing.setup import MetricFacts, Setup
from proxmargin.studies.comparing.work import Outcome
from proxmargin.studies.stats.scores import MAJORITY


@dataclass(frozen=True)
class ModelResult:
    """The results of one model over the folds; means over them are NaN where there is none."""

    model: str
    kind: str  # 'model' or 'baseline'
    folds: int  # finished ones, over all repeats
    score_mean: float
    score_sd: float
    features_used: float
    stability: float  # of the selected features
    seconds_per_fit: float  # without those in which kernels were compiled
    passes: float
    relative_gap: float  # the largest certified one; NaN without a certificate
    certified: bool | None  # whether all of them met their tolerance
    settings: Record  # chosen on all data; empty when that was not finished
    probabilities: str  # whose they are

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], setup: Setup) -> ModelResult:
        facts = setup.model(outcomes[0].model)
        scored = [outcome for outcome in outcomes if outcome.fold is not None]
        final = [outcome for outcome in outcomes if outcome.fold is None]
        scores = [outcome.scores[setup.protocol.scoring.name] for outcome in scored]
        certified = [each.certified for each in outcomes if each.certified is not None]
        return cls(
            model=facts.name,
            kind=facts.kind,
            folds=len(scored),
            score_mean=mean(scores),
            score_sd=deviation(scores),
            features_used=mean([outcome.features_used for outcome in scored]),
            stability=selection_stability([outcome.used for outcome in scored], setup.n_features),
            seconds_per_fit=mean([outcome.seconds for outcome in scored]),
            passes=mean([outcome.passes for outcome in scored]),
            relative_gap=float(np.max([outcome.relative_gap for outcome in outcomes])),
            certified=all(certified) if certified else None,
            settings=final[0].settings if final else {},
            probabilities=outcomes[0].probabilities,
        )


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
class Ranking:
    """What was measured, and the order that it puts the models in."""

    setup: Setup
    outcomes: Sequence[Outcome]
    ending: ComparisonEnding = ComparisonEnding.COMPLETE
    further_notes: Sequence[str] = ()

    @property
    def interrupted(self) -> bool:
        return self.ending is not ComparisonEnding.COMPLETE

    @cached_property
    def scored(self) -> list[Outcome]:
        """The outcomes on folds."""
        return [outcome for outcome in self.outcomes if outcome.fold is not None]

    @property
    def finals(self) -> dict[str, Outcome]:
        """The fits to all rows by model."""
        return {outcome.model: outcome for outcome in self.outcomes if outcome.fold is None}

    @cached_property
    def results(self) -> list[ModelResult]:
        """One a model, the best first; models without a finished fold last."""
        sign = -1.0 if self.setup.protocol.scoring.larger_is_better else 1.0

        def rank(result: ModelResult) -> tuple[bool, float, float]:
            unknown = bool(np.isnan(result.score_mean))
            # rounding, so that equal means of the same fractions count as equal
            score = 0.0 if unknown else sign * round(result.score_mean, 12)
            return unknown, score, result.features_used

        return sorted(results_of(self.outcomes, self.setup), key=rank)

    @property
    def names(self) -> list[str]:
        """The models, the best first."""
        return [each.model for each in self.results]

    @cached_property
    def _evidence(self) -> dict[str, Evidence]:
        in_order = results_of(self.outcomes, self.setup)
        return {
            metric.name: evidence_of(metric, self.outcomes, self.setup, in_order)
            for metric in self.setup.protocol.metrics
        }

    def evidence(self, metric: str | None = None) -> Evidence:
        """Intervals, differences and the recommended model by one metric, the scoring by default.
        ValueError: it was not computed."""
        name = self.setup.protocol.scoring.name if metric is None else metric
        if name not in self._evidence:
            raise ValueError(
                f"metric {name!r} was not computed; there are "
                f"{', '.join(map(repr, self._evidence))}"
            )
        return self._evidence[name]

    def row(self, model: str, metric: str) -> Record:
        """The numbers of one model by one metric; of the majority class its mean alone."""
        evidence = self.evidence(metric)
        if model in evidence.models:
            return evidence.row(model)
        scores = [each.scores[metric] for each in self.scored if each.model == model]
        found = {"mean": mean(scores), "sd": deviation(scores), "n": len(scores)}
        return {**dict.fromkeys(COLUMNS, np.nan), **found, "equivalent": False}

    @property
    def best_name_(self) -> str:
        best = self.evidence().best if self.scored else None
        return self.names[0] if best is None else best

    @property
    def equivalent_(self) -> tuple[str, ...]:
        return self.evidence().equivalent

    @property
    def recommended_(self) -> str | None:
        return self.evidence().recommended

    @cached_property
    def agreement(self) -> Agreement:
        """Where models disagree about the rows of the first repetition."""
        judged = [name for name in self.names if name != MAJORITY]
        return Agreement.of(judged, self.scored, self.setup)

    @property
    def missed(self) -> Record:
        """The difference that these data would usually miss (`Agreement.missed`)."""
        basis = basis_of(self.setup.protocol.scoring.name, _tested(self.outcomes, self.setup))
        return self.agreement.missed(self.evidence(), self.setup, basis)

    def choices(self) -> list[Record]:
        """The most accurate, the simplest and the most stable of the models that are not
        distinguishable from the best, with what each costs in mean score; and the recommended."""
        evidence = self.evidence()
        results = {each.model: each for each in self.results}
        # the recommended one first, as it is named among equals
        known = sorted(evidence.equivalent, key=lambda name: name != evidence.recommended)
        stable = [name for name in known if not np.isnan(results[name].stability)]
        # of the model that one gets, where it is finished
        final = {name: each.features_used for name, each in self.finals.items()}
        features = {name: final.get(name, each.features_used) for name, each in results.items()}
        roles = {
            "recommended": evidence.recommended,
            "most accurate": evidence.best,
            "simplest": min(known, key=lambda name: features[name], default=None),
            "most stable": max(stable, key=lambda name: results[name].stability, default=None),
        }
        sign = 1.0 if self.setup.protocol.scoring.larger_is_better else -1.0
        return [
            {
                "role": role,
                "model": name,
                "mean": evidence.row(name)["mean"],
                "cost": -sign * evidence.row(name)["difference"] + 0.0,  # no negative zero
                "n_features": features[name],
                "stability": results[name].stability,
            }
            for role, name in roles.items()
            if name is not None
        ]

    @property
    def majority(self) -> float:
        return float(np.mean(self.setup.majority[self.setup.protocol.scoring.name]))

    @property
    def tally(self) -> Tally:
        return sum((outcome.tally for outcome in self.outcomes), Tally())

    def notes(self) -> list[str]:
        """What a reader must know to judge the results: folds, interruptions, unmet tolerances."""
        notes = [*self.setup.notes, *self.further_notes, *self.evidence().notes]
        if self.interrupted:
            notes.append(self.ending.value)
        if self.tally.unmet:
            notes.append(str(self.tally))
        return list(dict.fromkeys(notes))


def results_of(outcomes: Sequence[Outcome], setup: Setup) -> list[ModelResult]:
    """One a model with an outcome, in the order of the setup."""
    by_model: dict[str, list[Outcome]] = {facts.name: [] for facts in setup.models}
    for outcome in outcomes:
        by_model[outcome.model].append(outcome)
    return [ModelResult.of(own, setup) for own in by_model.values() if own]


def evidence_of(
    metric: MetricFacts, outcomes: Sequence[Outcome], setup: Setup, results: Sequence[ModelResult]
) -> Evidence:
    """The models judged by one metric, without the majority."""
    results = [result for result in results if result.model != MAJORITY]
    place = {result.model: column for column, result in enumerate(results)}
    scores = np.full((len(setup.splits), len(results)), np.nan)  # NaN where not finished
    for outcome in outcomes:
        if outcome.fold is not None and outcome.model in place:
            scores[outcome.fold, place[outcome.model]] = outcome.scores[metric.name]
    basis = basis_of(metric.name, _tested(outcomes, setup))
    return Evidence.of(
        scores,
        list(place),
        test_ratio=setup.test_ratio,
        repeats=setup.protocol.repeats,
        larger_is_better=metric.larger_is_better,
        traits=_traits(results, setup),
        basis=basis,
        unit=basis.unit(mean(setup.majority[metric.name])),
    )


def _traits(results: Sequence[ModelResult], setup: Setup) -> Traits:
    facts = [setup.model(result.model) for result in results]
    return Traits(
        features=np.array([result.features_used for result in results]),
        stability=np.array([result.stability for result in results]),
        has_probabilities=np.array([each.has_probabilities for each in facts], np.bool_),
        is_kernel=np.array([each.is_kernel for each in facts], np.bool_),
        is_multiclass=np.array(
            [each.is_multiclass and len(setup.classes) == 2 for each in facts], np.bool_
        ),
    )


def _tested(outcomes: Sequence[Outcome], setup: Setup) -> NDArray[np.float64]:
    """Independent samples of each class that finished folds have tested, one at least: in the first
    repeat, as others test the same rows again; of groups the share of their rows."""
    done = {outcome.fold for outcome in outcomes if outcome.fold is not None}
    rows = [row for fold, each in enumerate(setup.rows) if fold in done for row in each]
    counts = [
        np.bincount(np.asarray(setup.codes)[part], minlength=len(setup.classes))
        for part in (np.unique(np.array(rows, dtype=np.intp)), slice(None))
    ]
    return np.maximum(np.asarray(setup.tested) * counts[0] / counts[1], 1.0)


def mean(values: Sequence[float] | Array) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def deviation(values: list[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def selection_stability(chosen: Sequence[Facts], n_features: int) -> float:
    """Nogueira's measure (Nogueira, Sechidis and Brown 2018, JMLR 18, 174) of the sets ``used`` of
    each fold: ``1 - mean_f s_f^2 / (k/p (1 - k/p))`` for the unbiased variances ``s_f^2`` of
    selections and the mean size k. At most 1, near 0 for random sets; NaN for one set, or all empty
    or full."""
    count = len(chosen)
    if count < 2 or any(not each for each in chosen):
        return np.nan
    often = np.zeros(n_features)
    for each in chosen:
        often[_numbers_of(each, n_features)] += 1
    share = often / count
    average = float(share.mean())
    if average in (0.0, 1.0):
        return np.nan
    variance = count / (count - 1) * share * (1 - share)
    return float(1 - variance.mean() / (average * (1 - average)))


def feature_rows(
    final: Facts,
    chosen: Sequence[Facts],
    names: Sequence[str],
    scale: Sequence[float],
    classes: Sequence[str],
    limit: int,
) -> list[Record]:
    """The features that weigh most in a model: ``final`` is the ``used`` of the fit to all rows,
    ``chosen`` those of the folds. ``weight`` is per standard deviation and speaks for ``class`` if
    positive; ``frequency`` is the share of the folds with the feature, ``sign_agreement`` of these
    with its sign; ``auc`` and ``partners``, [name, correlation], are of the feature alone."""
    if not final:
        return []
    features = _numbers_of(final, len(names))
    weights = np.array(final["weights"], np.float64) * np.asarray(scale)[features]
    rows = np.abs(weights).argmax(axis=0)
    largest = weights[rows, np.arange(features.size)]
    labels = classes[1:] if len(weights) == 1 else classes
    order = np.argsort(-np.abs(largest), kind="stable")[:limit]
    order = order[largest[order] != 0]
    told = final.get("largest") or {"features": (), "auc": (), "partners": ()}
    alone = {j: pair for j, *pair in zip(*told.values(), strict=True)}
    often, agreeing = _in_folds(chosen, features[order], rows[order], largest[order], len(names))
    return [
        {
            "feature": str(names[features[j]]),
            "class": str(labels[rows[j]]),
            "weight": float(largest[j]),
            "sign": 1 if largest[j] > 0 else -1,
            "frequency": frequency,
            "sign_agreement": agreement,
            "auc": alone.get(int(features[j]), (np.nan,))[0],
            "partners": [[str(names[k]), r] for k, r in alone.get(int(features[j]), (0, ()))[1]],
        }
        for j, frequency, agreement in zip(order, often.tolist(), agreeing.tolist(), strict=True)
    ]


def _numbers_of(used: Facts, n_features: int) -> NDArray[np.intp]:
    listed = used["features"]
    return np.arange(n_features) if listed is None else np.array(listed, np.intp)


def _in_folds(
    chosen: Sequence[Facts],
    features: NDArray[np.intp],
    rows: NDArray[np.intp],
    weights: Array,
    n_features: int,
) -> tuple[Array, Array]:
    """The share of the folds that use each feature, and of those the share with its sign."""
    used, same = np.zeros(features.size), np.zeros(features.size)
    known = [each for each in chosen if each]
    for each in known:
        listed = np.array(each["weights"], np.float64)
        coef = np.zeros((len(listed), n_features))
        coef[:, _numbers_of(each, n_features)] = listed
        used += coef[:, features].any(axis=0)
        same += np.sign(coef[rows, features]) == np.sign(weights)
    shares = used / len(known) if known else np.full(features.size, np.nan)
    return shares, np.divide(same, used, out=np.full(used.size, np.nan), where=used > 0)
