"""Models over data sets: average ranks (Friedman, Nemenyi, Holm) and Wilcoxon's signed ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, f, norm, studentized_range

from proxmargin.data.inputs.parameters import check_choice, check_flag, real_numbers
from proxmargin.runtime.types import Frame
from proxmargin.studies.stats.scores import (
    Floats,
    ModelPairs,
    check_fraction,
    ranks_with_ties,
    read_scores,
)


@dataclass(frozen=True)
class ControlComparison:
    """Average ranks of models against that of a control.

    Attributes
    ----------
    control : str
    names : of the other models
    zscore : (n_others,)
        The control's average rank minus theirs, in standard errors: negative where the control
        is the better.
    pvalue : (n_others,)
        Two-sided, of each comparison alone.
    adjusted : (n_others,)
        The p-values after Holm's procedure: differences with ``adjusted < alpha`` are significant
        together at level alpha.

    Examples
    --------
    >>> from proxmargin.stats import against_control
    >>> against_control([[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8]]).names
    ('model 1', 'model 2')
    """

    control: str
    names: tuple[str, ...]
    zscore: Floats
    pvalue: Floats
    adjusted: Floats

    def to_frame(self) -> Frame:
        """A row for each of the other models: model, zscore, pvalue, adjusted."""
        import pandas as pd

        columns = {"zscore": self.zscore, "pvalue": self.pvalue, "adjusted": self.adjusted}
        return pd.DataFrame({"model": self.names, **columns})


def holm(
    scores: ArrayLike, *, control: str | int | None = None, higher_is_better: bool = True
) -> ControlComparison | Floats:
    """Compare all models with a control, or adjust p-values, by Holm's step-down procedure.

    Parameters
    ----------
    scores : (n_sets, n_models), or (n_tests,)
        A table of scores, for `against_control`; or p-values.
    control, higher_is_better
        Of `against_control`; not with p-values.

    Returns
    -------
    ControlComparison, or (n_tests,) adjusted p-values where p-values are given

    Raises
    ------
    ValueError
        As `against_control`; p-values outside 0 and 1, or parameters of tables with them.

    See Also
    --------
    against_control : The comparison with a control by itself.

    Examples
    --------
    >>> from proxmargin.stats import holm
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    check_flag("higher_is_better", higher_is_better)
    numbers = real_numbers("scores", scores)
    if numbers.ndim != 1:
        return against_control(scores, control=control, higher_is_better=higher_is_better)
    if control is not None:
        raise ValueError(f"control={control!r} is for tables of scores, and these are p-values")
    if not higher_is_better:
        raise ValueError("higher_is_better=False is for tables of scores, and these are p-values")
    return _adjusted(numbers)


def against_control(
    scores: ArrayLike, *, control: str | int | None = None, higher_is_better: bool = True
) -> ControlComparison:
    """Compare the average ranks of all models with that of a control.

    Parameters
    ----------
    scores : (n_sets, n_models)
        An array, or a frame whose columns name the models.
    control : str, int or None
        The model that the others are compared with: by name, or by column unless columns have
        numbers for names. None is the first.
    higher_is_better : bool
        Whether the largest score of a row has rank 1.

    Returns
    -------
    ControlComparison
        With p-values adjusted by Holm's procedure.

    Notes
    -----
    The average ranks of two models differ by ``z sqrt(K (K + 1) / (6 N))`` for K models on N data
    sets (Xu et al. 2015, 3.1.3).

    Raises
    ------
    ValueError
        As `read_scores`; no such control; higher_is_better neither True nor False.

    See Also
    --------
    nemenyi : Compares all pairs.

    Examples
    --------
    >>> from proxmargin.stats import against_control
    >>> scores = [[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8], [8, 7, 6], [9, 6, 7]]
    >>> result = against_control(scores, control=0)
    >>> result.pvalue.round(3).tolist()
    [0.083, 0.009]
    """
    table = read_scores(scores)
    column = table.index(control)
    rows, models = table.values.shape
    check_flag("higher_is_better", higher_is_better)
    means = table.ranks(higher_is_better).mean(axis=0)
    z = (means[column] - np.delete(means, column)) / np.sqrt(models * (models + 1) / (6 * rows))
    pvalues = np.asarray(2 * norm.sf(np.abs(z)))
    names = table.names[:column] + table.names[column + 1 :]
    return ControlComparison(table.names[column], names, z, pvalues, _adjusted(pvalues))


