"""A kernel matrix that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from proxmargin.kernels.base import Array, Index, Kernel

__all__ = ["Precomputed"]


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
