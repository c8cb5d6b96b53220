"""Inner products of the rows of two sparse matrices, into a dense one.

SciPy's product of sparse matrices has a sparse result, which kernels would only make dense again.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["sparse_products"]


@njit(cache=True, nogil=True)
def sparse_products(  # type: ignore[no-untyped-def]
    data, indices, indptr, others_data, others_indices, others_indptr, out
):
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
