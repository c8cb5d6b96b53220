"""Kernels of the proximal method of multipliers for the hinge."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.solvers.nets import violation

__all__ = [
    "gathered_columns",
    "gathered_rows",
    "net_slopes",
    "orthant",
    "smoothed_hinge",
]


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _net_value(coef, centre, l1, l2, proximal):
    """``sum_j l1_j |w_j| + l2_j/2 w_j^2 + proximal/2 |w - centre|^2``."""
    total, square, move = 0.0, 0.0, 0.0
    for j in range(coef.size):
        total += l1[j] * abs(coef[j])
        square += l2[j] * coef[j] * coef[j]
        move += (coef[j] - centre[j]) ** 2
    return total + 0.5 * square + 0.5 * proximal * move


@njit(cache=True, nogil=True)
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
        if at > 0.0:
            off = abs(here + l1[j])
        elif at < 0.0:
            off = abs(here - l1[j])
        else:
            off = max(violation(here, at, 0.0, l1[j], lower[j], upper[j]), 0.0)
        rest = max(rest, off)
        pull = max(pull, abs(pulled[j]))
    return rest, pull


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def gathered_columns(matrix, rows, columns):
    """``matrix[rows][:, columns]`` of a matrix kept by columns."""
    out = np.empty((rows.size, columns.size))
    for i in range(rows.size):
        for k in range(columns.size):
            out[i, k] = matrix[rows[i], columns[k]]
    return out


@njit(cache=True, nogil=True)
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
