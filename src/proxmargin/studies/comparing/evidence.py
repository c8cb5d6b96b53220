"""What scores over the same splits say about models: intervals, differences, a choice.

Splits share samples. The standard error of a mean over them is that of Nadeau and Bengio (2003):
the plain ``s / sqrt(J)`` is two thirds of it over five folds, and a quarter over ten times five.
The rule of the recommendation, and what it was measured on, is in docs/guide/recommendation.md;
``python -m benchmarks recommendation`` measures it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t

from proxmargin.runtime.types import Frame, Record
from proxmargin.studies.comparing.metrics import MetricRange
from proxmargin.studies.stats import holm
from proxmargin.studies.stats.scores import (
    CONFIDENCE,
    FEWER,
    ROPE,
    SAME,
    TIE,
    Floats,
    ScoreTable,
    Student,
    resampled,
)

OF_TESTS = ("p", "p_holm", "p_equal")  # which a model has none of against itself
COLUMNS = (
    *("mean", "sd", "low", "high", "difference", "difference_low", "difference_high"),
    *OF_TESTS,
)
MOST_FOLDS = 1000  # 2^-1000 is still a positive double


@dataclass(frozen=True)
class Evidence:
    """Models judged by one metric; arrays have an entry a model, NaN for one that is left out.
    Differences are from the best mean. Only ``p_holm``, over all pairs, is adjusted: with the pairs
    of the best alone chance would too often make one of equal models better than another."""

    models: tuple[str, ...]  # as given
    mean: Floats  # over the splits
    sd: Floats
    # interval of the expected score of a model fitted to as many samples as a split trains on
    low: Floats
    high: Floats
    difference: Floats
    difference_low: Floats
    difference_high: Floats
    p: Floats  # two-sided; as all of `OF_TESTS` NaN for the best itself
    p_holm: Floats
    p_equal: Floats  # posterior probability that the difference is within ``ROPE`` units
    pairs: ComparedPairs | None  # of the models that are not left out
    # with the best mean, which is a little optimistic as that of the best of several; the simplest
    # of those with equal means
    best: str | None
    # not distinguishable from the best at level ``1 - confidence``, the best first; not
    # distinguishable is not equal: see ``p_equal``
    equivalent: tuple[str, ...]
    recommended: str | None  # by features saved and score lost (`recommendation`)
    # of the score (`MetricRange.unit`), and what half the features may cost; NaN where the score
    # has no known scale, or there is one split or model
    unit: float
    price: float
    left_out: tuple[str, ...]  # without a score on some split that is used
    n_splits: int  # that are used
    notes: tuple[str, ...]  # what is left out, what cannot be told

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        models: Sequence[str],
        *,
        test_ratio: float,
        repeats: int = 1,
        larger_is_better: bool = True,
        traits: Sequence[Traits] | None = None,
        basis: MetricRange | None = None,
        unit: float = 1.0,
        majority: float = np.nan,
    ) -> Evidence:
        """Judge models by scores, (n_splits, n_models), NaN where not finished: all folds of the
        first repetition, then those of the second. ``test_ratio``: test by training samples of a
        split. ``unit``: of the scores (`MetricRange.unit`). ``majority``: mean score of the largest
        class."""
        values = np.asarray(scores, dtype=np.float64)
        # no mean is worse than one with an infinite loss: leaving out that split would hide it
        values = np.where(np.isinf(values).any(axis=0), np.nan, values)
        # test parts without a common row: k of k folds, whose ratio is 1 / (k - 1)
        disjoint = max(1, round(1.0 + 1.0 / test_ratio))
        folds = min(len(values) // repeats, disjoint)
        sign, basis = 1.0 if larger_is_better else -1.0, basis or MetricRange()
        names = tuple(models)
        splits, kept = _complete(values)
        picked, places = values[np.ix_(splits, kept)], np.flatnonzero(kept)
        columns = {name: np.full(len(names), np.nan) for name in COLUMNS}
        best, pairs, choice, price, equivalent = None, None, None, np.nan, []
        if picked.size:
            signed = sign * picked
            own = [Traits() if traits is None else traits[each] for each in places.tolist()]
            best = highest(signed.mean(axis=0), own)
            found = _differences(picked, test_ratio, folds, basis)
            pairs = ComparedPairs.of(found, sign, ROPE * unit)
            known = _means(picked, test_ratio, basis)
            for name in COLUMNS:
                part = name.removeprefix("difference_")  # as pairs call it
                of_best = known[name] if name in known else getattr(pairs, part)[:, best]
                columns[name][kept] = of_best
            for name in OF_TESTS:
                columns[name][places[best]] = np.nan
            order = np.argsort(-signed.mean(axis=0), kind="stable").tolist()
            apart = pairs.p_holm <= 1 - CONFIDENCE
            equivalent = [best, *(k for k in order if k != best and not apart[k, best])]
            choice = recommended(signed, own, apart, test_ratio, unit, sign * majority)
            if min(picked.shape) > 1:
                price = price_of_halving(signed, test_ratio, unit)
        left_out = tuple(name for name, here in zip(names, kept, strict=True) if not here)
        n_splits = len(picked) if picked.size else 0
        return cls(
            models=names,
            **columns,
            pairs=pairs,
            best=None if best is None else names[places[best]],
            equivalent=tuple(names[places[each]] for each in equivalent),
            recommended=None if choice is None else names[places[choice]],
            unit=unit,
            price=price,
            left_out=left_out,
            n_splits=n_splits,
            notes=tuple(_notes(n_splits, len(values), left_out)),
        )

    def row(self, model: str) -> Record:
        """The numbers of one model, NaN where there are none, and whether it is equivalent."""
        index = self.models.index(model)
        numbers = {name: float(getattr(self, name)[index]) for name in COLUMNS}
        return {**numbers, "n": self.n_splits, "equivalent": model in self.equivalent}

    def to_frame(self) -> Frame:
        """A row for each model, in the order given."""
        import pandas as pd

        rows = [self.row(model) for model in self.models]
        return pd.DataFrame(rows, index=pd.Index(self.models, name="model"))


def _means(values: Floats, ratio: float, basis: MetricRange) -> dict[str, Floats]:
    """Means with intervals: where the rows behind the scores allow less than the spread over the
    splits says, theirs."""
    found = resampled(values.T, ratio)
    low, high = found.interval(CONFIDENCE)
    if basis.counted or not found.error.all():
        own = basis.interval(found.mean, CONFIDENCE)
        use = basis.counted | (found.error == 0)
        low = np.where(use, np.fmin(low, own[0]), low)
        high = np.where(use, np.fmax(high, own[1]), high)
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full_like(found.mean, np.nan)
    low, high = (np.clip(end, basis.low, basis.high) for end in (low, high))
    return {"mean": found.mean, "sd": spread, "low": low, "high": high}


def _notes(used: int, splits: int, missing: tuple[str, ...]) -> Iterator[str]:
    if used < splits:
        yield f"{used} of {splits} splits are judged: the others are not complete"
    if missing:
        yield f"not judged, because scores are missing or infinite: {', '.join(missing)}"
    if used == 1:
        yield "one split tells nothing of the spread: no model is distinguished from another"


def _complete(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Splits and models, of which no score is missing: the most scores that can be had so, with
    splits taken in the order of the number of models that finished them."""
    there = np.isfinite(values)
    options = []
    for least in np.unique(there.sum(axis=1)):
        splits = there.sum(axis=1) >= least
        models = there[splits].all(axis=0)
        options.append((int(splits.sum() * models.sum()), splits, models))
    _, splits, models = max(options, key=lambda option: option[0])
    return splits, models


