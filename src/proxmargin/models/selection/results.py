"""The choice among the scores of folds, and the scores of held-out rows."""

from __future__ import annotations

import numpy as np

from proxmargin.models.selection.folds import Fold, Judged, ValidatedRows
from proxmargin.runtime.types import Array

# mean scores closer than this count as equal: the order of summation alone may make them differ
TIE = 1e-12


def best(scores: Array) -> tuple[int, int]:
    """Index of the highest mean of scores, (n_l1_ratios, n_strengths, n_folds); among equals the
    first l1_ratio, then the strongest penalty. ValueError: no strength has a score on every
    fold."""
    means = _means(scores)
    if not np.isfinite(means).any():
        raise ValueError("the scoring gave no number for any strength; choose another one")
    row, column = np.unravel_index(int(np.argmax(means >= means.max() - TIE)), means.shape)
    return int(row), int(column)


def within_one_error(scores: Array) -> tuple[int, int]:
    """The strongest penalty whose mean is within one standard error of the best, at its l1_ratio.
    Friedman, Hastie and Tibshirani (2010), section 5."""
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


SAME = 1e-9  # relative difference of a strength from one that it names
CHOICES = {"best": best, "1se": within_one_error}


def out_of_fold(
    data: ValidatedRows, folds: list[Fold], shape: tuple[int, ...], results: list[Judged]
) -> Array:
    """Held-out scores of each row, by models of the folds that do not train on it. The mean if a
    row was held out several times; NaN if never."""
    outputs = results[0].decisions[0].shape[2:]
    total = np.zeros((*shape, data.targets.codes.size, *outputs))
    times = np.zeros(data.targets.codes.size)
    for fold, result in zip(folds, results, strict=True):
        total[:, :, fold.test] += np.stack(result.decisions)
        times[fold.test] += 1
    times[times == 0] = np.nan
    return total / times.reshape(-1, *[1 for _ in outputs])
