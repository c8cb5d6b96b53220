"""Linear systems of Newton steps in coefficients and intercept, with curvature in few samples.

For curvatures c_i of the free samples, a positive diagonal D over the free features and, if there
is an intercept, a curvature e of its own,

    (X' diag(c) X + D) dw + X'c db = -r,    c'X dw + (sum c + e) db = -s.

It is solved over the features, over the samples, or by conjugate gradients, whichever takes the
least work. Steps on small data are many and short, so that the checks and views of a `Design` would
take most of their time: `NewtonRows` are one with little overhead per product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.products.products import gather, scatter
from proxmargin.compiled.solvers.hinge_newton import gathered_columns, gathered_rows
from proxmargin.data.designs.base import Design, subtract_outer
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.sparse import SparseDesign
from proxmargin.runtime.memory import cached_property, kept
from proxmargin.runtime.threads import affordable, factor_work, gram_work
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.shared.numerical import (
    CG_TOLERANCE,
    MAX_SIDE,
    Inverse,
    conjugate_gradients,
    inverse_of,
)

# multiply-adds to form a system, up to which a compiled step on a copy of its data is fastest
GATHERED_WORK = 1 << 25
COPIED_ENTRIES = 1 << 21  # entries up to which a part is copied, as it is read often: 16 MB


class NewtonRows(ABC):
    """A design for problems with one column of scores, with products of vectors."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.largest = float(design.largest().max(initial=0.0))

    @abstractmethod
    def scores(self, coef: Array) -> Array:
        """``X @ coef``, (n_samples,)."""

    @abstractmethod
    def adjoint(self, dual: Array) -> Array:
        """``X.T @ dual``, (n_features,)."""

    def is_large(self, rows: int, columns: int) -> bool:
        """Whether a part is selected by zero weights of the samples instead of copied. Only for
        systems over the features (fewer features than samples), whose Gram matrix skips samples of
        weight zero."""
        design = self.design
        share = rows / max(design.n_samples, 1)
        return design.n_features == columns <= rows and share * design.nbytes > 8 * COPIED_ENTRIES

    def part(self, rows: Index, columns: Index) -> Design:
        """Some of the features of some of the samples; a copy in C order if few."""
        if _are_few(rows.size, columns.size):
            matrix = self._gathered(rows, columns)
            if matrix is not None:
                self._charge(matrix.size / max(self.design.n_samples * self.design.n_features, 1))
                return DenseDesign(matrix)
        every = columns.size == self.design.n_features
        part = self.design if rows.size == self.design.n_samples else self.design.rows(rows)
        return part if every else part.narrowed(columns)

    def _gathered(self, rows: Index, columns: Index) -> Array | None:
        """A copy of the part in C order; None if there is no fast way to make it."""
        return None

    def _charge(self, share: float = 1.0) -> None:
        self.design.counter.add(share * self.design.share)


def few_by_rows(design: Design) -> Array | None:
    """The matrix in C order if it is small, for compiled steps; None for other data."""
    matrix = getattr(design, "matrix", None)
    if not isinstance(matrix, np.ndarray) or not _are_few(*matrix.shape):
        return None
    return matrix if matrix.dtype == np.float64 and matrix.flags.c_contiguous else None


def _are_few(rows: int, columns: int) -> bool:
    return rows * columns * min(rows, columns) <= GATHERED_WORK


@kept
def newton_rows(design: Design) -> NewtonRows:
    base, centre, scale = design.stored
    if base.compressed is not None:
        return _Compressed(design, base.compressed, centre, scale)
    matrix = getattr(design, "matrix", np.empty(0))
    plain = matrix.ndim == 2 and matrix.dtype == np.float64 and matrix.flags.f_contiguous
    return _Plain(design, matrix) if plain else _AnyRows(design)


class _AnyRows(NewtonRows):
    """Data of any kind, by the products of their design."""

    def scores(self, coef: Array) -> Array:
        return self.design.scores(coef[:, None])[:, 0]

    def adjoint(self, dual: Array) -> Array:
        return self.design.adjoint(dual[:, None])[:, 0]


class _Plain(NewtonRows):
    """A matrix in Fortran order."""

    def __init__(self, design: Design, matrix: Array) -> None:
        super().__init__(design)
        self.matrix = matrix

    def scores(self, coef: Array) -> Array:
        self._charge()
        product: Array = self.matrix @ coef
        return product

    def adjoint(self, dual: Array) -> Array:
        self._charge()
        product: Array = dual @ self.matrix
        return product

    def _gathered(self, rows: Index, columns: Index) -> Array:
        part: Array = gathered_columns(self.matrix, rows, columns)
        return part


