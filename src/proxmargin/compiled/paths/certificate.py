"""Optimality of a strength: violations and gap over the candidates, and over all features.

The certified gap includes rounding; it is computed from quantities that the path keeps.
"""

from __future__ import annotations

import math

from proxmargin.compiled.cache import njit
from proxmargin.compiled.paths import dual_subspace, products
from proxmargin.compiled.paths.dual_point import loss_gap
from proxmargin.compiled.paths.dual_subspace import rounding
from proxmargin.compiled.products.vectors import dot
from proxmargin.compiled.rounding import UNIT
from proxmargin.compiled.solvers.nets import gap_term, violation

ENTRY_ULPS = 8.0  # rounding of an entry of a centred column, in units of its largest term
FAR = 4.0  # factor on the gap tolerance beyond which bounds need not be sharp
# a pass over the data for a new basis vector replaces inner products of single features once their
# number since the last one exceeds
MANY_CHECKED = 4  # number of features over this


@njit(nogil=True, allocates=False, error_model="numpy", forceinline=True)
def kkt_gap_objective(path, target, claim):
    """The largest violation, the gap and the objective, all over the candidates only.

    Parameters
    ----------
    claim : float
        Share of the tolerance within which an upper bound of the gap is enough.
    """
    data, candidates, point, screening = path.data, path.candidates, path.point, path.screening
    relative = _relative_error(point.dual)
    worst, scale, penalty, _, _ = _over_features(data, candidates, screening, target, 0, relative)
    objective = point.scalars.loss + penalty
    gap = _feature_gap(data, candidates, screening, target, 0, scale, 0.0)
    gap += loss_gap(data, point, scale, claim * target.tol * objective - gap, FAR)
    return worst, gap, objective


@njit(nogil=True, allocates=False, error_model="numpy", forceinline=True)
def certify(path, target):
    """The certified gap, the objective, the violation, and how many features have to enter.

    The features to enter come first in ``path.screening.to_check``.
    """
    data, screening, count = path.data, path.screening, 0
    if path.candidates.scalars.count < data.norms.size:
        count = _check_others(path, target)
    gap, objective, worst = _certified_gap(path, target, count)
    wanted = 0
    for x in range(count):
        j = screening.to_check[x]
        l1 = target.l1 * data.factor[j]
        off = violation(-screening.correlation[j], 0.0, 0.0, l1, data.lower[j], data.upper[j])
        if off > 0.0:
            screening.to_check[wanted] = j
            wanted += 1
    return gap, objective, worst, wanted


@njit(nogil=True, allocates=False, error_model="numpy", forceinline=True)
def _certified_gap(path, target, count):
    """Gap, objective and violation; features that are neither candidates nor to check are proven
    inactive.

    Parameters
    ----------
    count : int
        Of ``path.screening.to_check``.
    """
    data, candidates, point, screening = path.data, path.candidates, path.point, path.screening
    scalars, k, n = point.scalars, candidates.scalars.count, point.dual.size
    shift = abs(scalars.intercept) + data.largest_offset
    relative = _relative_error(point.dual)
    worst, scale, penalty, sizes, live = _over_features(
        data, candidates, screening, target, count, relative
    )
    objective = scalars.loss + penalty
    gap = _feature_gap(data, candidates, screening, target, count, scale, relative)
    error = 2.0 * rounding(live + scalars.updates) * sizes + 8.0 * UNIT * shift
    error += 2.0 * scalars.rounding  # what was added to the scores since they were computed
    total, dual_l1 = 0.0, 0.0
    for i in range(n):
        total += point.dual[i]
        dual_l1 += abs(point.dual[i])
    gap += 2.0 * error * dual_l1 + 0.5 * data.loss.smoothness * error * error
    if data.free:
        gap += (2.0 * shift + sizes) * (abs(total) + rounding(n) * dual_l1)
    gap += rounding(n + k) * objective + _unpenalised_rounding(path, relative, dual_l1)
    gap += loss_gap(data, point, scale, target.tol * objective - gap, math.inf)
    return gap, objective, worst


