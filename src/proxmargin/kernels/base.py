"""What a kernel is: a symmetric function of two samples.

A kernel compares samples (`Kernel.fill`) with others that it was shown before (`Kernel.others`) and
has preprocessed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.samples import TILE_COLUMNS, TILE_ROWS, by_rows, dense_rows
from proxmargin.rounding import UNIT, Lost

__all__ = ["FUNCTION_ULPS", "Array", "Centred", "Index", "Kernel"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FUNCTION_ULPS = 4.0  # error bound of exp, tanh and a few products


class Kernel(ABC):
    """A symmetric function of two samples."""

    is_portable: ClassVar[bool] = True
    """Its fields are plain values: a model file can keep it."""

    @property
    @abstractmethod
    def is_definite(self) -> bool:
        """Known to be positive semidefinite on any data."""

    def __call__(self, left: Any, right: Any, out: Array | None = None) -> Array:
        """Values at all pairs of rows.

        Parameters
        ----------
        left : (n_left, n_features), dense or sparse
        right : (n_right, n_features), dense or sparse
        out : (n_left, n_right), optional
            Where to write them: large new arrays cost as much as the values.

        Returns
        -------
        (n_left, n_right)

        Raises
        ------
        ValueError
            If the numbers of features differ.
        """
        values = np.empty((left.shape[0], right.shape[0])) if out is None else out
        self.fill(left, self.others(right), values)
        return values

    def others(self, X: Any) -> Any:
        """``X`` as the right of many calls of `fill`."""
        return X

    @abstractmethod
    def fill(self, left: Any, others: Any, out: Array) -> None:
        """Write the values of all rows of ``left`` with all `others` into ``out``."""

    def about(self, origin: Array) -> Kernel:
        """The kernel of ``x - origin`` and ``z - origin``, for sparse samples x and z."""
        return Centred(self, origin)

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """The kernel of every row of ``X`` with itself, (n_samples,)."""

    def rounding(self, others: Any) -> float:
        """Relative error of the largest values between `others`, in units of the last place."""
        return 1.0

    def mean_rounding(self, X: Any) -> float:
        """Error of a value on ``X`` on average, in units of the last place of the largest.

        Estimated from some pairs, and at least one, to reject data whose kernel values have no
        correct digits. Certificates use `lost`, a bound.
        """
        return 1.0

    def lost(self, others: Any, diagonal: Array) -> Lost:
        """A bound on the rounding of the values between `others`.

        For an unknown function, a few ulps of the largest value that a pair can have.
        """
        return Lost(
            FUNCTION_ULPS * UNIT, np.sqrt(np.maximum(diagonal, 0.0)), np.zeros(diagonal.size)
        )

    def precisely(self, X: Any, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """The products of the values between all of X and the samples ``index`` with weights
        (n_index,), where they can be had with less rounding than the values alone; or None."""
        return None

    def anchors(self, X: Any, index: Index, numbers: Index | None = None) -> Any:
        """What predictions need of the training samples ``index``: the right of a later call.

        Parameters
        ----------
        X : (n_samples, n_features)
        index : (n_anchors,) int
        numbers : (n_samples,) int, optional
            Of these samples among all there were; by default their places.
        """
        return X[index]


@dataclass(frozen=True, eq=False)
class Centred(Kernel):
    """Any kernel of samples less a point: it is shown dense blocks of them.

    Parameters
    ----------
    kernel : Kernel
    origin : (n_features,)
    """

    kernel: Kernel
    origin: Array

    @property
    def is_definite(self) -> bool:
        return self.kernel.is_definite

    def others(self, X: Any) -> Any:
        return by_rows(X)

    def fill(self, left: Any, others: Any, out: Array) -> None:
        for rows, lines in dense_rows(by_rows(left), TILE_ROWS):
            for columns, block in dense_rows(others, TILE_COLUMNS):
                self.kernel(lines - self.origin, block - self.origin, out[rows, columns])

    def diagonal(self, X: Any) -> Array:
        blocks = dense_rows(by_rows(X), TILE_ROWS)
        return np.concatenate([self.kernel.diagonal(lines - self.origin) for _, lines in blocks])
