"""FBPD for the constrained hinge as linear inequalities, the rival of Chierchia et al. (2015, 4.2).

    minimise g(x)  subject to  sum_lk zeta_lk <= K eta,  zeta_l1 = ... = zeta_lK,  zeta >= 0,
                               T_l x + r_l - zeta_l <= 0

The half-space of zeta is projected onto with the primal step. The other three constraints have dual
variables of their own: u of the equalities, v of the signs, y of the margins. With the linear map
``(x, zeta) -> (zeta, zeta, T x - zeta)`` of squared norm at most ``|T|^2 + 3``, the steps are
``tau = sigma = 1 / norm``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.iterates import Iterate

__all__ = ["linear_constraints"]


def linear_constraints(
    X: Any, y: NDArray[np.intp], penalty: Any, eta: float, norm: float
) -> Iterator[Iterate]:
    """Its iterates; the sum of the hinges at one need not be within its bound.

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
    while True:
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
        x, b, z, differences = new_x, new_b, new_z, new
        yield Iterate(x, b)
