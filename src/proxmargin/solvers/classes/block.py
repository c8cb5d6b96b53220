"""Some columns of the data with a column of ones, for Newton steps over several classes."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyrk

from proxmargin.compiled.products import products
from proxmargin.compiled.solvers import multiplier_newton as compiled
from proxmargin.designs.base import Design
from proxmargin.designs.row_span import in_short_coordinates
from proxmargin.designs.sparse import SparseDesign
from proxmargin.designs.standardized import StandardizedDesign
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.runtime.memoisation import Remembers, cached_property

__all__ = ["Block", "ClassCoordinates", "ColumnClassPairs", "Live", "class_coordinates"]

Ids = NDArray[np.intp]

DENSE_SUPPORT = 0.4  # share of positive multipliers of live samples above which BLAS is faster
# Hessian by BLAS, a block of live samples at a time
BLOCK_ENTRIES = 1 << 20  # entries of scaled rows in a block: 8 MB
BLOCK_ROWS = 1 << 8  # fewest rows of a block, for which BLAS is at full speed


class Live(NamedTuple):
    """The samples with curvature in the smoothed loss.

    Attributes
    ----------
    samples : (n_live,) integers
    masses : (n_samples, n_classes)
        Multipliers; a live sample has at least two positive ones.
    weights : (n_samples,)
        Curvatures of all samples.
    """

    samples: Ids
    masses: Array
    weights: Array

    @property
    def contrasts(self) -> int:
        """Rank of the curvature: positive multipliers less one, summed over live samples."""
        return int(np.count_nonzero(self.masses[self.samples])) - self.samples.size

    def own_bends(self) -> Array:
        """Second derivatives of the loss in each score, (n_live, n_classes)."""
        inside = self.masses[self.samples] > 0
        share = 1.0 - 1.0 / inside.sum(axis=1, keepdims=True)
        return np.where(inside, self.weights[self.samples, None] * share, 0.0)


class ColumnClassPairs:
    """The unknowns of a linear system: pairs of a column and a class, ordered by class.

    Parameters
    ----------
    free : (n_columns + 1, n_classes) of bool
        Whether a pair is an unknown; the last row belongs to the column of ones.
    """

    def __init__(self, free: NDArray[np.bool_]) -> None:
        classes, columns = np.nonzero(free.T)
        self.shape = free.shape
        self.columns: Ids = columns.astype(np.intp)
        self.classes: Ids = classes.astype(np.intp)
        self.starts: Ids = np.searchsorted(classes, np.arange(free.shape[1] + 1)).astype(np.intp)

    @property
    def size(self) -> int:
        return self.columns.size

    @property
    def places(self) -> Ids:
        """Index of the unknown of each pair; -1 if the pair is none."""
        places = np.full(self.shape, -1, dtype=np.intp)
        places[self.columns, self.classes] = np.arange(self.size)
        return places

    def gathered(self, table: Array) -> Array:
        return table[self.columns, self.classes]

    def spread(self, values: Array) -> Array:
        table = np.zeros(self.shape)
        table[self.columns, self.classes] = values
        return table


class Block(ABC):
    """An (n_samples, n_columns) part of the data, followed by a column of ones."""

    n_samples: int
    n_columns: int
    entries: int
    """Number of stored entries."""

    @abstractmethod
    def scores(self, stacked: Array) -> Array:
        """``[X, 1] @ stacked``, (n_samples, n_classes)."""

    @abstractmethod
    def part_scores(self, columns: Ids, coef: Array) -> Array:
        """``X[:, columns] @ coef``, for a few columns of the data."""

    @abstractmethod
    def adjoint(self, dual: Array) -> Array:
        """``[X, 1].T @ dual``, (n_columns + 1, n_classes)."""

    @abstractmethod
    def curvature(self, live: Live, pairs: ColumnClassPairs) -> Array:
        """The Hessian of the smoothed loss over the pairs; only its lower triangle is valid."""

    @abstractmethod
    def roots(self, live: Live, pairs: ColumnClassPairs, factors: Array) -> Array:
        """B with ``B'B`` the Hessian, (contrasts, pairs), its columns multiplied by ``factors``."""

    @abstractmethod
    def bends(self, live: Live) -> Array:
        """The diagonal of the Hessian for every pair, (n_columns + 1, n_classes)."""

    @abstractmethod
    def inner_products(self, samples: Ids, weights: Array) -> Array:
        """``X diag(weights) X'`` for some of the samples."""


