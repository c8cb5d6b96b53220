"""Nearest points of the epigraphs of the multiclass hinge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections.epigraphs import project_epigraphs

__all__ = ["hinge_epigraphs"]

Array = NDArray[np.float64]


def hinge_epigraphs(rows: ArrayLike, levels: ArrayLike, codes: ArrayLike) -> tuple[Array, Array]:
    """The nearest ``(p_i, theta_i)`` to each row and level with ``h_i(p_i) <= theta_i``.

    ``h_i(y) = max_k y_k + [k != codes_i]``: for ``y_k = z_k - z_own`` it is the hinge of Crammer
    and Singer (Chierchia et al. 2015, Prop. 3.3).

    Parameters
    ----------
    rows : (n, K), finite
    levels : (n,), finite
    codes : (n,) integers in [0, K)

    Returns
    -------
    rows : (n, K)
    levels : (n,)
        New arrays.

    Raises
    ------
    ValueError
        For other shapes, classes that do not exist, or entries that are not finite.
    """
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"rows have shape {np.shape(rows)}; give a matrix with columns")
    heights = np.ascontiguousarray(levels, dtype=np.float64)
    own = np.ascontiguousarray(codes)
    if heights.shape != matrix.shape[:1] or own.shape != matrix.shape[:1]:
        raise ValueError(
            f"levels and codes have shapes {heights.shape} and {own.shape}; "
            f"give one of each a row, ({matrix.shape[0]},)"
        )
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(heights))):
        raise ValueError("rows and levels must be finite numbers")
    if own.dtype.kind not in "iu" or (
        own.size and not 0 <= own.min() <= own.max() < matrix.shape[1]
    ):
        raise ValueError(f"codes must be integers >= 0 and below {matrix.shape[1]}")
    out, out_levels = np.empty_like(matrix), np.empty_like(heights)
    project_epigraphs(matrix, heights, own, out, out_levels)
    return out, out_levels