@dataclass(frozen=True)
class ComparedPairs:
    """Each model (row) against each other one (column); arrays are (n_models, n_models)."""

    difference: Floats  # mean score of the first minus that of the second
    low: Floats  # its interval
    high: Floats
    p: Floats  # two-sided, of the corrected resampled t-test
    p_holm: Floats  # adjusted for all pairs
    # posterior probabilities, of the first model
    p_better: Floats
    p_equal: Floats
    p_worse: Floats

    @classmethod
    def of(cls, found: Student, sign: float, rope: float) -> ComparedPairs:
        """Of their differences; ``sign`` is 1 where larger scores are better, else -1."""
        low, high = found.interval(CONFIDENCE)
        posterior = replace(found, mean=sign * found.mean).posterior(rope)
        p = found.pvalue
        return cls(found.mean, low, high, p, adjusted_for_pairs(p), *posterior)


def _differences(values: Floats, ratio: float, folds: int, basis: MetricRange) -> Student:
    """Mean differences, none more certain than the rows behind the scores allow."""
    differences, rounding = ScoreTable(values, ()).differences()
    found = resampled(differences, ratio, rounding)
    least = basis.error(found.mean) if basis.is_known else _error_of_signs(found, folds)
    least = np.where(basis.counted | (found.error == 0), least, 0.0)
    error = np.maximum(found.error, least)
    np.fill_diagonal(error, 0.0)  # a model is certain to equal itself
    return replace(found, error=error)