class DenseBlock(Block):
    """Columns as a dense array in C order."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        self.n_samples, self.n_columns = self.matrix.shape
        self.entries = self.matrix.size

    def scores(self, stacked: Array) -> Array:
        return self.matrix @ stacked[:-1] + stacked[-1]

    def part_scores(self, columns: Ids, coef: Array) -> Array:
        return self.matrix[:, columns] @ coef

    def adjoint(self, dual: Array) -> Array:
        return np.vstack([self.matrix.T @ dual, dual.sum(axis=0)])

    def curvature(self, live: Live, pairs: ColumnClassPairs) -> Array:
        hessian = np.zeros((pairs.size, pairs.size))
        if live.contrasts > DENSE_SUPPORT * live.samples.size * live.masses.shape[1]:
            return self._crowded_curvature(live, pairs, hessian)
        compiled.add_dense_curvature(
            self.matrix, live.samples, live.masses, live.weights, pairs.columns, pairs.starts,
            hessian,
        )  # fmt: skip
        return hessian

    def _crowded_curvature(self, live: Live, pairs: ColumnClassPairs, hessian: Array) -> Array:
        """The Hessian by BLAS, for large supports, a block of live samples at a time."""
        step = max(BLOCK_ROWS, BLOCK_ENTRIES // max(pairs.size, 1))
        for start in range(0, live.samples.size, step):
            self._add_crowded(live.samples[start : start + step], live, pairs, hessian)
        for row in range(len(hessian) - 1):
            hessian[row + 1 :, row] = hessian[row, row + 1 :]
        return hessian

    def _add_crowded(
        self, samples: Ids, live: Live, pairs: ColumnClassPairs, hessian: Array
    ) -> None:
        """Add the Hessian of some samples to the upper triangle, in place."""
        inside, roots = live.masses[samples] > 0, np.sqrt(live.weights[samples])
        rows = np.column_stack([self.matrix[samples], np.ones(samples.size)])
        spread = rows[:, pairs.columns]
        for k, (first, last) in enumerate(itertools.pairwise(pairs.starts.tolist())):
            part = spread[:, first:last]
            part *= (roots * inside[:, k])[:, None]
            hessian[first:last, first:last] += part.T @ part
        spread /= np.sqrt(inside.sum(axis=1, keepdims=True))
        # in place: the product would be another matrix of the size of the Hessian
        dsyrk(-1.0, spread.T, beta=1.0, c=hessian.T, lower=1, overwrite_c=1)

    def roots(self, live: Live, pairs: ColumnClassPairs, factors: Array) -> Array:
        out = np.zeros((live.contrasts, pairs.size))
        compiled.dense_rows(
            self.matrix, live.samples, live.masses, live.weights, pairs.columns, pairs.starts,
            factors, out,
        )  # fmt: skip
        return out

    def bends(self, live: Live) -> Array:
        own = live.own_bends()
        return np.vstack([(self.matrix[live.samples] ** 2).T @ own, own.sum(axis=0)])

    def inner_products(self, samples: Ids, weights: Array) -> Array:
        scaled = self.matrix[samples] * np.sqrt(weights)
        return scaled @ scaled.T


class SparseBlock(Block):
    """Columns as a CSR matrix."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix = matrix.astype(np.float64, copy=False)
        self.parts = (matrix.data, matrix.indices, matrix.indptr)
        self.n_samples, self.n_columns = matrix.shape
        self.entries = matrix.nnz

    def scores(self, stacked: Array) -> Array:
        out = np.zeros((self.n_samples, stacked.shape[1]))
        products.gather(*self.parts, stacked, out)
        return out + stacked[-1]

    def part_scores(self, columns: Ids, coef: Array) -> Array:
        stacked = np.zeros((self.n_columns + 1, coef.shape[1]))
        stacked[columns] = coef
        return self.scores(stacked)

    def adjoint(self, dual: Array) -> Array:
        out = np.zeros((self.n_columns + 1, dual.shape[1]))
        products.scatter(*self.parts, dual, out)
        out[-1] = dual.sum(axis=0)
        return out

    def curvature(self, live: Live, pairs: ColumnClassPairs) -> Array:
        hessian = np.zeros((pairs.size, pairs.size))
        compiled.add_sparse_curvature(
            *self.parts, live.samples, live.masses, live.weights, pairs.places, hessian
        )
        return hessian

    def roots(self, live: Live, pairs: ColumnClassPairs, factors: Array) -> Array:
        out = np.zeros((live.contrasts, pairs.size))
        compiled.sparse_rows(
            *self.parts, live.samples, live.masses, live.weights, pairs.places, factors, out
        )
        return out

    def bends(self, live: Live) -> Array:
        rows, own = self.matrix[live.samples], live.own_bends()
        return np.vstack([rows.power(2).T @ own, own.sum(axis=0)])

    def inner_products(self, samples: Ids, weights: Array) -> Array:
        rows = self.matrix[samples]
        return ((rows * weights[None, :]) @ rows.T).toarray()


