"""Wilcoxon's signed ranks: two models over data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from proxmargin.stats.scores import (
    Floats,
    check_flag,
    pairs_frame,
    ranks_with_ties,
    read_scores,
)

__all__ = ["SignedRanks", "wilcoxon_signed_ranks"]

MOST_EXACT = 200  # rows: 2^200 signs are counted by sums of ranks, of which there are 20,000


@dataclass(frozen=True)
class SignedRanks:
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
    """

    names: tuple[str, ...]
    statistic: Floats
    zscore: Floats
    pvalue: Floats

    def to_frame(self) -> Any:
        """A row for each pair: first, second, statistic, zscore, pvalue."""
        return pairs_frame(
            self.names, statistic=self.statistic, zscore=self.zscore, pvalue=self.pvalue
        )


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
    """
    check_flag("correct_ties", correct_ties)
    if not isinstance(method, str) or method not in PVALUES:
        raise ValueError(f"method={method!r} must be one of {', '.join(PVALUES)}")
    table = read_scores(scores)
    rows, models = table.values.shape
    if method == "exact" and rows > MOST_EXACT:
        raise ValueError(f"method='exact' is for up to {MOST_EXACT} rows; scores has {rows}")
    differences = table.differences()
    results = np.full((3, models, models), np.nan)
    for first, second in zip(*np.triu_indices(models, 1), strict=True):
        values, rounding = (
            part[first, second] for part in (differences.values, differences.rounding)
        )
        # equal scores differ by zero exactly, whatever their size
        ranks = ranks_with_ties(np.abs(values), np.where(values == 0, 0.0, rounding))
        result = _two(values, ranks, PVALUES[method], correct_ties)
        results[:, first, second] = results[:, second, first] = result
    return SignedRanks(table.names, *results)


def _two(
    differences: Floats,
    ranks: Floats,
    pvalue: Callable[[Floats, Floats, float, float], float],
    ties: bool,
) -> tuple[float, float, float]:
    """Statistic, z and p-value of one pair."""
    count = differences.size
    zero = 0.5 * ranks[differences == 0].sum()
    above = ranks[differences > 0].sum() + zero
    least = min(above, ranks.sum() - above)
    variance = count * (count + 1) * (2 * count + 1) / 24
    if ties:
        repeats = np.unique(ranks, return_counts=True)[1].astype(float)
        variance -= (repeats**3 - repeats).sum() / 48
    mean = count * (count + 1) / 4
    z = (least - mean) / np.sqrt(variance) if least < mean else 0.0
    return least, z, pvalue(differences, ranks, least, z)


def _normal(differences: Floats, ranks: Floats, least: float, z: float) -> float:
    return float(2 * norm.cdf(z))


def _exact(differences: Floats, ranks: Floats, least: float, z: float) -> float:
    """The share of all signs of the differences with a sum of ranks as extreme as this one."""
    signed = np.rint(2 * ranks[differences != 0]).astype(int)  # averages are halves
    share = np.zeros(signed.sum() + 1)  # of the signs, by twice the sum of their positive ranks
    share[0] = 1.0
    for rank in signed:
        share = 0.5 * (share + np.concatenate((np.zeros(rank), share[: share.size - rank])))
    zero = 0.5 * ranks[differences == 0].sum()
    reached = int(np.rint(2 * (least - zero)))
    return float(min(1.0, 2 * share[: reached + 1].sum()))


PVALUES = {"normal": _normal, "exact": _exact}
