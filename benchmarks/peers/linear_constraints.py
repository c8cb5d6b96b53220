"""FBPD for the constrained hinge as linear inequalities, the rival of Chierchia et al. (2015, 4.2).

    minimise g(x)  subject to  sum_lk zeta_lk <= K eta,  zeta_l1 = ... = zeta_lK,  zeta >= 0,
                               T_l x + r_l - zeta_l <= 0

The half-space of zeta is projected onto with the primal step. The other three constraints have dual
variables of their own: u of the equalities, v of the signs, y of the margins. With the linear map
``(x, zeta) -> (zeta, zeta, T x - zeta)`` of squared norm at most ``|T|^2 + 3``, the steps are
``tau = sigma = 1 / norm``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Split", "linear_constraints"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """The last iterate: coef (n_features, n_classes), intercept (n_classes,), and the iterations;
    the sum of the hinges there, which need not be within its bound."""

    coef: Floats
    intercept: Floats
    iterations: int
    losses: float


def linear_constraints(
    X: Any, y: NDArray[np.intp], penalty: Any, eta: float, tol: float, max_iter: int, norm: float
) -> Split:
    """Iterate until the relative change of the coefficients is at most ``tol``.

    Parameters
    ----------
    X : (n_samples, n_features)
    y : (n_samples,) class codes
    penalty : with a ``prox(coef, step)`` of (n_features, n_classes)
    eta : float
        The bound of the sum of the hinges.
    norm : float
        An upper bound of ``|T|``.
    """
    rows, classes = np.arange(y.size), int(y.max()) + 1
    margins = np.ones((y.size, classes))
    margins[rows, y] = 0.0
    step = 1.0 / np.sqrt(norm**2 + 3.0)
    x, b = np.zeros((X.shape[1], classes)), np.zeros(classes)
    z = np.full((y.size, classes), eta / y.size)
    differences = np.zeros_like(z)
    u, v, q = np.zeros_like(z), np.zeros_like(z), np.zeros_like(z)
    iterations = 0
    for iterations in range(1, max_iter + 1):  # noqa: B007  (the number is part of the answer)
        pull = q.copy()
        pull[rows, y] -= q.sum(axis=1)
        new_x = penalty.prox(x - step * (X.T @ pull), step)
        new_b = b - step * pull.sum(axis=0)
        new_z = z - step * (u + v - q)
        new_z -= max(float(new_z.sum()) - classes * eta, 0.0) / new_z.size
        scores = X @ new_x + new_b
        new = scores - scores[rows, y][:, None]
        far = 2.0 * new_z - z
        u += step * far
        u -= u.mean(axis=1, keepdims=True)  # step times the distance to equal rows
        v = np.minimum(v + step * far, 0.0)
        q = np.maximum(q + step * (2.0 * new - differences - far + margins), 0.0)
        size, moved = float(np.linalg.norm(x)), float(np.linalg.norm(new_x - x))
        x, b, z, differences = new_x, new_b, new_z, new
        if size > 0 and moved <= tol * size:
            break
    losses = float((differences + margins).max(axis=1).sum())
    return Split(x, b, iterations, losses)
