"""The kernel matrix of a set of samples that changes little from one use to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np
from numpy.typing import DTypeLike, NDArray

from proxmargin.compiled.products.products import placed_twice
from proxmargin.designs.base import Index
from proxmargin.designs.memory import on_small_pages

if TYPE_CHECKING:
    from proxmargin.designs.kernel import KernelMatrix

__all__ = ["KeptSquare"]

PIECE_ENTRIES = 1 << 19  # kernel values computed at a time: 2 or 4 MB
STRIPE_ROWS = 128  # rows computed at a time of a square that is all new, from the diagonal on


class KeptSquare:
    """``K[order][:, order]`` for any order of the wanted samples; only new samples are computed.

    A sample keeps its place as long as it is wanted, and the new ones take the places of others.

    Parameters
    ----------
    matrix : KernelMatrix
    dtype : float32 or float64
        Of the stored values.
    """

    def __init__(self, matrix: KernelMatrix, dtype: DTypeLike) -> None:
        # the matrix keeps the square: were it kept in turn, only the collector would free both
        self.matrix: KernelMatrix = proxy(matrix)
        self.order: Index = np.empty(0, dtype=np.intp)
        self.store: NDArray[Any] = np.empty((0, 0), dtype)

    def of(self, *groups: Index) -> tuple[Index, NDArray[Any]]:
        """An order of the samples, and an array with their kernel matrix in its first corner.

        Parameters
        ----------
        *groups : (n_group,) int
            Different samples, n_order of all groups together. The order has those of the first
            group first; a sample that would have to cross the border between two groups counts as
            new.

        Returns
        -------
        order : (n_order,) int
        store : (n_store, n_store), n_store >= n_order
            Overwritten by the next call; its diagonal may be written into.
        """
        size = sum(group.size for group in groups)
        if size > len(self.store):
            self._grow(size)
        order = self._places_of(groups)
        known = min(self.order.size, size)
        new = np.arange(size) >= known
        new[:known] = order[:known] != self.order[:known]
        self._fill(np.flatnonzero(new), order)
        self.order = order
        diagonal = self.matrix.diagonal()[order]
        self.store.flat[: size * len(self.store) : len(self.store) + 1] = diagonal
        return order, self.store

    def _places_of(self, groups: Sequence[Index]) -> Index:
        """The samples in an order that leaves those that are known where they are."""
        places, start = [], 0
        for group in groups:
            past = self.order[start : start + group.size]
            wanted = np.zeros(self.matrix.n_samples, dtype=bool)
            wanted[group] = True
            order = np.full(group.size, -1)
            order[: past.size][wanted[past]] = past[wanted[past]]
            wanted[past] = False
            order[order < 0] = np.flatnonzero(wanted)
            places.append(order)
            start += group.size
        return np.concatenate(places)

    def _grow(self, size: int) -> None:
        past = self.store
        self.store = on_small_pages((size, size), past.dtype)
        known = self.order.size
        self.store[:known, :known] = past[:known, :known]

    def _fill(self, places: Index, order: Index) -> None:
        """Compute the rows and columns at ``places``."""
        if places.size == order.size:
            self._fill_by_halves(order)
            return
        size, step = order.size, max(1, PIECE_ENTRIES // max(order.size, 1))
        compute = self._compute
        others = np.setdiff1d(np.arange(size), places, assume_unique=True)
        for start in range(0, places.size, step):
            some = places[start : start + step]
            values = compute(order[some], order)
            self.store[some, :size] = values
            if others.size:
                self.store[others[:, None], some] = values[:, others].T

    def _fill_by_halves(self, order: Index) -> None:
        """Compute all, half of it by symmetry."""
        compute = self._compute
        for start in range(0, order.size, STRIPE_ROWS):
            values = compute(order[start : start + STRIPE_ROWS], order[start:])
            placed_twice(values, self.store, start)

    @property
    def _compute(self) -> Callable[[Index, Index], NDArray[Any]]:
        single = self.store.dtype == np.float32
        return self.matrix.single_block if single else self.matrix.block
