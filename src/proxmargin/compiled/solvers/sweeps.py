"""Coordinate sweeps: one generalised coordinate descent step a feature, scores kept up to date.

The two functions differ only in how a column is read; the pointwise losses are shared.
"""

from __future__ import annotations

from proxmargin.compiled.cache import njit
from proxmargin.compiled.solvers.nets import minimiser


@njit(nogil=True, inline="always")
def _coordinate_minimiser(old, slope, major, net, j):
    """The minimiser along one coordinate of majorant and penalty."""
    curvature = major[j] + net.l2[j]
    if curvature <= 0.0:  # a feature without entries, and no ridge: only l1 has a say
        return 0.0 if net.l1[j] > 0.0 else old
    return minimiser(major[j] * old - slope, curvature, net.l1[j], net.lower[j], net.upper[j])


@njit(nogil=True)
def sweep_dense(phi, matrix, centre, scale, signs, weights, coef, scores, major, net):
    """One sweep over all features of a dense matrix, in order.

    Parameters
    ----------
    phi : named tuple of the loss
    matrix : (n_samples, n_features)
    centre, scale : (n_features,)
        The feature is ``(matrix[:, j] - centre[j]) / scale[j]``.
    signs, weights, scores : (n_samples,)
    coef : (n_features,)
    major : (n_features,)
        Majorant of the curvature along each coordinate.
    net : Net

    Changes ``coef`` and ``scores`` in place.
    """
    for j in range(coef.size):
        slope = 0.0
        for i in range(scores.size):
            value = (matrix[i, j] - centre[j]) / scale[j]
            slope -= weights[i] * signs[i] * value * phi.descent(signs[i] * scores[i])
        old = coef[j]
        new = _coordinate_minimiser(old, slope, major, net, j)
        if new != old:
            coef[j] = new
            change = (new - old) / scale[j]
            for i in range(scores.size):
                scores[i] += change * (matrix[i, j] - centre[j])


@njit(nogil=True)
def sweep_sparse(phi, data, indices, indptr, signs, weights, coef, scores, major, net):
    """One sweep over all features of a matrix compressed by columns; see `sweep_dense`."""
    for j in range(coef.size):
        slope = 0.0
        for entry in range(indptr[j], indptr[j + 1]):
            i = indices[entry]
            slope -= weights[i] * signs[i] * data[entry] * phi.descent(signs[i] * scores[i])
        old = coef[j]
        new = _coordinate_minimiser(old, slope, major, net, j)
        if new != old:
            coef[j] = new
            for entry in range(indptr[j], indptr[j + 1]):
                scores[indices[entry]] += (new - old) * data[entry]
