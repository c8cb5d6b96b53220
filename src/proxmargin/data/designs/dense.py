"""Dense data, in C or F order, of any real type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg.blas import dsyrk

from proxmargin.compiled.products import compensated, products
from proxmargin.compiled.rounding import Enclosed, compensated_error
from proxmargin.data.designs.base import Design, Order, PassCounter, as_design
from proxmargin.functions.rows import live_rows
from proxmargin.runtime.memory import BLOCK_ENTRIES, CACHED_ENTRIES, unlocked
from proxmargin.runtime.types import Array, Index, Values

GRAM_ROWS = 1 << 8  # from which on BLAS reaches its full speed
SPARSE_COEF = 0.1  # share of nonzero coefficients below which a copy of their columns is cheaper
# OpenBLAS multiplies by few columns up to twice as fast from the left, as rows: for at most
NARROW = 1 << 5
# columns and, along lines, lines of at least
LONG_LINE = 1 << 7


class DenseDesign(Design):
    """A dense matrix, which is not copied and may be read-only or memory-mapped. Float64 goes to
    BLAS without conversion; other types are converted entry by entry in products with a single
    vector, and block by block in products with several."""

    is_dense = True

    def __init__(
        self, matrix: Values, counter: PassCounter | None = None, share: float = 1.0
    ) -> None:
        n, p = matrix.shape
        super().__init__(n, p, int(matrix.nbytes), share=share, counter=counter)
        self.matrix = matrix
        # `major` has contiguous rows: X itself, or its transpose when X is stored by columns
        self.by_rows = bool(matrix.strides[1] <= matrix.strides[0])
        self._major = unlocked(matrix if self.by_rows else matrix.T)
        self._direct = matrix.dtype == np.float64 and self._major.strides[1] == 8

    @property
    def lines(self) -> Array | None:
        """The rows of X, or of X' if not `by_rows`, in C order; None if that needs a copy."""
        whole = self._direct and self._major.flags.c_contiguous
        return self._major if whole else None

    def scores(self, coef: Array) -> Array:
        live = live_rows(coef)
        if not live.size:
            return np.zeros((self.n_samples, coef.shape[1]))
        if live.size < SPARSE_COEF * self.n_features:
            self.counter.add(self.share * live.size / max(self.n_features, 1))
            return self.matrix[:, live].astype(np.float64, copy=False) @ coef[live]
        self.counter.add(self.share)
        return self._along_major(coef) if self.by_rows else self._across_major(coef)

    def adjoint(self, dual: Array) -> Array:
        self.counter.add(self.share)
        return self._across_major(dual) if self.by_rows else self._along_major(dual)

    def row_squares(self, weights: Array, centre: Array) -> Array:
        return self._squares(weights, centre, np.zeros(self.n_samples), self.by_rows)

    def column_squares(self, weights: Array, centre: Array) -> Array:
        return self._squares(weights, centre, np.zeros(self.n_features), not self.by_rows)

    def largest(self) -> Array:
        self.counter.add(self.share)
        out = np.zeros(self.n_features)
        products.line_largest(self._major, not self.by_rows, out)
        return out

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        live = live_rows(coef)
        if live.size < SPARSE_COEF * self.n_features:
            picked = DenseDesign(self.matrix[:, live], self.counter, self.share)
            return picked._precise(coef[live], picked.by_rows).plus(intercept)
        return self._precise(coef, self.by_rows).plus(intercept)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        return self._precise(dual, not self.by_rows)

    def _precise(self, right: Array, along: bool) -> Enclosed:
        """A compensated product with the major axis (``along``), or with its transpose."""
        self.counter.add(self.share * right.shape[1])
        kernel = compensated.along if along else compensated.across
        values = np.empty((self._major.shape[0 if along else 1], right.shape[1]))
        sizes = np.empty(values.shape)
        for k in range(right.shape[1]):
            column = np.ascontiguousarray(right[:, k])
            kernel(self._major, column, *(out := np.empty((2, len(values)))))
            values[:, k], sizes[:, k] = out
        return Enclosed(values, compensated_error(values, sizes, len(right)), sizes)

    def gram(self, weights: Array, centre: Array) -> Array:
        self.counter.add(self.share)
        p = self.n_features
        triangle = np.zeros((p, p), order="F")
        live = np.flatnonzero(weights)
        roots = np.sqrt(weights)
        # blocks stay in the cache, unless they would have too few rows for BLAS
        rows = max(1, min(max(CACHED_ENTRIES // max(p, 1), GRAM_ROWS), BLOCK_ENTRIES // max(p, 1)))
        for start in range(0, live.size, rows):
            part = live[start : start + rows]
            block = np.empty((part.size, p) if self.by_rows else (p, part.size))
            products.scaled_lines(self._major, part, centre, roots, self.by_rows, block)
            triangle = _with_gram_of(triangle, block, trans=not self.by_rows)
        return _mirrored(triangle)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        self.counter.add(self.share)
        triangle = np.zeros((self.n_samples, self.n_samples), order="F")
        step = max(1, BLOCK_ENTRIES // max(self.n_samples, 1))
        for start in range(0, self.n_features, step):
            part = slice(start, start + step)
            block = self.matrix[:, part] - centre[part]
            block *= np.sqrt(weights[part])
            triangle = _with_gram_of(triangle, block, trans=True)
        return _mirrored(triangle)

    def squared_distances(self, first: int, shares: Array) -> Array:
        mean = self.adjoint(shares[:, None])[:, 0]
        self.counter.add(self.share)
        squares = self.row_squares(np.ones(self.n_features), mean)
        products = np.zeros((first, self.n_samples - first))
        step = max(1, BLOCK_ENTRIES // max(self.n_samples, 1))
        for start in range(0, self.n_features, step):  # half the work of all inner products
            part = slice(start, start + step)
            block = self.matrix[:, part] - mean[part]
            products += block[:first] @ block[first:].T
        return squares[:first, None] + squares[None, first:] - 2.0 * products

    def _rows(self, index: Index) -> DenseDesign:
        share = self.share * index.size / max(self.n_samples, 1)
        return DenseDesign(self.matrix[index], self.counter, share)

    def part(self, rows: Index, columns: Index) -> DenseDesign:
        if columns.size == self.n_features:
            return DenseDesign(self.matrix[rows])
        if self.by_rows:
            return DenseDesign(self.matrix[np.ix_(rows, columns)])
        return DenseDesign(self.matrix.T[np.ix_(columns, rows)].T)

    def _columns(self, index: Index) -> DenseDesign:
        if not self.by_rows and np.array_equal(index, np.arange(self.n_features)):
            return self
        picked = self._picked(index, self.matrix.dtype, "F")
        return DenseDesign(picked, self.counter, self.share * index.size / self.n_features)

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        self.counter.add(self.share * index.size / max(self.n_features, 1))
        return self._picked(index, np.dtype(np.float64), order)

    def _picked(self, index: Index, dtype: np.dtype[np.generic], order: Order) -> Values:
        """A copy of some columns in the given type and order, without a temporary one."""
        picked = np.empty((self.n_samples, index.size), dtype, order=order)
        step = max(1, CACHED_ENTRIES // max(index.size, 1))
        for start in range(0, self.n_samples, step):
            part = slice(start, start + step)
            picked[part] = self.matrix[part][:, index]
        return picked

    def sweep_data(self) -> tuple[Values, ...]:
        return self.matrix, np.zeros(self.n_features), np.ones(self.n_features)

    def _blocks(self, step: int) -> Iterator[tuple[Array, slice]]:
        """Blocks of ``step`` rows of the major matrix, as float64."""
        for start in range(0, self._major.shape[0], step):
            part = slice(start, min(start + step, self._major.shape[0]))
            yield self._major[part].astype(np.float64, copy=False), part

    @property
    def _cached(self) -> int:
        """Rows of the major matrix whose float64 copy fits in the cache."""
        return max(1, CACHED_ENTRIES // max(self._major.shape[1], 1))

    def _along_major(self, right: Array) -> Array:
        if self._direct:
            if 1 < right.shape[1] <= NARROW and self._major.shape[1] >= LONG_LINE:
                return np.ascontiguousarray((right.T @ self._major.T).T)
            return self._major @ right
        if right.shape[1] == 1:
            out = np.empty((self._major.shape[0], 1))
            products.along(self._major, np.ascontiguousarray(right[:, 0]), out[:, 0])
            return out
        return np.concatenate([block @ right for block, _ in self._blocks(self._cached)])

    def _across_major(self, right: Array) -> Array:
        if self._direct:
            if 1 < right.shape[1] <= NARROW:
                return np.ascontiguousarray((right.T @ self._major).T)
            return self._major.T @ right
        out = np.zeros((self._major.shape[1], right.shape[1]))
        if right.shape[1] == 1:
            products.across(self._major, np.ascontiguousarray(right[:, 0]), out[:, 0])
            return out
        for block, part in self._blocks(self._cached):
            out += block.T @ right[part]
        return out

    def _squares(self, weights: Array, centre: Array, out: Array, of_lines: bool) -> Array:
        self.counter.add(self.share)
        weights, centre = np.ascontiguousarray(weights), np.ascontiguousarray(centre)
        products.line_squares(self._major, weights, centre, of_lines, self.by_rows, out)
        return out


def _with_gram_of(triangle: Array, block: Array, *, trans: bool) -> Array:
    """Add ``block' block``, or ``block block'`` for ``trans``, to the upper triangle, in place."""
    if block.size == 0:  # BLAS rejects empty matrices
        return triangle
    added: Array = dsyrk(1.0, block.T, beta=1.0, c=triangle, trans=trans, overwrite_c=True)
    return added


def _mirrored(triangle: Array) -> Array:
    """The symmetric matrix in C order, in place, from its upper triangle in Fortran order.
    Computing one triangle only, as BLAS does, halves the work of the product."""
    lower, step = triangle.T, 64
    for start in range(0, len(lower), step):
        part, rest = slice(start, start + step), slice(start + step, None)
        corner = lower[part, part]
        diagonal = corner.diagonal().copy()
        corner += corner.T  # above the diagonal it is zero
        np.fill_diagonal(corner, diagonal)
        lower[part, rest] = lower[rest, part].T
    return lower


as_design.register(np.ndarray, DenseDesign)
