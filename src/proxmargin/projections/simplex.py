"""Nearest points of simplices, and of matrices with given row and column sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.compiled import simplex as compiled

__all__ = ["column_shift", "simplex_rows", "transport", "transport_rounded"]

Array = NDArray[np.float64]

# Newton steps for the multipliers of the column sums, and trials of a step length
NEWTON_STEPS, SEARCH_STEPS = 60, 60
# column sums that are wrong by this share of the total are left to rounding
ROUNDING = 4.0 * float(np.finfo(float).eps)
# damping of the Jacobian relative to its mean diagonal: the least one, and that of a residual of one
FLAT, DAMPING = 1e-12, 0.1
# a step is good when the slope along it has at least halved
FALL = 0.5
# residuals below this many times the rounding that do not fall any more are rounding
NEARLY = 1e3


def simplex_rows(rows: ArrayLike, sizes: ArrayLike) -> Array:
    """The nearest ``y_i`` to each row with ``y_i >= 0`` and ``sum(y_i) = sizes_i``.

    The prox of ``z -> size max_k z_k`` is told by it (Chierchia et al. 2015, Prop. 3.1).

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
        raise ValueError("rows have entries that are NaN or infinite, or none that is finite")
    out = np.empty_like(matrix)
    compiled.project_rows(matrix, wanted, out)
    return out


def transport(rows: Array, row_sums: Array, column_sums: Array) -> Array:
    """The nearest non-negative matrix with these row and column sums, to rounding.

    Its rows are projections of ``rows_i + shift`` onto simplices (`column_shift`); what Newton's
    method leaves of the column sums is repaired by `transport_rounded`, so that the result is
    feasible whatever the rows are.

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

    problem = _Columns(rows, row_sums, column_sums, ridge)
    at, small = _expanded(problem, start), ROUNDING * float(column_sums.sum())
    for _ in range(NEWTON_STEPS):
        if np.abs(at.residual).max() <= small:
            break
        direction = _newton_direction(problem, at)
        reached = _searched(at, direction, lambda shift: _expanded(problem, shift))
        left, before = np.abs(reached.residual).max(), np.abs(at.residual).max()
        if left >= before and before <= NEARLY * small:
            break  # rounding
        at = reached
    return at.matrix, at.shift


class _Expansion(NamedTuple):
    """A shift, the gradient there, its derivative, and the projections."""

    shift: Array
    residual: Array
    jacobian: Array
    matrix: Array


class _Columns(NamedTuple):
    rows: Array
    row_sums: Array
    column_sums: Array
    ridge: float


def _expanded(problem: _Columns, shift: Array) -> _Expansion:
    """The gradient and its derivative at a shift."""
    matrix, jacobian = np.empty(problem.rows.shape), np.empty((shift.size, shift.size))
    compiled.shifted_rows(problem.rows, shift, problem.row_sums, matrix, jacobian)
    residual = matrix.sum(axis=0) - problem.column_sums + problem.ridge * shift
    return _Expansion(shift, residual, jacobian, matrix)


def _searched(
    at: _Expansion, direction: Array, expanded: Callable[[Array], _Expansion]
) -> _Expansion:
    """A step along which the (increasing) slope has at least halved: doubling, then bisection."""
    slope = float(at.residual @ direction)
    low, high, step = 0.0, np.inf, 1.0
    reached = expanded(at.shift + direction)
    for _ in range(SEARCH_STEPS):
        ahead = float(reached.residual @ direction)
        if abs(ahead) <= FALL * abs(slope):
            break
        low, high = (step, high) if ahead < 0 else (low, step)
        step = 2.0 * step if high == np.inf else 0.5 * (low + high)
        reached = expanded(at.shift + step * direction)
    return reached


def _newton_direction(problem: _Columns, at: _Expansion) -> Array:
    """Minus the residual over the Jacobian, which is singular along equal shifts at least.

    Columns that no row is about to change would go far: the Jacobian is damped in proportion to
    the residual.
    """
    count = at.residual.size
    scale = float(np.trace(at.jacobian)) / count
    wrong = float(np.abs(at.residual).max() / problem.column_sums.sum())
    lifted = at.jacobian + scale / count
    np.einsum("ii->i", lifted)[:] += problem.ridge + max(FLAT, DAMPING * wrong) * max(scale, 1.0)
    return -np.linalg.solve(lifted, at.residual).astype(np.float64, copy=False)


def transport_rounded(matrix: Array, row_sums: Array, column_sums: Array) -> Array:
    """Make a non-negative matrix with about these row and column sums have them.

    Columns, then rows, that are too heavy are shrunk, and a matrix of rank one brings what is
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