def _adjusted(pvalues: Floats) -> Floats:
    """The least levels at which Holm's procedure rejects."""
    if not ((pvalues >= 0) & (pvalues <= 1)).all():
        raise ValueError("p-values must lie between 0 and 1")
    order = np.argsort(pvalues, kind="stable")
    steps = pvalues[order] * np.arange(pvalues.size, 0, -1)
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


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

    Examples
    --------
    >>> from proxmargin.stats import friedman
    >>> friedman([[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8]]).average_ranks.tolist()
    [1.25, 2.0, 2.75]
    """

    names: tuple[str, ...]
    average_ranks: Floats
    statistic: float
    pvalue: float
    iman_davenport: float
    iman_davenport_pvalue: float

    def to_frame(self) -> Frame:
        """A row for each model: model, average_rank."""
        import pandas as pd

        return pd.DataFrame({"model": self.names, "average_rank": self.average_ranks})


@dataclass(frozen=True)
class Nemenyi(ModelPairs):
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

    Examples
    --------
    >>> from proxmargin.stats import nemenyi
    >>> nemenyi([[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8]]).groups()
    [(0, 1, 2)]
    """

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

    def to_frame(self) -> Frame:
        """A row for each pair: first, second, first_rank, second_rank, pvalue."""
        frame, ranks = super().to_frame(), dict(zip(self.names, self.average_ranks, strict=True))
        frame.insert(2, "first_rank", frame["first"].map(ranks))
        frame.insert(3, "second_rank", frame["second"].map(ranks))
        return frame


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

    See Also
    --------
    nemenyi, against_control : Which models differ.

    Examples
    --------
    >>> from proxmargin.stats import friedman
    >>> scores = [[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8], [8, 7, 6], [9, 6, 7]]
    >>> result = friedman(scores)
    >>> round(result.statistic, 3), round(result.iman_davenport, 3)
    (7.0, 7.0)
    """
    check_flag("correct_ties", correct_ties)
    check_flag("higher_is_better", higher_is_better)
    table = read_scores(scores)
    ranks = table.ranks(higher_is_better)
    rows, models = ranks.shape
    means = ranks.mean(axis=0)
    deviations = np.square(means - 0.5 * (models + 1)).sum()  # the bracket of (22)
    statistic = 12 * rows / (models * (models + 1)) * deviations
    if correct_ties and deviations:
        sizes = (ranks[:, :, None] == ranks[:, None, :]).sum(axis=2)  # of each rank, its tie's
        statistic /= 1 - (sizes**2 - 1).sum() / (rows * models * (models**2 - 1))
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

    See Also
    --------
    friedman : Whether models differ at all.
    proxmargin.CriticalDifferenceDisplay : Draws it.

    Examples
    --------
    >>> from proxmargin.stats import nemenyi
    >>> scores = [[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8], [8, 7, 6], [9, 6, 7]]
    >>> result = nemenyi(scores, alpha=0.1)
    >>> result.average_ranks.round(2).tolist(), round(result.critical_difference, 3)
    ([1.17, 2.17, 2.67], 1.185)
    """
    alpha = check_fraction("alpha", alpha)
    check_flag("higher_is_better", higher_is_better)
    table = read_scores(scores)
    ranks = table.ranks(higher_is_better)
    rows, models = ranks.shape
    means = ranks.mean(axis=0)
    unit = np.sqrt(models * (models + 1) / (12 * rows))
    studentized = np.abs(means[:, None] - means[None]) / unit
    pvalues = np.asarray(studentized_range.sf(studentized, models, np.inf))
    np.fill_diagonal(pvalues, 1.0)
    critical = unit * float(studentized_range.ppf(1 - alpha, models, np.inf))
    return Nemenyi(table.names, means, pvalues, float(critical), alpha)


MOST_EXACT = 200  # rows: 2^200 signs are counted by sums of ranks, of which there are 20,000


