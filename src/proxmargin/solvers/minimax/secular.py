"""The secular equation of MM-FDA with a ridge."""

from __future__ import annotations

import numpy as np

from proxmargin.designs.base import Array

__all__ = ["multipliers"]

MAX_SECULAR_STEPS = 200  # limit; convergence is quadratic and monotone
SECULAR_TOLERANCE = 1e-15  # relative residual: some 5 ulp


def multipliers(values: Array, squares: Array, kappa: Array | float) -> Array:
    """The root mu > 0 of ``sum_j d_j^2 lambda_j / (lambda_j + mu)^2 = kappa^2``, or 0 without one.

    Newton's method on ``1 / kappa = 1 / root(mu)``, which is concave in mu, so that iterates stay
    left of the root.

    Parameters
    ----------
    values, squares : (n_equations, k)
        Eigenvalues lambda > 0, and the squares of d in the basis of eigenvectors.
    kappa : (n_equations,) or float > 0
    """
    mu = np.zeros(len(values))
    for _ in range(MAX_SECULAR_STEPS):
        shifted = values + mu[:, None]
        square = (squares * values / shifted**2).sum(axis=1)
        fall = (squares * values / shifted**3).sum(axis=1)
        left = square > kappa**2 * (1.0 + SECULAR_TOLERANCE)
        step = np.divide(square, fall, out=np.zeros_like(mu), where=left)
        moved = mu + (np.sqrt(square) / kappa - 1.0) * step
        if np.array_equal(moved, mu):
            break
        mu = moved
    return mu
