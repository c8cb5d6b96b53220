"""Models over the folds of one data set, whose scores are correlated: the folds share samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from proxmargin.studies.stats.scores import (
    ROPE,
    SAME,
    Floats,
    check_flag,
    check_fraction,
    pairs_frame,
    read_numbers,
    read_scores,
)


@dataclass(frozen=True)
class Student:
    """Means, their standard errors, and the degrees of freedom of Student's t distribution."""

    # mean, error: arrays of one shape
    mean: Floats
    error: Floats
    freedom: int
    # array that broadcasts to that shape, or a number, means are known up to this
    rounding: Floats | float = 0.0

    @property
    def statistic(self) -> Floats:
        """Mean by standard error: infinite without an error, and 0 where the mean is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.mean == 0, 0.0, self.mean / self.error)

    @property
    def pvalue(self) -> Floats:
        """Two-sided, of the mean being zero."""
        return np.asarray(2 * t.sf(np.abs(self.statistic), self.freedom))

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends of the confidence interval of the mean."""
        reach = self.error * t.ppf(0.5 * (1 + confidence), self.freedom)
        return self.mean - reach, self.mean + reach

    def posterior(self, rope: float) -> tuple[Floats, Floats, Floats]:
        """Probabilities that the mean is above ``rope``, within it, and below ``-rope``."""
        with np.errstate(divide="ignore", invalid="ignore"):  # no error: all the mass at the mean
            above, below = (
                np.where(beyond == 0, 0.0, beyond / self.error)
                for beyond in (self.mean - rope, -self.mean - rope)
            )
        # 0.8 - 0.7 is larger than 0.1 by rounding
        end = rope + self.rounding
        above = np.where((self.error == 0) & (self.mean <= end), -np.inf, above)
        below = np.where((self.error == 0) & (-self.mean <= end), -np.inf, below)
        over, under = (np.asarray(t.cdf(each, self.freedom)) for each in (above, below))
        return over, np.maximum(1 - over - under, 0.0), under


def resampled(values: Floats, test_ratio: float, rounding: Floats | None = None) -> Student:
    """The mean over splits, with the variance of Nadeau and Bengio (2003).

    ``values``: (..., n_splits). ``test_ratio``: number of test samples by number of training
    samples of a split. ``rounding``: as values, values that vary by no more than this are constant.
    With a standard error of zero where the values are constant.

    ``(1 / J + n_test / n_train) s^2`` for the sample variance ``s^2`` of J splits. Training sets
    overlap, and ``s^2 / J`` is too small by far.
    """
    splits = values.shape[-1]
    rounding = SAME * np.abs(values) if rounding is None else rounding
    constant = np.ptp(values, axis=-1) <= rounding.max(axis=-1)
    spread = np.where(constant, 0.0, values.std(axis=-1, ddof=1))
    error = spread * np.sqrt(1 / splits + test_ratio)
    return Student(values.mean(axis=-1), error, splits - 1, rounding.max(axis=-1))


@dataclass(frozen=True)
class ResampledInterval:
    """Mean scores over folds with their confidence intervals.

    Attributes
    ----------
    mean, low, high, error : (n_models,), or numbers for the scores of one model
        The last is the standard error.
    """

    mean: Floats
    low: Floats
    high: Floats
    error: Floats


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
        columns = ("difference", "low", "high", "statistic", "pvalue")
        return pairs_frame(self.names, **{name: getattr(self, name) for name in columns})


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


def corrected_resampled_interval(
    scores: ArrayLike, *, test_share: float, confidence: float = 0.95
) -> ResampledInterval:
    """Mean scores over folds, and intervals with the variance of Nadeau and Bengio (2003).

    Parameters
    ----------
    scores : (n_folds, n_models), or (n_folds,)
        Scores of all folds and repetitions, two rows or more.
    test_share : float
        The share of the samples that each fold tests: ``1 / k`` for (repeated) k folds.
    confidence : float

    Returns
    -------
    ResampledInterval

    Notes
    -----
    The interval is for the expected score of a model fitted to as many samples as the folds leave
    for training: 1.5 times as wide as one by ``s / sqrt(J)`` over five folds, and 3.7 times over
    ten times five.

    Raises
    ------
    ValueError
        Not real and finite numbers; fewer than two rows; test_share or confidence outside 0 and 1.
    """
    confidence, ratio = check_fraction("confidence", confidence), _ratio(test_share)
    values = read_numbers(scores, "scores")
    if values.ndim not in (1, 2) or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(
            f"scores must be finite, with two rows or more; their shape is {values.shape}"
        )
    found = resampled(values.T, ratio)
    return ResampledInterval(found.mean, *found.interval(confidence), found.error)


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
    names, found = _differences(scores, test_share)
    low, high = found.interval(confidence)
    return ResampledTTest(names, found.mean, low, high, found.statistic, found.pvalue)


def bayesian_correlated_ttest(
    scores: ArrayLike, *, test_share: float, rope: float = ROPE, higher_is_better: bool = True
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
    real = isinstance(rope, Real) and not isinstance(rope, bool)
    if not (real and np.isfinite(rope) and rope >= 0):
        raise ValueError(f"rope={rope!r} must be a finite number, not negative")
    sign = 1.0 if check_flag("higher_is_better", higher_is_better) else -1.0
    names, found = _differences(scores, test_share)
    better, equal, worse = replace(found, mean=sign * found.mean).posterior(rope)
    return BayesianTTest(names, better, equal, worse, float(rope))


def _differences(scores: ArrayLike, test_share: float) -> tuple[tuple[str, ...], Student]:
    """Names of the models, and means of all differences."""
    ratio = _ratio(test_share)
    table = read_scores(scores)
    differences = table.differences()
    return table.names, resampled(differences.values, ratio, differences.rounding)


def _ratio(test_share: float) -> float:
    share = check_fraction("test_share", test_share, ": it is 1 / k for k folds")
    return share / (1 - share)
