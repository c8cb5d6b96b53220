"""Holm's step-down procedure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from proxmargin.stats.scores import Floats, read_scores

__all__ = ["ControlComparison", "holm"]


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
    """

    control: str
    names: tuple[str, ...]
    zscore: Floats
    pvalue: Floats
    adjusted: Floats

    def to_frame(self) -> Any:
        """A row for each of the other models: model, zscore, pvalue, adjusted."""
        import pandas as pd

        columns = {"zscore": self.zscore, "pvalue": self.pvalue, "adjusted": self.adjusted}
        return pd.DataFrame({"model": self.names, **columns})


def holm(
    scores: ArrayLike, *, control: str | int = 0, higher_is_better: bool = True
) -> ControlComparison | Floats:
    """Compare all models with a control, or adjust p-values, by Holm's step-down procedure.

    Parameters
    ----------
    scores : (n_sets, n_models), or (n_tests,)
        A table of scores, an array or a frame whose columns name the models; or p-values.
    control : str or int
        The model that the others are compared with, by name or column.
    higher_is_better : bool
        Whether the largest score of a row has rank 1.

    Returns
    -------
    ControlComparison, or (n_tests,) adjusted p-values where p-values are given

    Notes
    -----
    The average ranks of two models differ by ``z sqrt(K (K + 1) / (6 N))`` for K models on N data
    sets (Xu et al. 2015, 3.1.3).

    Raises
    ------
    ValueError
        As `read_scores`; no such control; p-values outside 0 and 1.
    """
    if np.ndim(scores) == 1:
        return _adjusted(np.asarray(scores, dtype=np.float64))
    table = read_scores(scores)
    column = table.index(control)
    rows, models = table.values.shape
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
