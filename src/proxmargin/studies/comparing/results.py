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
from proxmargin.studies.comparing.metrics import MetricRange, basis_of
from proxmargin.studies.comparing.searches import Tally
from proxmargin.studies.comparing.setup import MetricFacts, Setup
from proxmargin.studies.comparing.work import Outcome
from proxmargin.studies.stats.scores import MAJORITY

FAIR_STABILITY = 0.4  # below, the folds agree poorly on the features (Nogueira et al. 2018)


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
    def results(self) -> dict[str, Record]:
        """What was measured of each model (`_measured`), the best first; models without a finished
        fold last."""
        sign = -1.0 if self.setup.protocol.scoring.larger_is_better else 1.0
        known = (facts.name for facts in self.setup.models)
        outcomes = {name: [each for each in self.outcomes if each.model == name] for name in known}
        found = [_measured(own, self.setup) for own in outcomes.values() if own]

        def rank(result: Record) -> tuple[bool, float, float]:
            unknown = bool(np.isnan(result["score_mean"]))
            # rounding, so that equal means of the same fractions count as equal
            score = 0.0 if unknown else sign * round(result["score_mean"], 12)
            return unknown, score, result["n_features"]

        return {each["name"]: each for each in sorted(found, key=rank)}

    @property
    def names(self) -> list[str]:
        """The models, the best first."""
        return list(self.results)

    @cached_property
    def _evidence(self) -> dict[str, Evidence]:
        return {each.name: self._judged(each) for each in self.setup.protocol.metrics}

    def _judged(self, metric: MetricFacts) -> Evidence:
        """The models, in the order of the setup and without the majority, by one metric."""
        setup = self.setup
        models = [m for m in setup.models if m.name in self.results and m.name != MAJORITY]
        place = {each.name: column for column, each in enumerate(models)}
        scores = np.full((len(setup.splits), len(models)), np.nan)  # NaN where not finished
        for outcome in self.scored:
            if outcome.model in place:
                scores[outcome.fold, place[outcome.model]] = outcome.scores[metric.name]
        basis, majority = self._basis(metric.name), mean(setup.majority[metric.name])
        return Evidence.of(
            scores,
            list(place),
            test_ratio=setup.test_ratio,
            repeats=setup.protocol.repeats,
            larger_is_better=metric.larger_is_better,
            traits=[
                Traits(
                    features=self.results[each.name]["n_features"],
                    stability=self.results[each.name]["stability"],
                    has_probabilities=each.has_probabilities,
                    is_kernel=each.is_kernel,
                    is_multiclass=each.is_multiclass and len(setup.classes) == 2,
                )
                for each in models
            ],
            basis=basis,
            unit=basis.unit(majority),
            majority=majority,
        )

    def _basis(self, metric: str) -> MetricRange:
        """What the scores rest on: independent samples of each class that finished folds have
        tested, one at least: in the first repeat, as others test the same rows again; of groups the
        share of their rows."""
        done = {outcome.fold for outcome in self.scored}
        rows = [row for fold, each in enumerate(self.setup.rows) if fold in done for row in each]
        codes = np.asarray(self.setup.codes)
        tested = np.bincount(codes[np.unique(np.array(rows, np.intp))], minlength=codes.max() + 1)
        share = tested / np.bincount(codes)
        return basis_of(metric, np.maximum(np.asarray(self.setup.tested) * share, 1.0))

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
        is_wide = self.setup.n_features >= self.setup.n_samples
        return Agreement.of(judged, self.held_out, is_wide)

    @cached_property
    def held_out(self) -> Record:
        """Predictions for the test rows of the first repeat, fold by fold; None where not
        finished."""
        setup, known = self.setup, {(o.model, o.fold): o.held for o in self.scored if o.held}
        rows = [row for fold in setup.rows for row in fold]
        numbers = rows if setup.numbers is None else [setup.numbers[row] for row in rows]
        ids = {} if setup.ids is None else {"ids": [setup.ids[row] for row in rows]}
        found: Record = {"true": [setup.codes[row] for row in rows], "rows": numbers, **ids}
        names = {model for model, _ in known}
        for name in (each for each in self.names if each in names):
            joined = found[name] = {"label": [], "scores": [], "probabilities": []}
            for fold, test in enumerate(setup.rows):
                held, blank = known.get((name, fold), {}), [None] * len(test)
                joined["label"] += held.get("labels") or blank
                for part in ("scores", "probabilities"):
                    values = held.get(part) or blank
                    joined[part] += [[v] if isinstance(v, float) else v for v in values]
        return found

    @property
    def missed(self) -> Record:
        """The difference that these data would usually miss (`Agreement.missed`)."""
        basis = self._basis(self.setup.protocol.scoring.name)
        return self.agreement.missed(self.evidence(), self.setup, basis)

    def choices(self) -> list[Record]:
        """The most accurate, the simplest and the most stable (if any is fairly so) of the models
        that are not distinguishable from the best, with what each costs in mean score; and the
        recommended."""
        evidence = self.evidence()
        # the recommended one first, as it is named among equals
        known = sorted(evidence.equivalent, key=lambda name: name != evidence.recommended)
        stability = {name: each["stability"] for name, each in self.results.items()}
        stable = [name for name in known if stability[name] >= FAIR_STABILITY]
        features = self.features_used
        roles = {
            "recommended": evidence.recommended,
            "most accurate": evidence.best,
            "simplest": min(known, key=lambda name: features[name], default=None),
            "most stable": max(stable, key=lambda name: stability[name], default=None),
        }
        sign = 1.0 if self.setup.protocol.scoring.larger_is_better else -1.0
        return [
            {
                "role": role,
                "model": name,
                "mean": evidence.row(name)["mean"],
                "cost": -sign * evidence.row(name)["difference"] + 0.0,  # no negative zero
                "n_features": features[name],
                "stability": stability[name],
            }
            for role, name in roles.items()
            if name is not None
        ]

    @property
    def features_used(self) -> dict[str, float]:
        """By model: of the one that one gets; the mean over the folds where it is not finished."""
        of_folds: dict[str, float] = {n: each["n_features"] for n, each in self.results.items()}
        return of_folds | {name: each.features_used for name, each in self.finals.items()}

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