class ClassCoordinates(Remembers):
    """Coordinates of the problem in which its Newton systems are well-conditioned.

    With a free intercept dense features are centred (and centred sparse ones uncentred), which the
    intercept absorbs: ``intercept + centre' coef``. Without an l1 part, wide data are expressed in
    their row span.

    Attributes
    ----------
    design : Design
    centre : (n_features,)
        Centre of the features, before any change of basis.
    """

    def __init__(self, problem: Problem) -> None:
        design, free = problem.design, problem.intercept.is_shift_invariant
        self.whole, self.centre = design, np.zeros(design.n_features)
        if free and design.is_dense:
            self.whole, self.centre = problem.centred
        elif free and not design.has_columns:
            base, centre, scale = design.stored
            self.whole = StandardizedDesign(base, np.zeros_like(centre), scale)
            self.centre = -centre / scale
        wide = design.n_features > design.n_samples
        self.basis = in_short_coordinates(self.whole) if wide and not has_l1(problem) else None
        self.design: Design = self.whole if self.basis is None else self.basis.design

    def stacked(self, point: Point) -> Array:
        """Coefficients in these coordinates, and the intercept as last row."""
        coef = point.coef
        if self.basis is not None:
            coef = np.column_stack([self.basis.of(column) for column in coef.T])
        return np.vstack([coef, point.intercept + self.centre @ point.coef])

    def point(self, stacked: Array, members: Ids) -> Point:
        """The point of coefficients of the columns ``members``."""
        if self.basis is not None:
            coef = np.column_stack([self.basis.coef(column) for column in stacked[:-1].T])
        else:
            coef = np.zeros((self.design.n_features, stacked.shape[1]))
            coef[members] = stacked[:-1]
        return Point(coef, stacked[-1] - self.centre @ coef)

    def block(self, members: Ids) -> Block:
        """Some of the columns; the last answer is remembered."""
        return self.remembered(_some_columns, members)

    @cached_property
    def spreads(self) -> Array:
        """Root mean square of each column."""
        rows = np.full(self.design.n_samples, 1.0 / self.design.n_samples)
        return np.sqrt(self.design.column_squares(rows, np.zeros(self.design.n_features)))


def has_l1(problem: Problem) -> bool:
    """Whether the penalty has an l1 part, so that features are selected."""
    return float(getattr(problem.penalty, "l1", 0.0)) > 0


def class_coordinates(problem: Problem) -> ClassCoordinates:
    """The coordinates of the problem, computed once."""
    return problem.remembered(ClassCoordinates)


def _some_columns(coordinates: ClassCoordinates, members: Ids) -> Block:
    return _block(coordinates.design, members)


def _block(design: Design, members: Ids) -> Block:
    stored = design.stored
    if stored.base.compressed is not None and not stored.centre.any():
        rows = _by_rows(stored.base.compressed, members)
        if stored.base is not design:
            rows = sparse.csr_array(rows * (1.0 / stored.scale[members])[None, :])
        return SparseBlock(rows)
    return DenseBlock(design.dense_columns(members, "C"))


def _by_rows(design: SparseDesign, members: Ids) -> sparse.csr_array:
    return sparse.csr_array(design.matrix[:, members])
