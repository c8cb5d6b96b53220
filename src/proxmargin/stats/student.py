"""Means of scores over splits that share samples, with Student's t distribution around them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from proxmargin.stats.scores import SAME, Floats

__all__ = ["Student", "resampled"]


@dataclass(frozen=True)
class Student:
    """Means, their standard errors, and the degrees of freedom of Student's t distribution.

    Attributes
    ----------
    mean, error : arrays of one shape
    freedom : int
    rounding : array that broadcasts to that shape, or a number
        Means are known up to this.
    """

    mean: Floats
    error: Floats
    freedom: int
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

    Parameters
    ----------
    values : (..., n_splits)
    test_ratio : float
        Number of test samples by number of training samples of a split.
    rounding : as values, optional
        Values that vary by no more than this are constant.

    Returns
    -------
    Student
        With a standard error of zero where the values are constant.

    Notes
    -----
    ``(1 / J + n_test / n_train) s^2`` for the sample variance ``s^2`` of J splits. Training sets
    overlap, and ``s^2 / J`` is too small by far.
    """
    splits = values.shape[-1]
    rounding = SAME * np.abs(values) if rounding is None else rounding
    constant = np.ptp(values, axis=-1) <= rounding.max(axis=-1)
    spread = np.where(constant, 0.0, values.std(axis=-1, ddof=1))
    error = spread * np.sqrt(1 / splits + test_ratio)
    return Student(values.mean(axis=-1), error, splits - 1, rounding.max(axis=-1))
