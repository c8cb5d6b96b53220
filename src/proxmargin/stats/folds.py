"""Models over the folds of one data set, whose scores are correlated: the folds share samples."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from proxmargin.stats.scores import (
    Floats,
    check_flag,
    check_fraction,
    pairs_frame,
    read_scores,
)

__all__ = [
    "BayesianTTest",
    "ResampledTTest",
    "bayesian_correlated_ttest",
    "corrected_resampled_ttest",
]


@dataclass(frozen=True)
class ResampledTTest:
    """Corrected resampled t-tests of all pairs of models.

    Attributes
    ----------
    names : of the models
    difference : (n_models, n_models)
        Mean score of the first model (row) minus that of the second.
    low, high : (n_models, n_models)
        Confidence interval of the difference.
    statistic : (n_models, n_models)
        Student's t; infinite where a difference is the same in all folds, and 0 where it is zero.
    pvalue : (n_models, n_models)
        Two-sided.
    """

    names: tuple[str, ...]
    difference: Floats
    low: Floats
    high: Floats
    statistic: Floats
    pvalue: Floats

    def to_frame(self) -> Any:
        """A row for each pair: first, second, difference, low, high, statistic, pvalue."""
        return pairs_frame(
            self.names,
            difference=self.difference,
            low=self.low,
            high=self.high,
            statistic=self.statistic,
            pvalue=self.pvalue,
        )


@dataclass(frozen=True)
class BayesianTTest:
    """Posterior probabilities of all pairs of models.

    Attributes
    ----------
    names : of the models
    better, equal, worse : (n_models, n_models)
        Probabilities that the first model (row) is better than the second by more than ``rope``;
        that they are practically equal; that it is worse by more.
    rope : float
        Region of practical equivalence, in units of the score.
    """

    names: tuple[str, ...]
    better: Floats
    equal: Floats
    worse: Floats
    rope: float

    def to_frame(self) -> Any:
        """A row for each pair: first, second, better, equal, worse."""
        return pairs_frame(self.names, better=self.better, equal=self.equal, worse=self.worse)


def corrected_resampled_ttest(
    scores: ArrayLike, *, test_share: float, confidence: float = 0.95
) -> ResampledTTest:
    """Compare every two models over folds, with the variance of Nadeau and Bengio (2003).

    Parameters
    ----------
    scores : (n_folds, n_models)
        Scores of all folds and repetitions; an array, or a frame whose columns name the models.
    test_share : float
        The share of the samples that each fold tests: ``1 / k`` for (repeated) k folds.
    confidence : float
        Of the intervals.

    Returns
    -------
    ResampledTTest

    Notes
    -----
    The variance of the mean of J differences is estimated by ``(1 / J + n_test / n_train) s^2``:
    training sets overlap, and ``s^2 / J`` is too small by far (Nadeau and Bengio 2003, "Inference
    for the generalization error"). The test is two-sided and the difference keeps the sign of the
    scores, so that it is the same for scores and losses.

    Raises
    ------
    ValueError
        As `read_scores`; test_share or confidence outside 0 and 1.
    """
    confidence = check_fraction("confidence", confidence)
    names, mean, error, freedom = _correlated(scores, test_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(mean == 0, 0.0, mean / error)
    reach = error * t.ppf(0.5 * (1 + confidence), freedom)
    pvalue = np.asarray(2 * t.sf(np.abs(statistic), freedom))
    return ResampledTTest(names, mean, mean - reach, mean + reach, statistic, pvalue)


def bayesian_correlated_ttest(
    scores: ArrayLike, *, test_share: float, rope: float = 0.01, higher_is_better: bool = True
) -> BayesianTTest:
    """The probability that one model is better than another, or practically equal to it.

    Parameters
    ----------
    scores : (n_folds, n_models)
        Scores of all folds and repetitions; an array, or a frame whose columns name the models.
    test_share : float
        The share of the samples that each fold tests: ``1 / k`` for (repeated) k folds. It is the
        correlation of the differences.
    rope : float
        Differences of mean scores up to this size do not matter in practice.
    higher_is_better : bool
        Whether the model with the larger mean score is the better.

    Returns
    -------
    BayesianTTest

    Notes
    -----
    The posterior of the mean difference is Student's t distribution with ``J - 1`` degrees of
    freedom, centred at the mean of the J differences, with the scale of the corrected resampled
    t-test (Corani and Benavoli 2015; Benavoli et al. 2017, "Time for a change").

    Raises
    ------
    ValueError
        As `read_scores`; test_share outside 0 and 1; rope negative or not finite;
        higher_is_better neither True nor False.
    """
    if not (_is_real(rope) and np.isfinite(rope) and rope >= 0):
        raise ValueError(f"rope={rope!r} must be a finite number, not negative")
    names, mean, error, freedom = _correlated(scores, test_share)
    mean = mean if check_flag("higher_is_better", higher_is_better) else -mean
    with np.errstate(divide="ignore", invalid="ignore"):  # no spread: all the mass at the mean
        above, below = (
            np.where(beyond == 0, 0.0, beyond / error) for beyond in (mean - rope, -mean - rope)
        )
    above = np.where((error == 0) & (mean <= rope), -np.inf, above)
    below = np.where((error == 0) & (-mean <= rope), -np.inf, below)
    better, worse = (np.asarray(t.cdf(each, freedom)) for each in (above, below))
    equal = np.maximum(1 - better - worse, 0.0)
    return BayesianTTest(names, better, equal, worse, float(rope))


def _correlated(
    scores: ArrayLike, test_share: float
) -> tuple[tuple[str, ...], Floats, Floats, int]:
    """Names; means of all differences, and their standard errors; degrees of freedom."""
    share = check_fraction("test_share", test_share, ": it is 1 / k for k folds")
    table = read_scores(scores)
    differences = table.differences()
    values = differences.values
    folds = values.shape[2]
    spread = values.std(axis=2, ddof=1)
    constant = np.ptp(values, axis=2) <= differences.rounding.max(axis=2)
    error = np.where(constant, 0.0, spread) * np.sqrt(1 / folds + share / (1 - share))
    return table.names, values.mean(axis=2), error, folds - 1


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
