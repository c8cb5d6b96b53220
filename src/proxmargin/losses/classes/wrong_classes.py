"""The multiclass loss of Lee, Lin and Wahba: a margin loss summed over the wrong classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.losses.margins.margin import MarginLoss
from proxmargin.losses.margins.margin_sum import MarginSum

__all__ = ["wrong_classes"]


def wrong_classes(
    phi: MarginLoss,
    codes: NDArray[np.intp],
    weights: Array,
    n_classes: int,
    sample_count: float,
) -> MarginSum:
    """``L(Z) = sum_i weights_i sum_{k != codes_i} phi(-z_ik)``.

    Together with coefficients that sum to zero over the classes it is the all-together model of
    Xu et al. (2015, (3)). The paper prints ``phi(+z)``, which would push the scores of the wrong
    classes up; with the minus sign prediction is by the largest score.

    Parameters
    ----------
    codes : (n_samples,) integers in [0, n_classes)
    weights : (n_samples,) >= 0, summing to one
    sample_count : float
        Total sample weight before that normalisation.
    """
    counts = np.repeat(weights[:, None], n_classes, axis=1)
    counts[np.arange(codes.size), codes] = 0.0
    return MarginSum(phi, np.full(counts.shape, -1.0), counts, sample_count)
