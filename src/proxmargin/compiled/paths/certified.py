"""The duality gap of a point on a path, with all rounding, from what the path knows anyway."""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths.passes import lost
from proxmargin.compiled.paths.span import rounding
from proxmargin.compiled.solvers.nets import gap_term

__all__ = ["certified_gap", "scale_into_domain"]

UNIT = 2.0**-53


@njit(cache=True, nogil=True)
def scale_into_domain(scale, slope, error, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """The scale of the dual point, less if the feature's constraint ``|v| <= l1`` asks for it."""
    reach = abs(slope) + error
    if l2 > 0.0 or reach <= l1:
        return scale
    rises = slope + error > l1 and upper == math.inf
    falls = slope - error < -l1 and lower == -math.inf
    return min(scale, l1 / reach) if rises or falls else scale


@njit(cache=True, nogil=True)
def feature_term(slope, error, coef, l1, l2, lower, upper):  # type: ignore[no-untyped-def]
    """The largest Fenchel-Young term for inner products in ``slope +- error``: it is convex."""
    if coef == 0.0 and abs(slope) + error <= l1:
        return 0.0
    low, high = slope - error, slope + error
    if l2 == 0.0:  # the scale sees to the domain
        low = max(low, -l1) if lower == -math.inf else low
        high = min(high, l1) if upper == math.inf else high
        low, high = min(low, high), max(low, high)
    return max(
        gap_term(low, coef, l1, l2, lower, upper), gap_term(high, coef, l1, l2, lower, upper)
    )


@njit(cache=True, nogil=True)
def certified_gap(  # type: ignore[no-untyped-def]
    phi,
    scores,
    intercept,
    theta,
    up,
    down,
    terms,
    slots,
    k,
    unsure,
    count,
    estimate,
    relative,
    l1,
    l2,
    loss,
):
    """Gap and objective; features that are neither in slots nor unsure are proven inactive.

    Parameters
    ----------
    theta : (n_samples,)
        Balanced by the factors ``up`` and ``down``.
    unsure : (n_features,) integers, of which ``count`` are used
        Features without a slot whose inner products, in ``estimate``, count.
    relative : float
        Rounding of inner products with theta, in norms of features.
    """
    scale = 1.0
    for s in range(k):
        j = slots.feature[s]
        scale = scale_into_domain(
            scale,
            slots.slope[s],
            relative * terms.norms[j],
            l1 * terms.factor[j],
            l2 * terms.factor[j],
            terms.lower[j],
            terms.upper[j],
        )
    for x in range(count):
        j = unsure[x]
        scale = scale_into_domain(
            scale,
            estimate[j],
            relative * terms.norms[j],
            l1 * terms.factor[j],
            l2 * terms.factor[j],
            terms.lower[j],
            terms.upper[j],
        )
    gap, penalty, sizes, live = 0.0, 0.0, 0.0, 0
    for s in range(k):
        j, w = slots.feature[s], slots.coef[s]
        own, ridge = l1 * terms.factor[j], l2 * terms.factor[j]
        gap += feature_term(
            scale * slots.slope[s],
            scale * relative * terms.norms[j],
            w,
            own,
            ridge,
            terms.lower[j],
            terms.upper[j],
        )
        if w != 0.0:
            penalty += own * abs(w) + 0.5 * ridge * w * w
            sizes += abs(w) * terms.bounds[j]
            live += 1
    for x in range(count):
        j = unsure[x]
        gap += feature_term(
            scale * estimate[j],
            scale * relative * terms.norms[j],
            0.0,
            l1 * terms.factor[j],
            l2 * terms.factor[j],
            terms.lower[j],
            terms.upper[j],
        )
    gap += lost(phi, scores, intercept, terms.signs, terms.weights, scale * up, scale * down)
    objective = loss + penalty
    error = 2.0 * rounding(live) * sizes + 8.0 * UNIT * abs(intercept)
    total, mass = 0.0, 0.0
    for i in range(theta.size):
        total += theta[i]
        mass += abs(theta[i])
    gap += 2.0 * error * mass + 0.5 * phi.smoothness * error * error
    if terms.free:
        gap += (2.0 * abs(intercept) + sizes) * (abs(total) + rounding(theta.size) * mass)
    return gap + rounding(theta.size + k) * objective, objective
