"""Inner products and distances of samples, tile by tile, on dense and sparse data alike.

Everything is computed in float64 whatever the precision of the data, so that neither a converted
nor a dense copy of the data is ever held. What data have in common, the offsets of their features,
is subtracted where that saves digits: from dense samples, and from the columns of sparse ones that
are almost full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from proxmargin.compiled.products.kernels import sparse_products
from proxmargin.compiled.products.products import centred_squares
from proxmargin.designs.compressed import canonical, crowded_centre, shifted
from proxmargin.designs.memory import unlocked

__all__ = [
    "TILE_COLUMNS",
    "TILE_ROWS",
    "Others",
    "Tile",
    "about",
    "amid",
    "by_rows",
    "compressed",
    "dense_rows",
    "inner_products",
    "is_sparse",
    "middle",
    "row_squares",
    "squared_distances",
]

Array = NDArray[np.float64]
Tile = tuple[slice, slice, Array]

# a tile of values: a megabyte, which stays in a core's cache
TILE_ROWS = 128
TILE_COLUMNS = 1024
# samples behind the centre of the distances: any point amid the data will do
CENTRE_SAMPLES = 256
# entries converted to float64 at a time
BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Others:
    """Samples that others are compared with, in the form that many comparisons need.

    A sample is ``matrix_i - rest``, or where the samples are dense ``matrix_i - point``.

    Attributes
    ----------
    matrix : (n_samples, n_features)
        Dense samples as they are; sparse ones less ``point``, compressed by columns.
    point : (n_features,)
        What is subtracted from both sides before anything else; for sparse samples only where
        almost all of them have an entry.
    rest : (n_features,)
        What is left to be subtracted of sparse samples, in their inner products.
    """

    matrix: Any
    point: Array
    rest: Array

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self.matrix.shape
        return n, p

    @cached_property
    def terms(self) -> int:
        """The most products in an inner product of two samples."""
        if not is_sparse(self.matrix):
            return self.shape[1]
        return int(np.bincount(self.matrix.indices, minlength=1).max(initial=0))

    @cached_property
    def squares(self) -> Array:
        """Of the samples less the point, (n_samples,)."""
        return row_squares(self.matrix, None if is_sparse(self.matrix) else self.point)

    @cached_property
    def pulls(self) -> Array:
        """``<matrix_i, rest>``, (n_samples,)."""
        return np.asarray(self.matrix @ self.rest)


def amid(X: Any) -> Others:
    """Samples for `squared_distances`, measured from a point amid them."""
    zero = np.zeros(X.shape[1])
    if not is_sparse(X):
        return Others(X, middle(X), zero)
    point = middle(X)
    return Others(shifted(compressed(X), point).tocsc(), point, zero)


def about(X: Any, origin: Array) -> Others:
    """Samples for `inner_products`, measured from a given point (n_features,)."""
    if not is_sparse(X):
        return Others(X, origin, np.zeros_like(origin))
    X = compressed(X)
    point = np.where(crowded_centre(X) != 0, origin, 0.0) if origin.any() else origin
    return Others(shifted(X, point).tocsc(), point, origin - point)


def inner_products(left: Any, right: Others) -> Iterator[Tile]:
    """Tiles ``(rows, columns, <left_i - o, right_j - o>)``; a tile is overwritten by the next.

    Parameters
    ----------
    left : (n_left, n_features)
        Dense or sparse.
    right : Others
        `about` the point o.
    """
    if is_sparse(right.matrix):
        own = float(right.rest @ right.rest)
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


def squared_distances(left: Any, right: Others) -> Iterator[Tile]:
    """Tiles ``(rows, columns, |left_i - right_j|^2)``, negative by rounding at worst.

    Samples are measured from a point amid ``right``: then a common offset costs no digits.
    """
    if is_sparse(right.matrix):
        for rows, lines, tile in _sparse_tiles(left, right):
            np.multiply(tile, -2.0, out=tile)
            tile += row_squares(lines)[:, None]
            tile += right.squares
            yield rows, slice(0, right.shape[0]), tile
        return
    width = right.shape[1]
    for rows, lines in dense_rows(left, TILE_ROWS):
        # [-2 x, |x|^2, 1] [z, 1, |z|^2]' = |x - z|^2: the squares ride along in the product
        x = np.empty((len(lines), width + 2))
        np.subtract(lines, right.point, out=x[:, :-2])
        x[:, -2] = np.einsum("ij,ij->i", x[:, :-2], x[:, :-2])
        x[:, -1] = 1.0
        x[:, :-2] *= -2.0
        for columns, others in dense_rows(right.matrix, TILE_COLUMNS):
            z = np.empty((len(others), width + 2))
            np.subtract(others, right.point, out=z[:, :-2])
            z[:, -1] = np.einsum("ij,ij->i", z[:, :-2], z[:, :-2])
            z[:, -2] = 1.0
            yield rows, columns, x @ z.T


def row_squares(X: Any, centre: Any = None) -> Array:
    """``|x_i - centre|^2`` of every row, (n_samples,); sparse data are not filled."""
    n, p = X.shape
    if is_sparse(X):
        X, point = compressed(X), np.zeros(p) if centre is None else centre
        parts = _arrays(X)
        squares: Array = centred_squares(*parts, np.ones(p), point, X.format == "csr", True, n)
        return squares
    out = np.empty(n)
    for rows, lines in dense_rows(X, max(1, BLOCK // max(p, 1))):
        out[rows] = np.square(lines if centre is None else lines - centre).sum(axis=1)
    return out


def middle(X: Any) -> Array:
    """A point amid the samples, (n_features,); of sparse ones in columns that are almost full."""
    if is_sparse(X):
        return crowded_centre(compressed(X))
    if not X.shape[0]:
        return np.zeros(X.shape[1])
    point: Array = X[:: max(1, X.shape[0] // CENTRE_SAMPLES)].mean(axis=0, dtype=np.float64)
    return point


def by_rows(X: Any) -> Any:
    """``X`` with rows that can be picked cheaply: sparse data compressed by rows.

    Only data in other sparse formats, or not in canonical form, are copied.
    """
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


def is_sparse(X: Any) -> bool:
    """Whether data are a sparse matrix or array."""
    return bool(issparse(X))


def _arrays(X: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What a compressed matrix is made of, for kernels that read it."""
    return unlocked(X.data), unlocked(X.indices), unlocked(X.indptr)


def _sparse_tiles(left: Any, right: Others) -> Iterator[tuple[slice, Any, Array]]:
    """``(rows, lines, lines @ matrix')`` for the ``lines`` of ``left``, less the point."""
    left, others, n = by_rows(left), right.matrix, right.shape[0]
    step = max(1, TILE_ROWS * TILE_COLUMNS // max(n, 1))
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        lines = _less(left[rows], right.point)
        tile = np.empty((lines.shape[0], n))
        sparse_products(*_arrays(lines), *_arrays(others), tile)
        yield rows, lines, tile


def _less(lines: Any, point: Array) -> Any:
    """``lines - 1 point'`` compressed by rows."""
    if is_sparse(lines):
        return shifted(lines, point)
    return csr_array(lines - point if point.any() else lines)
