"""A view of some samples of a design."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmargin.compiled.rounding import Enclosed
from proxmargin.data.designs.base import Array, Design, Index, Order, Sweep, SweepPoint
from proxmargin.data.designs.sparse import SparseDesign


class RowView(Design):
    """Some of the samples, without a copy: products are computed with all of them.

    Other samples are multiplied by zero or left out of the result, so that nothing depends on their
    entries, whose squares must be finite. Methods that need contiguous rows (`sweep_data`, `rows`,
    `compressed`) copy them.

    Parameters
    ----------
    whole : Design
    index : (n_samples,)
        Numbers of the samples in ``whole``, in increasing order.
    """

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
    def copied(self) -> Design:
        """The same samples copied into a design, once."""
        return self.remembered(_copied)

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

    def sweep_data(self) -> tuple[Any, ...]:
        return self.copied.sweep_data()


def _copied(view: RowView) -> Design:
    return view._rows(np.arange(view.n_samples))
