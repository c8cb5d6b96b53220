"""What every design answers: how coefficients become scores."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import singledispatch
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np

from proxmargin.compiled.rounding import (
    CONSTANT_VARIANCE,
    FURTHER_TERMS,
    NORM_ROUNDING,
    UNIT,
    Enclosed,
    gamma,
)
from proxmargin.functions.rows import live_rows
from proxmargin.runtime.memory import CACHED_ENTRIES, Remembers, cached_property, kept
from proxmargin.runtime.types import Array, Index, Values

Pointwise = Callable[..., tuple[Array, Array]]
"""``pointwise(scores, *cut)``: first and second derivatives of a loss in each score, (n_rows,)."""
Order = Literal["C", "F"]
"""Memory order of a matrix: by rows, or by columns."""
T = TypeVar("T")


TALL_RATIO = 8  # samples per feature of data with many more samples than features
SAMPLE_BYTES = 1 << 26  # of what is kept in memory besides the data, as a sample of rows: 64 MB


class SweepPoint(NamedTuple):
    """The point of a `Sweep`, and what is asked there."""

    coef: Array  # (n_features,)
    intercept: float
    # ``pointwise(scores, *cut)`` returns first and second derivatives of the loss
    pointwise: Pointwise
    cut: tuple[Array, ...]  # arrays with one entry a sample
    centre: Array  # (n_features,); subtracted from the features in the Hessian
    wanted: Index | None  # (k,), optional; features whose Hessian is to be computed


class Sweep(NamedTuple):
    """A point's scores, and the derivatives of the loss pulled back to the features."""

    scores: Array  # (n_samples,); ``X @ coef + intercept``
    dual: Array  # (n_samples,); derivatives of the loss in the scores
    # (n_features, 3); ``X.T`` times the positive part of ``dual``, its negative part, and the
    # second derivatives
    pulled: Array
    sums: Array  # (3,); the sums of these three
    # (k, k), optional; ``(X - 1 centre')' diag(second derivatives) (X - 1 centre')`` of the
    # features asked for
    gram: Array | None


