"""Rules for the intercept of models whose objective does not determine it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.minimax import MinimaxFisher, MinimaxProbability

__all__ = ["INTERCEPT_RULES", "minimax", "training_error"]

Array = NDArray[np.float64]
Minimax = MinimaxFisher | MinimaxProbability

SHARE_ROUNDING = 1e-12  # difference of training errors that is rounding of sums of shares


def training_error(loss: Minimax, scores: Array) -> float:
    """The intercept with the least weighted training error ((26) of Ito et al. 2017).

    Thresholds are midpoints of two different neighbouring scores, or lie beyond all of them; among
    those with the least error the one in the widest interval is taken.

    Parameters
    ----------
    scores : (n_samples,)
        Scores without an intercept.
    """
    signs, shares = loss.signs, loss.shares
    live = np.flatnonzero(shares > 0)
    order = live[np.argsort(scores[live], kind="stable")]
    values = scores[order]
    # error with a threshold below all scores, then with the first samples below it
    steps = np.concatenate([[0.0], np.cumsum(shares[order] * signs[order])])
    gaps = np.concatenate([[0.0], np.diff(values), [0.0]])
    apart = gaps > 0
    apart[[0, -1]] = True
    errors = np.where(apart, steps, np.inf)
    best = np.flatnonzero(errors <= errors.min() + SHARE_ROUNDING)
    k = int(best[np.argmax(gaps[best])])
    spread = max(float(values[-1] - values[0]), np.finfo(float).tiny)
    if k == 0:
        return -float(values[0] - 0.5 * spread)
    if k == values.size:
        return -float(values[-1] + 0.5 * spread)
    return -0.5 * float(values[k - 1] + values[k])


def minimax(loss: Minimax, scores: Array) -> float:
    """The intercept at which both classes have the same worst-case margin.

    Parameters
    ----------
    scores : (n_samples,)
        Scores without an intercept.
    """
    positive, negative = loss.nearest_scores(scores)
    return -0.5 * (positive + negative)


INTERCEPT_RULES = {"training_error": training_error, "minimax": minimax}
