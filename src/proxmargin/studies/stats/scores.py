"""Tables of scores, and tests over the folds of one data set, which share samples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from numbers import Real
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata, t

from proxmargin.compiled.rounding import levels
from proxmargin.data.inputs.parameters import check_flag, check_number, real_numbers
from proxmargin.runtime.types import Frame

CONFIDENCE: Final = 0.95  # of intervals; tests are at the level 1 - CONFIDENCE
# in units of a score: smaller differences do not matter in practice (Corani and Benavoli 2015)
ROPE: Final = 0.01
TIE = ROPE / 10  # costs of models (features and score) closer than this are equal
FEWER = 0.5  # share of the features of the best from which another model is simpler
MAJORITY: Final = "majority class"  # the model that always predicts the largest class


INTERVAL: Final = f"{100 * CONFIDENCE:.3g} % interval"  # its name in tables and charts

Floats = NDArray[np.float64]

SAME = 1e-12  # scores closer than this, relative to the largest of their row, are equal
LEAST_ROWS = 2
LARGEST = np.finfo(np.float64).max / 4  # so that differences of scores do not overflow


@dataclass(frozen=True)
class ScoreTable:
    """Scores of models, a row for a data set or a fold, and a column for a model."""

    values: Floats  # (n_rows, n_models)
    labels: tuple[object, ...]  # of the columns, as given

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(label) for label in self.labels)

    def ranks(self, higher_is_better: bool) -> Floats:
        """Ranks within each row, (n_rows, n_models): 1 is the best, ties share their average."""
        rounding = SAME * np.abs(self.values).max(axis=1, keepdims=True)
        return ranks_with_ties(-self.values if higher_is_better else self.values, rounding)

    def differences(self) -> tuple[Floats, Floats]:
        """Scores of each model minus those of each other one, (n_models, n_models, n_rows), zero
        where two are equal but for rounding, and up to what they are known."""
        columns = self.values.T
        sizes = np.abs(columns)
        rounding = SAME * np.maximum(sizes[:, None], sizes[None])
        values = columns[:, None] - columns[None]
        return np.where(np.abs(values) <= rounding, 0.0, values), rounding

    def index(self, model: str | int | None) -> int:
        """The column of a model (None: the first): by name, or counted where no column has a number
        for a name. ValueError: no such model."""
        if model is None:
            return 0
        if isinstance(model, str) and model in self.names:
            return self.names.index(model)
        if _is_integer(model):
            if model in self.labels:
                return self.labels.index(model)
            if not any(map(_is_integer, self.labels)) and 0 <= int(model) < len(self.labels):
                return int(model)
        raise ValueError(f"control={model!r} is no model: they are {', '.join(self.names)}")


def ranks_with_ties(values: Floats, rounding: Floats) -> Floats:
    """Average ranks along the last axis, 1 for the lowest; values no farther apart than the larger
    of their ``rounding``, or joined by a chain of such, are tied."""
    return np.asarray(rankdata(levels(values, rounding), axis=-1))


def read_scores(scores: ArrayLike) -> ScoreTable:
    """A checked table of an array or a frame, (n_rows, n_models). ValueError: fewer than two models
    or rows, not real or finite, above a quarter of the largest number, a repeated name."""
    values = real_numbers("scores", scores)
    if values.ndim != 2 or values.shape[1] < 2:
        raise ValueError(
            "scores must have a row for each data set or fold and a column for each of two models "
            f"or more; its shape is {values.shape}"
        )
    if values.shape[0] < LEAST_ROWS:
        raise ValueError(f"scores has {values.shape[0]} rows: at least {LEAST_ROWS} are needed")
    usable = np.abs(values) <= LARGEST
    if not usable.all():
        row, column = np.argwhere(~usable)[0]
        raise ValueError(f"scores is {values[row, column]} in row {row}, column {column}")
    labels = getattr(scores, "columns", None)
    if labels is None:
        return ScoreTable(values, tuple(f"model {each}" for each in range(values.shape[1])))
    table = ScoreTable(values, tuple(labels))
    repeated = [name for name, count in Counter(table.names).items() if count > 1]
    if repeated:
        raise ValueError(f"scores has several columns of the same name: {', '.join(repeated)}")
    return table


def check_fraction(name: str, value: float, hint: str = "") -> float:
    """A number strictly between 0 and 1. Raises ValueError: it is not; ``hint`` ends the
    message."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < value < 1.0:
        raise ValueError(f"{name}={value!r} must be a number between 0 and 1{hint}")
    return float(value)


