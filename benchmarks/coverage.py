"""`python -m benchmarks coverage`: shares of intervals that cover and of claims that are false."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, rankdata, t
from sklearn.model_selection import RepeatedStratifiedKFold

from benchmarks.datasets import SEED, Floats
from benchmarks.report import table, write_section
from proxmargin import L2SVC, HuberizedSVC
from proxmargin.stats import corrected_resampled_interval, holm
from proxmargin.studies.comparing.evidence import Evidence
from proxmargin.studies.comparing.metrics import basis_of

DATASETS = 200
LEVEL = 0.05
LEAST_COVERED = 0.90  # of 95 % intervals
METRICS = ("accuracy", "balanced_accuracy", "roc_auc")


class Rule(NamedTuple):
    """A linear rule: class 1 where ``X @ weight + bias`` is positive."""

    weight: Floats
    bias: float


@dataclass(frozen=True)
class Case:
    """Models on data of two Gaussians, each on features of its own.

    Attributes
    ----------
    distances : of the class means, a model; models of the same distance are equal by symmetry
    positive : share of the samples in class 1
    """

    name: str
    fit: Callable[[Floats, Floats], Rule]
    distances: tuple[float, ...]
    samples: int = 80
    positive: float = 0.5
    features: int = 3
    folds: int = 5
    repeats: tuple[int, ...] = (1,)

    @property
    def labels(self) -> Floats:
        ones = round(self.samples * self.positive)
        return np.repeat([1.0, 0.0], [ones, self.samples - ones])

    def data(self, rng: np.random.Generator) -> Floats:
        """Features of each model, (n_models, n_samples, n_features)."""
        X = rng.standard_normal((len(self.distances), self.samples, self.features))
        X[:, :, 0] += np.multiply.outer(self.distances, self.labels - 0.5)
        return X


def _by(estimator: Any) -> Callable[[Floats, Floats], Rule]:
    def fit(X: Floats, y: Floats) -> Rule:
        estimator.fit(X, y)
        return Rule(estimator.coef_[0], float(estimator.intercept_[0]))

    return fit


def centroids(X: Floats, y: Floats) -> Rule:
    """The nearer of the two class means."""
    zero, one = X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)
    weight = one - zero
    return Rule(weight, float(-weight @ (zero + one) / 2))


SVM = _by(L2SVC(tol=1e-4))
HUBERIZED = _by(HuberizedSVC(alpha=0.1, l1_ratio=0.5, tol=1e-4))

CASES = (
    Case("L2SVC, 5 equal", SVM, (1.7,) * 5, repeats=(1, 4)),
    Case("L2SVC, nearly separable, 3 equal", SVM, (5.5,) * 3),
    Case("HuberizedSVC, 12 of 80 positive, 3 equal", HUBERIZED, (2.5,) * 3, positive=0.15),
    Case("nearest centroid, 17 equal", centroids, (2.0,) * 17, samples=60, repeats=(1, 10)),
    Case("nearest centroid, 1 better than 5", centroids, (3.5,) + (1.0,) * 5, repeats=(1, 10)),
)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--datasets", type=int, default=DATASETS, help="drawn for each case")
    parser.add_argument("--name", default="coverage", help="the section to write")


def main(arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = [Drawn.of(case, arguments.datasets) for case in CASES]
    judged = [row for each in drawn for row in each.judged()]
    covered, claims = _coverage_rows(judged), _claim_rows(judged)
    parts = [
        NOTES.format(datasets=arguments.datasets, seed=SEED),
        "### Intervals of the expected score: share that covers it",
        table(COVERAGE_HEAD, covered),
        "### Differences from the best: share of data sets with a false claim",
        table(CLAIM_HEAD, claims),
    ]
    write_section(arguments.name, "Intervals and claims of comparisons", "\n\n".join(parts))
    return 0 if all(row.is_met for row in judged) else 1


class Judged(NamedTuple):
    """What came of one case, number of repetitions and metric; shares of the data sets."""

    case: Case
    repeats: int
    metric: str
    truth: float
    covered: dict[str, float]
    differences: tuple[float, float]
    width: float
    false: dict[str, float]
    found: float

    @property
    def is_met(self) -> bool:
        return self.covered["ours"] >= LEAST_COVERED and self.false["ours"] <= LEVEL


@dataclass(frozen=True)
class Drawn:
    """Scores and true scores of all rules of a case.

    Attributes
    ----------
    scores, truths : (n_metrics, n_datasets, n_splits, n_models)
    """

    case: Case
    scores: Floats
    truths: Floats

    @classmethod
    def of(cls, case: Case, datasets: int) -> Drawn:
        found = [_scores(case, np.random.default_rng([SEED, each])) for each in range(datasets)]
        scores, truths = (np.moveaxis(np.array(part), -1, 0) for part in zip(*found, strict=True))
        return cls(case, scores, truths)

    def judged(self) -> Iterator[Judged]:
        for repeats in self.case.repeats:
            for place, metric in enumerate(METRICS):
                if metric == "balanced_accuracy" and self.case.positive == 0.5:
                    continue  # the accuracy again
                splits = repeats * self.case.folds
                truth = _pooled(self.truths[place], self.case)
                yield _judged(self.case, repeats, metric, self.scores[place, :, :splits], truth)


def _scores(case: Case, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Of one data set, on the held-out rows and in truth: (n_splits, n_models, n_metrics)."""
    X, y = case.data(rng), case.labels
    seed = int(rng.integers(2**31))
    folds = RepeatedStratifiedKFold(
        n_splits=case.folds, n_repeats=max(case.repeats), random_state=seed
    )
    held_out, true = [], []
    for train, test in folds.split(y[:, None], y):
        rules = [case.fit(own[train], y[train]) for own in X]
        held_out.append([_measured(r, own[test], y[test]) for r, own in zip(rules, X, strict=True)])
        pairs = zip(rules, case.distances, strict=True)
        true.append([_expected(rule, distance, case.positive) for rule, distance in pairs])
    return np.array(held_out), np.array(true)


