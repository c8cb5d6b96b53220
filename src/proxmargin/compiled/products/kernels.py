"""Inner products of sparse rows, into a dense matrix; products of a Gaussian by differences.

SciPy's product of sparse matrices has a sparse result, which kernels would only make dense again.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.products.sums import add


@njit(cache=True, nogil=True)
def sparse_products(data, indices, indptr, others_data, others_indices, others_indptr, out):
    """``out[i, k] = <row_i, other_k>`` in float64; costs a pass over the columns row i has.

    Parameters
    ----------
    data, indices, indptr : arrays
        The rows, (n_rows, n_features) compressed by rows.
    others_data, others_indices, others_indptr : arrays
        The others, (n_others, n_features) compressed by columns.
    out : (n_rows, n_others) float64
    """
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[entry])
            j = indices[entry]
            for other in range(others_indptr[j], others_indptr[j + 1]):
                row[others_indices[other]] += value * others_data[other]


@njit(cache=True, nogil=True)
def rbf_product(samples, anchors, weights, gamma, out):
    """``out[i] = sum_j weights_j exp(-gamma |sample_i - anchor_j|^2)``, by compensated sums.

    Distances are sums of squared differences: close samples far from all others keep their digits.
    """
    for i in range(samples.shape[0]):
        total = low = 0.0
        for j in range(anchors.shape[0]):
            distance = 0.0
            for k in range(samples.shape[1]):
                apart = np.float64(samples[i, k]) - np.float64(anchors[j, k])
                distance += apart * apart
            term = weights[j] * np.exp(-gamma * distance)
            total, low = add(total, low, term)
        out[i] = total + low
