"""The exact intercepts of hinges that sum to zero over the classes."""

from __future__ import annotations

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.rounding import TINY

__all__ = ["minimise_hinge_shifts"]


def minimise_hinge_shifts(scores: Array, signs: Array, weights: Array) -> Array:
    """``argmin_b sum_ik weights_ik [1 - signs_ik (scores_ik + b_k)]_+`` where b sums to zero.

    The slope in each b_k is a step function, and at the minimum all outputs have the same slope.
    The b_k of a common slope grow with it, and so does their sum: bisect over the steps for the
    slope at which the sum changes its sign, then interpolate between the two ends of its interval.

    Parameters
    ----------
    scores, signs, weights : (n_samples, n_outputs)
    """
    kinks, levels = _staircases(signs - scores, signs, weights)
    stairs = np.unique(levels)
    low, high = 0, stairs.size - 1  # the first stair whose upper end has a sum of zero or more
    while low < high:
        middle = (low + high) // 2
        if _ends(kinks, levels, stairs[middle])[1].sum() >= 0:
            high = middle
        else:
            low = middle + 1
    left, right = _ends(kinks, levels, stairs[low])
    if left.sum() > 0:  # only where rounding took two equal stairs for two
        left = _ends(kinks, levels, stairs[max(low - 1, 0)])[0]
    share = left.sum() / min(left.sum() - right.sum(), -TINY)
    found: Array = left + np.clip(share, 0.0, 1.0) * (right - left)
    return found - found.mean()


def _staircases(kinks: Array, signs: Array, weights: Array) -> tuple[Array, Array]:
    """Kinks in order between two far ends, (n + 2, K), and the slopes between them, (n + 1, K)."""
    order = np.argsort(kinks, axis=0)
    kinks = np.take_along_axis(kinks, order, axis=0)
    first = -(weights * (signs > 0)).sum(axis=0)
    levels = np.concatenate([[first], first + np.cumsum(np.take_along_axis(weights, order, 0), 0)])
    # one output may have to make up for all the others
    far = np.full((1, kinks.shape[1]), kinks.shape[1] * (1.0 + np.abs(kinks).max(initial=0.0)))
    return np.concatenate([-far, kinks, far]), levels


def _ends(kinks: Array, levels: Array, slope: float) -> tuple[Array, Array]:
    """The least and the largest b of each output at which its slope is ``slope``."""
    below = (levels < slope).sum(axis=0)
    upto = (levels <= slope).sum(axis=0)
    outputs = np.arange(kinks.shape[1])
    return kinks[below, outputs], kinks[upto, outputs]
