"""Derivatives of proximal maps, where they have one, in a form that linear systems can use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.penalties.partition import Groups

__all__ = ["ProxJacobian"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProxJacobian:
    """``J = diag(diagonal) + sign sum_g a_g a_g'``, an element of the generalised Jacobian.

    It is symmetric, with eigenvalues in [0, 1]. The arrays have the shape of what the map takes:
    coefficients (n_features, n_outputs), or dual points (n_samples, n_outputs).

    Parameters
    ----------
    diagonal : array
    vectors : array, optional
        Each a_g at the places of its group.
    groups : Groups, optional
        Of ``vectors``.
    sign : float
        1 or -1.
    """

    diagonal: Array
    vectors: Array | None = None
    groups: Groups | None = None
    sign: float = 1.0

    @property
    def across(self) -> bool:
        """The rank-one terms couple the outputs."""
        return self.groups is not None and self.groups.across_classes

    def apply(self, x: Array) -> Array:
        """``J x``."""
        if self.vectors is None or self.groups is None:
            return self.diagonal * x
        products = self.groups.oriented(self.vectors * x)
        sums = self.groups.spread(self.groups.reduced(np.add, products), len(products))
        return self.diagonal * x + self.sign * self.vectors * self.groups.restored(sums)
