"""The linear kernel, the inner product."""

from __future__ import annotations

from dataclasses import dataclass

from proxmargin.kernels.base import Array
from proxmargin.kernels.products import ProductKernel

__all__ = ["Linear"]


@dataclass(frozen=True)
class Linear(ProductKernel):
    """``<x, z>``"""

    is_definite = True

    def transform(self, tile: Array, out: Array) -> None:
        out[...] = tile