@njit(nogil=True, allocates=False, error_model="numpy")
def _relative_error(dual):
    """Error of inner products with the dual point, in norms of features."""
    return rounding(dual.size) * math.sqrt(dot(dual, dual))


@njit(nogil=True, allocates=False, forceinline=True)
def _feature(candidates, screening, x):
    """Number, coefficient and correlation of candidate -x - 1, or of the x-th feature to check."""
    if x < 0:
        s = -x - 1
        return candidates.feature[s], candidates.coef[s], candidates.correlation[s]
    j = screening.to_check[x]
    return j, 0.0, screening.correlation[j]


@njit(nogil=True, allocates=False, error_model="numpy")
def _over_features(data, candidates, screening, target, count, relative):
    """Sums over candidates and features to check.

    Returns
    -------
    worst : float
        The largest violation.
    scale : float
        The largest factor <= 1 that scales the dual point into the domain of the conjugate.
    penalty, sizes : float
        The latter bounds the scores.
    live : int
        Number of nonzero coefficients.
    """
    worst, scale, penalty, sizes, live = 0.0, 1.0, 0.0, 0.0, 0
    for x in range(-candidates.scalars.count, count):
        j, w, correlation = _feature(candidates, screening, x)
        l1, l2 = target.l1 * data.factor[j], target.l2 * data.factor[j]
        lower, upper, error = data.lower[j], data.upper[j], relative * data.norms[j]
        worst = max(worst, violation(l2 * w - correlation, w, 0.0, l1, lower, upper))
        if l1 > 0.0:  # of unpenalised features the dual point was projected
            scale = _scale_into_domain(scale, correlation, error, l1, l2, lower, upper)
        if w != 0.0:
            penalty += l1 * abs(w) + 0.5 * l2 * w * w
            sizes += abs(w) * data.bounds[j]
            live += 1
    return worst, scale, penalty, sizes, live


@njit(nogil=True, allocates=False, error_model="numpy")
def _scale_into_domain(scale, correlation, error, l1, l2, lower, upper):
    """The scale of the dual point, reduced if this feature would violate ``|v| <= l1``."""
    reach = abs(correlation) + error
    if l2 > 0.0 or reach <= l1:
        return scale
    rises = correlation + error > l1 and upper == math.inf
    falls = correlation - error < -l1 and lower == -math.inf
    return min(scale, l1 / reach) if rises or falls else scale


@njit(nogil=True, allocates=False, error_model="numpy")
def _feature_gap(data, candidates, screening, target, count, scale, relative):
    """Sum of the Fenchel-Young terms of candidates and features to check, each the largest over
    its inner product plus and minus its error: at an end, because the term is convex."""
    gap = 0.0
    for x in range(-candidates.scalars.count, count):
        j, w, correlation = _feature(candidates, screening, x)
        l1, l2 = target.l1 * data.factor[j], target.l2 * data.factor[j]
        lower, upper = data.lower[j], data.upper[j]
        v, error = scale * correlation, scale * relative * data.norms[j]
        if w == 0.0 and abs(v) + error <= l1:
            continue
        low, high = v - error, v + error
        if l2 == 0.0:  # `_scale_into_domain` has made the dual point feasible
            low = max(low, -l1) if lower == -math.inf else low
            high = min(high, l1) if upper == math.inf else high
            low, high = min(low, high), max(low, high)
        gap += max(gap_term(low, w, l1, l2, lower, upper), gap_term(high, w, l1, l2, lower, upper))
    return gap


