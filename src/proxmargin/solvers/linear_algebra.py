"""Linear systems of second-order methods: Cholesky with a diagonal shift, and CG."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from proxmargin.compiled.clock import clock
from proxmargin.designs.base import Array

__all__ = ["Factor", "Inverse", "cholesky", "conjugate_gradients", "inverse_of"]

RELATIVE_SHIFT = 1e-15  # of the diagonal, at first: some 5 ulp
SHIFT_GROWTH = 1e3  # factor, while Cholesky fails
MAX_SHIFTS = 5  # then the diagonal alone is used


def cholesky(matrix: Array) -> Callable[[Array], Array]:
    """Solve with a positive semidefinite matrix, its diagonal shifted until Cholesky succeeds.

    Parameters
    ----------
    matrix : (k, k)
        Overwritten.

    Returns
    -------
    callable
        ``b -> A^-1 b`` for b of shape (k,) or (k, m).
    """
    diagonal = np.einsum("ii->i", matrix)
    scale = diagonal + np.where(diagonal > 0, 0.0, 1.0)
    lift = RELATIVE_SHIFT
    for _ in range(MAX_SHIFTS):
        diagonal += lift * scale
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            lift *= SHIFT_GROWTH
            continue
        return lambda right: cho_solve(factor, right, check_finite=False)
    return lambda right: (right.T / scale).T


def conjugate_gradients(
    product: Callable[[Array], Array],
    inverse: Array,
    right: Array,
    share: float,
    limit: int,
    deadline: float = np.inf,
) -> Array:
    """Solve ``A d = right`` by preconditioned conjugate gradients from zero.

    Parameters
    ----------
    product : callable
        ``d -> A d`` for a positive definite A, (k,) -> (k,).
    inverse : (k,)
        The inverse of a diagonal preconditioner.
    share : float
        Relative residual to reach, ``|A d - right| / |right|``.
    limit : int
        Iterations at most.
    deadline : float
        Time on `proxmargin.compiled.clock` after which no iteration but the first begins.
    """
    solution, residual = np.zeros_like(right), right.copy()
    steep = inverse * residual
    direction, slope = steep.copy(), float(residual @ steep)
    target = share * float(np.linalg.norm(right))
    for _ in range(limit):
        if float(np.linalg.norm(residual)) <= target:
            break
        curved = product(direction)
        bend = float(direction @ curved)
        if not bend > 0.0:
            break
        length = slope / bend
        solution += length * direction
        residual -= length * curved
        steep = inverse * residual
        before, slope = slope, float(residual @ steep)
        direction *= slope / before
        direction += steep
        if clock() >= deadline:
            break
    return solution
