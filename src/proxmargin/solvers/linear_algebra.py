"""Linear systems of second-order methods: a factor that rounding does not stop, and CG."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from proxmargin.compiled.clock import clock
from proxmargin.designs.base import Array

__all__ = ["cholesky", "conjugate_gradients"]

LIFT = 1e-15  # share of its diagonal that a Hessian is shifted by at first
MORE_LIFT = 1e3  # growth of the shift while the matrix cannot be factored
LIFTS = 5  # shifts that are tried


def cholesky(matrix: Array) -> Callable[[Array], Array]:
    """Solve with a positive definite matrix, lifted in place as little as it takes to factor it."""
    diagonal = np.einsum("ii->i", matrix)
    scale = diagonal + np.where(diagonal > 0, 0.0, 1.0)
    lift = LIFT
    for _ in range(LIFTS):
        diagonal += lift * scale
        try:
            factor = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            lift *= MORE_LIFT
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
    """Solve ``A d = right`` until the residual has fallen to ``share`` of ``|right|``.

    Parameters
    ----------
    product : callable
        ``d -> A d`` for a positive definite A, (k,) -> (k,).
    inverse : (k,)
        The preconditioner.
    limit : int
        Iterations at most.
    deadline : float
        Ends them too, but not the first one; on the clock of `proxmargin.compiled.clock`.
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