@njit(nogil=True, allocates=False, error_model="numpy", forceinline=True)
def _unpenalised_rounding(path, relative, dual_l1):
    """What it costs that inner products with unpenalised features are not exactly zero.

    They are zero up to rounding, v. With optimal coefficients w* the gap is too small by at most
    ``|v_j| (|w_j| + |w*_j|)``. The bound of ``|w*_j|`` is that of
    `proxmargin.optimality.certificates.certify`: one unit of the margins more than the present
    scores need.
    """
    data, free, candidates, point = path.data, path.unpenalised, path.candidates, path.point
    if free.feature.size == 0:
        return 0.0
    farthest, total = 0.0, 0.0
    for i in range(point.scores.size):
        if data.weights[i] > 0.0:
            farthest = max(farthest, abs(point.scores[i] + point.scalars.intercept))
    farthest = (1.0 + data.largest_offset + farthest) / free.least
    for u in range(free.feature.size):
        correlation = abs(free.correlation[u]) + relative * free.norms[u]
        correlation += ENTRY_ULPS * UNIT * free.bounds[u] * dual_l1
        coef = abs(candidates.coef[candidates.number[free.feature[u]]])
        total += correlation * (2.0 * coef * free.unit[u] + farthest)
    return total


@njit(nogil=True, allocates=False, error_model="numpy", forceinline=True)
def _check_others(path, target):
    """List other features than candidates not proven inactive, and their inner products."""
    data, dual, screening, subspace = path.data, path.point.dual, path.screening, path.subspace
    p, outside = screening.correlation.size, path.candidates.outside_factor
    if not data.uses_subspace:
        products.all_products(data.store, dual, data.inverse, screening.correlation)
        path.scalars.read += 1.0
        radius = _relative_error(dual)
        return _screen(data.norms, data.factor, outside, screening, target, radius)
    left, radius = dual_subspace.decompose(subspace, dual, 1)
    dual_subspace.estimate_products(subspace, screening.correlation)
    count = _screen(data.norms, data.factor, outside, screening, target, radius)
    subspace.scalars.checked += count
    if subspace.scalars.checked > p // MANY_CHECKED and left > 0.0:
        radius = _add_dual_point(path)
        dual_subspace.estimate_products(subspace, screening.correlation)
        count = _screen(data.norms, data.factor, outside, screening, target, radius)
    products.some_products(
        data.store, screening.to_check, count, dual, data.inverse, screening.correlation
    )
    path.scalars.read += count / p
    return count


@njit(nogil=True, allocates=False, error_model="numpy")
def _add_dual_point(path):
    """Add the residual of the dual point to the basis; return the remaining radius."""
    data, dual, subspace = path.data, path.point.dual, path.subspace
    if subspace.scalars.count == subspace.basis.shape[0]:
        dual_subspace.compress(subspace)
    c = subspace.scalars.count
    left, _ = dual_subspace.decompose(subspace, dual, 2)
    dual_subspace.append(subspace, subspace.residual, left)
    products.all_products(data.store, subspace.basis[c], data.inverse, subspace.products[c])
    path.scalars.read += 1.0
    _, radius = dual_subspace.decompose(subspace, dual, 1)
    return radius


@njit(nogil=True, allocates=False, error_model="numpy")
def _screen(norms, factor, outside, screening, target, radius):
    """List features outside the candidates whose product may exceed the l1 strength to check.

    Those whose product may exceed the next threshold, and so may enter at the next strength, are
    near. Flags are tested eight features at a time, because most groups of eight have none.
    """
    correlation, near = screening.correlation, screening.near
    to_check, flags = screening.to_check, screening.flags
    p, count, nearby = correlation.size, 0, 0
    for j in range(p):
        reach = abs(correlation[j]) + radius * norms[j]
        flags[j] = reach > target.next_threshold * outside[j]
    # lists grow by additions, as branches would be mispredicted
    for word in range(screening.words.size):
        if screening.words[word] != 0:
            for j in range(8 * word, min(8 * word + 8, p)):
                near[nearby] = j
                nearby += flags[j]
    for x in range(nearby):
        j = near[x]
        reach = abs(correlation[j]) + radius * norms[j]
        to_check[count] = j
        count += reach > target.l1 * factor[j]
    screening.scalars.near, screening.scalars.threshold = nearby, target.next_threshold
    return count
