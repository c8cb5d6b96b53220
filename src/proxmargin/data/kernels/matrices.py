"""Kernel matrices that are given, and those that are computed from the samples."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.products import products
from proxmargin.compiled.rounding import EPS, Lost
from proxmargin.data.designs.base import PassCounter
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.samples import TILE_COLUMNS, TILE_ROWS, Others, by_rows
from proxmargin.data.kernels.base import Kernel, ProductKernel
from proxmargin.data.kernels.checks import (
    check_function,
    checked_precomputed,
    looks_single,
    precision_of,
)
from proxmargin.data.kernels.functions import Custom, Precomputed
from proxmargin.data.kernels.matrix import ROWS_ENTRIES, KernelMatrix, pieces
from proxmargin.functions.rows import first_of_equals, live_rows, order_of_rows
from proxmargin.runtime.memory import BLOCK_ENTRIES, cached_property
from proxmargin.runtime.types import Array, Index, Values

CACHE_BYTES = 1_000_000_000
# blocks of kernel values
GATHERED_SHARE = 0.5  # share of rows above which a product with the whole matrix is faster
SYMMETRIC_ROWS = 4  # rows over the cache's capacity, above which symmetry halves the kernel values
# rounding
SINGLE = float(np.finfo(np.float32).eps)


class StoredKernel(KernelMatrix):
    """A symmetric matrix that was computed beforehand; not copied, may be read-only or mapped."""

    is_definite = False

    def __init__(self, matrix: Values, counter: PassCounter | None = None) -> None:
        self.matrix = matrix
        self.n_samples = matrix.shape[0]
        self.counter = counter or PassCounter()
        self.precision = precision_of(matrix)
        self.product_bytes = int(matrix.nbytes)
        self._computed_in = max(self.precision, SINGLE if looks_single(matrix) else 0.0)
        self._design = DenseDesign(matrix, self.counter)
        # K is symmetric, so that its transpose serves if that has the contiguous rows
        self._lines = matrix if matrix.strides[1] <= matrix.strides[0] else matrix.T

    @property
    def negative(self) -> float:
        return self._computed_in ** (2 / 3)

    def matvec(self, right: Array, again: NDArray[np.bool_] | None = None) -> Array:
        live = live_rows(right)
        if live.size > GATHERED_SHARE * self.n_samples:
            return self._design.scores(right)
        out = np.zeros(right.shape)
        for index in pieces(live, BLOCK_ENTRIES // max(self.n_samples, 1)):
            out += self.rows(index).T @ right[index]
        return out

    def rows(self, index: Index) -> Array:
        self.counter.add(index.size / max(self.n_samples, 1))
        return self._lines[index].astype(np.float64, copy=False)

    def block(self, rows: Index, columns: Index) -> Array:
        self.counter.add(rows.size * columns.size / max(self.n_samples, 1) ** 2)
        return self.matrix[np.ix_(rows, columns)].astype(np.float64, copy=False)

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix).astype(np.float64)

    @cached_property
    def order(self) -> Index:
        n, lines = self.n_samples, self._lines
        parts = list(pieces(np.arange(n), ROWS_ENTRIES // max(n, 1)))
        middle = [np.partition(lines[part], n // 2, axis=1)[:, n // 2] for part in parts]
        least = [lines[part].min(axis=1) for part in parts]
        return np.lexsort((np.concatenate(middle), np.concatenate(least), self.diagonal()))

    def part(self, index: Index) -> KernelMatrix:
        return StoredKernel(self.matrix[np.ix_(index, index)], self.counter)


class ComputedKernel(KernelMatrix):
    """A matrix computed by blocks of rows, from dense samples, or sparse ones compressed by rows.
    Computed rows are cached as far as ``cache_bytes`` allow, which may be the whole matrix. A row
    that the present product needs is not evicted."""

    product_bytes = 8 * TILE_ROWS * TILE_COLUMNS

    def __init__(
        self,
        kernel: Kernel,
        X: Values,
        *,
        cache_bytes: int = CACHE_BYTES,
        counter: PassCounter | None = None,
    ) -> None:
        self.kernel, self.X = kernel, X
        self.n_samples = X.shape[0]
        self.counter = counter or PassCounter()
        self.is_definite, self.is_strict = kernel.is_definite, kernel.is_strict
        self.capacity = min(self.n_samples, int(cache_bytes) // (8 * max(self.n_samples, 1)))

    @cached_property
    def precision(self) -> float:  # type: ignore[override]
        return EPS * self.kernel.rounding(self.others)

    @cached_property
    def rounding(self) -> float:
        return EPS * self.kernel.mean_rounding(self.X)

    @cached_property
    def lost(self) -> Lost:
        return self.kernel.lost(self.others, self._diagonal)

    def precise_matvec(self, right: Array) -> tuple[Array, Lost]:
        live = live_rows(right)
        exact = self.kernel.precisely(self.X, live, right[live, 0])
        if exact is None or right.shape[1] > 1:
            return super().precise_matvec(right)
        self.counter.add(live.size / max(self.n_samples, 1))
        return exact[0][:, None], exact[1]

    def matvec(self, right: Array, again: NDArray[np.bool_] | None = None) -> Array:
        live = live_rows(right)
        if not live.size:
            return np.zeros(right.shape)
        self.counter.add(live.size / max(self.n_samples, 1))
        if live.size > max(GATHERED_SHARE * self.n_samples, SYMMETRIC_ROWS * self.capacity):
            return self._product_by_halves(right)
        known = self._cache.holds(live)
        out = self._cache.product(live[known], right)
        new, free = live[~known], self._cache.release(live)
        if again is not None and isinstance(self.kernel, ProductKernel):
            self._add_product(self.kernel, new[~again[new]], right, out)
            new = new[again[new]]
        for index in pieces(new, ROWS_ENTRIES // max(self.n_samples, 1)):
            rows = self._computed(index, self._cache.room(index.size, free))
            out += rows.T @ right[index]
            free = self._cache.keep(index, rows, free)
        return out

    def rows(self, index: Index) -> Array:
        self.counter.add(index.size / max(self.n_samples, 1))
        known = self._cache.holds(index)
        if known.all():
            return self._cache.rows(index)
        out = self._computed(index[~known])
        if known.any():
            fresh, out = out, np.empty((index.size, self.n_samples))
            out[known], out[~known] = self._cache.rows(index[known]), fresh
        return out

    def block(self, rows: Index, columns: Index) -> Array:
        self.counter.add(rows.size * columns.size / max(self.n_samples, 1) ** 2)
        values = np.empty((rows.size, columns.size))
        self.kernel.fill(self.X[_run(rows)], self._others_of(_run(columns)), values)
        place = np.full(self.n_samples, -1)
        place[columns] = np.arange(columns.size)
        own = np.flatnonzero(place[rows] >= 0)
        values[own, place[rows[own]]] = self._diagonal[rows[own]]
        return values

    def single_block(self, rows: Index, columns: Index) -> Values:
        kernel = self.kernel
        if not isinstance(kernel, ProductKernel):
            return self.block(rows, columns)
        factors = kernel.single_factors(self.others)
        if factors is None:
            return self.block(rows, columns)
        self.counter.add(rows.size * columns.size / max(self.n_samples, 1) ** 2)
        left, right = factors[0][rows], factors[1][columns]
        values: Values = np.empty((rows.size, columns.size), dtype=np.float32)
        for start in range(0, rows.size, TILE_ROWS):
            some = slice(start, start + TILE_ROWS)
            np.matmul(left[some], right.T, out=values[some])
            kernel.transform(values[some], values[some])
        return values

    def diagonal(self) -> Array:
        return self._diagonal.copy()

    def first_of_equals(self) -> Index:
        return first_of_equals(self.X)

    @cached_property
    def order(self) -> Index:
        return order_of_rows(self.X)

    def taken_together(self, weights: Array) -> Array:
        live = live_rows(weights)
        first = live[first_of_equals(self.X[live])]
        together = np.zeros_like(weights)
        np.add.at(together, first, weights[live])
        return together

    def part(self, index: Index) -> KernelMatrix:
        kept = 8 * index.size * self.capacity
        return ComputedKernel(self.kernel, self.X[index], cache_bytes=kept, counter=self.counter)

    def _product_by_halves(self, right: Array) -> Array:
        """``K @ right`` from square blocks on and above the diagonal, without caching."""
        parts = [slice(k, k + TILE_COLUMNS) for k in range(0, self.n_samples, TILE_COLUMNS)]
        samples = [self.X[part] for part in parts]
        others = [self._others_of(part) for part in parts]
        out = np.zeros(right.shape)
        room = np.empty(min(TILE_COLUMNS, self.n_samples) ** 2)
        for i, rows in enumerate(parts):
            for j in range(i, len(parts)):
                shape = samples[i].shape[0], samples[j].shape[0]
                square = room[: shape[0] * shape[1]].reshape(shape)
                self.kernel.fill(samples[i], others[j], square)
                if i == j:
                    np.einsum("ii->i", square)[:] = self._diagonal[rows]
                else:
                    out[parts[j]] += square.T @ right[rows]
                out[rows] += square @ right[parts[j]]
        return out

    def _add_product(self, kernel: ProductKernel, index: Index, right: Array, out: Array) -> None:
        """Add ``K[index].T @ right[index]`` to ``out``, tile by tile: to store rows in new memory
        takes longer than to compute them."""
        for rows, columns, tile in kernel.tiles(self.X[index], self.others):
            kernel.transform(tile, tile)
            place = index[rows] - columns.start
            own = np.flatnonzero((place >= 0) & (place < tile.shape[1]))
            tile[own, place[own]] = self._diagonal[index[rows][own]]
            out[columns] += tile.T @ right[index[rows]]

    @property
    def nbytes(self) -> int:
        """Memory of the cached rows."""
        return self._cache.nbytes

    @cached_property
    def _diagonal(self) -> Array:
        with np.errstate(over="ignore"):
            diagonal = self.kernel.diagonal(self.X)
        if not np.isfinite(diagonal).all():
            raise ValueError(
                "the kernel exceeds the range of floating-point numbers on these data; scaled "
                "features, a smaller gamma or a lower degree would work"
            )
        return diagonal

    @cached_property
    def others(self) -> Any:
        """The data as the right factor of kernel products; a copy, made once, for sparse data."""
        return self.kernel.others(self.X)

    def _others_of(self, columns: Index | slice) -> Any:
        """Some samples as the right factor of kernel products, about the point of all: `lost`
        bounds the rounding of distances from there."""
        if isinstance(self.others, Others):
            return self.others.taken(self.X, columns)
        return self.kernel.others(self.X[columns])

    @cached_property
    def _cache(self) -> RowCache:
        return RowCache(self.capacity, self.n_samples)

    def _computed(self, index: Index, out: Array | None = None) -> Array:
        values = np.empty((index.size, self.n_samples)) if out is None else out
        self.kernel.fill(self.X[index], self.others, values)
        values[np.arange(index.size), index] = self._diagonal[index]
        return values


def _run(index: Index) -> Index | slice:
    """The slice that takes these samples without a copy, where they follow each other."""
    first = int(index[0]) if index.size else 0
    follow = np.array_equal(index, np.arange(first, first + index.size))
    return slice(first, first + index.size) if follow else index


class RowCache:
    """A least-recently-used cache of ``capacity`` rows of a square matrix with ``size`` rows."""

    def __init__(self, capacity: int, size: int) -> None:
        self.store = np.empty((capacity, size))
        self.slots = np.full(size, -1)
        self.owners = np.full(capacity, -1)
        self.used = np.zeros(capacity, dtype=np.int64)
        self.clock = 0

    def holds(self, index: Index) -> NDArray[np.bool_]:
        """Whether each row of ``index`` is cached."""
        return self.slots[index] >= 0

    def rows(self, index: Index) -> Array:
        """A copy of kept rows."""
        return self.store[self.slots[index]]

    def product(self, index: Index, right: Array) -> Array:
        """``sum_i row_i' right_i`` over kept rows, (size, n_outputs)."""
        out = np.zeros((self.slots.size, right.shape[1]))
        slots = self.slots[index]
        if right.shape[1] == 1:
            factors = np.zeros(self.owners.size)
            factors[slots] = right[index, 0]
            last = slots.max(initial=-1) + 1
            products.across(self.store[:last], factors, out[:, 0])
            return out
        for part in pieces(index, BLOCK_ENTRIES // max(self.slots.size, 1)):
            out += self.rows(part).T @ right[part]
        return out

    def release(self, needed: Index) -> Index:
        """Slots that may be evicted while ``needed`` is in use, least recently used first."""
        self.clock += 1
        slots = self.slots[needed]
        self.used[slots[slots >= 0]] = self.clock
        free = np.flatnonzero(self.used < self.clock)
        return free[np.argsort(self.used[free], kind="stable")]

    def room(self, count: int, free: Index) -> Array:
        """An array for ``count`` rows that `keep` is to cache: the first ``free`` slots where they
        are neighbours, so that nothing is copied."""
        slots = free[:count]
        if count and slots.size == count and slots[-1] - slots[0] == count - 1:
            self.slots[self.owners[slots][self.owners[slots] >= 0]] = -1
            return self.store[slots[0] : slots[0] + count]
        return np.empty((count, self.slots.size))

    def keep(self, index: Index, rows: Array, free: Index) -> Index:
        """Cache ``rows``, as many as there are ``free`` slots; returns the remaining slots."""
        index = index[: free.size]
        slots, left = free[: index.size], free[index.size :]
        past = self.owners[slots]
        self.slots[past[past >= 0]] = -1
        if not np.may_share_memory(rows, self.store):
            self.store[slots] = rows[: index.size]
        self.owners[slots], self.slots[index], self.used[slots] = index, slots, self.clock
        return left

    @property
    def nbytes(self) -> int:
        return int(8 * self.slots.size * np.count_nonzero(self.owners >= 0))


@singledispatch
def kernel_matrix(kernel: Kernel, X: Values, *, cache_bytes: int = CACHE_BYTES) -> KernelMatrix:
    """The matrix of ``kernel`` over dense or sparse samples; of a precomputed one, that is X
    itself. Rows are cached within ``cache_bytes``. Raises ValueError: a precomputed matrix that is
    not square, finite and symmetric, or a function that is not symmetric."""
    return ComputedKernel(kernel, by_rows(X), cache_bytes=cache_bytes)


@kernel_matrix.register
def _(kernel: Precomputed, X: Values, *, cache_bytes: int = CACHE_BYTES) -> KernelMatrix:
    return StoredKernel(checked_precomputed(X))


@kernel_matrix.register
def _(kernel: Custom, X: Values, *, cache_bytes: int = CACHE_BYTES) -> KernelMatrix:
    matrix = ComputedKernel(kernel, by_rows(X), cache_bytes=cache_bytes)
    check_function(kernel, matrix.X)
    return matrix
