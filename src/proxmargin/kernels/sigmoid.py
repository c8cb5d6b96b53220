"""The hyperbolic tangent of shifted inner products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.kernels.base import FUNCTION_ULPS, Array
from proxmargin.kernels.parameters import check_coef0, check_gamma
from proxmargin.kernels.products import ProductKernel
from proxmargin.rounding import UNIT, Lost

__all__ = ["Sigmoid"]


@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """``tanh(gamma <x, z> + coef0)``: not positive semidefinite on most data.

    Parameters
    ----------
    gamma : float > 0
    coef0 : float
    """

    gamma: float
    coef0: float

    is_definite = False

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """The slope of tanh is at most one."""
        roots = np.sqrt(self.gamma * lengths**2 + abs(self.coef0))
        return Lost(
            relative + FUNCTION_ULPS * UNIT, roots, np.full(roots.size, FUNCTION_ULPS * UNIT)
        )

    def transform(self, tile: Array, out: Array) -> None:
        np.multiply(tile, self.gamma, out=tile)
        np.add(tile, self.coef0, out=tile)
        np.tanh(tile, out=out)
