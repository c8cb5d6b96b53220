"""An elastic net coordinate by coordinate, shared by the kernels of its solvers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from proxmargin.compiled.cache import njit


class Net(NamedTuple):
    """``sum_j l1_j |w_j| + (l2_j / 2) w_j^2`` where ``lower_j <= w_j <= upper_j``."""

    # (n_features,) >= 0
    l1: Any
    l2: Any
    # (n_features,); ``lower <= 0 <= upper``, each of which may be infinite
    lower: Any
    upper: Any


@njit(nogil=True)
def shrunk(reach, threshold):
    """The soft threshold of one number."""
    if reach > threshold:
        return reach - threshold
    return reach + threshold if reach < -threshold else 0.0


@njit(nogil=True)
def minimiser(reach, curvature, threshold, lower, upper):
    """``argmin_u  curvature u^2 / 2 - reach u + threshold |u|`` between the bounds."""
    return min(max(shrunk(reach, threshold) / curvature, lower), upper)


@njit(nogil=True)
def violation(slope, coef, curvature, threshold, lower, upper):
    """Violation of optimality of a coordinate: its prox step, in units of the slope.

    Next to zero the slope alone would not tell: a coefficient that has just crossed it is up to
    twice the threshold off, however little is to be gained there. Negative at zero where the
    slope is below the threshold.
    """
    if coef == 0.0:
        fall = slope - threshold if lower < 0.0 else -math.inf
        rise = -slope - threshold if upper > 0.0 else -math.inf
        return max(fall, rise)
    if curvature == 0.0:
        off = slope + math.copysign(threshold, coef)
        blocked = (off < 0.0 and coef >= upper) or (off > 0.0 and coef <= lower)
        return 0.0 if blocked else abs(off)
    reached = shrunk(curvature * coef - slope, threshold)
    return abs(curvature * coef - min(max(reached, curvature * lower), curvature * upper))


@njit(nogil=True)
def is_unpenalised(l1, l2, lower, upper):
    """Whether a coordinate is neither penalised nor bounded on both sides."""
    return l1 == 0.0 and l2 == 0.0 and (lower == -math.inf or upper == math.inf)


@njit(nogil=True, allocates=False)
def open_correlation(correlation, lower, upper):
    """The size of a correlation with the dual point, the slope of descent at zero; zero where a
    bound at zero blocks its direction."""
    if correlation > 0.0:
        return correlation if upper > 0.0 else 0.0
    return -correlation if lower < 0.0 else 0.0


@njit(nogil=True, allocates=False)
def largest_step(net, start, direction, count):
    """The largest length of a step of the first ``count`` coordinates between their bounds."""
    length = math.inf
    for j in range(count):
        bound = net.upper[j] if direction[j] > 0.0 else net.lower[j]
        if direction[j] != 0.0 and abs(bound) < math.inf:
            length = min(length, (bound - start[j]) / direction[j])
    return max(length, 0.0)


@njit(nogil=True, allocates=False)
def step_to_bound(net, value, support, direction, size, step):
    """The step length, cut at the first bound; which coordinate meets it, or -1; and the bound.

    Parameters
    ----------
    support : (size,) integers
        The coordinates that move, in the order of ``direction``.
    step : float
        The length without bounds.
    """
    blocking, end = -1, 0.0
    for a in range(size):
        j = support[a]
        bound = net.upper[j] if direction[a] > 0.0 else net.lower[j]
        if abs(bound) < math.inf and abs(step * direction[a]) > abs(bound - value[j]):
            step, blocking, end = (bound - value[j]) / direction[a], a, bound
    return step, blocking, end


@njit(nogil=True)
def gap_term(v, w, l1, l2, lower, upper):
    """``G(w) + G*(v) - v w >= 0`` of one coordinate, v in the domain of the conjugate.

    With the u between the bounds that attains ``G*(v)``, and s its sign,
    ``l1 (|w| - s w) + (l1 s + l2 u - v) (w - u) + l2 (w - u)^2 / 2``: three terms >= 0.
    """
    excess = v - min(max(v, -l1), l1)
    if l2 > 0.0 and l2 * lower <= excess <= l2 * upper:
        return max(l1 * abs(w) - (v - excess) * w + (l2 * w - excess) ** 2 / (2.0 * l2), 0.0)
    u = upper if excess > 0.0 else lower
    if excess == 0.0 or abs(u) == math.inf:  # beyond the domain by rounding
        return max(l1 * abs(w) - (v - excess) * w, 0.0)
    sign = 0.0 if u == 0.0 else math.copysign(1.0, u)
    apart = w - u
    term = l1 * (abs(w) - sign * w) + (l1 * sign + l2 * u - v) * apart + 0.5 * l2 * apart * apart
    return max(term, 0.0)
