"""Some columns of the data with a column of ones, for Newton steps over several classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg.blas import dsyrk

from proxmargin.compiled.products import products
from proxmargin.compiled.solvers.multiplier_newton import add_curvature
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.dense import GRAM_ROWS
from proxmargin.data.designs.views import StandardizedDesign, in_short_coordinates
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import BLOCK_ENTRIES, Remembers, cached_property
from proxmargin.runtime.types import Array

Ids = NDArray[np.intp]
Indices = NDArray[np.signedinteger]


class CurvedSamples(NamedTuple):
    """The samples with curvature in the smoothed loss. The curvature of a sample in its scores is
    ``weight (diag(A) - A A' / |A|)``, A the support of its multipliers, of two classes at least."""

    samples: Ids  # (n_curved,) integers
    inside: NDArray[np.bool_]  # (n_curved, n_classes) of bool; the supports
    weights: Array  # (n_curved,)

    @property
    def contrasts(self) -> int:
        """Rank of the curvature: sizes of the supports less one, summed."""
        return int(np.count_nonzero(self.inside)) - self.samples.size

    def product(self, scores: Array) -> Array:
        """The curvature times ``scores``, (n_samples, n_classes); zero where not curved."""
        part = np.where(self.inside, scores[self.samples], 0.0)
        mean = part.sum(axis=1, keepdims=True) / self.inside.sum(axis=1, keepdims=True)
        product = np.zeros_like(scores)
        product[self.samples] = np.where(self.inside, self.weights[:, None] * (part - mean), 0.0)
        return product

    def diagonal(self) -> Array:
        """Second derivatives of the loss in each score, (n_curved, n_classes)."""
        share = 1.0 - 1.0 / self.inside.sum(axis=1, keepdims=True)
        return np.where(self.inside, self.weights[:, None] * share, 0.0)

    def roots(self) -> tuple[Ids, Array]:
        """Q with ``Q'Q`` the curvature, (n_contrasts, n_classes), and the place of its samples. The
        orthonormal contrasts of Helmert: the mean of some classes of a support against the next."""
        counts = self.inside.sum(axis=1) - 1
        places = np.repeat(np.arange(counts.size), counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        which = (np.arange(places.size) - first)[:, None]
        order = (np.cumsum(self.inside, axis=1) - 1)[places]
        entries = np.where(order <= which, 1.0, np.where(order == which + 1, -(which + 1.0), 0.0))
        entries *= np.sqrt(self.weights[places, None] / ((which + 1.0) * (which + 2.0)))
        return places, np.where(self.inside[places], entries, 0.0)


class ColumnClassPairs:
    """The unknowns of a linear system: pairs of a column and a class, ordered by class. ``free``,
    (n_columns + 1, n_classes), has them; its last row belongs to the column of ones."""

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
    crowded: ClassVar[float] = np.inf
    """Contrasts over curved samples and classes above which the Hessian is a product of roots."""

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
    def rows(self, samples: Ids, columns: Ids) -> Array:
        """Some columns of ``[X, 1]`` for some samples, as a dense array."""

    @abstractmethod
    def compressed(self, samples: Ids) -> tuple[Array, Indices, Indices, Ids]:
        """Data, columns and ends of rows of X, and which of the rows are those of the samples."""

    def curvature(self, curved: CurvedSamples, pairs: ColumnClassPairs) -> Array:
        """The Hessian of the smoothed loss over the pairs; only its lower triangle is valid."""
        hessian = np.zeros((pairs.size, pairs.size))
        few, places = curved.contrasts <= self.crowded * curved.inside.size, pairs.places
        step = max(GRAM_ROWS, BLOCK_ENTRIES // max(self.n_columns + 1 if few else pairs.size, 1))
        for start in range(0, curved.samples.size, step):
            part = slice(start, start + step)
            some = CurvedSamples(curved.samples[part], curved.inside[part], curved.weights[part])
            if few:
                parts = self.compressed(some.samples)
                add_curvature(*parts, some.inside, some.weights, places, hessian)
            else:
                self._add_crowded(some, pairs, hessian)
        return hessian

    def _add_crowded(self, curved: CurvedSamples, pairs: ColumnClassPairs, hessian: Array) -> None:
        """Add the Hessian of some samples: a product for each class, less one of their means."""
        used, at = np.unique(pairs.columns, return_inverse=True)
        rows = self.rows(curved.samples, used)[:, at]
        rows *= np.where(curved.inside, np.sqrt(curved.weights)[:, None], 0.0)[:, pairs.classes]
        for first, last in pairwise(pairs.starts.tolist()):
            hessian[first:last, first:last] += rows[:, first:last].T @ rows[:, first:last]
        rows /= np.sqrt(curved.inside.sum(axis=1, keepdims=True))
        # in place: the product would be another matrix of the size of the Hessian
        dsyrk(-1.0, rows.T, beta=1.0, c=hessian.T, overwrite_c=1)

    def roots(self, curved: CurvedSamples, pairs: ColumnClassPairs) -> Array:
        """B with ``B'B`` the Hessian, (contrasts, pairs)."""
        places, contrasts = curved.roots()
        used, at = np.unique(pairs.columns, return_inverse=True)
        roots: Array = self.rows(curved.samples, used)[np.ix_(places, at)]
        roots *= contrasts[:, pairs.classes]
        return roots

    @abstractmethod
    def diagonal(self, curved: CurvedSamples) -> Array:
        """The diagonal of the Hessian for every pair, (n_columns + 1, n_classes)."""

    @abstractmethod
    def inner_products(self, samples: Ids, weights: Array) -> Array:
        """``X diag(weights) X'`` for some of the samples."""


class DenseBlock(Block):
    """Columns as a dense array in C order."""

    crowded = 0.2

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

    def rows(self, samples: Ids, columns: Ids) -> Array:
        out = np.ones((samples.size, columns.size))
        data = columns < self.n_columns
        out[:, data] = self.matrix[np.ix_(samples, columns[data])]
        return out

    def compressed(self, samples: Ids) -> tuple[Array, Indices, Indices, Ids]:
        m = self.n_columns
        ends, every = np.arange(samples.size + 1) * m, np.arange(samples.size)
        return self.matrix[samples].ravel(), np.tile(np.arange(m), samples.size), ends, every

    def diagonal(self, curved: CurvedSamples) -> Array:
        own = curved.diagonal()
        return np.vstack([(self.matrix[curved.samples] ** 2).T @ own, own.sum(axis=0)])

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

    def rows(self, samples: Ids, columns: Ids) -> Array:
        out = np.ones((samples.size, columns.size))
        data = columns < self.n_columns
        out[:, data] = self.matrix[samples][:, columns[data]].toarray()
        return out

    def compressed(self, samples: Ids) -> tuple[Array, Indices, Indices, Ids]:
        return (*self.parts, samples)

    def diagonal(self, curved: CurvedSamples) -> Array:
        rows, own = self.matrix[curved.samples], curved.diagonal()
        return np.vstack([rows.power(2).T @ own, own.sum(axis=0)])

    def inner_products(self, samples: Ids, weights: Array) -> Array:
        rows = self.matrix[samples]
        return ((rows * weights[None, :]) @ rows.T).toarray()


class ClassCoordinates(Remembers):
    """Coordinates of the problem in which its Newton systems are well-conditioned. With a free
    intercept dense features are centred (and centred sparse ones uncentred), which the intercept
    absorbs: ``intercept + centre' coef``. Without an l1 part, wide data are expressed in their row
    span. ``centre`` is that of the features, before any change of basis."""

    def __init__(self, problem: Problem) -> None:
        design, free = problem.design, problem.intercept.is_shift_invariant
        self.whole, self.centre = design, np.zeros(design.n_features)
        if free and design.is_dense:
            self.whole, self.centre = problem.centred
        elif free and not design.has_columns:
            base, centre, scale = design.stored
            self.whole = StandardizedDesign(base, np.zeros_like(centre), scale)
            self.centre = -centre / scale
        wide, l1 = design.n_features > design.n_samples, getattr(problem.penalty, "l1", 0.0)
        self.basis = None if l1 > 0 or not wide else in_short_coordinates(self.whole)
        self.design: Design = self.whole if self.basis is None else self.basis.design

    def of(self, point: Point) -> tuple[Array, Array]:
        coef = point.coef
        if self.basis is not None:
            coef = np.column_stack([self.basis.of(column) for column in coef.T])
        return coef, point.intercept + self.centre @ point.coef

    def point(self, coef: Array, intercept: Array) -> Point:
        if self.basis is not None:
            coef = np.column_stack([self.basis.coef(column) for column in coef.T])
        return Point(coef, intercept - self.centre @ coef)

    def block(self, members: Ids) -> Block:
        """Some of the columns; the last answer is remembered."""
        return self.remembered(_some_columns, members)

    @cached_property
    def spreads(self) -> Array:
        """Root mean square of each column."""
        rows = np.full(self.design.n_samples, 1.0 / self.design.n_samples)
        return np.sqrt(self.design.column_squares(rows, np.zeros(self.design.n_features)))


def class_coordinates(problem: Problem) -> ClassCoordinates:
    return problem.remembered(ClassCoordinates)


def _some_columns(coordinates: ClassCoordinates, members: Ids) -> Block:
    design, stored = coordinates.design, coordinates.design.stored
    if stored.base.compressed is not None and not stored.centre.any():
        rows = sparse.csr_array(stored.base.compressed.matrix[:, members])
        if stored.base is not design:
            rows = sparse.csr_array(rows * (1.0 / stored.scale[members])[None, :])
        return SparseBlock(rows)
    return DenseBlock(design.dense_columns(members, "C"))
