"""Differences between all pairs of models over the same splits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t

from proxmargin.comparing.evidence.basis import MetricRange
from proxmargin.stats import holm
from proxmargin.stats.folds import Student, resampled
from proxmargin.stats.scores import Floats, ScoreTable, pairs_frame

__all__ = ["ModelPairs", "student"]

MOST_FOLDS = 1000  # 2^-1000 is still a positive double


@dataclass(frozen=True)
class ModelPairs:
    """Each model (row) against each other one (column); arrays are (n_models, n_models).

    Attributes
    ----------
    names : of the models
    difference, low, high : mean score of the first minus that of the second, with its interval
    p : two-sided, of the corrected resampled t-test
    p_holm : adjusted for all pairs
    p_better, p_equal, p_worse : posterior probabilities, of the first model
    """

    names: tuple[str, ...]
    difference: Floats
    low: Floats
    high: Floats
    p: Floats
    p_holm: Floats
    p_better: Floats
    p_equal: Floats
    p_worse: Floats

    @classmethod
    def of(
        cls,
        values: Floats,
        names: tuple[str, ...],
        *,
        test_ratio: float,
        folds: int,
        sign: float,
        basis: MetricRange,
        confidence: float,
        rope: float,
    ) -> ModelPairs:
        """Compare the columns of scores, (n_splits, n_models); parameters as in `Evidence.of`,
        with ``sign`` 1 where larger scores are better and -1 otherwise."""
        found = _differences(values, test_ratio, folds, basis)
        low, high = found.interval(confidence)
        posterior = replace(found, mean=sign * found.mean).posterior(rope)
        p = found.pvalue
        return cls(names, found.mean, low, high, p, _adjusted(p), *posterior)

    def to_frame(self) -> Any:
        """A row for each pair: first, second, and the numbers."""
        columns = {key: value for key, value in vars(self).items() if key != "names"}
        return pairs_frame(self.names, **columns)


def student(values: Floats, ratio: float, rounding: Floats | None = None) -> Student:
    """As `resampled`; a single split has a mean, but an unknown error."""
    if values.shape[-1] > 1:
        return resampled(values, ratio, rounding)
    return Student(values[..., 0], np.full(values.shape[:-1], np.nan), 1)


def _differences(values: Floats, ratio: float, folds: int, basis: MetricRange) -> Student:
    """Mean differences, none more certain than the rows behind the scores allow."""
    differences = ScoreTable(values, tuple(range(values.shape[1]))).differences()
    found = student(differences.values, ratio, differences.rounding)
    least = basis.error(found.mean) if basis.is_known else _error_of_signs(found, folds)
    least = np.where(basis.counted | (found.error == 0), least, 0.0)
    np.fill_diagonal(least, 0.0)
    return replace(found, error=np.maximum(found.error, least))


def _error_of_signs(found: Student, folds: int) -> Floats:
    """Errors at which differences that are the same on all splits are as certain as their signs.

    All k folds favour one model by chance with probability ``2^(1 - k)``; repetitions reuse the
    rows and add nothing.
    """
    by_chance = 2.0 ** (1 - min(max(folds, 2), MOST_FOLDS))
    return np.asarray(np.abs(found.mean) / t.isf(0.5 * by_chance, found.freedom))


def _adjusted(pvalues: Floats) -> Floats:
    """p-values after Holm's procedure for all pairs; one that is not known counts as 1."""
    first, second = np.triu_indices(len(pvalues), 1)
    adjusted = np.ones_like(pvalues)
    if first.size:
        known = np.nan_to_num(pvalues[first, second], nan=1.0)
        adjusted[first, second] = adjusted[second, first] = np.asarray(holm(known))
    return adjusted
