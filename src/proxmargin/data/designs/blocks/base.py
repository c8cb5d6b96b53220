"""Designs in blocks of rows: the interface, and data sets read in chunks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from proxmargin.compiled.rounding import UNIT, Enclosed
from proxmargin.data.datasets.dataset import Chunk, DataLostError, Dataset
from proxmargin.data.designs.base import (
    Design,
    Order,
    PassCounter,
    Sweep,
    SweepPoint,
    as_design,
    evenly,
)
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.tasks import Arrays, Combine, OnColumns, Task
from proxmargin.runtime.memory import CACHED_ENTRIES, kept, mapped, mapped_empty
from proxmargin.runtime.types import Array, Index, Values

FEW_BYTES = 1 << 28  # of data that are read into memory for products of all pairs of rows
RECALL_ULPS = 8.0  # difference of a dual point from a multiple of a known one, in unit roundoffs


class NeedsMemoryError(ValueError):
    """A method needs data that are in memory as a whole."""


class BlockedDesign(Design):
    """Rows in blocks. Every answer is one pass: a task for each block, and the sum of the answers.

    Sums over rows are formed in each block, then over blocks in their order: results do not depend
    on which block is ready first. Vectors with an entry a sample are in memory, rows are not.
    ``largest_block`` is the number of rows of the largest one.

    The last `sweep` is remembered: the pulled-back product of its dual point, or of multiples of
    the positive and the negative part of it, needs no pass. A certificate asks for just that.
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
        """One pass: the task's answers for all blocks, joined and combined. All blocks get
        ``shared``, and their own rows of ``cut``, arrays with one entry a sample."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, self.n_features

    def scores(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros((self.n_samples, coef.shape[1]))
        return self._by_rows("scores", coef)

    def adjoint(self, dual: Array) -> Array:
        known = self._recalled(dual)
        return self._summed("adjoint", dual) if known is None else known

    def _by_rows(self, method: str, *shared: Any) -> Array:
        """The rows of a method's answers for all blocks."""
        (rows,), _ = self.run(tasks.Method(method, by_rows=True), shared)
        return rows

    def _summed(self, method: str, *cut: Array, shared: Arrays = ()) -> Array:
        """The sum of a method's answers for all blocks."""
        _, (total,) = self.run(tasks.Method(method), shared, cut)
        return total

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
        step = 1 + self.n_samples // CACHED_ENTRIES
        if _multiples(asked[::step], known[::step]) is None:  # as of most others
            return None
        factors = _multiples(asked, known)
        return None if factors is None else (pulled @ factors)[:, None]

    def twin(self) -> Self:
        twin = super().twin()
        twin._known = None
        return twin

    def row_squares(self, weights: Array, centre: Array) -> Array:
        return self._by_rows("row_squares", weights, centre)

    def column_squares(self, weights: Array, centre: Array) -> Array:
        return self._summed("column_squares", weights, shared=(centre,))

    @kept
    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        task, combine = tasks.moments, tasks.merged_moments
        _, (total, mean, squares) = self.run(task, (), (weights,), combine)
        return mean, squares / total

    def largest(self) -> Array:
        _, (largest,) = self.run(tasks.Method("largest"), combine=tasks.larger)
        return largest

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        found, _ = self.run(tasks.precise_scores, (coef, intercept))
        return Enclosed(*found)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        _, found = self.run(tasks.precise_adjoint, (), (dual,), tasks.added_precisely)
        return tasks.total_of(found, self.n_blocks)

    def gram(self, weights: Array, centre: Array) -> Array:
        return self._summed("gram", weights, shared=(centre,))

    def dense_columns(self, index: Index, order: Order = "F") -> Array:
        return np.asarray(self._by_rows("dense_columns", index), order=order)

    def _columns(self, index: Index) -> Design:
        return ColumnsOfBlocks(self, index)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        if self.nbytes > FEW_BYTES:
            raise NeedsMemoryError(
                "inner products of all pairs of samples are formed for data in blocks of rows up "
                f"to {FEW_BYTES >> 20} MB"
            )
        return self.rows(np.arange(self.n_samples))._outer_gram(weights, centre)

    def sweep_data(self) -> tuple[Values, ...]:
        raise NeedsMemoryError("data in blocks of rows have no columns that can be read cheaply")


def _multiples(asked: Array, known: Array) -> Array | None:
    """The factors of positive and of negative entries of ``known`` that give ``asked``, (2,)."""
    up, down = known.argmax(), known.argmin()
    factors = np.array(
        [
            asked[up] / known[up] if known[up] > 0.0 else 0.0,
            asked[down] / known[down] if known[down] < 0.0 else 0.0,
        ]
    )
    if not np.isfinite(factors).all():
        return None
    for start in range(0, known.size, CACHED_ENTRIES):
        part = slice(start, start + CACHED_ENTRIES)
        off = np.where(known[part] > 0.0, *factors) * known[part] - asked[part]
        if not np.all(np.abs(off) <= RECALL_ULPS * UNIT * np.abs(asked[part])):
            return None
    return factors


