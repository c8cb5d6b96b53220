"""Nearest points of simplices, and of matrices with given row and column sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled.projections import simplex as compiled

__all__ = ["NotFiniteError", "column_shift", "simplex_rows", "transport", "transport_rounded"]

Array = NDArray[np.float64]


class NotFiniteError(ValueError):
    """Entries are NaN or infinite: there is no nearest point.

    Solvers whose iterates diverge get here; `proxmargin.loop.minimize` reports divergence instead.
    """


def simplex_rows(rows: ArrayLike, sizes: ArrayLike) -> Array:
    """The nearest ``y_i`` to each row with ``y_i >= 0`` and ``sum(y_i) = sizes_i``.

    It gives the prox of ``z -> size max_k z_k`` (Chierchia et al. 2015, Prop. 3.1).

    Parameters
    ----------
    rows : (n, K), finite, or -inf where an entry is to be zero
    sizes : (n,) or a number, finite, >= 0

    Returns
    -------
    (n, K), a new array; each sum has the digits of its size.

    Raises
    ------
    ValueError
        For other shapes, sizes that are negative, or entries that are no numbers.
    """
    matrix = np.ascontiguousarray(rows, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ValueError(f"rows have shape {np.shape(rows)}; give a matrix with columns")
    wanted = np.ascontiguousarray(np.broadcast_to(sizes, matrix.shape[:1]), dtype=np.float64)
    if not np.all(np.isfinite(wanted) & (wanted >= 0)):
        raise ValueError("sizes must be finite and >= 0")
    if not np.all(np.isfinite(matrix.max(axis=1))):
        raise NotFiniteError("rows have entries that are NaN or infinite, or none that is finite")
    out = np.empty_like(matrix)
    compiled.project_rows(matrix, wanted, out)
    return out


def transport(rows: Array, row_sums: Array, column_sums: Array) -> Array:
    """The nearest non-negative matrix with these row and column sums, to rounding.

    Its rows are projections of ``rows_i + shift`` onto simplices (`column_shift`); the error in the
    column sums after Newton's method is corrected by `transport_rounded`, so that the result is
    feasible for any rows.

    Parameters
    ----------
    rows : (n, K), finite
    row_sums : (n,) >= 0
    column_sums : (K,) >= 0, with the same total

    Returns
    -------
    (n, K), a new array
    """
    start = np.zeros(column_sums.size)
    matrix, _ = column_shift(rows, row_sums, column_sums, start)
    return transport_rounded(matrix, row_sums, column_sums)


def column_shift(
    rows: Array, row_sums: Array, column_sums: Array, start: Array, ridge: float = 0.0
) -> tuple[Array, Array]:
    """The shift for which the projections of ``rows + shift`` have these column sums.

    Semismooth Newton steps with a line search on the convex function whose gradient is ``column
    sums of the projections - column_sums + ridge shift``. Columns of sum zero are left out of the
    projections where there is no ridge: their shift would be minus infinity.

    Parameters
    ----------
    rows, row_sums, column_sums
        As in `transport`.
    start : (K,)
    ridge : float >= 0

    Returns
    -------
    matrix : (n, K)
        The projections: row sums hold, column sums up to rounding.
    shift : (K,)
        Determined up to a constant without a ridge.
    """
    if ridge == 0:
        rows = np.where(column_sums > 0, rows, -np.inf)
    problem = compiled.Columns(
        np.ascontiguousarray(rows), row_sums, column_sums.astype(np.float64), float(ridge)
    )
    shift = compiled.column_newton(problem, start)
    matrix = np.empty_like(problem.rows)
    compiled.project_rows(problem.rows + shift, row_sums, matrix)
    return matrix, shift


def transport_rounded(matrix: Array, row_sums: Array, column_sums: Array) -> Array:
    """Correct a non-negative matrix with nearly these row and column sums to have them.

    Columns, then rows, with too large sums are scaled down, and a matrix of rank one adds what is
    missing: Algorithm 2 of Altschuler, Weed and Rigollet (2017). Sums are exact to rounding.

    Parameters
    ----------
    matrix : (n, K) >= 0
    row_sums : (n,) >= 0
    column_sums : (K,) >= 0, with the same total
    """
    columns = matrix.sum(axis=0)
    rounded = matrix * np.divide(
        column_sums, columns, out=np.ones_like(columns), where=columns > column_sums
    )
    rows = rounded.sum(axis=1)
    heavy = rows > row_sums
    rounded *= np.divide(row_sums, rows, out=np.ones_like(rows), where=heavy)[:, None]
    missing_rows = np.maximum(row_sums - rounded.sum(axis=1), 0.0)
    missing_columns = np.maximum(column_sums - rounded.sum(axis=0), 0.0)
    total = float(missing_columns.sum())
    if total > 0:
        rounded += np.outer(missing_rows, missing_columns / total)
    return rounded
