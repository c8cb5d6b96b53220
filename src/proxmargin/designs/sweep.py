"""What one pass over the data computes for a Newton step: scores, gradient and Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pointwise", "Sweep", "two_sided"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Pointwise = Callable[..., tuple[Array, Array]]
"""``pointwise(scores, *cut)``: first and second derivatives of a loss in each score, (n_rows,)."""


class Sweep(NamedTuple):
    """A point's scores, and the derivatives of the loss pulled back to the features.

    Attributes
    ----------
    scores : (n_samples,)
        ``X @ coef + intercept``.
    dual : (n_samples,)
        Derivatives of the loss in the scores.
    pulled : (n_features, 3)
        ``X.T`` times the positive part of ``dual``, its negative part, and the second derivatives.
    sums : (3,)
        The sums of these three.
    gram : (k, k), optional
        ``(X - 1 centre')' diag(second derivatives) (X - 1 centre')`` of the features asked for.
    """

    scores: Array
    dual: Array
    pulled: Array
    sums: Array
    gram: Array | None


def two_sided(dual: Array, curvature: Array) -> Array:
    """Positive and negative part of ``dual``, and ``curvature``, as columns: (n_samples, 3)."""
    return np.column_stack([np.maximum(dual, 0.0), np.minimum(dual, 0.0), curvature])