class SizedBlocks(BlockedDesign):
    """Several blocks, of known sizes in rows; ``nnz`` counts stored entries, None where blocks are
    dense."""

    def __init__(self, sizes: list[int], n_features: int, nbytes: int, nnz: int | None) -> None:
        rows = sum(sizes)
        density = 1.0 if nnz is None else nnz / max(1, rows * n_features)
        super().__init__(rows, n_features, nbytes, density, len(sizes), max(sizes))
        self._sizes = sizes


def stacked(parts: list[Any]) -> Values:
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


class Scan(NamedTuple):
    """What the first pass over a data set finds."""

    design: ChunkedDesign
    # (n_samples,) or None
    y: Values | None
    weight: Values | None


class ChunkedDesign(SizedBlocks):
    """The rows of a `Dataset`, one chunk in memory and the next one being read. ``sample`` holds
    numbers and a copy of some rows, which `rows` is answered from; ``scan`` the largest entries,
    means and variances with equal weights."""

    def __init__(
        self,
        dataset: Dataset,
        sizes: list[int],
        nnz: int | None,
        sample: tuple[Index, object],
        scan: tuple[Array, Array, Array],
    ) -> None:
        super().__init__(sizes, dataset.n_features, dataset.nbytes, nnz)
        self.dataset, self._sample, self._scan = dataset, sample, scan

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> tuple[Arrays, Arrays]:
        joined: list[Array] = []
        small: Arrays | None = None
        for block, part in self._blocks():
            rows, more = task(block, shared, tuple(each[part] for each in cut))
            joined = joined or [mapped_empty((self.n_samples, *each.shape[1:])) for each in rows]
            for whole, each in zip(joined, rows, strict=True):
                whole[part] = each
            small = more if small is None else combine(small, more)
        self.counter.add(1.0)
        return tuple(joined), small or ()

    def _blocks(self) -> Iterator[tuple[Design, slice]]:
        start = 0
        for chunk, size in zip_longest(self.dataset.chunks(), self._sizes):
            if chunk is None or size is None or chunk.X.shape[0] != size:
                where = "the data set" if chunk is None else chunk.where
                raise DataLostError(f"{where} has changed since it was first read")
            yield as_design(chunk.X), slice(start, start + size)
            start += size

    def largest(self) -> Array:
        return self._scan[0]

    def mean_and_variance(self, weights: Array) -> tuple[Array, Array]:
        if np.all(weights == weights[0]):
            return self._scan[1:]
        return super().mean_and_variance(weights)

    def _rows(self, index: Index) -> Design:
        if np.array_equal(index, self._sample[0]):
            return as_design(self._sample[1])
        order, parts = np.unique(index), []
        for block, part in self._blocks():
            inside = order[(order >= part.start) & (order < part.stop)] - part.start
            parts.append(block.rows(inside).matrix)  # type: ignore[attr-defined]
        self.counter.add(1.0)
        return as_design(stacked(parts)[np.searchsorted(order, index)])


def scanned(dataset: Dataset, check: Callable[[Chunk], Chunk]) -> Scan:
    """The first pass: labels and weights, moments, largest entries, and a sample of the rows;
    ``check`` raises for a chunk with invalid entries, and returns it with those in canonical
    form."""
    picked = evenly(dataset.n_rows, dataset.nbytes)
    sizes: list[int] = []
    labels, weights, rows = [], [], []
    known: Arrays | None = None
    largest, start, nnz = np.zeros(dataset.n_features), 0, 0
    for given in dataset.chunks():
        chunk = check(given)
        block, size = as_design(chunk.X), chunk.X.shape[0]
        _, more = tasks.moments(block, (), (np.ones(size),))
        known = more if known is None else tasks.merged_moments(known, more)
        largest = np.maximum(largest, block.largest())
        inside = picked[np.searchsorted(picked, start) : np.searchsorted(picked, start + size)]
        rows.append(chunk.X[inside - start])
        sizes.append(size)
        labels.append(chunk.y)
        weights.append(chunk.weight)
        nnz += int(getattr(chunk.X, "nnz", 0))
        start += size
    assert known is not None
    _, mean, squares = known
    scan = largest, mean, squares / dataset.n_rows
    stored = nnz if sparse.issparse(rows[0]) else None
    design = ChunkedDesign(dataset, sizes, stored, (picked, stacked(rows)), scan)
    design.counter.add(1.0)
    return Scan(design, _joined(labels), _joined(weights))


def _joined(parts: list[Any]) -> Values | None:
    return None if parts[0] is None else mapped(np.concatenate(parts))