def _error_of_signs(found: Student, folds: int) -> Floats:
    """Errors at which differences that are the same on all splits are as certain as their signs:
    all k folds favour one model by chance with probability ``2^(1 - k)``, and repetitions add
    nothing."""
    by_chance = 2.0 ** (1 - min(max(folds, 2), MOST_FOLDS))
    return np.asarray(np.abs(found.mean) / t.isf(0.5 * by_chance, found.freedom))


def adjusted_for_pairs(pvalues: Floats) -> Floats:
    """p-values after Holm's procedure for all pairs; one that is not known counts as 1."""
    first, second = np.triu_indices(len(pvalues), 1)
    adjusted = np.ones_like(pvalues)
    if first.size:
        known = np.nan_to_num(pvalues[first, second], nan=1.0)
        adjusted[first, second] = adjusted[second, first] = np.asarray(holm(known))
    return adjusted


Flags = NDArray[np.bool_]

# in units of a score between chance and perfection that is half apart, as balanced accuracy of two
# classes
ONE_HALVING = ROPE / 2  # what half the features may cost where the scores are exact
TYPICAL = 3 * ROPE  # standard deviation of the true scores of the models of one data set


@dataclass(frozen=True)
class Traits:
    """What a model asks of a reader besides its score; the smaller a tuple, the better."""

    features: float = 1.0  # mean number that a fold uses
    stability: float = np.nan  # of the selected features; NaN: there is no selection
    has_probabilities: bool = False  # of its own
    is_kernel: bool = False
    is_multiclass: bool = False  # a machine for several classes, fitted to two

    @property
    def simplicity(self) -> tuple[float, bool]:
        return self.features, self.is_kernel

    @property
    def preference(self) -> tuple[float, bool, bool, float]:
        """Of models that cost the same: a stable selection (one of all features is), probabilities
        of its own, no kernel; then the simplest."""
        stability = 1.0 if np.isnan(self.stability) else self.stability
        return -stability, not self.has_probabilities, self.is_kernel, self.features


def highest(means: Floats, traits: Sequence[Traits]) -> int:
    """The largest mean; of means that are equal but for rounding the simplest model, the earlier of
    equals."""
    top = np.flatnonzero(means >= means.max() - SAME * np.abs(means).max())
    return min(top.tolist(), key=lambda model: traits[model].simplicity)


def price_of_halving(scores: Floats, test_ratio: float, unit: float) -> float:
    """What half the features may cost in mean score: `ONE_HALVING`, and more where the mean of the
    splits, (n_splits, n_models), is noisy. With errors of variance v (Nadeau and Bengio 2003) and
    true differences of variance ``TYPICAL^2`` the posterior mean of a difference is that of the
    splits by ``1 + v / TYPICAL^2``."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    v = float(centred.var(axis=0, ddof=1).mean()) * (1.0 / len(scores) + test_ratio)
    return ONE_HALVING * unit * (1.0 + v / (TYPICAL * unit) ** 2)


def recommended(
    scores: Floats,  # (n_splits, n_models), larger is better
    traits: Sequence[Traits],
    distinguished: Flags,  # (n_models, n_models)
    test_ratio: float,
    unit: float,
    majority: float = np.nan,
) -> int:
    """The model whose loss of mean score and features together cost least. ``distinguished``: pairs
    that the scores tell apart. Where the unit is NaN features have no price: the best mean. Fewer
    features do not speak for a model that is no better than always naming the largest class."""
    means = scores.mean(axis=0)
    # of two classes no machine for several that is no better than a model for two
    machines = np.array([each.is_multiclass for each in traits])
    allowed = np.flatnonzero(~(machines & (~distinguished & ~machines).any(axis=1)))
    best = int(allowed[highest(means[allowed], [traits[each] for each in allowed.tolist()])])
    if not (np.isfinite(unit) and unit > 0.0 and scores.shape[0] > 1 and allowed.size > 1):
        return best
    features = np.maximum([each.features for each in traits], 1.0)[allowed]
    loss, most = means[best] - means[allowed], max(traits[best].features, 1.0)
    even = (loss <= TIE * unit) & (features <= most)
    price = price_of_halving(scores[:, allowed], test_ratio, unit)
    costs = loss + price * np.log2(features / most)
    rivals = even | ((features <= FEWER * most) & ~(means[allowed] <= majority))
    tied = allowed[rivals & (costs <= costs[rivals].min() + TIE * unit)]
    return min(tied.tolist(), key=lambda model: traits[model].preference)
