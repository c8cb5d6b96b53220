"""Holm's step-down procedure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from proxmargin.stats.scores import Floats, check_flag, read_numbers, read_scores

__all__ = ["ControlComparison", "against_control", "holm"]


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
    """
    check_flag("higher_is_better", higher_is_better)
    numbers = read_numbers(scores, "scores")
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
    """
    table = read_scores(scores)
    column = table.index(control)
    rows, models = table.values.shape
    means = table.ranks(check_flag("higher_is_better", higher_is_better)).mean(axis=0)
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
