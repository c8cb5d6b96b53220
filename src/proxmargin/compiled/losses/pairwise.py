"""Fused passes over the scores for the squared hinge of each pair of own and other class.

With the excess ``u_ik = 1 + z_ik - z_iy`` of the classes k other than that of sample i,

    loss_i = sum_{k != y} [u_ik]_+^2.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit


@njit(nogil=True)
def fenchel_young_sum(scores, codes, shares, dual):
    """``sum_i s_i sum_{k != y} [u]_+^2 + a^2 / 4 - a u``, a the rates of the dual point.

    It is ``(u - a / 2)^2`` where u > 0, and ``a (a / 4 - u)`` elsewhere.
    """
    total = 0.0
    for i in range(scores.shape[0]):
        if shares[i] == 0.0:
            continue
        row = 0.0
        for k in range(scores.shape[1]):
            if k != codes[i]:
                u = 1.0 + scores[i, k] - scores[i, codes[i]]
                a = max(dual[i, k], 0.0) / shares[i]
                row += (u - 0.5 * a) ** 2 if u > 0.0 else a * (0.25 * a - u)
        total += shares[i] * row
    return total


@njit(nogil=True)
def conjugate_sum(codes, shares, dual):
    """``sum_i s_i sum_{k != y} a^2 / 4 - a``."""
    total = 0.0
    for i in range(dual.shape[0]):
        if shares[i] == 0.0:
            continue
        for k in range(dual.shape[1]):
            if k != codes[i]:
                a = dual[i, k] / shares[i]
                total += shares[i] * a * (0.25 * a - 1.0)
    return total


@njit(nogil=True)
def conjugate_prox(dual, codes, shares, step, nearest):
    """Fill ``nearest`` with the prox of the conjugate.

    With ``c = share / step`` and ``b_k = 1 + (dual_k - dual_y) / step``, the rates are
    ``a_k = 2 [b_k - c A]_+ / (1 + 2 c)`` and A their sum, the root of an increasing concave
    function of few pieces: Newton's method from zero finds it in as many steps.
    """
    classes = dual.shape[1]
    for i in range(dual.shape[0]):
        share, own = shares[i], codes[i]
        nearest[i, :] = 0.0
        if share == 0.0:
            continue
        c = share / step
        base = 1.0 - dual[i, own] / step
        total, last = 0.0, -1.0
        while total > last:
            last, above, pieces = total, 0.0, 0
            for k in range(classes):
                excess = base + dual[i, k] / step
                if k != own and excess > c * total:
                    above += excess
                    pieces += 1
            total = max(2.0 * above / (1.0 + 2.0 * c * (1 + pieces)), last)
        rate = 0.0
        for k in range(classes):
            if k != own:
                excess = base + dual[i, k] / step - c * total
                nearest[i, k] = 2.0 * share * max(excess, 0.0) / (1.0 + 2.0 * c)
                rate += nearest[i, k]
        nearest[i, own] = -rate
