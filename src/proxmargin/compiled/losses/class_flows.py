"""Dual points of losses that compare the score of the class with those of the others.

Such a dual point q has rows ``q_i = s_i (a_i - (sum_k a_ik) e_y)`` with rates ``a_ik >= 0`` from
the class y of sample i to the other classes k: a flow between the classes. It sums to zero over
the samples where what flows into each class flows out of it.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit


@njit(nogil=True)
def clip_flows(dual, codes, shares, most):
    """The dual point with rates clipped at zero and rows shrunk to a total rate of ``most``.

    Parameters
    ----------
    dual : (n_samples, n_classes)
    codes : (n_samples,) integers
    shares : (n_samples,)
    most : float > 0, infinite where the rates are not bounded

    Returns
    -------
    (n_samples, n_classes), and the largest total rate of a sample
    """
    out = np.zeros_like(dual)
    largest = 0.0
    for i in range(dual.shape[0]):
        share = shares[i]
        if share == 0.0:
            continue
        total = 0.0
        for k in range(dual.shape[1]):
            if k != codes[i] and dual[i, k] > 0.0:
                out[i, k] = dual[i, k]
                total += dual[i, k]
        if total > most * share:
            factor = most * share / total
            total = 0.0
            for k in range(dual.shape[1]):
                out[i, k] *= factor
                total += out[i, k]
        out[i, codes[i]] = -total
        largest = max(largest, total / share)
    return out, largest


@njit(nogil=True)
def largest_rate(dual, codes, shares):
    """The largest total rate ``sum_k a_ik`` of a sample; negative rates count nothing."""
    largest = 0.0
    for i in range(dual.shape[0]):
        if shares[i] > 0.0:
            total = 0.0
            for k in range(dual.shape[1]):
                if k != codes[i]:
                    total += max(dual[i, k], 0.0)
            largest = max(largest, total / shares[i])
    return largest


@njit(nogil=True)
def balance(dual, codes, shares, capacity):
    """Change ``dual`` in place so that its columns sum to zero, keeping rates in the simplex.

    With ``p_ik = a_ik / capacity`` for the other classes and the rest of one in the own class,
    rows of p lie in the simplex and the columns are to have the sums n_k, the sizes of the
    classes: Altschuler, Weed and Rigollet (2017, Algorithm 2) shrink the columns that have too
    much, and hand what that sets free to the others in proportion to what they lack.

    Parameters
    ----------
    dual : (n_samples, n_classes)
        As `clip_flows` returns it.
    codes : (n_samples,) integers
    shares : (n_samples,)
    capacity : float
        At least the largest total rate of a sample.
    """
    n, classes = dual.shape
    sizes = np.zeros(classes)
    excess = np.zeros(classes)
    for i in range(n):
        sizes[codes[i]] += capacity * shares[i]
        for k in range(classes):
            excess[k] += dual[i, k]
    lacking = np.maximum(-excess, 0.0)
    total = lacking.sum()
    if total == 0.0:
        return
    shrink = np.zeros(classes)  # 1 - factor of each column
    for k in range(classes):
        if excess[k] > 0.0:
            shrink[k] = excess[k] / (sizes[k] + excess[k])
    for i in range(n):
        own = codes[i]
        if shares[i] == 0.0:
            continue
        freed = shrink[own] * max(capacity * shares[i] + dual[i, own], 0.0)
        for k in range(classes):
            if k != own:
                freed += shrink[k] * dual[i, k]
                dual[i, k] -= shrink[k] * dual[i, k]
        out = 0.0
        for k in range(classes):
            if k != own:
                dual[i, k] += freed * (lacking[k] / total)
                out += dual[i, k]
        dual[i, own] = -out


@njit(nogil=True)
def loose_rows(dual, scores):
    """``sum_i |sum_k dual_ik| max_k |scores_ik|``: what rounding of the rows' sums can hide."""
    total = 0.0
    for i in range(dual.shape[0]):
        off, size = 0.0, 0.0
        for k in range(dual.shape[1]):
            off += dual[i, k]
            size = max(size, abs(scores[i, k]))
        total += abs(off) * size
    return total
