"""Rules for the intercept of models whose objective does not determine it."""

from __future__ import annotations

import numpy as np

from proxmargin.losses.minimax import MinimaxFisher, MinimaxProbability
from proxmargin.rounding import TINY, Enclosed, levels

__all__ = ["INTERCEPT_RULES", "minimax", "training_error"]

Minimax = MinimaxFisher | MinimaxProbability

SHARE_ROUNDING = 1e-12  # difference of training errors that is rounding of sums of shares


def training_error(loss: Minimax, scores: Enclosed) -> float:
    """The intercept with the least weighted training error ((26) of Ito et al. 2017).

    Thresholds are midpoints of two neighbouring scores that differ by more than their rounding, so
    that they never part identical samples, or lie beyond all scores; among those with the least
    error the one in the widest interval is taken.

    Parameters
    ----------
    scores : Enclosed
        Scores without an intercept, (n_samples, 1).
    """
    signs, shares = loss.signs, loss.shares
    live = np.flatnonzero(shares > 0)
    found = scores.values[live, 0]
    error = np.broadcast_to(scores.error, scores.values.shape)[live, 0]
    level = levels(found, error)
    order = np.lexsort((found, level))
    values, order = found[order], live[order]
    # error with a threshold below all scores, then with the first samples below it
    steps = np.concatenate([[0.0], np.cumsum(shares[order] * signs[order])])
    gaps = np.concatenate([[0.0], np.diff(values), [0.0]])
    apart = np.diff(np.sort(level), prepend=-1, append=live.size) > 0
    errors = np.where(apart, steps, np.inf)
    best = np.flatnonzero(errors <= errors.min() + SHARE_ROUNDING)
    widest = gaps[best] >= gaps[best].max() - 2.0 * float(error.max(initial=0.0))
    k = int(best[np.argmax(widest)])  # the lowest of those that rounding does not tell apart
    spread = max(float(values[-1] - values[0]), TINY)
    if k == 0:
        return -float(values[0] - 0.5 * spread)
    if k == values.size:
        return -float(values[-1] + 0.5 * spread)
    return -0.5 * float(values[k - 1] + values[k])


def minimax(loss: Minimax, scores: Enclosed) -> float:
    """The intercept at which both classes have the same worst-case margin.

    Parameters
    ----------
    scores : Enclosed
        Scores without an intercept, (n_samples, 1).
    """
    positive, negative = loss.nearest_scores(scores.values)
    return -0.5 * (positive + negative)


INTERCEPT_RULES = {"training_error": training_error, "minimax": minimax}
