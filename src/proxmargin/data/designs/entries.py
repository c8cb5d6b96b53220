"""Entries of data: bad ones, the canonical form of sparse matrices, almost full columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.runtime.memory import CACHED_ENTRIES


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


def first_entry(X: Any, is_meant: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> Entry:
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


def sentence(
    entry: Entry, most: float, *, place: str = "", name: str | None = None, advice: str = ""
) -> str:
    """What is wrong with an entry, in a column of this name, whose row is counted in ``place`` (a
    file and row group, or a block); ``advice`` says how to bring finite ones into the range."""
    row, column, value = entry
    kind = "NaN" if np.isnan(value) else "infinity (inf)" if np.isinf(value) else f"{value:g}"
    named = f"{column} ({name!r})" if name is not None else str(column)
    beyond = "" if np.isnan(value) else f", beyond {most:g}"
    if np.isfinite(value) and advice:
        beyond = f"{beyond}, where products overflow: {advice}"
    where = f"{place}, row {row}" if place else f"row {row}"
    return f"Input X contains {kind} in {where}, column {named} (counted from 0){beyond}"


Array = NDArray[np.float64]

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


def full_columns(matrix: Any) -> NDArray[np.bool_]:
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


def _repeated(point: Array, columns: NDArray[np.intp], shape: tuple[int, int]) -> Any:
    """``1 point'`` as CSR, for a point that is zero outside of ``columns``."""
    ends = columns.size * np.arange(shape[0] + 1)
    parts = (np.tile(point[columns], shape[0]), np.tile(columns, shape[0]), ends)
    return sparse.csr_array(parts, shape=shape)