@dataclass(frozen=True)
class ModelPairs:
    """What is known of all pairs of models: matrices, whose rows are the first of a pair."""

    names: tuple[str, ...]

    def to_frame(self) -> Frame:
        """A row for each pair, with first and second, and a column for each of the matrices."""
        import pandas as pd

        pairs = np.triu_indices(len(self.names), 1)
        first, second = (np.asarray(self.names, dtype=object)[each] for each in pairs)
        known = {name: each for name, each in vars(self).items() if np.ndim(each) == 2}
        columns = {name: each[pairs] for name, each in known.items()}
        return pd.DataFrame({"first": first, "second": second, **columns})


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


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
    """The mean over splits, (..., n_splits), with the variance ``(1 / J + test_ratio) s^2`` of
    Nadeau and Bengio (2003): training sets overlap, and ``s^2 / J`` is too small by far. Values
    that vary by no more than ``rounding`` are constant, with an error of zero; of one split the
    error is not known."""
    splits = values.shape[-1]
    if splits == 1:
        return Student(values[..., 0], np.full(values.shape[:-1], np.nan), 1)
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

    Examples
    --------
    >>> from proxmargin.stats import corrected_resampled_interval
    >>> result = corrected_resampled_interval([[0.9, 0.8], [0.8, 0.8]], test_share=0.2)
    >>> result.mean.round(3).tolist()
    [0.85, 0.8]
    """

    mean: Floats
    low: Floats
    high: Floats
    error: Floats


@dataclass(frozen=True)
class ResampledTTest(ModelPairs):
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

    Examples
    --------
    >>> from proxmargin.stats import corrected_resampled_ttest
    >>> result = corrected_resampled_ttest([[0.9, 0.8], [0.8, 0.8]], test_share=0.2)
    >>> round(float(result.difference[0, 1]), 3)
    0.05
    """

    difference: Floats
    low: Floats
    high: Floats
    statistic: Floats
    pvalue: Floats


@dataclass(frozen=True)
class BayesianTTest(ModelPairs):
    """Posterior probabilities of all pairs of models.

    Attributes
    ----------
    names : of the models
    better, equal, worse : (n_models, n_models)
        Probabilities that the first model (row) is better than the second by more than ``rope``;
        that they are practically equal; that it is worse by more.
    rope : float
        Region of practical equivalence, in units of the score.

    Examples
    --------
    >>> from proxmargin.stats import bayesian_correlated_ttest
    >>> result = bayesian_correlated_ttest([[0.9, 0.8], [0.8, 0.8]], test_share=0.2)
    >>> bool(result.better[0, 1] > result.worse[0, 1])
    True
    """

    better: Floats
    equal: Floats
    worse: Floats
    rope: float


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
        Not finite numbers; fewer than two rows; test_share or confidence outside 0 and 1.

    Examples
    --------
    >>> from proxmargin.stats import corrected_resampled_interval
    >>> result = corrected_resampled_interval([0.91, 0.94, 0.9, 0.93, 0.95], test_share=0.2)
    >>> round(float(result.mean), 3), round(float(result.low), 3), round(float(result.high), 3)
    (0.926, 0.887, 0.965)
    """
    confidence, ratio = check_fraction("confidence", confidence), _ratio(test_share)
    values = real_numbers("scores", scores)
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

    See Also
    --------
    bayesian_correlated_ttest : Probabilities of differences.

    Examples
    --------
    >>> from proxmargin.stats import corrected_resampled_ttest
    >>> scores = [[0.91, 0.88], [0.94, 0.9], [0.9, 0.91], [0.93, 0.89], [0.95, 0.9]]
    >>> result = corrected_resampled_ttest(scores, test_share=0.2)
    >>> bool(result.low[0, 1] < result.difference[0, 1] < result.high[0, 1])
    True
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

    See Also
    --------
    corrected_resampled_ttest : The test with the same variance.

    Examples
    --------
    >>> from proxmargin.stats import bayesian_correlated_ttest
    >>> scores = [[0.91, 0.88], [0.94, 0.9], [0.9, 0.91], [0.93, 0.89], [0.95, 0.9]]
    >>> result = bayesian_correlated_ttest(scores, test_share=0.2, rope=0.01)
    >>> round(float(result.better[0, 1] + result.equal[0, 1] + result.worse[0, 1]), 6)
    1.0
    """
    check_number("rope", rope, low=0.0)
    check_flag("higher_is_better", higher_is_better)
    sign = 1.0 if higher_is_better else -1.0
    names, found = _differences(scores, test_share)
    better, equal, worse = replace(found, mean=sign * found.mean).posterior(rope)
    return BayesianTTest(names, better, equal, worse, float(rope))


def _differences(scores: ArrayLike, test_share: float) -> tuple[tuple[str, ...], Student]:
    """Names of the models, and means of all differences."""
    ratio = _ratio(test_share)
    table = read_scores(scores)
    values, rounding = table.differences()
    return table.names, resampled(values, ratio, rounding)


def _ratio(test_share: float) -> float:
    share = check_fraction("test_share", test_share, ": it is 1 / k for k folds")
    return share / (1 - share)