@dataclass(frozen=True)
class SignedRanks(ModelPairs):
    """Signed-rank tests of all pairs of models.

    Attributes
    ----------
    names : of the models
    statistic : (n_models, n_models)
        ``T = min(R+, R-)`` of [X] (21); the diagonal is NaN.
    zscore : (n_models, n_models)
        ``z`` of (21): not positive.
    pvalue : (n_models, n_models)
        Two-sided.

    Examples
    --------
    >>> from proxmargin.stats import wilcoxon_signed_ranks
    >>> float(wilcoxon_signed_ranks([[9, 8], [8, 9], [7, 6], [9, 7]]).statistic[0, 1])
    2.0
    """

    statistic: Floats
    zscore: Floats
    pvalue: Floats


def wilcoxon_signed_ranks(
    scores: ArrayLike, *, method: Literal["normal", "exact"] = "normal", correct_ties: bool = False
) -> SignedRanks:
    """Compare every two models by the signed ranks of their differences over data sets.

    Parameters
    ----------
    scores : (n_sets, n_models)
        An array, or a frame whose columns name the models.
    method : {"normal", "exact"}
        The p-value: of the normal approximation, as (21) of Xu et al. (2015), or of all
        assignments of signs to these ranks, ties included (up to 200 data sets).
    correct_ties : bool
        Whether the variance of z accounts for equal differences, which (21) does not.

    Returns
    -------
    SignedRanks

    Notes
    -----
    The ranks of zero differences are split evenly between both sides, as in (21). Differences that
    are equal but for rounding (1e-12 of the larger score) share their average rank.

    Raises
    ------
    ValueError
        As `read_scores`; an unknown method; too many data sets for the exact one; correct_ties
        neither True nor False.

    See Also
    --------
    friedman : For more than two models at once.

    Examples
    --------
    >>> from proxmargin.stats import wilcoxon_signed_ranks
    >>> scores = [[9, 8, 7], [8, 9, 6], [7, 6, 5], [9, 7, 8], [8, 7, 6], [9, 6, 7]]
    >>> result = wilcoxon_signed_ranks(scores, method="exact")
    >>> round(float(result.pvalue[0, 2]), 4)
    0.0312
    """
    check_flag("correct_ties", correct_ties)
    check_choice("method", method, ("normal", "exact"))
    table = read_scores(scores)
    rows, models = table.values.shape
    if method == "exact" and rows > MOST_EXACT:
        raise ValueError(f"method='exact' is for up to {MOST_EXACT} rows; scores has {rows}")
    differences, roundings = table.differences()
    results = np.full((3, models, models), np.nan)
    for first, second in zip(*np.triu_indices(models, 1), strict=True):
        values, rounding = differences[first, second], roundings[first, second]
        # equal scores differ by zero exactly, whatever their size
        ranks = ranks_with_ties(np.abs(values), np.where(values == 0, 0.0, rounding))
        result = _two(values, ranks, method, correct_ties)
        results[:, first, second] = results[:, second, first] = result
    return SignedRanks(table.names, *results)


def _two(differences: Floats, ranks: Floats, method: str, ties: bool) -> tuple[float, float, float]:
    count = differences.size
    above = ranks[differences > 0].sum() + 0.5 * ranks[differences == 0].sum()
    least = min(above, ranks.sum() - above)
    variance = count * (count + 1) * (2 * count + 1) / 24
    if ties:
        repeats = np.unique(ranks, return_counts=True)[1].astype(float)
        variance -= (repeats**3 - repeats).sum() / 48
    mean = count * (count + 1) / 4
    z = (least - mean) / np.sqrt(variance) if least < mean else 0.0
    p = _exact(differences, ranks, least) if method == "exact" else float(2 * norm.cdf(z))
    return least, z, p


def _exact(differences: Floats, ranks: Floats, least: float) -> float:
    """The share of all signs of the differences with a sum of ranks as extreme as this one."""
    signed = np.rint(2 * ranks[differences != 0]).astype(int)  # averages are halves
    share = np.zeros(signed.sum() + 1)  # of the signs, by twice the sum of their positive ranks
    share[0] = 1.0
    for rank in signed:
        share = 0.5 * (share + np.concatenate((np.zeros(rank), share[: share.size - rank])))
    zero = 0.5 * ranks[differences == 0].sum()
    reached = int(np.rint(2 * (least - zero)))
    return float(min(1.0, 2 * share[: reached + 1].sum()))
