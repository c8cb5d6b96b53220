"""Kernels of the augmented Lagrangian method for the multiclass hinge."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.projections.simplex import project_row


@njit(nogil=True)
def smoothed_classes(scores, codes, shares, centre, sharpness, masses):
    """The multiclass hinge smoothed around the multipliers ``centre``, and its own multipliers.

    ``sum_i shares_i max_p  p'm_i - |p - centre_i|^2 / (2 sharpness)`` over the unit simplex, with
    margins ``m_ik = z_ik - z_iy + [k != y_i]``; the maximisers, projections of ``centre_i +
    sharpness m_i``, are written into ``masses``.

    Parameters
    ----------
    scores, centre, masses : (n, K)
    codes, shares : (n,)
    sharpness : float > 0

    Returns
    -------
    value : float
    live : (n_live,) integers
        Samples whose maximiser has two classes or more.
    """
    n, classes = scores.shape
    value, count = 0.0, 0
    live = np.empty(n, np.intp)
    margins, moved = np.empty(classes), np.empty(classes)
    for i in range(n):
        if shares[i] == 0.0:
            for k in range(classes):
                masses[i, k] = centre[i, k]
            continue
        own = scores[i, codes[i]]
        for k in range(classes):
            margins[k] = scores[i, k] - own + (0.0 if k == codes[i] else 1.0)
            moved[k] = centre[i, k] + sharpness * margins[k]
        kept, part = project_row(moved, 1.0, masses[i]), 0.0
        for k in range(classes):
            move = masses[i, k] - centre[i, k]
            part += masses[i, k] * margins[k] - 0.5 * move * move / sharpness
        value += shares[i] * part
        if kept > 1:
            live[count] = i
            count += 1
    return value, live[:count].copy()


@njit(nogil=True)
def add_curvature(data, indices, indptr, rows, inside, weights, places, hessian):
    """Add the Hessian of the smoothed loss in the unknowns to the lower triangle of ``hessian``.

    In the scores of a live sample it is ``weight (diag(A) - A A' / |A|)``, A the support of its
    multipliers. Unknowns are pairs of a column of the data, m columns by rows, and a class.

    Parameters
    ----------
    rows : (n_live,) integers
        Those of the live samples in the data.
    inside : (n_live, K) of bool
        The supports.
    weights : (n_live,)
    places : (m + 1, K) integers
        The unknown of each pair, -1 where there is none; the last row is that of a column of ones.
    hessian : (n_unknowns, n_unknowns)
    """
    classes = inside.shape[1]
    ones = places.shape[0] - 1
    longest = 1
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row] + 1)
    values = np.empty(classes * longest)
    spots = np.empty(classes * longest, np.intp)
    ends = np.empty(classes + 1, np.intp)
    for i in range(rows.size):
        row, count, filled = rows[i], 0, 0
        ends[0] = 0
        for k in range(classes):
            if not inside[i, k]:
                continue
            for entry in range(indptr[row], indptr[row + 1]):
                spot = places[indices[entry], k]
                if spot >= 0:
                    spots[filled], values[filled] = spot, data[entry]
                    filled += 1
            if places[ones, k] >= 0:
                spots[filled], values[filled] = places[ones, k], 1.0
                filled += 1
            count += 1
            ends[count] = filled
        for a in range(count):
            for b in range(a + 1):
                curvature = weights[i] * ((1.0 if a == b else 0.0) - 1.0 / count)
                for u in range(ends[a], ends[a + 1]):
                    factor = curvature * values[u]
                    for v in range(ends[b], u + 1 if a == b else ends[b + 1]):
                        first, second = spots[u], spots[v]
                        hessian[max(first, second), min(first, second)] += factor * values[v]
