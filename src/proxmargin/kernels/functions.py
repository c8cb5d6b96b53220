"""Kernels of inner products, given values, and functions of the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from proxmargin.designs.samples import is_sparse
from proxmargin.kernels.base import FUNCTION_ULPS, Array, Index, Kernel, check_coef0, check_gamma
from proxmargin.kernels.products import ProductKernel
from proxmargin.rounding import UNIT, Lost

__all__ = ["Custom", "Linear", "Polynomial", "Precomputed", "Sigmoid"]

FUNCTION_ROWS = 8  # samples per square block: a diagonal is computed block by block


@dataclass(frozen=True)
class Linear(ProductKernel):
    """``<x, z>``"""

    is_definite = True

    def transform(self, tile: Array, out: Array) -> None:
        out[...] = tile


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


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Values that were computed beforehand: the data are the kernel matrix itself.

    For training the data are the square matrix, for predictions (n_test, n_train); the training
    samples on the right of a call are given by their numbers.
    """

    is_definite = False

    def fill(self, left: Any, others: Any, out: Array) -> None:
        """``left[:, others]``

        Parameters
        ----------
        left : (n_left, n_train)
        others : (n_others,) int
            Training samples.
        """
        out[...] = np.asarray(left)[:, others]

    def diagonal(self, X: Any) -> Array:
        return np.diagonal(X).astype(np.float64)

    def anchors(self, X: Any, index: Index, numbers: Index | None = None) -> Any:
        """The numbers of the samples: no data need to be kept."""
        return np.asarray(index if numbers is None else numbers[index])


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel given as a function of two sets of samples.

    Parameters
    ----------
    function : callable
        ``function(left, right)`` returns the (n_left, n_right) values; it is called with blocks
        of rows of the data as they are, so a value may depend on its own two rows only.
    """

    function: Callable[[Any, Any], Any]

    is_definite = False
    is_portable = False

    def fill(self, left: Any, others: Any, out: Array) -> None:
        """See `Kernel`.

        Raises
        ------
        ValueError
            If the function returns another shape, or values that are not finite real numbers.
        """
        values = self.function(left, others)
        dense = np.asarray(values.toarray() if is_sparse(values) else values)
        expected = (left.shape[0], others.shape[0])
        if dense.shape != expected:
            raise ValueError(
                f"the kernel function returned shape {dense.shape} for {expected[0]} and "
                f"{expected[1]} samples; it should return {expected}"
            )
        if dense.dtype.kind not in "fiub" or not np.isfinite(dense).all():
            raise ValueError("the kernel function returned values that are not finite numbers")
        out[...] = dense

    def diagonal(self, X: Any) -> Array:
        step = FUNCTION_ROWS
        blocks = [X[start : start + step] for start in range(0, X.shape[0], step)]
        return np.concatenate([np.diagonal(self(block, block)) for block in blocks])