def _measured(rule: Rule, X: Floats, y: Floats) -> tuple[float, float, float]:
    """The metrics on held-out rows."""
    margins, positive = X @ rule.weight + rule.bias, y == 1
    right = (margins > 0) == positive
    ones, zeros = int(positive.sum()), int((~positive).sum())
    balanced = 0.5 * (right[positive].mean() + right[~positive].mean())
    above = rankdata(margins)[positive].sum() - ones * (ones + 1) / 2
    return float(right.mean()), float(balanced), float(above / (ones * zeros))


def _expected(rule: Rule, distance: float, positive: float) -> tuple[float, float, float]:
    """The metrics on all data that there could be, in closed form: margins are Gaussian."""
    spread = max(float(np.linalg.norm(rule.weight)), np.finfo(float).tiny)
    shift = 0.5 * distance * rule.weight[0]
    one = float(norm.cdf((rule.bias + shift) / spread))
    zero = float(norm.cdf((shift - rule.bias) / spread))
    above = float(norm.cdf(2 * shift / (spread * np.sqrt(2))))
    return positive * one + (1 - positive) * zero, 0.5 * (one + zero), above


# -- judged ---------------------------------------------------------------------------------

Ends = tuple[Floats, Floats]  # of intervals, (n_datasets, n_models) each


def _judged(case: Case, repeats: int, metric: str, scores: Floats, truth: Floats) -> Judged:
    names = [str(model) for model in range(len(case.distances))]
    ones = int(case.labels.sum())
    ratio, basis = 1 / (case.folds - 1), basis_of(metric, [case.samples - ones, ones])
    found = [
        Evidence.of(each, names, test_ratio=ratio, repeats=repeats, basis=basis) for each in scores
    ]
    ends = {
        "ours": _ends([(each.low, each.high) for each in found]),
        "corrected": _ends([_corrected(each, case.folds) for each in scores]),
        "plain": _ends([_plain(each) for each in scores]),
    }
    low, high = ends["ours"]
    return Judged(
        case,
        repeats,
        metric,
        float(truth.mean()),
        {name: float(((lo <= truth) & (truth <= hi)).mean()) for name, (lo, hi) in ends.items()},
        _differences_covered(found, truth),
        float((high - low).mean()),
        {
            "ours": _false(case, found, lambda each: each.p_holm),
            "best only": _false(case, found, _holm_of_others),
            "unadjusted": _false(case, found, lambda each: each.p),
        },
        _found(case, found),
    )


def _differences_covered(found: Sequence[Evidence], truth: Floats) -> tuple[float, float]:
    """Shares of the intervals of differences that cover: of all pairs, of those with the best."""
    apart = truth[:, None] - truth
    covers, of_best = [], []
    for each in found:
        assert each.pairs is not None
        inside = (each.pairs.low <= apart) & (apart <= each.pairs.high)
        best = int(str(each.best))
        covers.append(inside[np.triu_indices(len(truth), 1)].mean())
        of_best.append(np.delete(inside[:, best], best).mean())
    return float(np.mean(covers)), float(np.mean(of_best))