class _Compressed(NewtonRows):
    """CSR data, with a centre and a scale."""

    def __init__(self, design: Design, base: SparseDesign, centre: Array, scale: Array) -> None:
        super().__init__(design)
        self.centre, self.scale = centre, scale
        matrix = base.by_rows
        self.arrays = matrix.data, matrix.indices, matrix.indptr

    def scores(self, coef: Array) -> Array:
        self._charge()
        raw, out = coef / self.scale, np.empty((self.design.n_samples, 1))
        gather(*self.arrays, raw[:, None], out)
        return out[:, 0] - self.centre @ raw

    def adjoint(self, dual: Array) -> Array:
        self._charge()
        out = np.zeros((self.design.n_features, 1))
        scatter(*self.arrays, dual[:, None], out)
        pulled: Array = (out[:, 0] - dual.sum() * self.centre) / self.scale
        return pulled

    def _gathered(self, rows: Index, columns: Index) -> Array:
        part: Array = gathered_rows(*self.arrays, self.centre, self.scale, rows, columns)
        return part


WIDE = 1.3  # unknowns per row of the data above which the system is formed over the rows
SMALL_MATRIX = 500_000  # entries up to which a matrix may be larger than the data: side 700


@dataclass(frozen=True, eq=False)
class HessianTerms:
    """The terms of the Hessian, the matrix of the system."""

    design: Design  # the free samples and features of the data
    # (n_samples,) >= 0; curvatures of the samples; all positive if there are fewer samples than
    # features
    curvature: Array
    diagonal: Array  # (n_features,) > 0
    # curvature of the intercept in addition to the samples'; None without intercept
    intercept_curvature: float | None


class HingeSystem(ABC):
    """A form of the linear system, which can be solved for some of its features only."""

    matrix: Array

    def __init__(self, terms: HessianTerms) -> None:
        self.terms = terms

    @cached_property
    def _whole(self) -> Inverse:
        """The inverse of the matrix of all features, factored once."""
        return inverse_of(self.matrix)

    def product(self, move: Array, intercept_step: float) -> tuple[Array, float]:
        """The Hessian times a step of coefficients and intercept: the change of (r, s)."""
        if not move.any() and intercept_step == 0:
            return np.zeros_like(move), 0.0
        design, curvature = self.terms.design, self.terms.curvature
        weighted = curvature * (design.scores(move[:, None])[:, 0] + intercept_step)
        pulled = design.adjoint(weighted[:, None])[:, 0] + self.terms.diagonal * move
        if self.terms.intercept_curvature is None:
            return pulled, 0.0
        return pulled, float(weighted.sum()) + self.terms.intercept_curvature * intercept_step

    @abstractmethod
    def step(
        self, keep: NDArray[np.intp], slope: Array, intercept_slope: float
    ) -> tuple[Array, float]:
        """``(dw, db)`` if only the features ``keep`` may change, for the gradient in them and the
        derivative in the intercept.
        """


def hinge_system(terms: HessianTerms, deadline: float = np.inf) -> HingeSystem:
    """The form of the system with the least work. CG if a factorisation would not end before the
    deadline, or if the factor would be larger than the data: products with the data are then
    cheaper than solves."""
    samples, features = terms.design.n_samples, terms.design.n_features
    short, long = sorted((samples, features))
    work = gram_work(long, short, terms.design.density) + factor_work(short)
    larger = short**2 > max(SMALL_MATRIX, terms.design.density * short * long)
    if short > MAX_SIDE or larger or not affordable(work, deadline):
        return MatrixFree(terms, deadline)
    return OverSamples(terms) if features > WIDE * samples else OverFeatures(terms)


