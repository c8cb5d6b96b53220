"""Centred and scaled features, without a copy of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmargin.compiled.products import compensated
from proxmargin.compiled.rounding import UNIT, Enclosed, compensated_error
from proxmargin.data.designs.base import (
    CONSTANT_VARIANCE,
    Array,
    Design,
    Index,
    Order,
    Stored,
    Sweep,
    SweepPoint,
)
from proxmargin.runtime.memory import cached_property


def moments(design: Design, weights: Array, constant: float = 1.0) -> tuple[Array, Array]:
    """Weighted mean and population standard deviation of each feature.

    Parameters
    ----------
    weights : (n_samples,) >= 0, summing to one
    constant : float
        The scale of features that are constant up to rounding.

    Returns
    -------
    mean, scale : (n_features,)
    """
    mean, variance = design.mean_and_variance(weights)
    varies = variance > CONSTANT_VARIANCE * mean**2
    return mean, np.where(varies, np.sqrt(variance), constant)


def standardized(design: Design, weights: Array) -> StandardizedDesign:
    """The design centred at the weighted mean, with unit variance; computed once a design.

    Constant features have an infinite scale, which makes them exactly zero.
    """
    return design.remembered(_standardized, weights)


def centred(design: Design, weights: Array) -> StandardizedDesign:
    """The design centred at the weighted mean and not scaled; computed once a design."""
    return design.remembered(_centred, weights)


def rescaled(design: Design, weights: Array) -> StandardizedDesign:
    """The design scaled to unit weighted mean square and not centred; computed once a design."""
    return design.remembered(_rescaled, weights)


def _standardized(design: Design, weights: Array) -> StandardizedDesign:
    return StandardizedDesign(design, *moments(design, weights, constant=np.inf))


def _centred(design: Design, weights: Array) -> StandardizedDesign:
    full = standardized(design, weights)
    scale = np.where(np.isfinite(full.scale), 1.0, np.inf)
    return StandardizedDesign(design, full.centre, scale)


def _rescaled(design: Design, weights: Array) -> StandardizedDesign:
    zero = np.zeros(design.n_features)
    squares = design.column_squares(weights, zero)
    return StandardizedDesign(design, zero, np.sqrt(np.where(squares > 0, squares, 1.0)))


def published(coef: Array, intercept: Array, centre: Array, scale: Array) -> tuple[Array, Array]:
    """Coefficients and intercept in the units of the data, as a fitted model publishes them.

    Parameters
    ----------
    coef : (n_features, n_outputs)
        For the features ``(x - centre) / scale``.
    intercept : (n_outputs,)
    """
    raw = coef / scale[:, None]
    return raw, uncentred(intercept, raw, centre)


def uncentred(intercept: Array, coef: Array, centre: Array) -> Array:
    """``intercept - centre' coef`` to the last ulp, (n_outputs,).

    A plain sum would cancel if means are large compared with standard deviations.
    """
    if not centre.any():
        return intercept
    factors, moved = np.append(-centre, 1.0)[None, :], np.empty(intercept.size)
    for k in range(moved.size):  # a compensated sum, of which the intercept is a term
        out = np.empty((2, 1))
        compensated.along(factors, np.append(coef[:, k], intercept[k]), *out)
        moved[k] = out[0, 0]
    return moved


def precise_sums(dual: Array) -> Enclosed:
    """The sum of each column by compensated summation, (n_outputs,)."""
    out = np.empty((2, dual.shape[1]))
    compensated.across(dual, np.ones(len(dual)), *out)
    return Enclosed(out[0], compensated_error(out[0], out[1], len(dual)), out[1])


class StandardizedDesign(Design):
    """``(X - 1 centre') diag(1 / scale)`` as an operator: sparse data stay sparse.

    Parameters
    ----------
    base : Design
    centre, scale : (n_features,)
    """

    def __init__(self, base: Design, centre: Array, scale: Array) -> None:
        facts = base.nbytes, base.density, base.share, base.counter
        super().__init__(base.n_samples, base.n_features, *facts)
        self.base, self.centre, self.scale = base, centre, scale
        self.is_dense, self.passes_only = base.is_dense, base.passes_only
        self.has_columns = base.is_dense  # centred columns of a sparse matrix would be full
        self.summands = base.summands

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

    def adjoint_error(self, sizes: Array) -> Array:
        if not self.base.passes_only:
            return super().adjoint_error(sizes)
        own = super().adjoint_error(sizes)  # of the centring; the base may recall its product
        return own + self.base.adjoint_error(sizes) / self.scale[:, None]

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

    def sweep_data(self) -> tuple[Any, ...]:
        if not self.has_columns:
            raise TypeError("standardised sparse data have no columns that can be read cheaply")
        base, centre, scale = self.stored
        return base.sweep_data()[0], centre, scale
