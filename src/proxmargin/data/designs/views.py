"""Designs that view another one: some samples, centred and scaled features, their row span."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack, solve_triangular

from proxmargin.compiled.products import compensated
from proxmargin.compiled.rounding import CONSTANT_VARIANCE, UNIT, Enclosed, compensated_error
from proxmargin.data.designs.base import Design, Order, Stored, Sweep, SweepPoint
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.sparse import SparseDesign
from proxmargin.runtime.memory import cached_property, kept
from proxmargin.runtime.types import Array, Index, Values


class RowView(Design):
    """Some of the samples, in increasing order, without a copy: products are computed with all of
    them. Other samples are multiplied by zero or left out of the result, so that nothing depends on
    their entries, whose squares must be finite. Methods that need contiguous rows (`sweep_data`,
    `rows`, `compressed`) copy them."""

    def __init__(self, whole: Design, index: Index) -> None:
        # several threads use views of one design, each with its own count of passes
        counter = whole.counter if whole.passes_only else None
        facts = whole.nbytes, whole.density, whole.share
        super().__init__(index.size, whole.n_features, *facts, counter=counter)
        self._whole, self.index = whole, index
        self.is_dense, self.has_columns = whole.is_dense, whole.has_columns
        self.passes_only, self.recall_error = whole.passes_only, whole.recall_error
        self.summands = min(index.size, whole.summands)  # zeros are added exactly

    @property
    def whole(self) -> Design:
        return self._whole

    @property
    def compressed(self) -> SparseDesign | None:
        return None if self.whole.compressed is None else self.copied.compressed

    @property
    @kept
    def copied(self) -> Design:
        """The same samples copied into a design, once."""
        return self._rows(np.arange(self.n_samples))

    @property
    def _plain(self) -> tuple[Array, Array]:
        return self.whole._plain

    def spread_out(self, values: Array) -> Array:
        out = np.zeros((self.whole.n_samples, *values.shape[1:]))
        out[self.index] = values
        return out

    def _charge(self, products: int = 1) -> None:
        if not self.passes_only:  # which count their passes themselves, and recall some products
            self.counter.add(self.share * products)

    def scores(self, coef: Array) -> Array:
        self._charge()
        return self.whole.scores(coef)[self.index]

    def adjoint(self, dual: Array) -> Array:
        self._charge()
        return self.whole.adjoint(self.spread_out(dual))

    def sweep(self, at: SweepPoint) -> Sweep:
        if not self.passes_only:
            return super().sweep(at)
        # other samples get no weight
        found = self.whole.sweep(at._replace(cut=tuple(map(self.spread_out, at.cut))))
        return found._replace(scores=found.scores[self.index], dual=found.dual[self.index])

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        if not self.passes_only:
            return super().mean_and_variance(weights)
        return self.whole.mean_and_variance(self.spread_out(weights))

    def row_squares(self, weights: Array, centre: Array) -> Array:
        self._charge()
        return self.whole.row_squares(weights, centre)[self.index]

    def column_squares(self, weights: Array, centre: Array) -> Array:
        self._charge()
        return self.whole.column_squares(self.spread_out(weights), centre)

    def largest(self) -> Array:
        norms = self.column_norms()  # at least as large
        return np.minimum(norms, self.whole.column_bounds()) if self.passes_only else norms

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        self._charge(coef.shape[1])
        each = self.whole.precise_scores(coef, intercept)
        return Enclosed(*(np.broadcast_to(part, each.values.shape)[self.index] for part in each))

    def precise_adjoint(self, dual: Array) -> Enclosed:
        self._charge(dual.shape[1])
        return self.whole.precise_adjoint(self.spread_out(dual))

    def gram(self, weights: Array, centre: Array) -> Array:
        self._charge()
        return self.whole.gram(self.spread_out(weights), centre)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        self._charge()
        return self.whole._outer_gram(weights, centre)[np.ix_(self.index, self.index)]

    def _rows(self, index: Index) -> Design:
        return self._owned(self.whole._rows(self.index[index]))

    def _columns(self, index: Index) -> Design:
        if self.passes_only:
            return RowView(self.whole.columns(index), self.index)
        return self._owned(self.whole._columns(index)._rows(self.index))

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        if self.passes_only:
            columns = self.whole.dense_columns(index, order)[self.index]
            return np.asarray(columns, order=order)
        return self._columns(index).dense_columns(np.arange(index.size), order)

    def _owned(self, part: Design) -> Design:
        part.counter = self.counter
        return part

    def sweep_data(self) -> tuple[Values, ...]:
        return self.copied.sweep_data()


def moments(design: Design, weights: Array, constant: float = 1.0) -> tuple[Array, Array]:
    """Mean and population standard deviation of each feature, with weights that sum to one; the
    scale of features that are constant up to rounding is ``constant``."""
    mean, variance = design.mean_and_variance(weights)
    varies = variance > CONSTANT_VARIANCE * mean**2
    return mean, np.where(varies, np.sqrt(variance), constant)


@kept
def standardized(design: Design, weights: Array) -> StandardizedDesign:
    """The design centred at the weighted mean, with unit variance; computed once a design. Constant
    features have an infinite scale, which makes them exactly zero."""
    return StandardizedDesign(design, *moments(design, weights, constant=np.inf))


@kept
def centred(design: Design, weights: Array) -> StandardizedDesign:
    """The design centred at the weighted mean and not scaled; computed once a design."""
    full = standardized(design, weights)
    scale = np.where(np.isfinite(full.scale), 1.0, np.inf)
    return StandardizedDesign(design, full.centre, scale)


@kept
def rescaled(design: Design, weights: Array) -> StandardizedDesign:
    """The design scaled to unit weighted mean square and not centred; computed once a design."""
    zero = np.zeros(design.n_features)
    squares = design.column_squares(weights, zero)
    return StandardizedDesign(design, zero, np.sqrt(np.where(squares > 0, squares, 1.0)))


def published(coef: Array, intercept: Array, centre: Array, scale: Array) -> tuple[Array, Array]:
    """Coefficients (n_features, n_outputs), of ``(x - centre) / scale``, and intercept in the units
    of the data, as a fitted model publishes them."""
    raw = coef / scale[:, None]
    return raw, uncentred(intercept, raw, centre)


def uncentred(intercept: Array, coef: Array, centre: Array) -> Array:
    """``intercept - centre' coef`` to the last ulp, (n_outputs,). A plain sum would cancel if means
    are large compared with standard deviations."""
    if not centre.any():
        return intercept
    terms = np.empty((intercept.size, centre.size + 1))
    terms[:, :-1], terms[:, -1] = coef.T, intercept  # a term of the compensated sum
    out = np.empty((2, intercept.size))
    compensated.along(terms, np.append(-centre, 1.0), *out)
    return out[0]


def precise_sums(dual: Array) -> Enclosed:
    """The sum of each column by compensated summation, (n_outputs,)."""
    out = np.empty((2, dual.shape[1]))
    compensated.across(dual, np.ones(len(dual)), *out)
    return Enclosed(out[0], compensated_error(out[0], out[1], len(dual)), out[1])


class StandardizedDesign(Design):
    """``(X - 1 centre') diag(1 / scale)`` as an operator: sparse data stay sparse."""

    def __init__(self, base: Design, centre: Array, scale: Array) -> None:
        facts = base.nbytes, base.density, base.share, base.counter
        super().__init__(base.n_samples, base.n_features, *facts)
        self.base, self.centre, self.scale = base, centre, scale
        self.is_dense, self.passes_only = base.is_dense, base.passes_only
        self.has_columns = base.is_dense  # centred columns of a sparse matrix would be full
        self.summands, self.recall_error = base.summands, base.recall_error

    def scores(self, coef: Array) -> Array:
        raw = coef / self.scale[:, None]
        return self.base.scores(raw) - self.centre @ raw

    def adjoint(self, dual: Array) -> Array:
        centred = self.base.adjoint(dual) - np.outer(self.centre, dual.sum(axis=0))
        return centred / self.scale[:, None]

    @cached_property
    def stored(self) -> Stored:
        base, centre, scale = self.base.stored
        moved = centre + self.centre * np.where(np.isfinite(scale), scale, 0.0)
        return Stored(base, moved, scale * self.scale)

    def sweep(self, at: SweepPoint) -> Sweep:
        raw, centre, wanted = at.coef / self.scale, self._moved(at.centre), at.wanted
        shift = at.intercept - float(self.centre @ raw)
        found = self.base.sweep(at._replace(coef=raw, intercept=shift, centre=centre))
        pulled = (found.pulled - np.outer(self.centre, found.sums)) / self.scale[:, None]
        gram = found.gram
        if gram is not None and wanted is not None:
            gram = gram / self.scale[wanted] / self.scale[wanted][:, None]
        return found._replace(pulled=pulled, gram=gram)

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        if not self.base.passes_only:
            return super().mean_and_variance(weights)
        mean, variance = self.base.mean_and_variance(weights)
        return (mean - self.centre) / self.scale, variance / self.scale**2

    def sample_index(self) -> Index:
        return self.base.sample_index()

    def row_squares(self, weights: Array, centre: Array) -> Array:
        return self.base.row_squares(weights / self.scale**2, self._moved(centre))

    def _moved(self, centre: Array) -> Array:
        """``centre``, given in standardised units, in the units of the data."""
        return self.centre + centre * np.where(np.isfinite(self.scale), self.scale, 0.0)

    def largest(self) -> Array:
        return (self.base.largest() + np.abs(self.centre)) / self.scale

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        return self.base.precise_scores(*published(coef, intercept, self.centre, self.scale))

    def precise_adjoint(self, dual: Array) -> Enclosed:
        pulled, total = self.base.precise_adjoint(dual), precise_sums(dual)
        centre = np.abs(self.centre[:, None])
        shift = -np.outer(self.centre, total.values)
        moved = pulled.plus(shift)
        error = moved.error + centre * total.error + 2.0 * UNIT * np.abs(shift)
        return Enclosed(moved.values, error, moved.sizes).over(self.scale[:, None])

    def column_squares(self, weights: Array, centre: Array) -> Array:
        return self.base.column_squares(weights, self._moved(centre)) / self.scale**2

    def gram(self, weights: Array, centre: Array) -> Array:
        gram = self.base.gram(weights, self._moved(centre))
        gram /= self.scale
        gram /= self.scale[:, None]
        return gram

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        return self.base._outer_gram(weights / self.scale**2, self._moved(centre))

    def _rows(self, index: Index) -> Design:
        return StandardizedDesign(self.base.rows(index), self.centre, self.scale)

    def _columns(self, index: Index) -> Design:
        return StandardizedDesign(self.base.columns(index), self.centre[index], self.scale[index])

    def _narrowed(self, index: Index) -> Design:
        return StandardizedDesign(self.base.narrowed(index), self.centre[index], self.scale[index])

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        columns = self.base.dense_columns(index, order)
        columns -= self.centre[index]
        columns /= self.scale[index]
        return columns

    def sweep_data(self) -> tuple[Values, ...]:
        if not self.has_columns:
            raise TypeError("standardised sparse data have no columns that can be read cheaply")
        base, centre, scale = self.stored
        return base.sweep_data()[0], centre, scale


class Coordinates(Protocol):
    """An orthonormal basis V, ``w = V u``, of a subspace that contains an optimum."""

    design: Design  # the data in these coordinates, ``X V``

    def coef(self, u: Array) -> Array:
        """``V u``, (n_features,)."""

    def of(self, coef: Array) -> Array:
        """``V' coef``."""


class AllFeatures:
    """The features as they are: ``V = I``."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def coef(self, u: Array) -> Array:
        return u

    def of(self, coef: Array) -> Array:
        return coef


class RowSpan:
    """The span of the samples, which contains the optimum under a ridge or in an l2 ball. With a
    pivoted Cholesky factor of the inner products, ``X X' = L L'``, formed once, and P its pivots,
    ``V = X_P' L_P^-T`` is orthonormal and ``X V = L`` has rank(X) columns. V is never formed."""

    def __init__(self, whole: Design) -> None:
        self.whole = whole
        factor, self.pivots = _factored(whole.outer_gram())
        self.top = factor[self.pivots]
        self.design: Design = DenseDesign(factor, whole.counter, whole.share)

    def coef(self, u: Array) -> Array:
        inner = np.zeros((self.whole.n_samples, 1))
        inner[self.pivots, 0] = solve_triangular(self.top, u, trans="T", lower=True)
        return self.whole.adjoint(inner)[:, 0]

    def of(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros(self.pivots.size)
        scores = self.whole.scores(coef[:, None])[self.pivots, 0]
        return solve_triangular(self.top, scores, lower=True)


def in_short_coordinates(design: Design) -> Coordinates:
    """The row span if there are fewer samples than features, else all features; computed once."""
    if design.n_samples < design.n_features:
        return design.remembered(RowSpan)
    return design.remembered(AllFeatures)


def short_side(design: Design) -> int:
    """min(n_samples, n_features), an upper bound of the rank."""
    return min(design.n_samples, design.n_features)


def _factored(gram: Array) -> tuple[Array, Index]:
    """``L`` with ``L L' = gram`` up to rounding, (n, rank), and the rows that are its pivots. Only
    the first ``rank`` pivots are returned; those rows of L are lower triangular."""
    packed, pivots, rank, _ = lapack.dpstrf(gram, lower=1)
    order = pivots - 1
    factor = np.empty((order.size, rank))
    factor[order] = np.tril(packed[:, :rank])
    return factor, order[:rank].astype(np.intp)
