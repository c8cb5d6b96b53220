"""Kernels that are functions of inner products."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.samples import Others, Tile, about, inner_products, row_squares
from proxmargin.kernels.base import Array, Kernel
from proxmargin.rounding import Lost, gamma

__all__ = ["About", "ProductKernel"]


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    def others(self, X: Any) -> Others:
        return about(X, np.zeros(X.shape[1]))

    def fill(self, left: Any, others: Others, out: Array) -> None:
        if left.shape[1] != others.shape[1]:
            raise ValueError(
                f"the samples have {left.shape[1]} and {others.shape[1]} features; a kernel "
                "compares samples with the same features"
            )
        for rows, columns, tile in self.tiles(left, others):
            self.transform(tile, out[rows, columns])

    def standardized(self, origin: Array | None = None) -> Kernel:
        return self if origin is None else About(self, origin)

    def single_factors(
        self, others: Others
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Left and right factors, (n_samples, k) each, whose products `transform` makes the values
        in single precision of; None for samples without."""
        return None if others.plain is None else (others.plain, others.plain)

    def diagonal(self, X: Any) -> Array:
        values = row_squares(X)
        self.transform(values, values)
        return values

    def tiles(self, left: Any, others: Others) -> Iterator[Tile]:
        """What `transform` wants of each pair, tile by tile: inner products."""
        return inner_products(left, others)

    def lost(self, others: Any, diagonal: Array) -> Lost:
        # besides the sum: two roundoffs of each factor, and the sums that correct for `rest`
        lengths = np.sqrt(others.squares) + float(np.linalg.norm(others.rest))
        return self.lost_of(lengths, gamma(others.terms + 8))

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """For inner products off by no more than ``relative`` times both lengths."""
        return Lost(relative, lengths, np.zeros(lengths.size))

    @abstractmethod
    def transform(self, tile: Array, out: Array) -> None:
        """Write the kernel values into ``out``; ``tile`` may be overwritten."""


@dataclass(frozen=True, eq=False)
class About(ProductKernel):
    """A function of the inner products of samples less a point; sparse ones are not filled.

    Parameters
    ----------
    kernel : ProductKernel
        Of inner products.
    origin : (n_features,)
    """

    kernel: ProductKernel
    origin: Array

    @property
    def is_definite(self) -> bool:
        return self.kernel.is_definite

    def others(self, X: Any) -> Others:
        return about(X, self.origin)

    def diagonal(self, X: Any) -> Array:
        values = row_squares(X, self.origin)
        self.transform(values, values)
        return values

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        return self.kernel.lost_of(lengths, relative)

    def transform(self, tile: Array, out: Array) -> None:
        self.kernel.transform(tile, out)
