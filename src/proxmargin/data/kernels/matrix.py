"""The interface of kernel matrices, which are read by rows and blocks, and designs of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn
from weakref import proxy

import numpy as np
from numpy.typing import DTypeLike, NDArray

from proxmargin.compiled.products import compensated
from proxmargin.compiled.products.products import placed_twice
from proxmargin.compiled.rounding import EPS, Lost
from proxmargin.data.designs.base import Design, PassCounter
from proxmargin.data.designs.samples import TILE_ROWS
from proxmargin.functions.rows import evenly_taken, live_rows
from proxmargin.runtime.memory import BLOCK_ENTRIES, cached_property, kept
from proxmargin.runtime.types import Array, Index, Record, Values

ROWS_ENTRIES = 1 << 22  # entries of rows computed at a time: 32 MB
FEWEST_ROWS = 16  # in a block, whatever its size
VALUE_WORK = 250.0  # multiply-adds of a kernel value: tens of features and an exponential
SPREAD_SAMPLES = 400  # from which the mean inner product is estimated


class KernelMatrix(ABC):
    """The symmetric matrix K of a kernel at all pairs of training samples."""

    n_samples: int
    counter: PassCounter  # passes over the matrix so far: one for every ``n_samples`` rows
    is_definite: bool  # whether K is known to be positive semidefinite up to rounding
    # whether K of distinct samples is known to be positive definite, in exact arithmetic
    is_strict: bool = False
    precision: float  # relative precision of the entries: a machine epsilon, or more
    product_bytes: int  # bytes that a product of BLAS reads at a time

    @abstractmethod
    def matvec(self, right: Array, again: NDArray[np.bool_] | None = None) -> Array:
        """``K @ right``, (n_samples, n_outputs); rows of ``right`` that are zero cost nothing.
        Rows of K of the samples ``again``, by default all, are worth keeping for later products."""

    def precise_matvec(self, right: Array) -> tuple[Array, Lost]:
        """`matvec` by compensated summation, with the error bound of the kernel values. The error
        of the sums does not grow with the number of samples."""
        total, low = np.zeros(right.shape), np.zeros(right.shape)
        for index in pieces(live_rows(right), ROWS_ENTRIES // max(self.n_samples, 1)):
            rows, term = self.rows(index), np.empty(right.shape)
            for k in range(right.shape[1]):
                out = np.empty((2, self.n_samples))
                compensated.across(rows, np.ascontiguousarray(right[index, k]), *out)
                term[:, k] = out[0]
            summed = total + term
            back = summed - total
            low += (total - (summed - back)) + (term - back)
            total = summed
        return total + low, self.lost

    @abstractmethod
    def rows(self, index: Index) -> Array:
        """``K[index]``, (n_index, n_samples)."""

    @abstractmethod
    def block(self, rows: Index, columns: Index) -> Array:
        """``K[rows][:, columns]``; only these entries are computed."""

    def single_block(self, rows: Index, columns: Index) -> Values:
        """`block`, in single precision where that takes less time."""
        return self.block(rows, columns)

    @abstractmethod
    def diagonal(self) -> Array:
        """(n_samples,)"""

    @abstractmethod
    def part(self, index: Index) -> KernelMatrix:
        """The matrix of some of the samples; shares this one's counter of passes."""

    def square(self, dtype: np.dtype[np.generic]) -> KeptSquare:
        """The matrix of a changing set of samples in this precision; that in another is dropped."""
        known: KeptSquare | None = self.__dict__.get("_square")
        if known is None or known.store.dtype != dtype:
            known = self.__dict__["_square"] = KeptSquare(self, dtype)
        return known

    def __getstate__(self) -> Record:
        """Of a copy, which keeps a square of its own."""
        return {name: each for name, each in vars(self).items() if name != "_square"}

    def taken_together(self, weights: Array) -> Array:
        """Weights (n_samples, n_outputs) with those of equal samples merged into the first one. By
        default samples are not compared, and the weights are returned as they are."""
        return weights

    def first_of_equals(self) -> Index:
        """For each sample the first that is equal to it, (n_samples,). By default samples are not
        compared: each is its own."""
        return np.arange(self.n_samples)

    @cached_property
    def order(self) -> Index:
        """The samples in an order that depends on them alone, not on that of the rows. Equal ones,
        and of a given matrix also those with the same diagonal entry, least entry and median,
        follow each other in that of the rows."""
        return np.arange(self.n_samples)

    @cached_property
    def roots(self) -> Array:
        """``sqrt(K_ii)``: by Cauchy and Schwarz ``|K_ij|`` is at most a product of two."""
        roots: Array = np.sqrt(np.maximum(self.diagonal(), 0.0))
        return roots

    @property
    def rounding(self) -> float:
        """Mean relative error of an entry, over the largest one; stored entries are exact."""
        return EPS

    @cached_property
    def lost(self) -> Lost:
        """Bound on the rounding of the kernel values; zero for stored entries."""
        nothing = np.zeros(self.n_samples)
        return Lost(0.0, nothing, nothing)

    @property
    def negative(self) -> float:
        """Negative eigenvalue over the diagonal up to which it is rounding."""
        return self.precision ** (2 / 3)


