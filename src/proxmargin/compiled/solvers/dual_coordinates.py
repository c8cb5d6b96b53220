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
from proxmargin.compiled.solvers.dual_rows import AHEAD, add, asked_for, product, shuffled

__all__ = ["descend", "solve_on_face"]

LEAST_VIOLATION = 1e-15  # of a slope, in margins: below it a coordinate does not move
LEAST_CURVATURE = 1e-300  # of a sample without entries and intercept
TRIALS = 6  # lengths of a step to the minimum on a face, each half of the one before


@njit(cache=True, nogil=True)
def _slope(data, indices, start, stop, sign, goal, bend, shift, coef, dual):
    return sign * (product(data, indices, start, stop, coef) + shift) - goal + bend * dual


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
    value,
    free,
    enough,
    share,
    limit,
    budget,
    seed,
):
    """Sweeps over the active samples in random order until gap or violations are small.

    As in LIBLINEAR (Hsieh et al. 2008, section 3.2), a dual point at an end of its box leaves the
    active set if its slope points out of the box by more than the largest violation of the sweep
    before.

    The Fenchel-Young terms of loss and dual point, which add up to the duality gap, cost nothing
    where the slope is known. Those of one sweep, each at the coefficients on which its sample was
    visited, overestimate the gap after it.

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
    value : float
        Minus the objective at the start.
    free : bool
        The constraint ``lean = 0`` has the multiplier ``base``, which moves after each sweep as in
        an augmented Lagrangian.
    enough : float
        Difference of the two at which to stop.
    share : float
        Sum of the terms over objective at which to stop.
    limit, budget : int
        Sweeps, and rows that are read, at which to stop (the last sweep is completed).
    seed : uint64
        State of the random numbers, not zero.

    Returns
    -------
    n_active, lean, moment, least, most, base, value, excess, sweeps, rows, seed
        ``excess`` is the sum of the terms in the last sweep, and what ``lean`` costs.
    """
    sweeps = rows = 0
    excess, apart = np.inf, 0.0
    low, high = -np.inf, np.inf
    while sweeps < limit and rows < budget:
        low, high, excess = np.inf, -np.inf, 0.0
        seed = shuffled(active, n_active, seed)
        k = 0
        while k < n_active:
            if k + AHEAD < n_active:
                asked_for(data, indices, indptr, active[k + AHEAD], dual)
            i = active[k]
            rows += 1
            sign, old, cap, bend = signs[i], dual[i], caps[i], bends[i]
            shift = base - moment + lean * (stiffness + square - pull[i])
            slope = _slope(
                data, indices, indptr[i], indptr[i + 1], sign, goals[i], bend, shift, coef, old
            )
            down, up = old > 0.0, old < cap
            if (slope > most and not down) or (slope < least and not up):
                n_active -= 1
                active[k] = active[n_active]
                active[n_active] = i
                continue
            missing = bend * old - slope
            if bend > 0.0:
                best = min(max(missing / bend, 0.0), cap)
            else:
                best = cap if missing > 0.0 else 0.0
            excess += (best - old) * (missing - 0.5 * bend * (best + old))
            violation = slope
            if not down:
                violation = min(slope, 0.0)
            elif not up:
                violation = max(slope, 0.0)
            low, high = min(low, violation), max(high, violation)
            if abs(violation) > LEAST_VIOLATION:
                curvature = max(curvatures[i], LEAST_CURVATURE)
                new = min(max(old - slope / curvature, 0.0), cap)
                dual[i] = new
                value -= (new - old) * (slope + 0.5 * curvature * (new - old))
                change = sign * (new - old)
                lean += change
                moment += change * pull[i]
                add(data, indices, indptr[i], indptr[i + 1], change, metric, coef)
            k += 1
        sweeps += 1
        if n_active == 0:
            low, high = 0.0, 0.0
        least = low if low < 0.0 else -np.inf
        most = high if high > 0.0 else np.inf
        apart = 0.0
        if free:
            value -= stiffness * lean * lean
            base += stiffness * lean
            apart = abs(lean) * (1.0 + abs(base))
        precise = high - low <= enough and not free
        if n_active == 0 or precise or excess + apart <= share * (value + excess):
            break
    return n_active, lean, moment, low, high, base, value, excess + apart, sweeps, rows, seed


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
            add(data, indices, indptr[i], indptr[i + 1], signed, metric, v)
    for k in range(free.size):
        i = free[k]
        shift = lean * (stiffness + square - pull[i]) - moment
        score = product(data, indices, indptr[i], indptr[i + 1], v) + shift
        out[k] = signs[i] * score + bends[i] * direction[k]
    return lean, moment


@njit(cache=True, nogil=True)
def _projected(residual, signs, curvatures, free, weight):
    """Take from ``residual``, in place, its part along y; its factor is returned."""
    factor = 0.0
    for k in range(free.size):
        factor += signs[free[k]] * residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
    factor /= weight
    for k in range(free.size):
        residual[k] -= factor * signs[free[k]]
    return factor


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
    balanced,
    forcing,
    limit,
):
    """A step towards the minimum over the dual points inside their box, the others fixed.

    Conjugate gradients with the diagonal as preconditioner, then the projection of the step onto
    the box, halved until the objective falls. Arguments are those of `descend`, and:

    Parameters
    ----------
    balanced : bool
        Solve for the multiplier of ``lean = 0`` too: conjugate gradients in its null space, with
        residuals projected in the metric of the preconditioner. The objective that falls is that
        with the new multiplier.
    forcing : float
        Ratio of the preconditioned residual to the first one at which to stop.
    limit : int
        Products with the rows of the face, two an iteration.

    Returns
    -------
    moved, lean, moment, base, products
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
    products, multiplier, weight, largest = 1, 0.0, 0.0, 0.0
    if balanced:
        for k in range(size):
            weight += 1.0 / max(curvatures[free[k]], LEAST_CURVATURE)
        for k in range(size):
            curvature = max(curvatures[free[k]], LEAST_CURVATURE)
            step[k] = -lean * signs[free[k]] / (curvature * weight)
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
            step,
            v,
            image,
        )
        products += 2
        for k in range(size):
            residual[k] -= image[k]
            largest = max(largest, abs(residual[k]))
        multiplier = _projected(residual, signs, curvatures, free, weight)
    for k in range(size):
        direction[k] = residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
        now += residual[k] * direction[k]
    enough = forcing * forcing * now
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
        if balanced:
            multiplier += _projected(residual, signs, curvatures, free, weight)
        for k in range(size):
            after += residual[k] * residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
        for k in range(size):
            scaled = residual[k] / max(curvatures[free[k]], LEAST_CURVATURE)
            direction[k] = scaled + after / now * direction[k]
        now = after
    if not abs(multiplier) <= largest:  # on a singular face it may be anything
        multiplier = 0.0
    for k in range(size):
        first[k] -= multiplier * signs[free[k]]
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
            return True, lean + leans, moment + moves, base + multiplier, products
        length *= 0.5
    return False, lean, moment, base, products
