"""The Gaussian kernel, of distances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.products.gaussian import gaussian
from proxmargin.compiled.products.kernels import rbf_product
from proxmargin.designs.samples import (
    TILE_ROWS,
    Others,
    Tile,
    about,
    amid,
    dense_rows,
    is_sparse,
    row_squares,
    squared_distances,
)
from proxmargin.kernels.base import FUNCTION_ULPS, Array, Index, Kernel, check_gamma
from proxmargin.kernels.products import ProductKernel
from proxmargin.rounding import EPS, UNIT, Lost, gamma

__all__ = ["Rbf"]

ROUNDING_SAMPLES = 256  # between which the rounding of distances is measured
LOSSY = 1e5  # ulps of a kernel value from which on predictions take differences
MAX_DIFFERENCES = 2_000_000_000  # squared differences of a product computed by them: some seconds


@dataclass(frozen=True)
class Rbf(ProductKernel):
    """``exp(-gamma |x - z|^2)``

    Parameters
    ----------
    gamma : float > 0
    """

    gamma: float

    is_definite = True
    is_strict = True

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def others(self, X: Any) -> Others:
        return amid(X)

    def standardized(self, origin: Array | None = None) -> Kernel:
        """It sees differences alone, whatever the origin."""
        return StandardizedRbf(self.gamma)

    def tiles(self, left: Any, others: Others) -> Iterator[Tile]:
        return squared_distances(left, others)

    def single_factors(
        self, others: Others
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        return others.single

    def transform(self, tile: Array, out: Array) -> None:
        gaussian(tile, self.gamma)
        if out is not tile:
            out[...] = tile

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def rounding(self, others: Any) -> float:
        """Distances are differences of squares, whose rounding the exponential passes on."""
        return max(1.0, self.gamma * float(others.squares.max(initial=0.0)))

    def mean_rounding(self, X: Any) -> float:
        """``exp(-gamma d)`` passes on what d lost, some last places of ``|x|^2 + |z|^2``.

        The absolute error vanishes for samples far apart, whose values are close to zero.
        """
        sample = X[:: max(1, X.shape[0] // ROUNDING_SAMPLES)]
        others = self.others(sample)
        squares = row_squares(sample, others.point)
        last_place, lost, number = EPS, 0.0, np.arange(sample.shape[0])
        for rows, columns, tile in self.tiles(sample, others):
            distances = np.abs(tile)
            error = last_place * (squares[rows, None] + squares[columns])
            most = np.exp(-self.gamma * np.maximum(distances - error, 0.0))
            change = -np.expm1(-self.gamma * np.minimum(2.0 * error, distances + error)) * most
            change[number[rows, None] == number[columns]] = 0.0  # the diagonal is exact
            lost += float(change.sum())
        return max(1.0, 0.5 * lost / last_place / max(number.size, 1) ** 2)

    def lost(self, others: Any, diagonal: Array) -> Lost:
        """``exp(-gamma d)`` passes on what d lost: sums of products of lengths about a point."""
        own = self.gamma * gamma(3 * others.terms + 16) * others.squares
        return Lost(FUNCTION_ULPS * UNIT, np.ones(own.size), np.minimum(own, 1.0))

    def product(self, left: Any, others: Others, weights: Array) -> Array:
        """See `Kernel`; by differences of dense samples, as `precisely`, if others lose digits."""
        if is_sparse(others.matrix) or self.rounding(others) < LOSSY:
            return super().product(left, others, weights)
        out = np.empty((weights.shape[1], left.shape[0]))
        columns = np.ascontiguousarray(weights.T)
        for rows, lines in dense_rows(left, TILE_ROWS):
            samples = np.ascontiguousarray(lines)
            for column, values in zip(columns, out, strict=True):
                rbf_product(samples, others.matrix, column, self.gamma, values[rows])
        return out.T

    def precisely(self, X: Any, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """By differences of samples, which lose nothing that ``y exp(-y) <= 1 / e`` would pass on;
        of dense samples, where that does not take too long."""
        n, p = X.shape
        if is_sparse(X) or n * index.size * p > MAX_DIFFERENCES:
            return None
        out = np.empty(n)
        rbf_product(X, X[index], weights, self.gamma, out)
        relative = 0.4 * gamma(p + 4) + FUNCTION_ULPS * UNIT  # 1 / e < 0.4
        return out, Lost(relative, np.ones(n), np.zeros(n))


@dataclass(frozen=True)
class StandardizedRbf(Rbf):
    """``exp(-gamma |x - z|^2)`` of samples whose entries are off by two roundoffs.

    Another centre than their own would hide how large the entries were that have been rounded.
    """

    def others(self, X: Any) -> Others:
        return about(X, np.zeros(X.shape[1]))

    def precisely(self, X: Any, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """The slope of ``exp(-gamma d^2)`` in the distance d is less than ``sqrt(gamma)``."""
        found = super().precisely(X, index, weights)
        if found is None:
            return None
        own = 2.0 * UNIT * np.sqrt(self.gamma * row_squares(X))
        return found[0], found[1]._replace(own=own)