class KeptSquare:
    """``K[order][:, order]`` for any order of the wanted samples; only new samples are computed. A
    sample keeps its place as long as it is wanted, and the new ones take the places of others."""

    def __init__(self, matrix: KernelMatrix, dtype: DTypeLike) -> None:
        # the matrix keeps the square: were it kept in turn, only the collector would free both
        self.matrix: KernelMatrix = proxy(matrix)
        self.order: Index = np.empty(0, dtype=np.intp)
        self.store: Values = np.empty((0, 0), dtype)

    def of(self, *groups: Index) -> tuple[Index, Values]:
        """An order of the samples of all groups, and an array with their kernel matrix in its first
        corner, which the next call overwrites; its diagonal may be written into.

        The order has the samples of the first group first. One that would have to cross the border
        between two groups counts as new.
        """
        size = sum(group.size for group in groups)
        if size > len(self.store):
            self._grow(size)
        alone = max([group.size for group in groups]) == size
        if alone and size == self.order.size == self.matrix.n_samples:
            order = self.order  # all samples, of one group: any order will do
        else:
            order = self._places_of(groups)
        known = min(self.order.size, size)
        new = np.ones(size, dtype=bool)
        new[:known] = order[:known] != self.order[:known]
        if new.any():
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
        self.store = np.empty((size, size), past.dtype)
        known = self.order.size
        self.store[:known, :known] = past[:known, :known]

    def _fill(self, places: Index, order: Index) -> None:
        """Compute the rows and columns at ``places``."""
        if places.size == order.size:
            self._fill_by_halves(order)
            return
        size, step = order.size, max(1, BLOCK_ENTRIES // max(order.size, 1))
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
        for start in range(0, order.size, TILE_ROWS):  # from the diagonal on
            values = compute(order[start : start + TILE_ROWS], order[start:])
            placed_twice(values, self.store, start)

    @property
    def _compute(self) -> Callable[[Index, Index], Values]:
        single = self.store.dtype == np.float32
        return self.matrix.single_block if single else self.matrix.block


def pieces(index: Index, count: int) -> Iterator[Index]:
    """``index`` in pieces of ``count``, but at least of `FEWEST_ROWS`."""
    step = max(FEWEST_ROWS, count)
    for start in range(0, index.size, step):
        yield index[start : start + step]


def _without(what: str) -> Callable[..., NoReturn]:
    """A method that needs features."""

    def refuse(*given: object, **options: object) -> NoReturn:
        raise TypeError(
            f"{what} was asked of a kernel matrix, which has inner products of samples but no "
            "features; a low-rank factor of it (kernels.low_rank) has some"
        )

    return refuse


class KernelDesign(Design):
    """``beta -> K beta``: one coefficient a training sample. The coefficients of the model lie in
    the feature space of the kernel, and the penalty is theirs, not beta's: `certify_represented`,
    in `proxmargin.optimality.certificates.representer`, certifies problems over this design.
    Methods that would need features raise TypeError."""

    has_columns = False
    kernel_matrix: KernelMatrix

    def __init__(self, matrix: KernelMatrix) -> None:
        n = matrix.n_samples
        super().__init__(n, n, 8 * n**2, counter=matrix.counter)
        self.kernel_matrix = matrix

    def scores(self, coef: Array) -> Array:
        return self.kernel_matrix.matvec(coef)

    def row_norms(self) -> Array:
        """``k(x_i, x_i)``, the squared length of each sample in the space of the kernel."""
        return self.kernel_matrix.diagonal()

    def spread(self, shares: Array) -> float:
        """Root mean square distance from the mean, in the space of the kernel. Its square is
        ``sum_i s_i K_ii - s'K s``. The second term is estimated from a few hundred samples at even
        steps of weight: all pairs would cost as much as the fit."""
        some, part = evenly_taken(shares, SPREAD_SAMPLES)
        part = part / part.sum()
        mean = float(part @ self.kernel_matrix.block(some, some) @ part)
        total = float(shares @ self.kernel_matrix.diagonal()) - mean
        return total**0.5 if total > 0 else 1.0

    adjoint = _without("a product with the transpose")
    row_squares = _without("a sum over the features")
    column_squares = _without("the variance of each feature")
    largest = _without("the largest entry of each feature")
    precise_scores = _without("a compensated product")
    precise_adjoint = _without("a compensated product with the transpose")
    gram = _without("products between features")
    _outer_gram = _without("products between samples by features")
    _columns = _without("some features")
    sweep_data = _without("columns of features")

    @kept
    def outer_gram(self) -> Array:
        """K: the inner products of the samples, computed once; not to be written into."""
        return self.kernel_matrix.rows(np.arange(self.n_samples))

    def centred_gram(self, shares: Array) -> Array:
        """K: distances do not depend on the centre."""
        return self.outer_gram()

    def _rows(self, index: Index) -> KernelDesign:
        return KernelDesign(self.kernel_matrix.part(index))


def kernel_matrix_of(design: Design) -> KernelMatrix | None:
    """The kernel matrix, if the design is one."""
    return design.kernel_matrix if isinstance(design, KernelDesign) else None
