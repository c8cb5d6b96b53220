"""Fused passes over the scores for the multinomial loss with a margin.

With ``r_ik = margin`` for the classes k other than that of sample i, and 0 for its own,

    loss_i = log sum_k exp(z_ik + r_ik) - z_iy,    p_i = softmax(z_i + r_i).
"""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.exponentials import relative_entropy
from proxmargin.compiled.rounding import ROOT_STEPS, SUM_ROUNDING


@njit(nogil=True, allocates=False)
def softmax(row, own, margin, p):
    """Fill ``p`` with the shares of the classes; return the loss of the row."""
    top = row[own]
    for k in range(row.size):
        if k != own:
            top = max(top, row[k] + margin)
    others = 0.0
    for k in range(row.size):
        if k != own:
            p[k] = math.exp(row[k] + margin - top)
            others += p[k]
    p[own] = math.exp(row[own] - top)
    total = others + p[own]
    for k in range(row.size):
        p[k] /= total
    return math.log1p(others) if top == row[own] else (top - row[own]) + math.log(total)


@njit(nogil=True)
def relative_entropy_sum(scores, codes, shares, margin, dual):
    """``sum_i s_i KL(a_i | p_i)``, a the shares that the dual point stands for, p those of scores.

    The Fenchel-Young sum of the loss; for the dual point the gradient at other scores Z0 it is
    ``L(Z) - L(Z0) - <L'(Z0), Z - Z0>``.
    """
    classes = scores.shape[1]
    p = np.empty(classes)
    total = 0.0
    for i in range(scores.shape[0]):
        share, own = shares[i], codes[i]
        if share == 0.0:
            continue
        value = softmax(scores[i], own, margin, p)
        rate, moved, row = 0.0, 0.0, 0.0
        for k in range(classes):
            if k != own:
                a = max(dual[i, k], 0.0) / share
                rate += a
                moved += p[k] - a
                if a > 0.0:
                    log_p = scores[i, k] + margin - scores[i, own] - value
                    row += relative_entropy(a, p[k], log_p)
                else:
                    row += p[k]
        stays = max(1.0 - rate, 0.0)
        if stays > 0.0:  # the share of the own class is p - moved, of which p is 1 to rounding
            row += max(relative_entropy(stays, stays - moved, -value), 0.0)
        else:
            row += p[own]
        total += share * row
    return total


@njit(nogil=True)
def entropy_sum(codes, shares, margin, dual):
    """The conjugate ``sum_i s_i (sum_k a_ik log a_ik - margin (1 - a_iy))``, 0 log 0 = 0."""
    total = 0.0
    for i in range(dual.shape[0]):
        if shares[i] == 0.0:
            continue
        rate, row = 0.0, 0.0
        for k in range(dual.shape[1]):
            if k != codes[i] and dual[i, k] > 0.0:
                a = dual[i, k] / shares[i]
                rate += a
                row += a * (math.log(a) - margin)
        if rate < 1.0:
            row += (1.0 - rate) * math.log1p(-rate)
        total += shares[i] * row
    return total


@njit(nogil=True)
def _omega(x):
    """The w > 0 with ``w + log w = x``: Newton's method from below, where it is monotone."""
    if x < -700.0:  # the exponential underflows
        return 0.0
    w = x - math.log(x) if x >= 1.0 else math.exp(x - math.exp(x))
    for _ in range(ROOT_STEPS):
        reached = w * (1.0 + x - math.log(w)) / (1.0 + w)
        done = abs(reached - w) <= SUM_ROUNDING * reached
        w = reached
        if done:
            break
    return w


@njit(nogil=True)
def conjugate_prox(dual, codes, shares, margin, step, nearest, slopes):
    """Fill ``nearest`` with the prox of the conjugate, ``slopes`` with the g of its Jacobian.

    With ``c = share / step`` and ``v = (dual + share e_y) / step + r``, the shares of the classes
    are the solution of ``p_k = omega(v_k - lambda + log c) / c`` that sums to one. The sum is
    convex and falls in lambda, so that Newton's method from the left is monotone. ``slopes`` are
    ``g_k = p_k / (1 + c p_k)``; the Jacobian of a row is ``c (diag(g) - g g' / sum(g))``.
    """
    classes = dual.shape[1]
    v = np.empty(classes)
    for i in range(dual.shape[0]):
        share, own = shares[i], codes[i]
        nearest[i, :] = 0.0
        slopes[i, :] = 0.0
        if share == 0.0:
            continue
        c = share / step
        for k in range(classes):
            v[k] = dual[i, k] / step + margin
        v[own] = (dual[i, own] + share) / step
        shift = v.max() - c
        for _ in range(ROOT_STEPS):
            excess, slope = -1.0, 0.0
            for k in range(classes):
                p = _omega(v[k] - shift + math.log(c)) / c
                nearest[i, k] = p
                slopes[i, k] = p / (1.0 + c * p)
                excess += p
                slope += slopes[i, k]
            if excess <= SUM_ROUNDING * classes:
                break
            shift += excess / slope
        rate = 0.0
        for k in range(classes):
            if k != own:
                nearest[i, k] *= share
                rate += nearest[i, k]
        nearest[i, own] = -rate
