"""A kernel that the user computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proxmargin.designs.samples import is_sparse
from proxmargin.kernels.base import Array, Kernel

__all__ = ["Custom"]

FUNCTION_ROWS = 8  # samples per square block: a diagonal is computed block by block


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
