"""Average ranks of several models over data sets: Friedman's test and Nemenyi's comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, f, studentized_range

from proxmargin.stats.scores import (
    Floats,
    check_flag,
    check_fraction,
    pairs_frame,
    read_scores,
)

__all__ = ["Friedman", "Nemenyi", "friedman", "nemenyi"]


@dataclass(frozen=True)
class Friedman:
    """Friedman's test, and the less conservative one of Iman and Davenport.

    Attributes
    ----------
    names : of the models
    average_ranks : (n_models,)
        1 is the best.
    statistic, pvalue : float
        Friedman's, of the chi-square distribution with ``n_models - 1`` degrees of freedom.
    iman_davenport, iman_davenport_pvalue : float
        Of the F distribution with ``n_models - 1`` and ``(n_models - 1) (n_sets - 1)`` degrees of
        freedom.
    """

    names: tuple[str, ...]
    average_ranks: Floats
    statistic: float
    pvalue: float
    iman_davenport: float
    iman_davenport_pvalue: float

    def to_frame(self) -> Any:
        """A row for each model: model, average_rank."""
        import pandas as pd

        return pd.DataFrame({"model": self.names, "average_rank": self.average_ranks})


@dataclass(frozen=True)
class Nemenyi:
    """Nemenyi's comparisons of all pairs of models.

    Attributes
    ----------
    names : of the models
    average_ranks : (n_models,)
        1 is the best.
    pvalue : (n_models, n_models)
        Adjusted for all pairs; 1 on the diagonal.
    critical_difference : float
        Average ranks that differ by less are not significantly different at level ``alpha``.
    alpha : float
    """

    names: tuple[str, ...]
    average_ranks: Floats
    pvalue: Floats
    critical_difference: float
    alpha: float

    def groups(self) -> list[tuple[int, ...]]:
        """The largest sets of two models or more whose ranks are all within the difference."""
        order = np.argsort(self.average_ranks, kind="stable")
        ranks = self.average_ranks[order]
        ends = np.searchsorted(ranks, ranks + self.critical_difference, side="left")
        found = []
        for start, end in enumerate(ends):
            if end - start > 1 and (start == 0 or end > ends[start - 1]):
                found.append(tuple(int(each) for each in order[start:end]))
        return found

    def to_frame(self) -> Any:
        """A row for each pair: first, second, first_rank, second_rank, pvalue."""
        first, second = np.meshgrid(self.average_ranks, self.average_ranks, indexing="ij")
        return pairs_frame(self.names, first_rank=first, second_rank=second, pvalue=self.pvalue)


def friedman(
    scores: ArrayLike, *, higher_is_better: bool = True, correct_ties: bool = False
) -> Friedman:
    """Test whether all models have the same average rank over data sets.

    Parameters
    ----------
    scores : (n_sets, n_models)
        An array, or a frame whose columns name the models.
    higher_is_better : bool
        Whether the largest score of a row has rank 1.
    correct_ties : bool
        Whether the statistic accounts for ties, as SciPy's `friedmanchisquare`; (22) does not.

    Returns
    -------
    Friedman

    Notes
    -----
    The statistic is ``12 N / (K (K + 1)) (sum_j AR_j^2 - K (K + 1)^2 / 4)`` for the average ranks
    AR of K models on N data sets: (22) of Xu et al. (2015), where the square is missing.

    Raises
    ------
    ValueError
        As `read_scores`; higher_is_better or correct_ties neither True nor False.
    """
    check_flag("correct_ties", correct_ties)
    table = read_scores(scores)
    ranks = table.ranks(check_flag("higher_is_better", higher_is_better))
    rows, models = ranks.shape
    means = ranks.mean(axis=0)
    deviations = np.square(means - 0.5 * (models + 1)).sum()  # the bracket of (22)
    statistic = 12 * rows / (models * (models + 1)) * deviations
    if correct_ties and deviations:
        statistic /= 1 - _tied(ranks) / (rows * models * (models**2 - 1))
    rest = rows * (models - 1) - statistic
    ratio = (rows - 1) * statistic / rest if rest > 1e-12 * rows else np.inf
    return Friedman(
        table.names,
        means,
        float(statistic),
        float(chi2.sf(statistic, models - 1)),
        float(ratio),
        float(f.sf(ratio, models - 1, (models - 1) * (rows - 1))),
    )


def nemenyi(scores: ArrayLike, *, alpha: float = 0.05, higher_is_better: bool = True) -> Nemenyi:
    """Compare the average ranks of every two models, at one level for all comparisons.

    Parameters
    ----------
    scores : (n_sets, n_models)
        An array, or a frame whose columns name the models.
    alpha : float
        The level of the critical difference.
    higher_is_better : bool
        Whether the largest score of a row has rank 1.

    Returns
    -------
    Nemenyi

    Notes
    -----
    Differences of ranks are divided by ``sqrt(K (K + 1) / (12 N))`` and referred to the studentized
    range of K means. `proxmargin.CriticalDifferenceDisplay` draws the result.

    Raises
    ------
    ValueError
        As `read_scores`; alpha outside 0 and 1; higher_is_better neither True nor False.
    """
    alpha = check_fraction("alpha", alpha)
    table = read_scores(scores)
    ranks = table.ranks(check_flag("higher_is_better", higher_is_better))
    rows, models = ranks.shape
    means = ranks.mean(axis=0)
    unit = np.sqrt(models * (models + 1) / (12 * rows))
    studentized = np.abs(means[:, None] - means[None]) / unit
    pvalues = np.asarray(studentized_range.sf(studentized, models, np.inf))
    np.fill_diagonal(pvalues, 1.0)
    critical = unit * float(studentized_range.ppf(1 - alpha, models, np.inf))
    return Nemenyi(table.names, means, pvalues, critical, alpha)


def _tied(ranks: Floats) -> float:
    """The sum of ``t^3 - t`` over the sizes t of ties within rows."""
    counts = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2)  # of each rank, its tie's size
    return float((counts**2 - 1).sum())
