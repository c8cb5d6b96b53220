"""Entries of data, and inner products and distances of samples, on dense and sparse data alike.

Products are computed in float64, a tile at a time: no converted or dense copy of the data is held.
Offsets of the features would cancel in distances, so that a centre is subtracted first: from dense
samples, and from the columns of sparse ones that are almost full (standardised samples come centred
so far, `far_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, issparse

from proxmargin.compiled.products import compensated
from proxmargin.compiled.products.kernels import sparse_products
from proxmargin.compiled.products.products import centred_squares
from proxmargin.data.designs.base import SAMPLE_BYTES
from proxmargin.runtime.memory import CACHED_ENTRIES, cached_property, unlocked
from proxmargin.runtime.types import Array, Matrix, Values


class Entry(NamedTuple):
    """An entry of the data, counted from 0."""

    row: int
    column: int
    value: float


def bad_entry(X: Any, most: float) -> Entry | None:
    """The first entry of an array or sparse matrix that is NaN, infinite or beyond ``most``."""
    is_sparse: bool = sparse.issparse(X)
    entries = X.data if is_sparse else X
    # two reductions without temporaries; they propagate NaN and infinities
    if not entries.size or max(-float(entries.min()), float(entries.max())) <= most:
        return None
    return first_entry(X, lambda sizes: ~(sizes <= most))


def first_entry(X: Any, is_meant: Callable[[Values], NDArray[np.bool_]]) -> Entry:
    """The first entry whose absolute value satisfies ``is_meant``; there must be one."""
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        listed = X.tocsr().tocoo()
        entry = int(np.argmax(is_meant(np.abs(listed.data.astype(np.float64)))))
        return Entry(int(listed.row[entry]), int(listed.col[entry]), float(listed.data[entry]))
    step = 1 << 12
    for start in range(0, X.shape[0], step):
        meant = is_meant(np.abs(X[start : start + step].astype(np.float64)))
        if meant.any():
            row, column = np.argwhere(meant)[0]
            return Entry(start + int(row), int(column), float(X[start + row, column]))
    raise AssertionError("called without such an entry")


def is_missing(value: object) -> bool:
    """Whether an entry of a column of objects is none: None, NaN, or NA and NaT of pandas."""
    # NA comes first: a comparison with it has no truth value
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def sentence(
    entry: Entry, most: float, *, place: str = "", name: str | None = None, advice: str = ""
) -> str:
    """What is wrong with an entry, in a column of this name, whose row is counted in ``place`` (a
    file and row group, or a block); ``advice`` says how to bring finite ones into the range."""
    row, column, value = entry
    kind = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else f"{value:g}"
    named = f"{column} ({name!r})" if name is not None else str(column)
    beyond = f", beyond {most:g}" if np.isfinite(value) else ""
    if beyond and advice:
        beyond = f"{beyond}, where products overflow: {advice}"
    where = f"{place}, row {row}" if place else f"row {row}"
    return f"Input X contains {kind} in {where}, column {named} (counted from 0){beyond}"


# share of stored entries from which on a column is centred before products, which fills its zeros
CROWDED = 0.9
# mean over standard deviation from which on a standardised column is centred before it is scaled:
# more than 4 / 5 of its entries are not zero, as the deviation would be larger otherwise
FAR = 2.0
# samples that stand for all where a rough answer will do: the centre of a column need not be the
# mean, only among the entries
FEW_SAMPLES = 256
INT32_MAX = np.iinfo(np.int32).max


def canonical(matrix: Any) -> Any:
    """A CSR or CSC matrix in canonical form: sorted indices without duplicates. A canonical matrix
    is returned as it is; another one is copied, so that the caller's is not changed."""
    if matrix.has_canonical_format:
        return matrix
    tidy = matrix.copy()
    tidy.sum_duplicates()
    return tidy


def narrow_indices(matrix: Any) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """``indices`` and ``indptr``, 32-bit if they fit: kernels compile anew for each index type."""
    index = np.int32 if max(matrix.nnz, *matrix.shape) <= INT32_MAX else np.int64
    return matrix.indices.astype(index, copy=False), matrix.indptr.astype(index, copy=False)


