"""Linear systems of Newton steps in coefficients and intercept, with curvature in few samples.

For curvatures c_i of the free samples, a positive diagonal D over the free features and, if there
is an intercept, a curvature e of its own,

    (X' diag(c) X + D) dw + X'c db = -r,    c'X dw + (sum c + e) db = -s.

It is solved over the features, over the samples, or by conjugate gradients, whichever takes the
least work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs.base import Design, subtract_outer
from proxmargin.functions.losses.base import Array
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.threads import affordable, factor_work, gram_work
from proxmargin.solvers.shared.linear_algebra import (
    CG_STEPS,
    CG_TOLERANCE,
    MAX_SIDE,
    Inverse,
    conjugate_gradients,
    inverse_of,
)

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
        bent = curvature * (design.scores(move[:, None])[:, 0] + intercept_step)
        pulled = design.adjoint(bent[:, None])[:, 0] + self.terms.diagonal * move
        if self.terms.intercept_curvature is None:
            return pulled, 0.0
        return pulled, float(bent.sum()) + self.terms.intercept_curvature * intercept_step

    @abstractmethod
    def step(
        self, keep: NDArray[np.intp], slope: Array, intercept_slope: float
    ) -> tuple[Array, float]:
        """``(dw, db)`` if only the features ``keep`` may change, for the gradient in them and the
        derivative in the intercept.
        """


def hinge_system(terms: HessianTerms, deadline: float = np.inf) -> HingeSystem:
    """The form of the system with the least work.

    CG if a factorisation would not end before the deadline, or if the factor would be larger than
    the data: products with the data are then cheaper than solves.
    """
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
            bent = terms.curvature * (design.scores(x[:-1, None])[:, 0] + x[-1])
            pulled = design.adjoint(bent[:, None])[:, 0]
            return np.append(pulled, bent.sum() if fits else 0.0) + diagonal * x

        right = -np.append(slope, intercept_slope if fits else 0.0)
        found = conjugate_gradients(
            product, 1.0 / scale, right, CG_TOLERANCE, CG_STEPS, self.deadline
        )
        return found[:-1], float(found[-1])