def _measured(outcomes: Sequence[Outcome], setup: Setup) -> Record:
    """What the outcomes of one model say of it; means over no fold are NaN."""
    facts, metric = setup.model(outcomes[0].model), setup.protocol.scoring.name
    scored = [outcome for outcome in outcomes if outcome.fold is not None]
    scores = [outcome.scores[metric] for outcome in scored]
    counts = [outcome.features_used for outcome in scored]
    certified = [each.certified for each in outcomes if each.certified is not None]
    return {
        "name": facts.name,
        "kind": facts.kind,
        "folds": len(scored),  # finished ones, over all repeats
        "score_mean": mean(scores),
        "score_sd": deviation(scores),
        "n_features": mean(counts),
        "fold_features": [min(counts), max(counts)] if counts else None,
        "stability": selection_stability([outcome.used for outcome in scored], setup.n_features),
        # without those in which kernels were compiled
        "seconds_per_fit": mean([outcome.seconds for outcome in scored]),
        "passes": mean([outcome.passes for outcome in scored]),
        # the largest certified one; NaN without a certificate
        "relative_gap": float(np.max([outcome.relative_gap for outcome in outcomes])),
        "certified": all(certified) if certified else None,
        # as chosen on all data
        "settings": next((each.settings for each in outcomes if each.fold is None), {}),
        "probabilities": outcomes[0].probabilities,
    }


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
    weights = _coefficients(final, len(names)) * np.asarray(scale)
    rows = np.abs(weights).argmax(axis=0)
    largest = weights[rows, np.arange(rows.size)]
    labels = classes[1:] if len(weights) == 1 else classes
    top = np.argsort(-np.abs(largest), kind="stable")[:limit]
    top = top[largest[top] != 0]
    rows, largest = rows[top], largest[top]
    told = final.get("largest") or {"features": (), "auc": (), "partners": ()}
    alone = {j: pair for j, *pair in zip(*told.values(), strict=True)}
    often, agreeing = np.full(top.size, np.nan), np.full(top.size, np.nan)
    folds = [_coefficients(each, len(names))[:, top] for each in chosen if each]
    if folds:
        used = np.sum([coef.any(axis=0) for coef in folds], axis=0)
        same = [np.sign(coef[rows, np.arange(top.size)]) == np.sign(largest) for coef in folds]
        often = used / len(folds)
        np.divide(np.sum(same, axis=0), used, out=agreeing, where=used > 0)
    return [
        {
            "feature": str(names[j]),
            "class": str(labels[row]),
            "weight": float(weight),
            "sign": 1 if weight > 0 else -1,
            "frequency": frequency,
            "sign_agreement": agreement,
            "auc": alone.get(j, (np.nan,))[0],
            "partners": [[str(names[k]), r] for k, r in alone.get(j, (0, ()))[1]],
        }
        for j, row, weight, frequency, agreement in zip(
            *(each.tolist() for each in (top, rows, largest, often, agreeing)), strict=True
        )
    ]


def _numbers_of(used: Facts, n_features: int) -> NDArray[np.intp]:
    listed = used["features"]
    return np.arange(n_features) if listed is None else np.array(listed, np.intp)


def _coefficients(used: Facts, n_features: int) -> Array:
    """Those of all features, a row a class."""
    listed = np.array(used["weights"], np.float64)
    coef = np.zeros((len(listed), n_features))
    coef[:, _numbers_of(used, n_features)] = listed
    return coef
