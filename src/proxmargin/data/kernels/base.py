"""The interface of kernels: symmetric functions of two samples.

A kernel preprocesses one set of samples (`Kernel.others`) and then compares blocks of other samples
with it (`Kernel.fill`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import UNIT, Lost, gamma
from proxmargin.data.designs.samples import (
    TILE_COLUMNS,
    TILE_ROWS,
    Others,
    Tile,
    about,
    by_rows,
    dense_rows,
    inner_products,
    row_squares,
)
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.inputs.parameters import check_magnitude
from proxmargin.runtime.brief import shown
from proxmargin.runtime.forwarding import forwarded
from proxmargin.runtime.types import Array, Index, Matrix, Values

FUNCTION_ULPS = 4.0  # error bound of exp, tanh and a few products, in ulps


class Kernel(ABC):
    """A symmetric function of two samples."""

    is_portable: ClassVar[bool] = True
    """All fields are plain values, so that a model file can store the kernel."""

    @property
    @abstractmethod
    def is_definite(self) -> bool:
        """Whether the kernel is known to be positive semidefinite on any data."""

    @property
    def is_strict(self) -> bool:
        """Whether its matrix of distinct samples is known to be positive definite."""
        return False

    def __call__(self, left: Any, right: Any, out: Array | None = None) -> Array:
        """Values at all pairs of rows of dense or sparse samples, (n_left, n_right), written into
        ``out`` if given: large new arrays cost as much as the values. Raises ValueError: other
        features."""
        values = np.empty((left.shape[0], right.shape[0])) if out is None else out
        self.fill(left, self.others(right), values)
        return values

    def others(self, X: Values) -> Any:
        """``X`` preprocessed as the right argument of many calls of `fill`."""
        return X

    @abstractmethod
    def fill(self, left: Values, others: Any, out: Array) -> None:
        """Write the values of all rows of ``left`` with all `others` into ``out``."""

    def product(self, left: Any, others: Any, weights: Array) -> Array:
        """``K(left, others) @ weights``, (n_left, n_outputs)."""
        values = np.empty((left.shape[0], weights.shape[0]))
        self.fill(left, others, values)
        return values @ weights

    def standardized(self, origin: Array | None = None) -> Kernel:
        """The kernel of standardised samples, entries of which are off by two roundoffs; with an
        ``origin``, of sparse samples less that. A function given by the user is one of the samples
        as they are rounded."""
        return self if origin is None else Centred(self, origin)

    @abstractmethod
    def diagonal(self, X: Features) -> Array:
        """The kernel of every row of ``X`` with itself, (n_samples,)."""

    def rounding(self, others: object) -> float:
        """Relative error of the largest kernel values between `others`, in ulps."""
        return 1.0

    def mean_rounding(self, X: Features) -> float:
        """Mean error of a kernel value on ``X``, in ulps of the largest value. Estimated from a
        sample of pairs, to reject data whose kernel values have no correct digits. Certificates use
        `lost`, a bound."""
        return 1.0

    def lost(self, others: object, diagonal: Array) -> Lost:
        """A bound on the rounding of the values between `others`. For an unknown function, a few
        ulps of the largest value that a pair can have."""
        return Lost(
            FUNCTION_ULPS * UNIT, np.sqrt(np.maximum(diagonal, 0.0)), np.zeros(diagonal.size)
        )

    def precisely(self, X: Features, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """``K(X, X[index]) @ weights`` for weights (n_index,), where it can be computed with less
        rounding than from the kernel values; otherwise None."""
        return None

    def anchors(self, X: Values, index: Index, numbers: Index | None = None) -> Any:
        """What predictions need of the training samples ``index``, as `others` of a later `fill`;
        ``numbers`` are those of the samples of X among all there were, by default their places."""
        return X[index]


@dataclass(frozen=True, eq=False)
class Centred(Kernel):
    """Any kernel of ``x - origin`` and ``z - origin``, evaluated on dense blocks of samples."""

    kernel: Kernel
    origin: Array

    is_definite, is_strict = forwarded("kernel", "is_definite", "is_strict")

    def others(self, X: Values) -> Any:
        return by_rows(X)

    def fill(self, left: Values, others: Any, out: Array) -> None:
        for rows, lines in dense_rows(by_rows(left), TILE_ROWS):
            for columns, block in dense_rows(others, TILE_COLUMNS):
                self.kernel(lines - self.origin, block - self.origin, out[rows, columns])

    def diagonal(self, X: Any) -> Array:
        blocks = dense_rows(by_rows(X), TILE_ROWS)
        return np.concatenate([self.kernel.diagonal(lines - self.origin) for _, lines in blocks])


def check_gamma(gamma: float) -> None:
    if not isinstance(gamma, Real) or not (isfinite(gamma) and float(gamma) > 0):
        raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {shown(gamma)}")


def check_coef0(coef0: float) -> None:
    if not isinstance(coef0, Real) or not isfinite(coef0):
        raise ValueError(f"coef0 is a finite number, not {shown(coef0)}")
    check_magnitude("coef0", float(coef0), positive=False)


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    def others(self, X: Values) -> Others:
        return about(X, np.zeros(X.shape[1]))

    def fill(self, left: Values, others: Others, out: Array) -> None:
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

    def tiles(self, left: Matrix, others: Others) -> Iterator[Tile]:
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
    """A function of the inner products of samples less a point; sparse ones are not filled."""

    kernel: ProductKernel
    origin: Array

    @property
    def is_definite(self) -> bool:
        return self.kernel.is_definite

    def others(self, X: Values) -> Others:
        return about(X, self.origin)

    def diagonal(self, X: Any) -> Array:
        values = row_squares(X, self.origin)
        self.transform(values, values)
        return values

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        return self.kernel.lost_of(lengths, relative)

    def transform(self, tile: Array, out: Array) -> None:
        self.kernel.transform(tile, out)
