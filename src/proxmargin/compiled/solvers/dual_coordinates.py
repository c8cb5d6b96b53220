"""Dual coordinate descent on the rows of dense or compressed data, with shrinking.

The dual points a lie in a box ``0 <= a <= caps``; a step minimises

    ``l2/2 |w|^2 + bends'a^2 / 2 - goal'a + base lean + stiffness lean^2 / 2``

along one of them, with ``lean = y'a`` and ``l2 w = sum_i y_i a_i z_i`` for the features
``z = (x - centre) / scale``. Rows are read as they are stored. With ``metric = 1 / (l2 scale^2)``
the weighted sum ``v = metric * sum_i y_i a_i x_i`` is kept up to date, and the score of a sample is

    ``z_i'w = x_i'v - lean pull_i - moment + lean square``,

where ``pull_i = x_i'(metric centre)``, ``moment = centre'v = sum_i y_i a_i pull_i`` and
``square = centre'(metric centre)``: centred sparse rows stay sparse.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["curvatures", "descend"]

LEAST_VIOLATION = 1e-15  # of a slope, in margins: below it a coordinate does not move
LEAST_CURVATURE = 1e-300  # of a sample without entries and intercept
CANCELLED = 1e-12  # relative to its terms, the least squared norm of a centred sample


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _product(data, indices, start, stop, coef):
    """The product of one row with ``coef``; ``indices`` is None for dense rows."""
    total = 0.0
    if indices is None:
        for j in range(coef.size):
            total += data[start + j] * coef[j]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            total += data[entry] * coef[np.uint64(indices[entry])]
    return total


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add(data, indices, start, stop, factor, metric, coef):
    """``coef += factor metric * row``; a metric of one entry is that of all features."""
    if indices is None:
        if metric.size == 1:
            factor *= metric[0]
            for j in range(coef.size):
                coef[j] += factor * data[start + j]
        else:
            for j in range(coef.size):
                coef[j] += factor * metric[j] * data[start + j]
    elif metric.size == 1:
        factor *= metric[0]
        for entry in range(np.uint64(start), np.uint64(stop)):
            coef[np.uint64(indices[entry])] += factor * data[entry]
    else:
        for entry in range(np.uint64(start), np.uint64(stop)):
            feature = np.uint64(indices[entry])
            coef[feature] += factor * metric[feature] * data[entry]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def curvatures(data, indices, indptr, metric, pull, square, out):
    """``out_i = z_i'z_i / l2``, the curvature along each dual point; see `descend`."""
    for i in range(out.size):
        total = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            if metric.size == 1:
                total += metric[0] * value * value
            elif indices is None:
                total += metric[entry - indptr[i]] * value * value
            else:
                total += metric[indices[entry]] * value * value
        out[i] = max(total - 2.0 * pull[i] + square, CANCELLED * (total + square))


@njit(cache=True, nogil=True)
def _slope(data, indices, start, stop, sign, goal, bend, shift, coef, dual):
    return sign * (_product(data, indices, start, stop, coef) + shift) - goal + bend * dual


@njit(cache=True, nogil=True)
def descend(
    data,
    indices,
    indptr,
    signs,
    caps,
    bends,
    goals,
    curvatures,
    metric,
    pull,
    square,
    stiffness,
    base,
    dual,
    coef,
    active,
    n_active,
    lean,
    moment,
    least,
    most,
    enough,
    limit,
    budget,
    seed,
):
    """Sweeps over the active samples in random order, until violations are small.

    As in LIBLINEAR (Hsieh et al. 2008, section 3.2), a dual point at an end of its box leaves the
    active set if its slope points out of the box by more than the largest violation of the sweep
    before.

    Parameters
    ----------
    data, indices, indptr : arrays
        Rows of a compressed matrix; of a dense one, all entries, None, and where its rows start.
    signs, caps, bends, goals, curvatures, pull : (n_samples,)
    metric : (n_features,) or (1,)
    square, stiffness, base : float
    dual : (n_samples,)
    coef : (n_features,)
        v. Dual points and v are changed in place.
    active : (n_live,) int
        The samples; the first ``n_active`` of them are active. Reordered in place.
    lean, moment : float
    least, most : float
        Smallest and largest projected slope of the last sweep, for shrinking; infinite: unknown.
    enough : float
        Difference of the two at which to stop.
    limit, budget : int
        Sweeps, and rows that are read, at which to stop (the last sweep is completed).
    seed : uint64
        State of the random numbers, not zero.

    Returns
    -------
    n_active, lean, moment, least, most, sweeps, rows, seed
    """
    sweeps = rows = 0
    while sweeps < limit and rows < budget:
        low, high = np.inf, -np.inf
        k = 0
        while k < n_active:
            # xorshift64 (Marsaglia 2003)
            seed ^= seed << np.uint64(13)
            seed ^= seed >> np.uint64(7)
            seed ^= seed << np.uint64(17)
            other = k + np.int64((seed >> np.uint64(11)) % np.uint64(n_active - k))
            i = active[other]
            active[other] = active[k]
            active[k] = i
            rows += 1
            sign, old = signs[i], dual[i]
            shift = base - moment + lean * (stiffness + square - pull[i])
            slope = _slope(
                data, indices, indptr[i], indptr[i + 1], sign, goals[i], bends[i], shift, coef, old
            )
            down, up = old > 0.0, old < caps[i]
            if (slope > most and not down) or (slope < least and not up):
                n_active -= 1
                active[k] = active[n_active]
                active[n_active] = i
                continue
            violation = slope
            if not down:
                violation = min(slope, 0.0)
            elif not up:
                violation = max(slope, 0.0)
            low, high = min(low, violation), max(high, violation)
            if abs(violation) > LEAST_VIOLATION:
                curvature = max(curvatures[i], LEAST_CURVATURE)
                new = min(max(old - slope / curvature, 0.0), caps[i])
                dual[i] = new
                change = sign * (new - old)
                lean += change
                moment += change * pull[i]
                _add(data, indices, indptr[i], indptr[i + 1], change, metric, coef)
            k += 1
        sweeps += 1
        if n_active == 0:
            low, high = 0.0, 0.0
        least = low if low < 0.0 else -np.inf
        most = high if high > 0.0 else np.inf
        if high - low <= enough:
            break
    return n_active, lean, moment, low, high, sweeps, rows, seed
