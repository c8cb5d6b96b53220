"""The model that a comparison recommends: features that are saved against score that is lost.

The rule, its constants and what it was measured on are in docs/recommendation.md; ``python -m
benchmarks recommendation`` measures it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.studies.stats.scores import ROPE, SAME, Floats

Flags = NDArray[np.bool_]

# in units of a score between chance and perfection that is half apart, as balanced accuracy of two
# classes
ONE_HALVING = ROPE / 2  # what half the features may cost where the scores are exact
TYPICAL = 3 * ROPE  # standard deviation of the true scores of the models of one data set
TIE = ROPE / 10  # costs closer than this are equal
FEWER = 0.5  # share of the features of the best from which another model is simpler


@dataclass(frozen=True, eq=False)
class Traits:
    """What models ask of a reader besides their score; an entry a model."""

    features: Floats  # mean number that a fold uses
    stability: Floats  # of the selected features; NaN: there is no selection
    has_probabilities: Flags  # of its own
    is_kernel: Flags
    is_multiclass: Flags  # a machine for several classes, fitted to two

    @classmethod
    def of_count(cls, count: int) -> Self:
        """Models that differ in nothing."""
        no = np.zeros(count, np.bool_)
        return cls(np.ones(count), np.full(count, np.nan), no, no, no)

    def of(self, models: Flags) -> Self:
        return replace(self, **{name: each[models] for name, each in vars(self).items()})

    def simplicity(self, model: int) -> tuple[float, ...]:
        """The smaller the simpler: fewer features, no kernel; the earlier of equals."""
        return float(self.features[model]), float(self.is_kernel[model]), float(model)

    def preference(self, model: int) -> tuple[float, ...]:
        """The smaller the better among models that cost the same: a stable selection (one of all
        features is), probabilities of its own, no kernel; then the simplest."""
        stability = self.stability[model]
        return (
            -float(1.0 if np.isnan(stability) else stability),
            float(not self.has_probabilities[model]),
            float(self.is_kernel[model]),
            *self.simplicity(model),
        )


def highest(means: Floats, traits: Traits) -> int:
    """The largest mean; of means that are equal but for rounding the simplest model."""
    top = np.flatnonzero(means >= means.max() - SAME * np.abs(means).max())
    return min(top.tolist(), key=traits.simplicity)


def price_of_halving(scores: Floats, test_ratio: float, unit: float) -> float:
    """What half the features may cost in mean score: `ONE_HALVING`, and more where the mean of the
    splits, (n_splits, n_models), is noisy. With errors of variance v (Nadeau and Bengio 2003) and
    true differences of variance ``TYPICAL^2`` the posterior mean of a difference is that of the
    splits by ``1 + v / TYPICAL^2``."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    v = float(centred.var(axis=0, ddof=1).mean()) * (1.0 / len(scores) + test_ratio)
    return ONE_HALVING * unit * (1.0 + v / (TYPICAL * unit) ** 2)


def recommended(
    scores: Floats, traits: Traits, distinguished: Flags, test_ratio: float, unit: float
) -> int:
    """The model whose loss of mean score and features together cost least.

    Parameters
    ----------
    scores : (n_splits, n_models)
        Larger is better.
    traits : Traits
    distinguished : (n_models, n_models) bool
        Which pairs of models the scores tell apart.
    test_ratio : float
        Test by training samples of a split.
    unit : float
        Twice the difference between a perfect score and that of the largest class; NaN where it is
        not known, and then features have no price: the best mean is recommended.
    """
    means = scores.mean(axis=0)
    allowed = _without_machines(traits.is_multiclass, distinguished)
    best = int(np.flatnonzero(allowed)[highest(means[allowed], traits.of(allowed))])
    if not (np.isfinite(unit) and unit > 0.0 and scores.shape[0] > 1 and allowed.sum() > 1):
        return best
    features = np.maximum(traits.features, 1.0)
    loss = means[best] - means
    even = (loss <= TIE * unit) & (features <= features[best])
    rivals = np.flatnonzero(allowed & (even | (features <= FEWER * features[best])))
    price = price_of_halving(scores[:, allowed], test_ratio, unit)
    costs = loss[rivals] + price * np.log2(features[rivals] / features[best])
    tied = rivals[costs <= costs.min() + TIE * unit]
    return min(tied.tolist(), key=traits.preference)


def _without_machines(machines: Flags, distinguished: Flags) -> Flags:
    """The models but those machines for several classes that are no better than a model for two."""
    equal = (~distinguished & ~machines[None, :]).any(axis=1)
    return ~(machines & equal)