def _ends(pairs: Sequence[tuple[Floats, Floats]]) -> Ends:
    low, high = (np.array(part) for part in zip(*pairs, strict=True))
    return low, high


def _corrected(scores: Floats, folds: int) -> Ends:
    """The corrected resampled t interval as it is, without rows."""
    found = corrected_resampled_interval(scores, test_share=1 / folds)
    return found.low, found.high


def _plain(scores: Floats) -> Ends:
    """Student's interval, as if the splits were independent."""
    splits = len(scores)
    reach = scores.std(axis=0, ddof=1) * t.isf(0.5 * LEVEL, splits - 1) / np.sqrt(splits)
    return scores.mean(axis=0) - reach, scores.mean(axis=0) + reach


def _holm_of_others(found: Evidence) -> Floats:
    """p-values adjusted for the comparisons with the best alone."""
    best = found.models.index(str(found.best))
    adjusted = np.asarray(holm(np.delete(found.p, best)))
    return np.insert(adjusted, best, 1.0)


def _false(case: Case, found: Sequence[Evidence], adjusted: Callable[[Evidence], Floats]) -> float:
    """The share of data sets where the best is called better than a model that is as good."""
    distances = np.array(case.distances)
    mistakes = [
        (adjusted(each) <= LEVEL)[distances >= distances[int(str(each.best))]].any()
        for each in found
    ]
    return float(np.mean(mistakes))


def _found(case: Case, found: Sequence[Evidence]) -> float:
    """The share of models that are worse, and are told apart from a best that is better."""
    distances = np.array(case.distances)
    worse = distances < distances.max()
    if not worse.any():
        return np.nan
    told = [(each.p_holm[worse] <= LEVEL) & (not worse[int(str(each.best))]) for each in found]
    return float(np.mean(told))


def _pooled(truths: Floats, case: Case) -> Floats:
    """The expected score of each model, (n_models,), the mean over all rules of equal ones."""
    distances, means = np.array(case.distances), truths.mean(axis=(0, 1))
    return np.array([means[distances == distance].mean() for distance in distances])


# -- tables ---------------------------------------------------------------------------------


def _told(row: Judged) -> list[str]:
    return [row.case.name, f"{row.repeats} x {row.case.folds}", row.metric]


def _coverage_rows(judged: Sequence[Judged]) -> Iterator[list[str]]:
    for row in judged:
        shares = [f"{row.covered[name]:.3f}" for name in ("ours", "corrected", "plain")]
        met = "yes" if row.covered["ours"] >= LEAST_COVERED else "no"
        differences = [f"{share:.3f}" for share in row.differences]
        numbers = [f"{row.truth:.4f}", f"{row.width:.3f}", *shares, *differences]
        yield [*_told(row), *numbers, met]


def _claim_rows(judged: Sequence[Judged]) -> Iterator[list[str]]:
    for row in judged:
        shares = [f"{row.false[name]:.3f}" for name in ("ours", "best only", "unadjusted")]
        met = "yes" if row.false["ours"] <= LEVEL else "no"
        found = "-" if np.isnan(row.found) else f"{row.found:.3f}"
        yield [*_told(row), *shares, found, met]


NOTES = """- {datasets} data sets for each case, seed {seed}: two Gaussians of unit covariance,
  stratified folds. Each model has three features of its own, so that models with class means as far
  apart are equal by symmetry, and their mistakes are independent. The accuracy, balanced accuracy
  and area under the curve of a fitted rule are known in closed form; the expected score is their
  mean over all rules that were fitted.
- Intervals at 95 %, over all models: `ours` is that of a comparison, the corrected resampled t
  interval joined with the exact binomial one of the test rows where the metric is a share of rows,
  or where the scores have no spread; `corrected t` is the first alone; `plain t` takes the splits
  for independent, s / sqrt(J). Width: of ours. Pairs: the intervals of the differences of all
  pairs of models; with the best: of those with the best, which is picked by the same scores. Met:
  at least 0.90 of ours.
- Claims at level 0.05, that the best is better than a model that is as good: `ours`, by Holm's
  procedure for all pairs; `best only`, by Holm's for the comparisons with the best; `p`, not
  adjusted. Found: the share of models that are worse and are told apart by ours. Met: at most
  0.05."""
CASE_HEAD = ("case", "repetitions x folds", "metric")
COVERAGE_HEAD = (
    *CASE_HEAD,
    "truth",
    "width",
    "ours",
    "corrected t",
    "plain t",
    "pairs",
    "with the best",
    "met",
)
CLAIM_HEAD = (*CASE_HEAD, "ours", "best only", "p", "found", "met")
