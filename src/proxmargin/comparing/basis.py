"""What a metric's scores rest on: their range, and the number of test rows behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

__all__ = ["MetricRange", "basis_of"]

Floats = NDArray[np.float64]

UNSEEN = 1.0  # row: added to those on which two models differ (Agresti and Min 2005: half to each)


@dataclass(frozen=True)
class MetricRange:
    """The range of a metric, and how many independent test rows its mean over the folds rests on.

    Few test rows can agree by chance: a score that is 1 on all of them, or a difference that is the
    same on every fold, has no spread, but is not certain.
    """

    low: float = -np.inf
    high: float = np.inf
    rows: float = np.nan  # once each, however often folds are repeated; NaN if not known
    # whether the score is a share of rows, as an accuracy. Otherwise ``rows`` is a lower bound that
    # is used only where scores have no spread
    counted: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the rows say anything: the range is finite and there is a number of rows."""
        return bool(np.isfinite([self.low, self.high, self.rows]).all())

    def interval(self, mean: Floats, confidence: float) -> tuple[Floats, Floats]:
        """The interval of Clopper and Pearson (1934) for a share of the rows; else the mean."""
        if not self.is_known:
            return mean, mean
        width, tail = self.high - self.low, 0.5 * (1 - confidence)
        hits = np.clip((mean - self.low) / width, 0.0, 1.0) * self.rows
        misses = self.rows - hits
        with np.errstate(invalid="ignore"):
            low = np.where(hits <= 0, 0.0, beta.ppf(tail, hits, misses + 1))
            high = np.where(misses <= 0, 1.0, beta.isf(tail, hits + 1, misses))
        return self.low + width * low, self.low + width * high

    def error(self, difference: Floats) -> Floats:
        """The least standard error of a difference between two shares of the same rows.

        If the shares differ by ``d`` then the models differ on ``n d`` of the n rows or more, and
        the variance of the mean over rows is ``(d - d^2) / n`` or more. `UNSEEN` is added to these
        rows. Zero where nothing is known.
        """
        if not self.is_known:
            return np.zeros_like(difference)
        width = self.high - self.low
        share = np.minimum(np.abs(difference) / width, 1.0)
        return np.asarray(width * np.sqrt((share + UNSEEN / self.rows - share**2) / self.rows))

    def clipped(self, values: Floats) -> Floats:
        """Values within the range."""
        return np.asarray(np.clip(values, self.low, self.high))


def _of_rows(sizes: Floats) -> float:
    """A mean over rows."""
    return float(sizes.sum())


def _of_classes(sizes: Floats) -> float:
    """A mean over classes: the rows of as certain a mean over rows, if all classes are as hard."""
    return float(sizes.size**2 / (1 / sizes).sum())


def _of_pairs(sizes: Floats) -> float:
    """A mean over pairs of rows of two classes: their variance is below ``A (1 - A) / min(n)``."""
    return float(sizes.min())


# of each metric: the range, the rows, and whether it is a share of them
_METRICS: dict[str, tuple[float, float, Callable[[Floats], float] | None, bool]] = {
    "accuracy": (0.0, 1.0, _of_rows, True),
    "balanced_accuracy": (0.0, 1.0, _of_classes, True),
    "matthews_corrcoef": (-1.0, 1.0, _of_classes, True),
    "roc_auc": (0.0, 1.0, _of_pairs, False),
    "roc_auc_ovr": (0.0, 1.0, _of_pairs, False),
    "roc_auc_ovo": (0.0, 1.0, _of_pairs, False),
    "average_precision": (0.0, 1.0, _of_pairs, False),
    "f1": (0.0, 1.0, _of_pairs, False),
    "f1_macro": (0.0, 1.0, _of_pairs, False),
    "f1_weighted": (0.0, 1.0, _of_pairs, False),
    "log_loss": (0.0, np.inf, None, False),
    "neg_log_loss": (-np.inf, 0.0, None, False),
    "brier": (0.0, np.inf, None, False),
    "neg_brier_score": (-np.inf, 0.0, None, False),
}


def basis_of(metric: str, class_sizes: Sequence[int] | ArrayLike) -> MetricRange:
    """What the scores of a metric rest on.

    Parameters
    ----------
    metric : str
        Of a metric that is not known here nothing is said: its intervals are not clipped.
    class_sizes : (n_classes,)
        Samples of each class that are tested; in groups, those of the groups are not independent,
        and the numbers of groups take their place.

    Raises
    ------
    ValueError
        Sizes that are not positive numbers.
    """
    sizes = np.asarray(class_sizes, dtype=np.float64)
    if sizes.ndim != 1 or not sizes.size or not (sizes > 0).all():
        raise ValueError(f"class_sizes={class_sizes!r} must be positive numbers, one a class")
    if metric not in _METRICS:
        return MetricRange()
    low, high, rows, counted = _METRICS[metric]
    return MetricRange(low, high, np.nan if rows is None else rows(sizes), counted)
