"""Rows in blocks, each of which answers as a design in memory of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from scipy import sparse

from proxmargin.compiled.rounding import UNIT, Enclosed
from proxmargin.data.designs.base import Array, Design, Index, Order, PassCounter, Sweep, SweepPoint
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.tasks import Arrays, Combine, OnColumns, Task

FEW_BYTES = 1 << 28  # of data that are read into memory for products of all pairs of rows
RECALL_ULPS = 8.0  # difference of a dual point from a multiple of a known one, in unit roundoffs


class NeedsMemoryError(ValueError):
    """A method needs data that are in memory as a whole."""


class BlockedDesign(Design):
    """Rows in blocks. Every answer is one pass: a task for each block, and the sum of the answers.

    Sums over rows are formed in each block, then over blocks in their order: results do not depend
    on which block is ready first. Vectors with an entry a sample are in memory, rows are not.

    The last `sweep` is remembered: the pulled-back product of its dual point, or of multiples of
    the positive and the negative part of it, needs no pass. A certificate asks for just that.

    Parameters
    ----------
    n_blocks, largest_block : int
        Samples of the largest block.
    """

    has_columns = False
    passes_only = True
    recall_error = (RECALL_ULPS + 2.0) * UNIT  # factor and multiple round too

    def __init__(
        self,
        n_samples: int,
        n_features: int,
        nbytes: int,
        density: float,
        n_blocks: int,
        largest_block: int,
        counter: PassCounter | None = None,
    ) -> None:
        super().__init__(n_samples, n_features, nbytes, density, counter=counter)
        self.n_blocks, self.largest_block = n_blocks, largest_block
        self.summands = min(n_samples, largest_block + n_blocks)
        self._known: tuple[Array, Array] | None = None

    @abstractmethod
    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        """One pass: the task's answers for all blocks, joined and combined.

        Parameters
        ----------
        shared : arguments that all blocks get
        cut : arrays with one entry a sample, of which each block gets its own
        """

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    def scores(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros((self.n_samples, coef.shape[1]))
        (scores,), _ = self.run(tasks.scores, (coef,))
        return scores

    def adjoint(self, dual: Array) -> Array:
        known = self._recalled(dual)
        if known is not None:
            return known
        _, (pulled,) = self.run(tasks.adjoint, (), (dual,))
        return pulled

    def sweep(self, at: SweepPoint) -> Sweep:
        self._known = None  # frees its memory
        task, shared = tasks.sweep, (at._replace(cut=()),)
        (scores, dual), (pulled, sums, *gram) = self.run(task, shared, at.cut)
        self._known = dual, pulled[:, :2]
        return Sweep(scores, dual, pulled, sums, gram[0] if gram else None)

    def _recalled(self, dual: Array) -> Array | None:
        """``X.T @ dual`` if ``dual`` is a multiple of the last swept one on each side of zero."""
        if self._known is None or dual.shape[1] != 1:
            return None
        (known, pulled), asked = self._known, dual[:, 0]
        total = np.zeros((self.n_features, 1))
        if np.any(asked[known == 0.0]):
            return None
        for side, column in ((known > 0.0, 0), (known < 0.0, 1)):
            first = int(np.argmax(side))
            if not side[first]:
                continue
            factor = asked[first] / known[first]
            off = np.abs(asked[side] - factor * known[side])
            if np.any(off > RECALL_ULPS * UNIT * np.abs(asked[side])):
                return None
            total[:, 0] += factor * pulled[:, column]
        return total

    def twin(self) -> Self:
        twin = super().twin()
        twin._known = None
        return twin

    def row_squares(self, weights: Array, centre: Array) -> Array:
        (squares,), _ = self.run(tasks.row_squares, (weights, centre))
        return squares

    def column_squares(self, weights: Array, centre: Array) -> Array:
        _, (squares,) = self.run(tasks.column_squares, (centre,), (weights,))
        return squares

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        return self.remembered(_moments, weights)

    def largest(self) -> Array:
        _, (largest,) = self.run(tasks.largest, combine=tasks.larger)
        return largest

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        found, _ = self.run(tasks.precise_scores, (coef, intercept))
        return Enclosed(*found)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        _, found = self.run(tasks.precise_adjoint, (), (dual,), tasks.added_precisely)
        return tasks.total_of(found, self.n_blocks)

    def gram(self, weights: Array, centre: Array) -> Array:
        _, (gram,) = self.run(tasks.gram, (centre,), (weights,))
        return gram

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        (columns,), _ = self.run(tasks.dense_columns, (index,))
        return np.asarray(columns, order=order)

    def _columns(self, index: Index) -> Design:
        return ColumnsOfBlocks(self, index)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        if self.nbytes > FEW_BYTES:
            raise NeedsMemoryError(
                "inner products of all pairs of samples are formed for data in blocks of rows up "
                f"to {FEW_BYTES >> 20} MB"
            )
        return self.rows(np.arange(self.n_samples))._outer_gram(weights, centre)

    def sweep_data(self) -> tuple[Any, ...]:
        raise NeedsMemoryError("data in blocks of rows have no columns that can be read cheaply")


class SizedBlocks(BlockedDesign):
    """Several blocks, of known sizes.

    Parameters
    ----------
    sizes : rows of each block
    n_features, nbytes : int
    nnz : int, optional
        Stored entries of sparse blocks; None where blocks are dense.
    """

    def __init__(self, sizes: list[int], n_features: int, nbytes: int, nnz: int | None) -> None:
        rows = sum(sizes)
        density = 1.0 if nnz is None else nnz / max(1, rows * n_features)
        super().__init__(rows, n_features, nbytes, density, len(sizes), max(sizes))
        self._sizes = sizes


def stacked(parts: list[Any]) -> Any:
    """Rows of several blocks as one matrix, sparse if they are."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


class ColumnsOfBlocks(BlockedDesign):
    """Some of the features: each block picks them in every pass."""

    def __init__(self, base: BlockedDesign, index: Index) -> None:
        facts = base.nbytes, base.density, base.n_blocks, base.largest_block
        super().__init__(base.n_samples, index.size, *facts, base.counter)
        self.base, self.index = base, index

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        return self.base.run(OnColumns(task, self.index), shared, cut, combine)

    def _rows(self, index: Index) -> Design:
        return self.base.rows(index).columns(self.index)


def _moments(design: BlockedDesign, weights: Array) -> tuple[Array, Array]:
    _, (total, mean, squares) = design.run(tasks.moments, (), (weights,), tasks.merged_moments)
    return mean, squares / total
