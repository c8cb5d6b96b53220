"""A design with little overhead per product, for Newton steps on few samples and features.

Steps on small data are many and short, so that the checks and views of a `Design` would take most
of their time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.products.products import gather, scatter
from proxmargin.compiled.solvers.hinge_newton import gathered_columns, gathered_rows
from proxmargin.data.designs.base import Array, Design
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.sparse import SparseDesign

Index = NDArray[np.intp]
# multiply-adds to form a system, up to which a compiled step on a copy of its data is fastest
GATHERED_WORK = 1 << 25
COPIED_ENTRIES = 1 << 21  # entries up to which a part is copied, as it is read often: 16 MB


class NewtonRows(ABC):
    """A design for problems with one column of scores, with products of vectors."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.largest = float(design.largest().max(initial=0.0))

    @abstractmethod
    def scores(self, coef: Array) -> Array:
        """``X @ coef``, (n_samples,)."""

    @abstractmethod
    def adjoint(self, dual: Array) -> Array:
        """``X.T @ dual``, (n_features,)."""

    def is_large(self, rows: int, columns: int) -> bool:
        """Whether a part is selected by zero weights of the samples instead of copied.

        Only for systems over the features (fewer features than samples), whose Gram matrix skips
        samples of weight zero.
        """
        design = self.design
        share = rows / max(design.n_samples, 1)
        return design.n_features == columns <= rows and share * design.nbytes > 8 * COPIED_ENTRIES

    def part(self, rows: Index, columns: Index) -> Design:
        """Some of the features of some of the samples; a copy in C order if few."""
        if _are_few(rows.size, columns.size):
            matrix = self._gathered(rows, columns)
            if matrix is not None:
                self._charge(matrix.size / max(self.design.n_samples * self.design.n_features, 1))
                return DenseDesign(matrix)
        every = columns.size == self.design.n_features
        part = self.design if rows.size == self.design.n_samples else self.design.rows(rows)
        return part if every else part.narrowed(columns)

    def _gathered(self, rows: Index, columns: Index) -> Array | None:
        """A copy of the part in C order; None if there is no fast way to make it."""
        return None

    def _charge(self, share: float = 1.0) -> None:
        self.design.counter.add(share * self.design.share)


def few_by_rows(design: Design) -> Array | None:
    """The matrix in C order if it is small, for compiled steps; None for other data."""
    matrix = getattr(design, "matrix", None)
    if not isinstance(matrix, np.ndarray) or not _are_few(*matrix.shape):
        return None
    return matrix if matrix.dtype == np.float64 and matrix.flags.c_contiguous else None


def _are_few(rows: int, columns: int) -> bool:
    return rows * columns * min(rows, columns) <= GATHERED_WORK


def newton_rows(design: Design) -> NewtonRows:
    return design.remembered(_newton_rows)


def _newton_rows(design: Design) -> NewtonRows:
    base, centre, scale = design.stored
    if base.compressed is not None:
        return _Compressed(design, base.compressed, centre, scale)
    matrix = getattr(design, "matrix", np.empty(0))
    plain = matrix.ndim == 2 and matrix.dtype == np.float64 and matrix.flags.f_contiguous
    return _Plain(design, matrix) if plain else _AnyRows(design)


class _AnyRows(NewtonRows):
    """Data of any kind, by the products of their design."""

    def scores(self, coef: Array) -> Array:
        return self.design.scores(coef[:, None])[:, 0]

    def adjoint(self, dual: Array) -> Array:
        return self.design.adjoint(dual[:, None])[:, 0]


class _Plain(NewtonRows):
    """A matrix in Fortran order."""

    def __init__(self, design: Design, matrix: Array) -> None:
        super().__init__(design)
        self.matrix = matrix

    def scores(self, coef: Array) -> Array:
        self._charge()
        product: Array = self.matrix @ coef
        return product

    def adjoint(self, dual: Array) -> Array:
        self._charge()
        product: Array = dual @ self.matrix
        return product

    def _gathered(self, rows: Index, columns: Index) -> Array:
        part: Array = gathered_columns(self.matrix, rows, columns)
        return part


class _Compressed(NewtonRows):
    """CSR data, with a centre and a scale."""

    def __init__(self, design: Design, base: SparseDesign, centre: Array, scale: Array) -> None:
        super().__init__(design)
        self.centre, self.scale = centre, scale
        matrix = base.by_rows
        self.arrays = matrix.data, matrix.indices, matrix.indptr

    def scores(self, coef: Array) -> Array:
        self._charge()
        raw, out = coef / self.scale, np.empty((self.design.n_samples, 1))
        gather(*self.arrays, raw[:, None], out)
        return out[:, 0] - self.centre @ raw

    def adjoint(self, dual: Array) -> Array:
        self._charge()
        out = np.zeros((self.design.n_features, 1))
        scatter(*self.arrays, dual[:, None], out)
        pulled: Array = (out[:, 0] - dual.sum() * self.centre) / self.scale
        return pulled

    def _gathered(self, rows: Index, columns: Index) -> Array:
        part: Array = gathered_rows(*self.arrays, self.centre, self.scale, rows, columns)
        return part
