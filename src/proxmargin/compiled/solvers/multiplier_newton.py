"""Kernels of the proximal method of multipliers for the multiclass hinge.

A live sample is one with two or more classes in the support of its multipliers: there the
smoothed loss has the curvature ``weight_i (diag(A_i) - A_i A_i' / |A_i|)`` in the scores.

Unknowns of a Newton step are pairs of a column and a class, ordered by class: those of class k
are ``starts[k]`` up to ``starts[k + 1]``, and ``columns`` tells the column of each. The column
after the last is that of ones.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = [
    "add_dense_curvature",
    "add_sparse_curvature",
    "curved_scores",
    "dense_rows",
    "smoothed_classes",
    "sparse_rows",
]


@njit(cache=True, nogil=True)
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
    moved = np.empty(classes)
    for i in range(n):
        if shares[i] == 0.0:
            for k in range(classes):
                masses[i, k] = centre[i, k]
            continue
        code = codes[i]
        own = scores[i, code]
        largest, second, best = -np.inf, -np.inf, 0
        for k in range(classes):
            margin = scores[i, k] - own
            if k != code:
                margin += 1.0
            at = centre[i, k] + sharpness * margin
            moved[k] = at
            if at > largest:
                largest, second, best = at, largest, k
            elif at > second:
                second = at
        if second <= largest - 1.0:  # a vertex
            for k in range(classes):
                masses[i, k] = 0.0
            masses[i, best] = 1.0
            kept = 1
        else:
            total, kept = 0.0, 0
            for k in range(classes):
                moved[k] -= largest
                if moved[k] > -1.0:
                    total += moved[k]
                    kept += 1
            level, before = (total - 1.0) / kept, -1
            while kept != before:
                before = kept
                total, kept = 0.0, 0
                for k in range(classes):
                    if moved[k] > level:
                        total += moved[k]
                        kept += 1
                if kept >= before:
                    break
                level = (total - 1.0) / kept
            kept = 0
            for k in range(classes):
                p = max(moved[k] - level, 0.0)
                masses[i, k] = p
                if p > 0.0:
                    kept += 1
        part = 0.0
        for k in range(classes):
            p = masses[i, k]
            margin = scores[i, k] - own
            if k != code:
                margin += 1.0
            move = p - centre[i, k]
            part += p * margin - 0.5 * move * move / sharpness
        value += shares[i] * part
        if kept > 1:
            live[count] = i
            count += 1
    return value, live[:count].copy()


@njit(cache=True, nogil=True)
def add_dense_curvature(matrix, live, masses, weights, columns, starts, hessian):
    """Add the Hessian of the smoothed loss in the unknowns to the lower triangle of ``hessian``.

    Parameters
    ----------
    matrix : (n, m)
    live : (n_live,) integers
    masses : (n, K)
        Multipliers; their supports are what counts.
    weights : (n,)
        Curvatures of the samples.
    columns : (n_unknowns,) integers
    starts : (K + 1,) integers
    hessian : (n_unknowns, n_unknowns)
    """
    classes = masses.shape[1]
    ones = matrix.shape[1]
    values = np.empty(columns.size)
    support = np.empty(classes, np.intp)
    for i in live:
        count = 0
        for k in range(classes):
            if masses[i, k] > 0.0:
                support[count] = k
                count += 1
                for u in range(starts[k], starts[k + 1]):
                    values[u] = 1.0 if columns[u] == ones else matrix[i, columns[u]]
        for a in range(count):
            first, last = starts[support[a]], starts[support[a] + 1]
            for b in range(a):
                left, right = starts[support[b]], starts[support[b] + 1]
                for u in range(first, last):
                    factor = -weights[i] / count * values[u]
                    for v in range(left, right):
                        hessian[u, v] += factor * values[v]
            for u in range(first, last):
                factor = weights[i] * (1.0 - 1.0 / count) * values[u]
                for v in range(first, u + 1):
                    hessian[u, v] += factor * values[v]


@njit(cache=True, nogil=True)
def add_sparse_curvature(data, indices, indptr, live, masses, weights, places, hessian):
    """`add_dense_curvature` for a matrix compressed by rows.

    ``places`` (m + 1, K) holds the unknown of each pair, and -1 where there is none.
    """
    classes = masses.shape[1]
    ones = places.shape[0] - 1
    longest = 1
    for i in live:
        longest = max(longest, indptr[i + 1] - indptr[i] + 1)
    values = np.empty(classes * longest)
    spots = np.empty(classes * longest, np.intp)
    ends = np.empty(classes + 1, np.intp)
    for i in live:
        count, filled = 0, 0
        ends[0] = 0
        for k in range(classes):
            if masses[i, k] <= 0.0:
                continue
            for entry in range(indptr[i], indptr[i + 1]):
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
                        row, column = spots[u], spots[v]
                        if row < column:
                            row, column = column, row
                        hessian[row, column] += factor * values[v]


@njit(cache=True, nogil=True, inline="always")
def _contrast(position, class_, which):
    """Entry ``class_`` of the orthonormal contrast ``which`` of a support (Helmert).

    Contrast j of a support of m classes, j = 0 .. m - 2: the mean of the classes before against
    class j + 1.
    """
    scale = 1.0 / np.sqrt((which + 1.0) * (which + 2.0))
    if position <= which:
        return scale
    if position == which + 1:
        return -(which + 1.0) * scale
    return 0.0


@njit(cache=True, nogil=True)
def dense_rows(matrix, live, masses, weights, columns, starts, factors, out):
    """Rows B with ``B'B`` the Hessian of the smoothed loss: one for each contrast of a support.

    Parameters
    ----------
    factors : (n_unknowns,)
        Every column of B is multiplied by its own.
    out : (n_contrasts, n_unknowns)
        Zeros on entry.
    """
    ones = matrix.shape[1]
    row = 0
    for i in live:
        root = np.sqrt(weights[i])
        position, count = 0, 0
        for k in range(masses.shape[1]):
            if masses[i, k] > 0.0:
                count += 1
        for k in range(masses.shape[1]):
            if masses[i, k] <= 0.0:
                continue
            for which in range(max(position - 1, 0), count - 1):
                share = root * _contrast(position, k, which)
                for u in range(starts[k], starts[k + 1]):
                    entry = 1.0 if columns[u] == ones else matrix[i, columns[u]]
                    out[row + which, u] = share * factors[u] * entry
            position += 1
        row += count - 1


@njit(cache=True, nogil=True)
def sparse_rows(data, indices, indptr, live, masses, weights, places, factors, out):
    """`dense_rows` for a matrix compressed by rows; ``places`` as in `add_sparse_curvature`."""
    ones = places.shape[0] - 1
    row = 0
    for i in live:
        root = np.sqrt(weights[i])
        position, count = 0, 0
        for k in range(masses.shape[1]):
            if masses[i, k] > 0.0:
                count += 1
        for k in range(masses.shape[1]):
            if masses[i, k] <= 0.0:
                continue
            for which in range(max(position - 1, 0), count - 1):
                share = root * _contrast(position, k, which)
                for entry in range(indptr[i], indptr[i + 1]):
                    u = places[indices[entry], k]
                    if u >= 0:
                        out[row + which, u] = share * factors[u] * data[entry]
                u = places[ones, k]
                if u >= 0:
                    out[row + which, u] = share * factors[u]
            position += 1
        row += count - 1


@njit(cache=True, nogil=True)
def curved_scores(scores, live, masses, weights, out):
    """The curvature of the smoothed loss times ``scores``, row by row; zero where not live."""
    classes = scores.shape[1]
    out[:] = 0.0
    for i in live:
        mean, count = 0.0, 0
        for k in range(classes):
            if masses[i, k] > 0.0:
                mean += scores[i, k]
                count += 1
        mean /= count
        for k in range(classes):
            if masses[i, k] > 0.0:
                out[i, k] = weights[i] * (scores[i, k] - mean)
