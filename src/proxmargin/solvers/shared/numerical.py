"""Roots of functions of one number, and the linear systems of second-order methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import ROOT_STEPS, SUM_ROUNDING
from proxmargin.runtime.types import Array

LINE_SEARCH_TOLERANCE = 0.05  # slope at the end over the first slope
END_SLOPE_FRACTION = 0.8  # slope at the end of a step over the first, up to which it is kept
LINE_SEARCH_STEPS = 100  # limit: more bisections than a step has bits


def increasing_root(slope: Callable[[float], float], tolerance: float, limit: int) -> float:
    """The root of an increasing slope on a ray, by doubling, then false position and bisection in
    turn: a step >= 0 at which ``|slope|`` is at most ``tolerance`` of the first, after at most
    ``limit`` evaluations. Zero if the slope at zero is not negative.
    """
    first = slope(0.0)
    if not first < 0.0:
        return 0.0
    low, high, step = 0.0, np.inf, 1.0
    at_low, at_high = first, np.inf
    for trial in range(limit):
        here = slope(step)
        if abs(here) <= tolerance * abs(first):
            return step
        if here < 0.0:
            low, at_low = step, here
        else:
            high, at_high = step, here
        if high == np.inf:
            step = 2.0 * step
        elif trial % 2 == 0:
            step = low + (high - low) * at_low / (at_low - at_high)
        else:
            step = 0.5 * (low + high)
        if step in (low, high):  # neighbouring floats
            return step
    return low


def secular_multipliers(values: Array, squares: Array, kappa: Array | float) -> Array:
    """The root mu > 0 of ``sum_j d_j^2 lambda_j / (lambda_j + mu)^2 = kappa^2``, or 0 without one.
    ``values`` lambda > 0 and ``squares`` d^2 are (n_equations, k). Newton's method on ``1 / kappa =
    1 / root(mu)``, which is concave in mu, so that iterates stay left of the root."""
    mu = np.zeros(len(values))
    for _ in range(ROOT_STEPS):
        shifted = values + mu[:, None]
        square = (squares * values / shifted**2).sum(axis=1)
        fall = (squares * values / shifted**3).sum(axis=1)
        left = square > kappa**2 * (1.0 + SUM_ROUNDING)
        step = np.divide(square, fall, out=np.zeros_like(mu), where=left)
        moved = mu + (np.sqrt(square) / kappa - 1.0) * step
        if np.array_equal(moved, mu):
            break
        mu = moved
    return mu


RELATIVE_SHIFT = 1e-15  # first one, over the diagonal: 5 ulp, below the factor's backward error
SHIFT_GROWTH = 100.0  # factor while Cholesky fails
MAX_SHIFTS = 7  # the last one is 1e-3 of the diagonal
# sides of matrices that are factored: 1, 72 and 200 MB
SMALL_SIDE = 400  # cheap, beside other work of a step
MAX_SIDE = 3000  # if larger systems can be solved by conjugate gradients
LARGEST_SIDE = 5000  # if there are only slower methods
CG_STEPS = 500  # iteration limit
BLAS_SPEEDUP = 6.0  # of an operation in a factorisation over one in a product with the data
CG_TOLERANCE = 1e-3  # relative residual: looser costs Newton steps, tighter gains none
# relative residual that a Newton step is worth
TIGHTEST_CG_TOLERANCE = 1e-8
LOOSEST_CG_TOLERANCE = 0.1

Inverse = Callable[[Array], Array]
"""Maps right-hand sides, (n,) or (n, n_right), to solutions."""


class Factor(NamedTuple):
    """The Cholesky factor of ``A = L L'``."""

    # (n, n), by columns; L in the lower triangle or L' in the upper one; the other triangle is not
    # read
    triangle: Array
    lower: bool  # which of the two

    def solve(self, right: Array) -> Array:
        """``A^-1 right``, for (n,) or (n, n_right)."""
        if not right.size:  # LAPACK takes no array without entries
            return right.copy()
        solution: Array = dpotrs(self.triangle, right, lower=self.lower)[0]
        return solution

    def solve_half(self, right: Array) -> Array:
        """``L^-1 right``, whose squared norm is ``right' A^-1 right``."""
        solution: Array = dtrtrs(self.triangle, right, lower=self.lower, trans=not self.lower)[0]
        return solution


