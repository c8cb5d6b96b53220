"""Rows on disk, read chunk by chunk in every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.data.datasets.dataset import Chunk, DataLostError, Dataset
from proxmargin.data.designs.base import Array, Design, Index, as_design, evenly
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.base import SizedBlocks, stacked
from proxmargin.data.designs.blocks.tasks import Arrays, Combine, Task
from proxmargin.runtime.memory import mapped, mapped_empty


class Scan(NamedTuple):
    """What the first pass over a data set finds."""

    design: ChunkedDesign
    # (n_samples,) or None
    y: NDArray[Any] | None
    weight: NDArray[Any] | None


class ChunkedDesign(SizedBlocks):
    """The rows of a `Dataset`, one chunk in memory and the next one being read.

    Parameters
    ----------
    dataset : Dataset
    sizes : rows of each chunk
    nnz : stored entries in all, if the chunks are sparse
    sample : numbers and a copy of some rows, which `rows` is answered from
    scan : largest entries, means and variances with equal weights
    """

    def __init__(
        self,
        dataset: Dataset,
        sizes: list[int],
        nnz: int | None,
        sample: tuple[Index, Any],
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
    """The first pass: labels and weights, moments, largest entries, and a sample of the rows.

    Parameters
    ----------
    check : callable
        Raises for a chunk with invalid entries, and returns it with those in canonical form.
    """
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


def _joined(parts: list[Any]) -> NDArray[Any] | None:
    return None if parts[0] is None else mapped(np.concatenate(parts))