class OverFeatures(HingeSystem):
    """Elimination of the intercept, and a matrix over the features."""

    def __init__(self, terms: HessianTerms) -> None:
        super().__init__(terms)
        design, curvature = terms.design, terms.curvature
        total = float(curvature.sum())
        self.cross = np.zeros(design.n_features)
        self.pivot = np.inf
        if terms.intercept_curvature is None or total == 0:
            self.matrix = design.gram(curvature, self.cross)
        else:
            self.cross = design.adjoint(curvature[:, None])[:, 0]
            self.matrix = design.gram(curvature, self.cross / total)
            # the centred Gram matrix is the Schur complement if the intercept has no curvature of
            # its own
            own = terms.intercept_curvature
            share = own / (total * (total + own))
            subtract_outer(self.matrix, self.cross, -share * self.cross)
        if terms.intercept_curvature is not None:
            self.pivot = total + terms.intercept_curvature
        np.einsum("ii->i", self.matrix)[:] += terms.diagonal

    def step(
        self, keep: NDArray[np.intp], slope: Array, intercept_slope: float
    ) -> tuple[Array, float]:
        cross = self.cross[keep]
        whole = keep.size == self.cross.size
        solve = self._whole if whole else self._part(keep)
        coef = solve(-slope + cross * (intercept_slope / self.pivot))
        return coef, -(intercept_slope + float(cross @ coef)) / self.pivot

    def _part(self, keep: NDArray[np.intp]) -> Inverse:
        return inverse_of(self.matrix[np.ix_(keep, keep)], overwrite=True)


class OverSamples(HingeSystem):
    """Elimination of the coefficients, and a matrix over the samples bordered by the intercept.

    With u the change of ``c (X w + b)``: ``dw = -(r + X'u) / D`` and

        (X D^-1 X' + C^-1) u - 1 db = -X D^-1 r,    1'u + e db = -s.
    """

    def __init__(self, terms: HessianTerms) -> None:
        super().__init__(terms)
        self.matrix = terms.design.inner_products(1.0 / terms.diagonal)
        np.einsum("ii->i", self.matrix)[:] += 1.0 / terms.curvature

    def step(
        self, keep: NDArray[np.intp], slope: Array, intercept_slope: float
    ) -> tuple[Array, float]:
        design, diagonal = self.terms.design, self.terms.diagonal
        whole = keep.size == diagonal.size
        solve = self._whole if whole else inverse_of(self._submatrix(keep), overwrite=True)
        spread = np.zeros((diagonal.size, 1))
        spread[keep, 0] = slope / diagonal[keep]
        columns = np.column_stack([-design.scores(spread)[:, 0], np.ones(design.n_samples)])
        solved = solve(columns)
        shift = 0.0
        if self.terms.intercept_curvature is not None:
            sums = solved.sum(axis=0)
            shift = -(intercept_slope + float(sums[0])) / (
                self.terms.intercept_curvature + float(sums[1])
            )
        change = solved[:, 0] + shift * solved[:, 1]
        pulled = design.adjoint(change[:, None])[keep, 0]
        return -(slope + pulled) / diagonal[keep], shift

    def _submatrix(self, keep: NDArray[np.intp]) -> Array:
        """The matrix without the features outside ``keep``."""
        weights = 1.0 / self.terms.diagonal
        weights[keep] = 0.0
        dropped = np.flatnonzero(weights)
        part = self.terms.design.narrowed(dropped).inner_products(weights[dropped])
        return np.subtract(self.matrix, part, out=part)


class MatrixFree(HingeSystem):
    """Conjugate gradients by products with the data, preconditioned by the diagonal."""

    def __init__(self, terms: HessianTerms, deadline: float = np.inf) -> None:
        super().__init__(terms)
        self.deadline = deadline
        zero = np.zeros(terms.diagonal.size)
        self.scale = terms.design.column_squares(terms.curvature, zero) + terms.diagonal

    def step(
        self, keep: NDArray[np.intp], slope: Array, intercept_slope: float
    ) -> tuple[Array, float]:
        terms = self.terms
        whole = keep.size == terms.diagonal.size
        design = terms.design if whole else terms.design.narrowed(keep)
        fits = terms.intercept_curvature is not None
        own = 0.0 if terms.intercept_curvature is None else terms.intercept_curvature
        diagonal = np.append(terms.diagonal[keep], own)
        scale = np.append(self.scale[keep], own + terms.curvature.sum() if fits else 1.0)

        def product(x: Array) -> Array:
            weighted = terms.curvature * (design.scores(x[:-1, None])[:, 0] + x[-1])
            pulled = design.adjoint(weighted[:, None])[:, 0]
            return np.append(pulled, weighted.sum() if fits else 0.0) + diagonal * x

        right = -np.append(slope, intercept_slope if fits else 0.0)
        found = conjugate_gradients(
            product, lambda x: x / scale, right, CG_TOLERANCE, self.deadline
        )
        return found[:-1], float(found[-1])
