"""Which strength to take, given the scores of all on all folds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHOICES", "best", "standard_errors", "within_one_error"]

Array = NDArray[np.float64]

# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12


def best(scores: Array) -> tuple[int, int]:
    """Index of the highest mean score; among equals the first l1_ratio, then the strongest penalty.

    Parameters
    ----------
    scores : (n_l1_ratios, n_strengths, n_folds)
        From the strongest penalty.

    Raises
    ------
    ValueError
        No strength has a score on every fold.
    """
    means = _means(scores)
    if not np.isfinite(means).any():
        raise ValueError("the scoring gave no number for any strength; choose another one")
    row, column = np.unravel_index(int(np.argmax(means >= means.max() - TIE)), means.shape)
    return int(row), int(column)


def within_one_error(scores: Array) -> tuple[int, int]:
    """The strongest penalty whose mean is within one standard error of the best, at its l1_ratio.

    Friedman, Hastie and Tibshirani (2010), section 5.
    """
    row, column = best(scores)
    enough = _means(scores)[row, column] - standard_errors(scores)[row, column]
    return row, int(np.argmax(_means(scores)[row] >= enough))


def standard_errors(scores: Array) -> Array:
    """Standard errors of the mean scores over the folds, (n_l1_ratios, n_strengths)."""
    count = scores.shape[2]
    spread = scores.std(axis=2, ddof=1) if count > 1 else np.zeros(scores.shape[:2])
    return np.asarray(spread / np.sqrt(count))


def _means(scores: Array) -> Array:
    means = scores.mean(axis=2)
    return np.where(np.isnan(means), -np.inf, means)


CHOICES = {"best": best, "1se": within_one_error}
