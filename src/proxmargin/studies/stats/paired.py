"""Two models on the same rows: counts of disagreement, and the difference that would be missed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, t

from proxmargin.studies.stats.scores import CONFIDENCE, Floats

POWER = 0.8  # with which the difference that is told would be found
# the same difference by the share q of n rows on which two models disagree, over sqrt(q / n):
# simulated for nearest centroids, with one pass over the rows and with several
BY_DISAGREEMENT, BY_DISAGREEMENT_ONCE = 3.0, 5.0


def exact_mcnemar(first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Two-sided p-values of McNemar's exact test. ``first``: rows that the first model alone has
    right; ``second``: those that the second alone has."""
    fewer, both = np.minimum(first, second), first + second
    return np.asarray(np.minimum(1.0, 2.0 * binom.cdf(fewer, both, 0.5)))


def missed_difference(
    reach: Floats,
    splits: int,
    disagreement: Floats,
    rows: float,
    repeats: int,
    unit: float = 1.0,
    pairs: int = 1,
) -> Floats:
    """The true difference of two scores that a two-sided test at 5 % finds in four of five data
    sets of this size: smaller ones are mostly missed.

    Parameters
    ----------
    reach : half the 95 % intervals of the differences
    splits : int
    disagreement : shares of the rows on which the labels of the two models differ
    rows : number of independent rows; NaN if the score is no share of them
    repeats : passes over the rows
    unit : width of the range of the scores
    pairs : how many pairs are tested, at the level of the first step of Holm's procedure
    """
    freedom, level = splits - 1, 1 - CONFIDENCE
    error = reach / t.isf(0.5 * level, freedom)
    factor = BY_DISAGREEMENT_ONCE if repeats == 1 else BY_DISAGREEMENT
    by_rows = unit * factor * np.sqrt(disagreement / rows)
    beyond, power = t.isf(0.5 * level / pairs, freedom), t.ppf(POWER, freedom)
    once = t.isf(0.5 * level, freedom) + power
    return np.asarray(np.fmax(once * error, by_rows) * (beyond + power) / once)