def entries_of_columns(matrix: Any) -> NDArray[np.intp]:
    """How many entries of each column are stored, (n_columns,)."""
    if matrix.format == "csc":
        return np.diff(matrix.indptr).astype(np.intp)
    return np.bincount(matrix.indices[: matrix.indptr[-1]], minlength=matrix.shape[1])


def full_columns(matrix: Matrix) -> NDArray[np.bool_]:
    """Columns all of whose entries are stored, (n_columns,), of a matrix in canonical form."""
    return entries_of_columns(matrix) == matrix.shape[0]


def crowded_centre(matrix: Any) -> Array:
    """A point (p,) amid the stored entries of each column that is almost full, zero for other
    columns, of a matrix in canonical form."""
    point, stored = np.zeros(matrix.shape[1]), entries_of_columns(matrix)
    crowded = np.flatnonzero(stored >= max(CROWDED * matrix.shape[0], 1))
    if crowded.size:
        some = matrix[:: max(1, matrix.shape[0] // FEW_SAMPLES)].tocsc()[:, crowded]
        entries = np.maximum(np.diff(some.indptr), 1)
        point[crowded] = np.asarray(some.sum(axis=0, dtype=np.float64)).ravel() / entries
    return point


def far_columns(centre: Array, scale: Array) -> NDArray[np.bool_]:
    """Columns of sparse data to centre before they are scaled, (n_columns,).

    Entries of others are no larger than a few deviations once they are scaled, so that their
    centre may be subtracted later, from products; in these, the rounding of the quotient would be
    what is left of the differences. The choice depends on nothing but mean and deviation: it is
    the same for all samples that are ever compared.
    """
    return np.abs(centre) > FAR * scale


def shifted(matrix: Any, point: Array) -> Any:
    """``matrix - 1 point'`` of a compressed matrix as CSR, float64; the columns where ``point`` is
    not zero are filled. The matrix itself if the point is zero."""
    columns = np.flatnonzero(point)
    if not columns.size or not matrix.shape[0]:
        return matrix
    rows, step = matrix.tocsr(), max(1, CACHED_ENTRIES // columns.size)
    blocks = [rows[start : start + step] for start in range(0, rows.shape[0], step)]
    moved = [block - _repeated(point, columns, block.shape) for block in blocks]
    return moved[0] if len(moved) == 1 else sparse.vstack(moved, format="csr")


def _repeated(point: Array, columns: NDArray[np.intp], shape: tuple[int, int]) -> Matrix:
    """``1 point'`` as CSR, for a point that is zero outside of ``columns``."""
    ends = columns.size * np.arange(shape[0] + 1)
    parts = (np.tile(point[columns], shape[0]), np.tile(columns, shape[0]), ends)
    return sparse.csr_array(parts, shape=shape)


Tile = tuple[slice, slice, Array]

# shape of a tile of values: a megabyte, which fits in a core's cache
TILE_ROWS = 128
TILE_COLUMNS = 1024


@dataclass(frozen=True, eq=False)
class Others:
    """The right-hand samples of many comparisons, in a form that is computed once. Sample i is
    ``matrix_i - rest`` for sparse data and ``matrix_i - point`` for dense data."""

    # (n_samples, n_features); dense samples as given; sparse ones with ``point`` subtracted, CSC
    matrix: Any
    # (n_features,); subtracted from both sides before products; for sparse samples only by `amid`
    point: Array
    # (n_features,); centre of the sparse samples that is not subtracted; inner products correct for
    # it
    rest: Array

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.matrix.shape
        return n, p

    @cached_property
    def terms(self) -> int:
        """Largest number of nonzero products in an inner product of two samples."""
        if not is_sparse(self.matrix):
            return self.shape[1]
        return int(np.bincount(self.matrix.indices, minlength=1).max(initial=0))

    @cached_property
    def squares(self) -> Array:
        """Squared norms of the samples less ``point``, (n_samples,)."""
        return row_squares(self.matrix, None if is_sparse(self.matrix) else self.point)

    @cached_property
    def lifted(self) -> Array | None:
        """``[z, 1, |z|^2]`` of dense samples z, centred; None where it would be too large to keep.
        Its products with `lowered` samples are squared distances."""
        n, p = self.shape
        if is_sparse(self.matrix) or 8 * n * (p + 2) > SAMPLE_BYTES:
            return None
        return _lifted(self.matrix, self.point, self.squares)

    def taken(self, X: Values, index: NDArray[np.intp] | slice) -> Others:
        """Those of some samples about the same point; ``X`` are the samples as given."""
        if is_sparse(X):
            return Others(shifted(X[index], self.point).tocsc(), self.point, self.rest)
        some, lifted = Others(X[index], self.point, self.rest), self.lifted
        if lifted is not None:
            some.__dict__["lifted"] = lifted[index]
        return some

    @cached_property
    def plain(self) -> NDArray[np.float32] | None:
        """Dense samples, centred, in single precision; None where there is no room for `lifted`."""
        if is_sparse(self.matrix) or 8 * self.matrix.size > SAMPLE_BYTES:
            return None
        return (self.matrix - self.point).astype(np.float32)

    @cached_property
    def single(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        """Factors in single precision whose products are squared distances of dense samples;
        None where there is no room for `lifted`."""
        if self.lifted is None:
            return None
        right = self.lifted.astype(np.float32)
        left = np.empty_like(right)  # as `_lowered`
        np.multiply(right[:, :-2], -2.0, out=left[:, :-2])
        left[:, -2:] = right[:, :-3:-1]
        return left, right

    @cached_property
    def rest_square(self) -> float:
        """``|rest|^2``, whose rounding does not grow with the number of features."""
        out = np.empty((2, 1))
        compensated.along(self.rest[None, :], self.rest, *out)
        return float(out[0, 0])

    @cached_property
    def pulls(self) -> Array:
        """``<matrix_i, rest>``, (n_samples,)."""
        return np.asarray(self.matrix @ self.rest)


def amid(X: Values) -> Others:
    """Samples for `squared_distances`, centred at a point amid them."""
    zero = np.zeros(X.shape[1])
    if not is_sparse(X):
        return Others(X, middle(X), zero)
    point = middle(X)
    return Others(shifted(compressed(X), point).tocsc(), point, zero)


def about(X: Values, origin: Array) -> Others:
    """Samples for `inner_products`, centred at ``origin``, (n_features,)."""
    zero = np.zeros_like(origin)
    if is_sparse(X):
        return Others(compressed(X).tocsc(), zero, origin)
    return Others(X, origin, zero)


def inner_products(left: Matrix, right: Others) -> Iterator[Tile]:
    """Tiles ``(rows, columns, <left_i - o, right_j - o>)`` for dense or sparse samples, with
    ``right`` `about` the point o; a tile is overwritten by the next."""
    if is_sparse(right.matrix):
        own = right.rest_square
        for rows, lines, tile in _sparse_tiles(left, right):
            if own > 0:
                tile -= (lines @ right.rest)[:, None]
                tile += own - right.pulls
            yield rows, slice(0, right.shape[0]), tile
        return
    moved = right.point.any()
    for rows, lines in dense_rows(left, TILE_ROWS):
        x = lines - right.point if moved else lines
        for columns, others in dense_rows(right.matrix, TILE_COLUMNS):
            z = others - right.point if moved else others
            yield rows, columns, x @ z.T


def squared_distances(left: Matrix, right: Others) -> Iterator[Tile]:
    """Tiles ``(rows, columns, |left_i - right_j|^2)``; rounding may make an entry negative. Samples
    are centred at a point amid ``right``, so that a common offset does not cancel."""
    if is_sparse(right.matrix):
        for rows, lines, tile in _sparse_tiles(left, right):
            np.multiply(tile, -2.0, out=tile)
            tile += row_squares(lines)[:, None]
            tile += right.squares
            yield rows, slice(0, right.shape[0]), tile
        return
    lifted = right.lifted
    for rows, lines in dense_rows(left, TILE_ROWS):
        x = _lowered(lines, right.point)
        for start in range(0, right.shape[0], TILE_COLUMNS):
            columns = slice(start, min(start + TILE_COLUMNS, right.shape[0]))
            if lifted is None:
                z = _lifted(right.matrix[columns], right.point, right.squares[columns])
            else:
                z = lifted[columns]
            yield rows, columns, x @ z.T


def _lowered(samples: Values, point: Array) -> Array:
    """``[-2 x, |x|^2, 1]`` of dense samples: times `_lifted`, the squares ride along."""
    out = np.empty((samples.shape[0], samples.shape[1] + 2))
    x = out[:, :-2]
    np.subtract(samples, point, out=x)
    np.einsum("ij,ij->i", x, x, out=out[:, -2])
    out[:, -1] = 1.0
    x *= -2.0
    return out


def _lifted(samples: Values, point: Array, squares: Array) -> Array:
    """``[z, 1, |z|^2]`` of dense samples with these squared norms."""
    out = np.empty((samples.shape[0], samples.shape[1] + 2))
    np.subtract(samples, point, out=out[:, :-2])
    out[:, -2], out[:, -1] = 1.0, squares
    return out


def row_squares(X: Any, centre: Array | None = None) -> Array:
    """``|x_i - centre|^2`` of every row, (n_samples,); sparse data stay sparse."""
    n, p = X.shape
    if is_sparse(X):
        X, point = compressed(X), np.zeros(p) if centre is None else centre
        parts = _arrays(X)
        point = np.ascontiguousarray(point)
        squares: Array = centred_squares(*parts, np.ones(p), point, X.format == "csr", True, n)
        return squares
    out = np.empty(n)
    for rows, lines in dense_rows(X, max(1, CACHED_ENTRIES // max(p, 1))):
        out[rows] = np.square(lines if centre is None else lines - centre).sum(axis=1)
    return out


def middle(X: Values) -> Array:
    """A point amid the samples, (n_features,); for sparse ones zero in columns with few entries."""
    if is_sparse(X):
        return crowded_centre(compressed(X))
    if not X.shape[0]:
        return np.zeros(X.shape[1])
    point: Array = X[:: max(1, X.shape[0] // FEW_SAMPLES)].mean(axis=0, dtype=np.float64)
    return point


def by_rows(X: Any) -> Any:
    """``X`` with cheap access to rows: sparse data as CSR. Only data that are neither dense nor
    canonical CSR are copied."""
    return compressed(X).tocsr() if is_sparse(X) else X


def compressed(X: Any) -> Any:
    """Dense data as they are; sparse data as CSR or CSC in canonical form."""
    if not is_sparse(X):
        return X
    return canonical(X if X.format in ("csr", "csc") else X.tocsr())


def dense_rows(X: Any, step: int) -> Iterator[tuple[slice, Array]]:
    """Slices of ``step`` rows, dense and as float64."""
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        lines = X[rows].toarray() if is_sparse(X) else X[rows]
        yield rows, lines.astype(np.float64, copy=False)


def holds_objects(X: Values) -> bool:
    """Whether validated samples are objects and no rows of numbers."""
    return not issparse(X) and (X.ndim != 2 or X.dtype == object)


def is_sparse(X: object) -> bool:
    """Whether data are a sparse matrix or array."""
    return bool(issparse(X))


def _arrays(X: Any) -> tuple[Values, Values, Values]:
    """``data``, ``indices`` and ``indptr`` as writeable views, for kernels."""
    # SciPy gives some rows without entries 64-bit indices
    indices, starts = narrow_indices(X)
    return unlocked(X.data), unlocked(indices), unlocked(starts)


def _sparse_tiles(left: Matrix, right: Others) -> Iterator[tuple[slice, Any, Array]]:
    """``(rows, lines, lines @ matrix')`` with ``lines`` some rows of ``left``, less ``point``."""
    left, others, n = by_rows(left), right.matrix, right.shape[0]
    step = max(1, TILE_ROWS * TILE_COLUMNS // max(n, 1))
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        lines = _less(left[rows], right.point)
        tile = np.empty((lines.shape[0], n))
        sparse_products(*_arrays(lines), *_arrays(others), tile)
        yield rows, lines, tile


def _less(lines: Matrix, point: Array) -> Matrix:
    """``lines - 1 point'`` as CSR."""
    if is_sparse(lines):
        return shifted(lines, point)
    return csr_array(lines - point if point.any() else lines)
