"""Kernels of the augmented Lagrangian method for the hinge.

Newton steps on few samples and features are one compiled call (`orthant_step`). The system is that
of `proxmargin.solvers.augmented.hinge_system`, with the intercept eliminated where it is solved
over the features; it is formed once, and factored for the features that may move.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import SUMS, njit
from proxmargin.compiled.solvers.nets import violation
from proxmargin.compiled.solvers.quadratic_model import solve


@njit(nogil=True)
def smoothed_hinge(
    scores, offset, signs, caps, multipliers, widths, coef, centre, l1, l2, proximal, dual
):
    """The hinge smoothed around ``multipliers``, with an elastic net and a proximal term.

    ``sum_i max_{0 <= a <= caps_i}  a (1 - signs_i z_i) - (a - multipliers_i)^2 / (2 widths_i)``
    of the scores with their offset z, and the `_net_value` of the coefficients.

    Parameters
    ----------
    scores, offset, signs, caps, multipliers, widths : (n_samples,)
        ``widths`` are positive where ``caps`` are.
    coef, centre, l1, l2 : (n_features,)
    proximal : float
    dual : (n_samples,)
        The maximisers are written into it.

    Returns
    -------
    value : float
    free : (n_free,) integers
        Samples whose maximiser is strictly inside: those with curvature ``widths``.
    """
    value = 0.0
    free = np.empty(scores.size, np.intp)
    count = 0
    for i in range(scores.size):
        if caps[i] <= 0.0:
            dual[i] = 0.0
            continue
        missing = 1.0 - signs[i] * (scores[i] + offset[i])
        a = multipliers[i] + widths[i] * missing
        if a <= 0.0:
            a = 0.0
        elif a >= caps[i]:
            a = caps[i]
        else:
            free[count] = i
            count += 1
        move = a - multipliers[i]
        value += a * missing - 0.5 * move * move / widths[i]
        dual[i] = a
    return value + _net_value(coef, centre, l1, l2, proximal), free[:count].copy()


@njit(nogil=True)
def _net_value(coef, centre, l1, l2, proximal):
    """``sum_j l1_j |w_j| + l2_j/2 w_j^2 + proximal/2 |w - centre|^2``."""
    total, square, move = 0.0, 0.0, 0.0
    for j in range(coef.size):
        total += l1[j] * abs(coef[j])
        square += l2[j] * coef[j] * coef[j]
        move += (coef[j] - centre[j]) ** 2
    return total + 0.5 * square + 0.5 * proximal * move


@njit(nogil=True)
def net_slopes(coef, centre, pulled, l1, l2, lower, upper, proximal, slope):
    """The gradient of the smooth part in the coefficients, written into ``slope``.

    Returns
    -------
    rest : float
        Largest violation of the optimality conditions.
    pull : float
        Largest entry of ``pulled``.
    """
    rest, pull = 0.0, 0.0
    for j in range(coef.size):
        at = coef[j]
        here = l2[j] * at + proximal * (at - centre[j]) - pulled[j]
        slope[j] = here
        rest = max(rest, violation(here, at, 0.0, l1[j], lower[j], upper[j]))
        pull = max(pull, abs(pulled[j]))
    return rest, pull


@njit(nogil=True)
def orthant(coef, slope, l1, lower, upper):
    """The active features: those that are not zero, or violate optimality at zero, and may move.

    Returns
    -------
    index : (n_live,) integers
    side : (n_live,)
        The sign of each; at zero, that of its descent direction.
    steep : (n_live,)
        Their slopes with the l1 part.
    """
    index = np.empty(coef.size, np.intp)
    side, steep = np.empty(coef.size), np.empty(coef.size)
    count = 0
    for j in range(coef.size):
        at_zero = violation(slope[j], 0.0, 0.0, l1[j], lower[j], upper[j])
        if coef[j] == 0.0 and at_zero <= 0.0:
            continue
        sign = np.sign(coef[j]) if coef[j] != 0.0 else -np.sign(slope[j])
        index[count], side[count], steep[count] = j, sign, slope[j] + l1[j] * sign
        count += 1
    return index[:count].copy(), side[:count].copy(), steep[:count].copy()


@njit(nogil=True)
def gathered_columns(matrix, rows, columns):
    """``matrix[rows][:, columns]`` of a matrix kept by columns."""
    out = np.empty((rows.size, columns.size))
    for i in range(rows.size):
        for k in range(columns.size):
            out[i, k] = matrix[rows[i], columns[k]]
    return out


@njit(nogil=True)
def gathered_rows(data, indices, indptr, centre, scale, rows, columns):
    """``((X - 1 centre') / scale)[rows][:, columns]`` of X compressed by rows."""
    places = np.full(centre.size, -1, np.intp)
    bare = np.empty(columns.size)
    for k in range(columns.size):
        places[columns[k]] = k
        bare[k] = -centre[columns[k]] / scale[columns[k]]
    out = np.empty((rows.size, columns.size))
    for i in range(rows.size):
        out[i] = bare
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            place = places[indices[entry]]
            if place >= 0:
                out[i, place] += data[entry] / scale[indices[entry]]
    return out


@njit(nogil=True)
def orthant_step(
    rows,
    curvatures,
    diagonal,
    intercept_l2,
    coef,
    side,
    slope,
    intercept_slope,
    wide,
    jitters,
    corrections,
    walks,
):
    """A descent step towards the minimiser of a quadratic model in the orthant.

    Parameters
    ----------
    rows : (n, m)
    curvatures : (n,) > 0
    diagonal : (m,) > 0
    intercept_l2 : float
        Curvature of the intercept besides that of the samples; negative without intercept.
    coef, side, slope : (m,)
        Where the step starts, in the orthant of these signs, and the slope there.
    intercept_slope : float
        The slope in the intercept.
    wide : float
        The system is solved over the samples if features are more than this multiple of them.
    jitters : (n_jitters,)
        Added to a diagonal, relative to it, one after the other until it is positive definite.
    corrections, walks : int
        Systems solved at most: by fixing all coefficients that change their sign at once, and if
        that does not descend, one by one.

    Returns
    -------
    move : (m,)
    intercept_step : float
    """
    over_samples = rows.shape[1] > wide * rows.shape[0]
    parts = (rows, curvatures, diagonal, intercept_l2)
    if over_samples:
        system = _over_samples(rows, curvatures, diagonal)
    else:
        system = _over_features(rows, curvatures, diagonal, intercept_l2)
    move, intercept_step = _active_set_step(
        parts, system, over_samples, jitters, coef, side, slope, intercept_slope, corrections
    )
    if np.dot(slope, move) + intercept_step * intercept_slope < 0.0:
        return move, intercept_step
    return _path_step(
        parts, system, over_samples, jitters, coef, side, slope, intercept_slope, walks
    )


@njit(nogil=True)
def _active_set_step(
    parts, system, over_samples, jitters, coef, side, slope, intercept_slope, corrections
):
    """The active-set guess that fixes all sign changes at zero at once; it may not descend."""
    stays = np.ones(coef.size, np.bool_)
    move, part, intercept_step = np.zeros(coef.size), np.zeros(coef.size), 0.0
    for _ in range(corrections):
        change, rest = _slope_change(parts, system, over_samples, move, 0.0)
        part, intercept_step = _newton_step(
            parts, system, over_samples, jitters, stays, slope + change, intercept_slope + rest
        )
        beyond = 0
        for j in range(coef.size):
            if stays[j] and (coef[j] + part[j]) * side[j] < 0.0:
                stays[j] = False
                beyond += 1
            move[j] = 0.0 if stays[j] else -coef[j]
        if beyond == 0:
            break
    for j in range(coef.size):
        if stays[j]:
            move[j] = part[j]
    return move, intercept_step


@njit(nogil=True)
def _path_step(parts, system, over_samples, jitters, coef, side, slope, intercept_slope, walks):
    """The path of minimisers that fixes coefficients at zero one by one; it descends."""
    stays = np.ones(coef.size, np.bool_)
    move, intercept_step = np.zeros(coef.size), 0.0
    for _ in range(walks):
        change, rest = _slope_change(parts, system, over_samples, move, intercept_step)
        part, shift = _newton_step(
            parts, system, over_samples, jitters, stays, slope + change, intercept_slope + rest
        )
        reach, length = np.full(coef.size, np.inf), 1.0
        for j in range(coef.size):
            if stays[j] and part[j] * side[j] < 0.0:
                reach[j] = (coef[j] + move[j]) / -part[j]
                length = min(length, reach[j])
        hits = 0
        intercept_step += length * shift
        for j in range(coef.size):
            if reach[j] <= length:
                move[j] = -coef[j]
                stays[j] = False
                hits += 1
            elif stays[j]:
                move[j] += length * part[j]
        if length == 1.0 and hits == 0:
            break
    return move, intercept_step


@njit(nogil=True)
def _over_samples(rows, curvatures, diagonal):
    """``X D^-1 X' + C^-1``, with placeholders for the intercept's row of the other form."""
    scaled = rows / np.sqrt(diagonal)
    matrix = np.dot(scaled, scaled.T)
    for i in range(curvatures.size):
        matrix[i, i] += 1.0 / curvatures[i]
    return matrix, np.zeros(0), np.inf


@njit(nogil=True)
def _over_features(rows, curvatures, diagonal, intercept_l2):
    """The Schur complement of the intercept in ``X'C X + D``, with ``X'c`` and the pivot.

    The rows are centred first, so that large means do not cause cancellation.
    """
    total, pivot = curvatures.sum(), np.inf
    cross, mean = np.zeros(diagonal.size), np.zeros(diagonal.size)
    if intercept_l2 >= 0.0:
        pivot = total + intercept_l2
        for i in range(curvatures.size):
            for j in range(diagonal.size):
                cross[j] += curvatures[i] * rows[i, j]
        if total > 0.0:
            mean = cross / total
    scaled = np.empty(rows.shape)
    for i in range(curvatures.size):
        root = np.sqrt(curvatures[i])
        for j in range(diagonal.size):
            scaled[i, j] = root * (rows[i, j] - mean[j])
    matrix = np.dot(scaled.T, scaled)
    share = intercept_l2 / pivot if intercept_l2 > 0.0 else 0.0
    for j in range(diagonal.size):
        factor = share * mean[j]
        for k in range(diagonal.size):
            matrix[j, k] += factor * cross[k]
        matrix[j, j] += diagonal[j]
    return matrix, cross, pivot


@njit(nogil=True)
def _slope_change(parts, system, over_samples, move, intercept_step):
    """The change of the slopes by a step."""
    rows, curvatures, diagonal, intercept_l2 = parts
    matrix, cross, pivot = system
    intercept_change = 0.0
    if intercept_step == 0.0 and not move.any():
        return np.zeros(move.size), intercept_change
    if over_samples:
        change = curvatures * (np.dot(rows, move) + intercept_step)
        if intercept_l2 >= 0.0:
            intercept_change = change.sum() + intercept_l2 * intercept_step
        return np.dot(rows.T, change) + diagonal * move, intercept_change
    slope_change = np.dot(matrix, move)
    if intercept_l2 >= 0.0:
        product = np.dot(cross, move)
        slope_change += cross * (product / pivot + intercept_step)
        intercept_change = product + pivot * intercept_step
    return slope_change, intercept_change


@njit(nogil=True)
def _newton_step(parts, system, over_samples, jitters, stays, slope, intercept_slope):
    """The step of the features that may move, zero for others; and of the intercept."""
    if over_samples:
        return _newton_step_over_samples(parts, system, jitters, stays, slope, intercept_slope)
    matrix, cross, pivot = system
    index = np.flatnonzero(stays)
    part, right = np.zeros(slope.size), np.empty(index.size)
    inner = np.empty((index.size, index.size))
    for a in range(index.size):
        j = index[a]
        right[a] = cross[j] * (intercept_slope / pivot) - slope[j]
        for b in range(a + 1):
            inner[a, b] = matrix[j, index[b]]
    _factor_and_solve(inner, jitters, right)
    rest = intercept_slope
    for a in range(index.size):
        part[index[a]] = right[a]
        rest += cross[index[a]] * right[a]
    return part, -rest / pivot


@njit(nogil=True)
def _newton_step_over_samples(parts, system, jitters, stays, slope, intercept_slope):
    rows, _, diagonal, intercept_l2 = parts
    inner = system[0].copy()
    left = np.flatnonzero(~stays)
    if left.size > 0:
        dropped = np.empty((rows.shape[0], left.size))
        for i in range(rows.shape[0]):
            for a in range(left.size):
                dropped[i, a] = rows[i, left[a]] / np.sqrt(diagonal[left[a]])
        inner -= np.dot(dropped, dropped.T)
    change = -np.dot(rows, np.where(stays, slope / diagonal, 0.0))
    shift = 0.0
    if intercept_l2 >= 0.0:
        ones = np.ones(change.size)
        factor = _factor_and_solve(inner, jitters, change)
        solve(factor, ones.size, ones)
        shift = -(intercept_slope + change.sum()) / (intercept_l2 + ones.sum())
        change += shift * ones
    else:
        _factor_and_solve(inner, jitters, change)
    part = -(slope + np.dot(rows.T, change)) / diagonal
    return np.where(stays, part, 0.0), shift


@njit(nogil=True)
def _factor_and_solve(matrix, jitters, right):
    """Solve in place, by the lower triangle; returns the factor, NaN where there is none."""
    factor = np.empty(matrix.shape)
    for jitter in jitters:
        if cholesky(matrix, jitter, factor):
            solve(factor, right.size, right)
            return factor
    factor[:] = np.nan
    right[:] = np.nan
    return factor


@njit(nogil=True, fastmath=SUMS)
def cholesky(matrix, jitter, factor):
    """The lower factor of the matrix with a shifted diagonal; whether there is one."""
    for i in range(matrix.shape[0]):
        for j in range(i):
            total = 0.0
            for k in range(j):
                total += factor[i, k] * factor[j, k]
            factor[i, j] = (matrix[i, j] - total) / factor[j, j]
        total = 0.0
        for k in range(i):
            total += factor[i, k] * factor[i, k]
        square = (1.0 + jitter) * matrix[i, i] - total
        if not square > 0.0:
            return False
        factor[i, i] = np.sqrt(square)
    return True
