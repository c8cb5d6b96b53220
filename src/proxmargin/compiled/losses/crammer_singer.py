"""Kernels of the multiclass hinge: sums of ``max_k (z_k + [k != y] - z_y)`` over the samples."""

from __future__ import annotations

from proxmargin.compiled.cache import njit


@njit(nogil=True)
def value_sum(scores, codes, shares):
    """``sum_i shares_i max_k (z_ik + [k != y_i] - z_iy)``."""
    total = 0.0
    for i in range(codes.size):
        if shares[i] == 0.0:
            continue
        own, worst = scores[i, codes[i]], 0.0
        for k in range(scores.shape[1]):
            if k != codes[i]:
                worst = max(worst, scores[i, k] - own + 1.0)
        total += shares[i] * worst
    return total


@njit(nogil=True)
def subgradient(scores, codes, shares, out):
    """`value_sum`, and a subgradient in ``out``: the mean of those of the classes that attain it.

    The sum of a row of ``out`` is zero to the last digit.
    """
    total = 0.0
    classes = scores.shape[1]
    for i in range(codes.size):
        out[i] = 0.0
        if shares[i] == 0.0:
            continue
        code = codes[i]
        own, worst, ties = scores[i, code], 0.0, 1
        for k in range(classes):
            if k == code:
                continue
            margin = scores[i, k] - own + 1.0
            if margin > worst:
                worst, ties = margin, 1
            elif margin == worst:
                ties += 1
        total += shares[i] * worst
        share = shares[i] / ties
        for k in range(classes):
            if k != code and scores[i, k] - own + 1.0 == worst:
                out[i, k] = share
                out[i, code] -= share
    return total


@njit(nogil=True)
def fenchel_young_sum(scores, codes, shares, dual):
    """``sum_i sum_k y_ik (worst_i - margin_ik)`` with ``y = dual + shares e_code`` in the simplex.

    Every term is >= 0 because the worst margin is the largest.
    """
    total = 0.0
    for i in range(codes.size):
        code = codes[i]
        own, worst = scores[i, code], 0.0
        for k in range(scores.shape[1]):
            if k != code:
                worst = max(worst, scores[i, k] - own + 1.0)
        for k in range(scores.shape[1]):
            if k != code:
                total += dual[i, k] * (worst - (scores[i, k] - own + 1.0))
        total += max(shares[i] + dual[i, code], 0.0) * worst
    return total
