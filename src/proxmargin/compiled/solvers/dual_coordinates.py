"""Dual coordinate descent on the rows of dense or compressed data, with shrinking.

Where the face of the box is found, conjugate gradients on it (`solve_on_face`) replace sweeps.

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

__all__ = ["curvatures", "descend", "solve_on_face"]

LEAST_VIOLATION = 1e-15  # of a slope, in margins: below it a coordinate does not move
LEAST_CURVATURE = 1e-300  # of a sample without entries and intercept
TRIALS = 6  # lengths of a step to the minimum on a face, each half of the one before
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


@njit(cache=True, nogil=True)
def _multiplied(
    data, indices, indptr, signs, bends, metric, pull, square, stiffness, free, direction, v, out
):
    """``out = H direction`` on the face; ``v`` is left as the weighted sum of rows.

    Returns
    -------
    lean, moment : float
        Of the direction.
    """
    lean = moment = 0.0
    for j in range(v.size):
        v[j] = 0.0
    for k in range(free.size):
        i = free[k]
        signed = signs[i] * direction[k]
        lean += signed
        moment += signed * pull[i]
        if signed != 0.0:
            _add(data, indices, indptr[i], indptr[i + 1], signed, metric, v)
    for k in range(free.size):
        i = free[k]
        shift = lean * (stiffness + square - pull[i]) - moment
        score = _product(data, indices, indptr[i], indptr[i + 1], v) + shift
        out[k] = signs[i] * score + bends[i] * direction[k]
    return lean, moment


@njit(cache=True, nogil=True)
def solve_on_face(
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
    forcing,
    limit,
):
    """A step towards the minimum over the dual points inside their box, the others fixed.

    Conjugate gradients with the diagonal as preconditioner, then the projection of the step onto
    the box, halved until the objective falls. Arguments are those of `descend`, and:

    Parameters
    ----------
    forcing : float
        Ratio of the preconditioned residual to the first one at which to stop.
    limit : int
        Products with the rows of the face, two an iteration.

    Returns
    -------
    moved, lean, moment, products
        Whether there was such a step, and the products with the rows of the face.
    """
    size = 0
    for k in range(n_active):
        if 0.0 < dual[active[k]] < caps[active[k]]:
            size += 1
    free = np.empty(size, dtype=np.int64)
    size = 0
    for k in range(n_active):
        if 0.0 < dual[active[k]] < caps[active[k]]:
            free[size] = active[k]
            size += 1
    first, residual = np.empty(size), np.empty(size)
    step, direction, image = np.zeros(size), np.empty(size), np.empty(size)
    v = np.empty(coef.size)
    now = 0.0
    for k in range(size):
        i = free[k]
        shift = base - moment + lean * (stiffness + square - pull[i])
        first[k] = -_slope(
            data,
            indices,
            indptr[i],
            indptr[i + 1],
            signs[i],
            goals[i],
            bends[i],
            shift,
            coef,
            dual[i],
        )
        residual[k] = first[k]
        direction[k] = residual[k] / max(curvatures[i], LEAST_CURVATURE)
        now += residual[k] * direction[k]
    enough, products = forcing * forcing * now, 1
    while now > enough and products <= limit:
        _multiplied(
            data,
            indices,
            indptr,
            signs,
            bends,
            metric,
            pull,
            square,
            stiffness,
            free,
            direction,
            v,
            image,
        )
        products += 2
        bend = 0.0
        for k in range(size):
            bend += direction[k] * image[k]
        if not bend > 0.0:
            break
        length, after = now / bend, 0.0
        for k in range(size):
            step[k] += length * direction[k]
            residual[k] -= length * image[k]
            after += residual[k] * residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
        for k in range(size):
            scaled = residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
            direction[k] = scaled + after / now * direction[k]
        now = after
    length = 1.0
    for _ in range(TRIALS):
        for k in range(size):
            old, cap = dual[free[k]], caps[free[k]]
            direction[k] = min(max(old + length * step[k], 0.0), cap) - old
        leans, moves = _multiplied(
            data,
            indices,
            indptr,
            signs,
            bends,
            metric,
            pull,
            square,
            stiffness,
            free,
            direction,
            v,
            image,
        )
        products += 2
        change = 0.0
        for k in range(size):
            change += direction[k] * (0.5 * image[k] - first[k])
        if change < 0.0:
            for k in range(size):
                i = free[k]
                dual[i] = min(max(dual[i] + length * step[k], 0.0), caps[i])
            for j in range(coef.size):
                coef[j] += v[j]
            return True, lean + leans, moment + moves, products
        length *= 0.5
    return False, lean, moment, products
