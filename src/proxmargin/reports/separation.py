"""How well every feature alone tells each class from the rest: areas under the ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from proxmargin.reports.columns import blocks

__all__ = ["single_feature_auc"]


def single_feature_auc(X: Any, members: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas under the curves of all features, for each class against the rest.

    By rank sums (Mann and Whitney), with midranks for ties. Zeros that a sparse matrix does not
    store are one tie and are not expanded.

    Parameters
    ----------
    X : (n_samples, n_features) array, or canonical CSC matrix
    members : (n_samples, n_classes)
        One where the sample is of the class, else zero.

    Returns
    -------
    (n_classes, n_features)
        Above 1/2 where large values speak for the class. Missing entries of an array are left out;
        NaN for features of a matrix that have some, and where no class or no rest is left.
    """
    sizes = members.sum(axis=0)[:, None]
    count = np.full(X.shape[1], members.shape[0], dtype=np.float64)
    if hasattr(X, "indptr"):
        sums = _sparse_rank_sums(X, members)
    else:
        sums, sizes, count = _rank_sums(X, members)
    rest = count - sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums - sizes * (sizes + 1) / 2) / (sizes * rest))


def _rank_sums(X: NDArray[Any], members: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Sums of ranks among the known entries, and the numbers of these, of a class and of all."""
    sums, sizes = np.empty((2, members.shape[1], X.shape[1]))
    count = np.empty(X.shape[1])
    for place, block in blocks(X):
        known = ~np.isnan(block)
        # missing entries rank last, which leaves the ranks of the others as they are
        ranks = rankdata(np.where(known, block, np.inf), axis=0)
        sums[:, place] = members.T @ np.where(known, ranks, 0.0)
        sizes[:, place] = members.T @ known
        count[place] = known.sum(axis=0)
    return sums, sizes, count


def _sparse_rank_sums(X: Any, members: NDArray[np.float64]) -> NDArray[np.float64]:
    n, p = X.shape
    stored = np.diff(X.indptr)
    owner = np.repeat(np.arange(p), stored)
    order = np.lexsort((X.data, owner))
    values, rows = X.data[order], X.indices[order]
    zeros = n - stored
    negative = np.bincount(owner[values < 0], minlength=p)
    # the zeros of a column stand between its negative and its positive values
    position = np.arange(values.size) - X.indptr[owner] + 1
    position = position + np.where(values > 0, zeros[owner], 0)
    ranks = _midranks(values, owner, position)
    of_zeros = negative + (zeros + 1) / 2
    sums = np.empty((members.shape[1], p))
    for k, member in enumerate(members.T):
        of_class = member[rows]
        listed = np.bincount(owner, weights=of_class * ranks, minlength=p)
        unlisted = member.sum() - np.bincount(owner, weights=of_class, minlength=p)
        sums[k] = listed + unlisted * of_zeros
    sums[:, np.unique(owner[~np.isfinite(values)])] = np.nan
    return sums


def _midranks(
    values: NDArray[Any], owner: NDArray[np.intp], position: NDArray[Any]
) -> NDArray[np.float64]:
    """Mean positions of runs of equal values of a column."""
    if values.size == 0:
        return np.zeros(0)
    starts = np.r_[True, (np.diff(values) != 0) | (np.diff(owner) != 0)]
    run = np.cumsum(starts) - 1
    lengths = np.bincount(run)
    first = position[starts]
    return np.asarray(first + (lengths - 1) / 2)[run]
