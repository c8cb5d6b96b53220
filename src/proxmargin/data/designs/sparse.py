"""Sparse data compressed by rows or by columns, with 32- or 64-bit indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.compiled.products import compensated, products
from proxmargin.compiled.rounding import CONSTANT_VARIANCE, Enclosed, compensated_error
from proxmargin.compiled.solvers.newton import sparse_gram
from proxmargin.data.designs.base import Design, Order, PassCounter, as_design, subtract_outer
from proxmargin.data.designs.samples import canonical, entries_of_columns, full_columns, shifted
from proxmargin.runtime.memory import BLOCK_ENTRIES, cached_property, kept
from proxmargin.runtime.types import Array, Estimator, Index, Values

MAX_OFFSET = 1e3  # mean of a feature in standard deviations, where cancellation costs six digits


class SparseDesign(Design):
    """A CSR or CSC matrix, canonical as `as_design` makes it; neither copied nor converted."""

    def __init__(self, matrix: Any, counter: PassCounter | None = None, share: float = 1.0) -> None:
        if matrix.format not in ("csr", "csc"):
            raise TypeError(f"a sparse design is CSR or CSC, not {matrix.format.upper()}")
        n, p = matrix.shape
        nbytes = sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr))
        super().__init__(n, p, int(nbytes), float(matrix.nnz / max(1, n * p)), share, counter)
        self.matrix = matrix
        self._by_rows = matrix.format == "csr"

    @property
    def compressed(self) -> SparseDesign:
        return self

    def scores(self, coef: Array) -> Array:
        return self._product(coef, self.n_samples, gather=self._by_rows)

    def adjoint(self, dual: Array) -> Array:
        return self._product(dual, self.n_features, gather=not self._by_rows)

    def row_squares(self, weights: Array, centre: Array) -> Array:
        return self._squares(weights, centre, self.n_samples, of_rows=True)

    def column_squares(self, weights: Array, centre: Array) -> Array:
        return self._squares(weights, centre, self.n_features, of_rows=False)

    def largest(self) -> Array:
        self.counter.add(self.share)
        parts = (self.matrix.data, self.matrix.indices, self.matrix.indptr)
        largest: Array = products.largest_entries(*parts, self._by_rows, self.n_features)
        return largest

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        return self._precise(coef, self.n_samples, gather=self._by_rows).plus(intercept)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        return self._precise(dual, self.n_features, gather=not self._by_rows)

    def _precise(self, right: Array, length: int, *, gather: bool) -> Enclosed:
        self.counter.add(self.share * right.shape[1])
        parts = (self.matrix.data, self.matrix.indices, self.matrix.indptr)
        kernel = compensated.gather if gather else compensated.scatter
        values, sizes = np.empty((length, right.shape[1])), np.empty((length, right.shape[1]))
        for k in range(right.shape[1]):
            kernel(*parts, np.ascontiguousarray(right[:, k]), *(out := np.empty((2, length))))
            values[:, k], sizes[:, k] = out
        return Enclosed(values, compensated_error(values, sizes, len(right)), sizes)

    def gram(self, weights: Array, centre: Array) -> Array:
        out = self._centred_gram(self.by_rows, weights, centre)
        # if cancellation costs too many digits, subtract the offsets before the products
        cancelled = weights.sum() * centre**2 > MAX_OFFSET**2 * np.diagonal(out)
        if not (cancelled & (centre != 0.0)).any():
            return out
        return self._centred_gram(*self._with_offsets_subtracted(weights, centre))

    def _centred_gram(self, rows: Any, weights: Array, centre: Array) -> Array:
        """``(X - 1 c')' D (X - 1 c') = X'DX - c h' - h c' + (1'D1) c c'`` with ``h = X'D1``."""
        self.counter.add(self.share)
        out = np.zeros((self.n_features, self.n_features))
        sparse_gram(rows.data, rows.indices, rows.indptr, np.ascontiguousarray(weights), out)
        if centre.any():
            pulled = SparseDesign(rows, self.counter, self.share).adjoint(weights[:, None])[:, 0]
            half = pulled - 0.5 * weights.sum() * centre
            subtract_outer(out, centre, half)
            subtract_outer(out, half, centre)
        return out

    def _with_offsets_subtracted(self, weights: Array, centre: Array) -> tuple[Any, Array, Array]:
        """Rows, their weights, and the part of the centre that is not subtracted yet. The offsets
        of columns that are full in the rows with weight are subtracted before products if
        cancellation would cost digits."""
        weighted = np.flatnonzero(weights)
        full = np.flatnonzero((self._stored >= weighted.size) & (centre != 0))  # may be
        if not (full.size and weighted.size):
            return self.by_rows, weights, centre
        variance = self.column_squares(weights / weights.sum(), centre)
        variance = np.where(variance > CONSTANT_VARIANCE * centre**2, variance, variance.mean())
        cancelling = full[centre[full] ** 2 > MAX_OFFSET**2 * variance[full]]
        if not cancelling.size:
            return self.by_rows, weights, centre
        rows = self.by_rows if weighted.size == weights.size else self.by_rows[weighted]
        subtracted = cancelling[full_columns(rows)[cancelling]]
        offsets = np.zeros_like(centre)
        offsets[subtracted] = centre[subtracted]
        return shifted(rows, offsets), weights[weighted], centre - offsets

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        # subtract the offsets of full columns before the products: they would cancel afterwards
        point = np.where(self._stored == self.n_samples, centre, 0.0)
        rest = centre - point
        out = _products_of_rows(self, weights, point).copy()  # folds differ in the rest
        if rest.any():
            # XDX' - 1 h' - h 1' + (c'Dc) 1 1' with h = XDc
            self.counter.add(self.share)
            pull = weights * rest
            half = shifted(self.by_rows, point) @ pull - 0.5 * float(pull @ rest)
            out -= half
            out -= half[:, None]
        return out

    @cached_property
    def _stored(self) -> NDArray[np.intp]:
        """Number of stored entries of each feature."""
        return entries_of_columns(self.matrix)

    def _rows(self, index: Index) -> SparseDesign:
        picked = self.matrix[index]
        return SparseDesign(picked, self.counter, self.share * _share(picked, self.matrix))

    @cached_property
    def by_rows(self) -> Any:
        """The matrix as CSR; a copy, made once, if it is CSC."""
        return self.matrix.tocsr()

    @cached_property
    def by_columns(self) -> Any:
        """The matrix as CSC; a copy, made once, if it is CSR."""
        return self.matrix.tocsc()

    def _columns(self, index: Index) -> SparseDesign:
        if not self._by_rows and np.array_equal(index, np.arange(self.n_features)):
            return self
        picked = self.matrix[:, index].tocsc()
        return SparseDesign(picked, self.counter, self.share * _share(picked, self.matrix))

    def _narrowed(self, index: Index) -> SparseDesign:
        if not self._by_rows:
            return self._columns(index)
        picked = self.matrix[:, index]
        return SparseDesign(picked, self.counter, self.share * _share(picked, self.matrix))

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        picked = self.matrix[:, index]
        self.counter.add(self.share * _share(picked, self.matrix))
        return picked.astype(np.float64, copy=False).toarray(order=order)

    def sweep_data(self) -> tuple[Values, ...]:
        return self.by_columns.data, self.by_columns.indices, self.by_columns.indptr

    def _product(self, right: Array, length: int, *, gather: bool) -> Array:
        self.counter.add(self.share)
        out = np.zeros((length, right.shape[1]))
        kernel = products.gather if gather else products.scatter
        kernel(self.matrix.data, self.matrix.indices, self.matrix.indptr, right, out)
        return out

    def _squares(self, weights: Array, centre: Array, length: int, *, of_rows: bool) -> Array:
        self.counter.add(self.share)
        parts = (self.matrix.data, self.matrix.indices, self.matrix.indptr)
        squares: Array = products.centred_squares(
            *parts, *map(np.ascontiguousarray, (weights, centre)), self._by_rows, of_rows, length
        )
        return squares


@kept
def _products_of_rows(design: SparseDesign, weights: Array, point: Array) -> Array:
    """``(X - 1 point') diag(weights) (X - 1 point')'`` for a point that is zero at columns with
    implicit zeros."""
    design.counter.add(design.share)
    rows = shifted(design.by_rows, point)
    across = rows.T.tocsr()
    out = np.empty((design.n_samples, design.n_samples))
    step = max(1, BLOCK_ENTRIES // max(design.n_samples, 1))
    for start in range(0, design.n_samples, step):
        part = slice(start, start + step)
        block = rows[part].astype(np.float64)
        block.data *= weights[block.indices]
        out[part] = (block @ across).toarray()
    return out


def _share(part: Any, whole: Estimator) -> float:
    return float(part.nnz / max(whole.nnz, 1))


@as_design.register(sparse.spmatrix)
@as_design.register(sparse.sparray)
def _(data: object) -> Design:
    return SparseDesign(canonical(data))
