"""Passes over the samples that vectorise: values, dual coordinates and curvatures at once.

They take losses in forms without branches and calls. The logistic loss is right to eight units in
the last place. Beyond a margin of 708 in absolute value, what falls off as ``exp(-|t|)`` is zero:
below the least normal number, objectives count as zero. With ``u = 1 - t``, the height h (the
curvature) and ``c = min(max(u, 0), cap)`` the capped quadratic is ``h c (u - c / 2)``, its dual
coordinate ``h c``, in all three pieces.
"""

from __future__ import annotations

from proxmargin.compiled.cache import SUMS, njit
from proxmargin.compiled.losses.exponentials import fast_exp, fast_log1p


@njit(nogil=True, allocates=False)
def evaluated(phi, scores, shift, signs, weights, theta, curvature):
    """The dual point (minus the gradient) and the curvatures at ``scores + shift``.

    Returns
    -------
    dual_sum : float
        Sum of the dual point.
    positive : float
        Sum of its entries for positive signs.
    curvature : float
        Sum of the curvatures.
    loss : float
    """
    dual_sum, positive, total, loss = 0.0, 0.0, 0.0, 0.0
    for i in range(scores.size):
        weight = weights[i]
        if weight == 0.0:
            theta[i] = 0.0
            curvature[i] = 0.0
            continue
        t = signs[i] * (scores[i] + shift)
        force, curved = phi.descent_and_curvature(t)
        force *= weight
        curved *= weight
        theta[i] = signs[i] * force
        curvature[i] = curved
        dual_sum += theta[i]
        total += curved
        loss += weight * phi.value(t)
        if signs[i] > 0.0:
            positive += force
    return dual_sum, positive, total, loss


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def evaluated_logistic(scores, shift, signs, weights, theta, curvature):
    """`evaluated` for the logistic loss."""
    dual_sum, positive, total, loss = 0.0, 0.0, 0.0, 0.0
    for i in range(scores.size):
        t = signs[i] * (scores[i] + shift)
        e = fast_exp(-abs(t))
        near = 1.0 / (1.0 + e)
        far = e * near
        force = signs[i] * weights[i] * (far if t > 0.0 else near)
        curved = weights[i] * far * near
        theta[i] = force
        curvature[i] = curved
        dual_sum += force
        positive += max(force, 0.0)
        total += curved
        loss += weights[i] * (fast_log1p(e) + max(-t, 0.0))
    return dual_sum, positive, total, loss


@njit(nogil=True, allocates=False, error_model="numpy")
def logistic(t):
    """``log(1 + e^-t)``."""
    return fast_log1p(fast_exp(-abs(t))) + max(-t, 0.0)


@njit(nogil=True, allocates=False, error_model="numpy")
def logistic_shares(t):
    """``1 / (1 + e^-|t|)`` and the rest, ``1 / (1 + e^|t|)``."""
    e = fast_exp(-abs(t))
    near = 1.0 / (1.0 + e)
    return near, e * near


@njit(nogil=True, allocates=False, error_model="numpy")
def logistic_descent(t):
    """``1 / (1 + e^t)``."""
    near, far = logistic_shares(t)
    return far if t > 0.0 else near


@njit(nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def evaluated_capped(height, cap, scores, shift, signs, weights, theta, curvature):
    """`evaluated` for the capped quadratic."""
    dual_sum, positive, total, loss = 0.0, 0.0, 0.0, 0.0
    for i in range(scores.size):
        u = 1.0 - signs[i] * (scores[i] + shift)
        weighted = height * weights[i]
        c = min(max(u, 0.0), cap)
        force = signs[i] * weighted * c
        curved = weighted if 0.0 < u < cap else 0.0
        theta[i] = force
        curvature[i] = curved
        dual_sum += force
        positive += max(force, 0.0)
        total += curved
        loss += weighted * c * (u - 0.5 * c)
    return dual_sum, positive, total, loss


@njit(nogil=True, allocates=False, error_model="numpy")
def capped_gap(height, cap, t, a):
    """``phi(t) + phi*(-a) + a t = (h c - a)^2 / (2 h) + (h c - a) (u - c)``, two terms >= 0.

    The second one is zero on the curved piece; beyond it u - c and h c - a have the same sign.
    """
    u = 1.0 - t
    c = min(max(u, 0.0), cap)
    short = height * c - a
    return 0.5 / height * short * short + short * (u - c)
