"""The capped quadratic without branches, so that loops over samples vectorise.

With ``u = 1 - t``, the height h (the curvature) and ``c = min(max(u, 0), cap)`` the loss is
``h c (u - c / 2)``, its dual coordinate ``h c``, in all three pieces.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit

__all__ = ["capped_gap", "evaluated_capped"]


@njit(
    cache=True,
    nogil=True,
    allocates=False,
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz"},
)
def evaluated_capped(height, cap, scores, shift, signs, weights, theta, curvature):
    """`proxmargin.compiled.losses.evaluation.evaluated` for the capped quadratic."""
    slope, positive, bend, loss = 0.0, 0.0, 0.0, 0.0
    for i in range(scores.size):
        u = 1.0 - signs[i] * (scores[i] + shift)
        weighted = height * weights[i]
        c = min(max(u, 0.0), cap)
        force = signs[i] * weighted * c
        curved = weighted if 0.0 < u < cap else 0.0
        theta[i] = force
        curvature[i] = curved
        slope += force
        positive += max(force, 0.0)
        bend += curved
        loss += weighted * c * (u - 0.5 * c)
    return slope, positive, bend, loss


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def capped_gap(height, cap, t, a):
    """``phi(t) + phi*(-a) + a t = (h c - a)^2 / (2 h) + (h c - a) (u - c)``, two terms >= 0.

    The second one is zero on the curved piece; beyond it u - c and h c - a have the same sign.
    """
    u = 1.0 - t
    c = min(max(u, 0.0), cap)
    short = height * c - a
    return 0.5 / height * short * short + short * (u - c)