def cholesky(
    matrix: Array, shifts: Iterable[float | Array] | None = None, *, overwrite: bool = False
) -> Factor | None:
    """The Cholesky factor of the upper triangle of a symmetric matrix, with the first of the
    ``shifts`` (floats or (n,)) of its diagonal that suffices; None if none does.

    By default they are a geometric sequence, relative to the diagonal. ``overwrite`` spares a copy
    of a matrix in C order with both triangles filled.
    """
    own = overwrite and matrix.flags.c_contiguous and matrix.dtype == np.float64
    work = matrix if own else np.array(matrix, dtype=np.float64, order="K")
    diagonal, by_rows = work.diagonal().copy(), work.flags.c_contiguous
    if shifts is None:
        shifts = (RELATIVE_SHIFT * SHIFT_GROWTH**k * _scale(diagonal) for k in range(MAX_SHIFTS))
    for shift in shifts:
        np.einsum("ii->i", work)[:] = diagonal + shift
        # LAPACK needs Fortran order to work in place: pass the transpose of a C-ordered matrix
        by_columns = work.T if by_rows else work
        triangle, failed = dpotrf(by_columns, lower=by_rows, clean=0, overwrite_a=1)
        if not failed:
            finite = bool(np.isfinite(triangle.diagonal()).all())
            return Factor(triangle, by_rows) if finite else None
        _restore(work, matrix)
    return None


def inverse_of(matrix: Array, *, overwrite: bool = False) -> Inverse:
    """The inverse of a positive definite matrix; of its diagonal if it cannot be factored. The
    parameters are those of `cholesky`."""
    if matrix.size == 0:
        return np.copy
    diagonal = matrix.diagonal().copy()
    factor = cholesky(matrix, overwrite=overwrite)
    if factor is not None:
        return factor.solve
    scale = _scale(diagonal)
    return lambda right: (right.T / scale).T


def _scale(diagonal: Array) -> Array:
    """The diagonal, with its largest entry in place of entries that are not positive."""
    largest = float(diagonal.max(initial=0.0))
    return np.where(diagonal > 0.0, diagonal, largest if largest > 0.0 else 1.0)


def _restore(work: Array, matrix: Array) -> None:
    """Restore the upper triangle of ``work`` after a factorisation that failed."""
    if work is not matrix:
        np.copyto(work, matrix)
        return
    for row in range(len(work) - 1):
        work[row, row + 1 :] = work[row + 1 :, row]


def forcing(share: float) -> float:
    """The relative residual for a system that is ``share`` of its scale, within bounds."""
    return min(LOOSEST_CG_TOLERANCE, max(TIGHTEST_CG_TOLERANCE, share))


def conjugate_gradients(
    product: Callable[[Array], Array],
    inverse: Inverse,
    right: Array,
    share: float,
    deadline: float,
    limit: int = CG_STEPS,
) -> Array:
    """Solve ``A d = right`` by preconditioned conjugate gradients from zero. ``product`` is ``d ->
    A d``, and ``inverse`` that of the preconditioner. It ends at a relative residual of ``share``;
    only its first iteration begins after the ``deadline``."""
    solution, residual = np.zeros_like(right), right.copy()
    steep = inverse(residual)
    direction, slope = steep.copy(), float(residual @ steep)
    target = share * float(np.linalg.norm(right))
    for _ in range(limit):
        if float(np.linalg.norm(residual)) <= target:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            break
        length = slope / curvature
        solution += length * direction
        residual -= length * image
        steep = inverse(residual)
        before, slope = slope, float(residual @ steep)
        direction *= slope / before
        direction += steep
        if clock() >= deadline:
            break
    return solution