def subtract_outer(matrix: Array, left: Array, right: Array) -> None:
    """``matrix -= left right'`` in place, a few rows at a time."""
    rows = max(1, CACHED_ENTRIES // max(right.size, 1))
    for start in range(0, left.size, rows):
        part = slice(start, start + rows)
        matrix[part] -= np.outer(left[part], right)


def evenly(n_samples: int, nbytes: int) -> Index:
    """Numbers of rows at even steps, as many as fit in `SAMPLE_BYTES` of data of ``nbytes``."""
    step = max(1, -(-nbytes // SAMPLE_BYTES))
    return np.arange(step // 2, n_samples, step, dtype=np.intp)


class PassCounter(threading.local):
    """Counts passes over the data, and the products that they were for; a design and its
    restrictions write into the same one. Each thread has counts of its own: several may fit to the
    same data at once."""

    passes: float = 0.0
    products: int = 0

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ()  # of another process

    def add(self, share: float) -> None:
        """Add one product that touched ``share`` of the data."""
        self.passes += share
        self.products += 1


class Stored(NamedTuple):
    """The data in memory, and the centring and scaling that make them the features."""

    base: Design  # features are ``(base - 1 centre') diag(1 / scale)``
    # (n_features,)
    centre: Array
    scale: Array


class Design(Remembers, ABC):
    """A linear map from coefficients (n_features, n_outputs) to scores (n_samples, n_outputs).

    Products take and return float64 whatever the precision of the data; the data are never copied
    or converted as a whole. ``density`` is the share of entries that are stored, ``share`` the part
    of the original data that one product touches (1 unless restricted), ``counter`` counts the
    passes, and ``summands`` are the most additions behind an entry of `adjoint`, in whatever order:
    they bound rounding.
    """

    def __init__(
        self,
        n_samples: int,
        n_features: int,
        nbytes: int,
        density: float = 1.0,
        share: float = 1.0,
        counter: PassCounter | None = None,
    ) -> None:
        self.n_samples, self.n_features = n_samples, n_features
        self.nbytes, self.density = nbytes, density
        self.share, self.counter = share, counter or PassCounter()
        self.summands = n_samples

    @abstractmethod
    def scores(self, coef: Array) -> Array:
        """``X @ coef``."""

    @abstractmethod
    def adjoint(self, dual: Array) -> Array:
        """``X.T @ dual``."""

    is_dense: bool = False
    """Every entry is stored, in one array."""
    has_columns: bool = True
    """Single columns can be read cheaply (`sweep_data`)."""
    passes_only: bool = False
    """The data are not in memory: each product reads all of them."""
    recall_error: float = 0.0
    """Relative difference in each term between `adjoint` and the product of a like dual point that
    may be answered instead."""
    compressed: Any = None
    """The `SparseDesign` if it is a CSR or CSC matrix."""

    @property
    def is_tall(self) -> bool:
        """Many more samples than features."""
        return self.n_samples >= TALL_RATIO * self.n_features

    @property
    def stored(self) -> Stored:
        """The data before any centring and scaling; not to be written into."""
        return Stored(self, *self._plain)

    @cached_property
    def _plain(self) -> tuple[Array, Array]:
        """Centre and scale for features that are the data themselves."""
        return np.zeros(self.n_features), np.ones(self.n_features)

    @property
    def whole(self) -> Design:
        """The design with all samples: itself, unless it is a view of some rows."""
        return self

    def spread_out(self, values: Array) -> Array:
        """``values``, one a sample, extended by zeros for the other samples of `whole`."""
        return values

    def sweep(self, at: SweepPoint) -> Sweep:
        """What a Newton step needs of a point, in one pass where the data are read in blocks."""
        scores = self.scores(at.coef[:, None])[:, 0] + at.intercept
        dual, curvature = at.pointwise(scores, *at.cut)
        sides = np.column_stack([np.maximum(dual, 0.0), np.minimum(dual, 0.0), curvature])
        gram, wanted = None, at.wanted
        if wanted is not None:
            part = self if wanted.size == self.n_features else self.columns(wanted)
            gram = part.gram(curvature, at.centre[wanted])
        return Sweep(scores, dual, self.adjoint(sides), sides.sum(axis=0), gram)

    @abstractmethod
    def row_squares(self, weights: Array, centre: Array) -> Array:
        """``sum_j weights_j (x_ij - centre_j)^2`` for each sample, (n_samples,)."""

    @kept
    def row_norms(self) -> Array:
        """``|x_i|^2`` for each sample, (n_samples,); computed once."""
        return self.row_squares(np.ones(self.n_features), np.zeros(self.n_features))

    @abstractmethod
    def column_squares(self, weights: Array, centre: Array) -> Array:
        """``sum_i weights_i (x_ij - centre_j)^2`` for each feature, (n_features,)."""

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        """Weighted mean and variance of each feature, for weights that sum to one."""
        mean = self.adjoint(weights[:, None])[:, 0]
        return mean, self.column_squares(weights, mean)

    @kept
    def column_norms(self) -> Array:
        """``|x_j|`` for each feature, (n_features,), rounded up; computed once."""
        ones, zero = np.ones(self.n_samples), np.zeros(self.n_features)
        return np.sqrt(self.column_squares(ones, zero)) * (1.0 + NORM_ROUNDING)

    def spread(self, shares: Array) -> float:
        """Root mean square distance of the samples, with these shares, from their mean, had all
        features the lower decile of their variances. Features in large units do not change it,
        though they dominate all distances: the margin may lie in the others. Variances that are
        rounding of a constant feature are left out; 1 if none varies."""
        mean, variance = self.mean_and_variance(shares)
        varying = variance[variance > CONSTANT_VARIANCE * mean**2]
        if not varying.size:
            return 1.0
        rank = (varying.size - 1) // 10
        return float(np.sqrt(varying.size * np.partition(varying, rank)[rank]))

    @abstractmethod
    def largest(self) -> Array:
        """A bound on the absolute entries of each feature in products, (n_features,)."""

    @kept
    def column_bounds(self) -> Array:
        """`largest`, computed once."""
        return self.largest()

    def enclosed(self, coef: Array, intercept: Array, scores: Array) -> Enclosed:
        """``scores``, as computed by `scores` plus the intercept, with a bound on their rounding.
        ``gamma sum_j largest_j |coef_j|``, one number an output for all samples: it needs no
        product with the data."""
        live = np.count_nonzero(coef[:, 0] if coef.shape[1] == 1 else coef.any(axis=1))
        sizes: Array = self.column_bounds() @ np.abs(coef)
        if not np.isfinite(sizes).all():  # zero coefficients of features that overflow add nothing
            rows = live_rows(coef)
            sizes = self.column_bounds()[rows] @ np.abs(coef[rows])
        if not live:  # nothing was added
            return Enclosed(scores, np.zeros_like(sizes), np.abs(intercept))
        error = gamma(int(live) + FURTHER_TERMS) * sizes + FURTHER_TERMS * UNIT * np.abs(intercept)
        return Enclosed(scores, error, sizes + np.abs(intercept))

    def adjoint_error(self, sizes: Array) -> Array:
        """A bound on the rounding of `adjoint`, (n_features, n_outputs), for the sums of the
        absolute values of each column of the dual point."""
        relative = gamma(self.summands + FURTHER_TERMS) + self.recall_error
        error = relative * float(sizes.max()) * self.column_bounds()
        column = error[:, None]
        return column if sizes.size == 1 else np.broadcast_to(column, (error.size, sizes.size))

    @abstractmethod
    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        """``X @ coef + intercept`` for the published coefficients, in the units of the data, by
        compensated sums: accurate to about an ulp."""

    @abstractmethod
    def precise_adjoint(self, dual: Array) -> Enclosed:
        """``X.T @ dual`` by compensated sums."""

    @abstractmethod
    def gram(self, weights: Array, centre: Array) -> Array:
        """``(X - 1 centre')' diag(weights) (X - 1 centre')``, (n_features, n_features). Rows of
        weight zero are not read."""

    @kept
    def outer_gram(self) -> Array:
        """``X X'``, (n_samples, n_samples), float64: inner products of samples; computed once. It
        is kept with the design, and not to be written into."""
        return self.inner_products(np.ones(self.n_features))

    def centred_gram(self, shares: Array) -> Array:
        """Inner products of the samples, centred with these shares: otherwise distances would
        cancel."""
        mean = self.adjoint(shares[:, None])[:, 0]
        return self._outer_gram(np.ones(self.n_features), mean)

    def squared_distances(self, first: int, shares: Array) -> Array:
        """Squared distances of the first samples to the others, (first, n_samples - first); samples
        are centred by their mean with these shares, for accuracy."""
        gram = self.centred_gram(shares)
        squares = np.diag(gram)
        return squares[:first, None] + squares[None, first:] - 2.0 * gram[:first, first:]

    def inner_products(self, weights: Array) -> Array:
        """``X diag(weights) X'``, (n_samples, n_samples), float64, for weights >= 0 of features."""
        return self._outer_gram(weights, np.zeros(self.n_features))

    @abstractmethod
    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        """``(X - 1 centre') diag(weights) (X - 1 centre')'``, (n_samples, n_samples)."""

    def sample_index(self) -> Index:
        """The numbers of rows that stand for all in rough models: those that `evenly` takes."""
        return evenly(self.n_samples, self.nbytes)

    def rows(self, index: Index) -> Design:
        """The design of some of the samples; shares this one's counter of passes. The last answer
        is remembered."""
        return self.remembered(type(self)._rows, index)

    @abstractmethod
    def _rows(self, index: Index) -> Design:
        """What `rows` returns when asked for the first time."""

    def twin(self) -> Self:
        """The same data with a memory of their own, for another thread."""
        return copy(self)

    def part(self, rows: Index, columns: Index) -> Design:
        """A copy of some of the samples and features, with a counter of its own."""
        picked = self._rows(rows)
        picked.counter = PassCounter()
        return picked if columns.size == self.n_features else picked._columns(columns)

    def columns(self, index: Index) -> Design:
        """The design of some of the features, kept by columns; shares this one's counter of passes.
        The last answer is remembered: working-set methods ask for the same columns again."""
        return self.remembered(type(self)._columns, index)

    @abstractmethod
    def _columns(self, index: Index) -> Design:
        """What `columns` returns when asked for the first time."""

    def narrowed(self, index: Index) -> Design:
        """The design of some of the features, in the same storage; for products with all of it. The
        last answer is remembered."""
        return self.remembered(type(self)._narrowed, index)

    def _narrowed(self, index: Index) -> Design:
        """What `narrowed` returns when asked for the first time."""
        return self._columns(index)

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        """Some of the features as a new matrix (n_samples, size of ``index``), float64. For linear
        systems in the active features."""
        return np.asarray(self.columns(index).scores(np.eye(index.size)), order=order)

    @abstractmethod
    def sweep_data(self) -> tuple[Values, ...]:
        """The columns for coordinate descent; only where `has_columns`. ``(matrix, centre, scale)``
        for a dense matrix, or the arrays ``(data, indices, indptr)`` of a matrix compressed by
        columns."""


@singledispatch
def as_design(data: object) -> Design:
    """The design over ``data``; ``as_design.register`` adds further types. The data are copied only
    if they are sparse and not canonical."""
    raise TypeError(f"no design is known for data of type {type(data).__name__}")


@as_design.register
def _(data: Design) -> Design:
    return data
