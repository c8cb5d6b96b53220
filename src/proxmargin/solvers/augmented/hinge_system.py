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
    Inverse,
    conjugate_gradients,
    inverse_of,
)

WIDE = 1.3  # features per sample above which the system is formed over the samples
MAX_SIDE = 3000  # side of a factored matrix; larger systems are solved by CG
SMALL_MATRIX = 500_000  # entries up to which a matrix may be larger than the data: side 700


@dataclass(frozen=True, eq=False)
class Curved:
    """The data of the system.

    Attributes
    ----------
    design : Design
        The free samples and features of the data.
    bends : (n_samples,) >= 0
        Curvatures of the samples; all positive if there are fewer samples than features.
    diagonal : (n_features,) > 0
    intercept_curvature : float >= 0, or None
        Curvature of the intercept in addition to the samples'; None without intercept.
    """

    design: Design
    bends: Array
    diagonal: Array
    intercept_curvature: float | None


class HingeSystem(ABC):
    """A form of the linear system, which can be solved for some of its features only."""

    matrix: Array

    def __init__(self, curved: Curved) -> None:
        self.curved = curved

    @cached_property
    def _whole(self) -> Inverse:
        """The inverse of the matrix of all features, factored once."""
        return inverse_of(self.matrix)

    def push(self, move: Array, turn: float) -> tuple[Array, float]:
        """The change of (r, s) by a step of coefficients and intercept: one product."""
        if not move.any() and turn == 0:
            return np.zeros_like(move), 0.0
        design, bends = self.curved.design, self.curved.bends
        bent = bends * (design.scores(move[:, None])[:, 0] + turn)
        pulled = design.adjoint(bent[:, None])[:, 0] + self.curved.diagonal * move
        if self.curved.intercept_curvature is None:
            return pulled, 0.0
        return pulled, float(bent.sum()) + self.curved.intercept_curvature * turn

    @abstractmethod
    def step(self, keep: NDArray[np.intp], slope: Array, lean: float) -> tuple[Array, float]:
        """``(dw, db)`` if only the features ``keep`` may change.

        Parameters
        ----------
        keep : (n_keep,) integers
        slope : (n_keep,)
            r for these features.
        lean : float
            s.
        """


def hinge_system(curved: Curved, deadline: float = np.inf) -> HingeSystem:
    """The form of the system with the least work.

    CG if a factorisation would not end before the deadline, or if the factor would be larger than
    the data: products with the data are then cheaper than solves.
    """
    samples, features = curved.design.n_samples, curved.design.n_features
    short, long = sorted((samples, features))
    work = gram_work(long, short, curved.design.density) + factor_work(short)
    larger = short**2 > max(SMALL_MATRIX, curved.design.density * short * long)
    if short > MAX_SIDE or larger or not affordable(work, deadline):
        return MatrixFree(curved, deadline)
    return OverSamples(curved) if features > WIDE * samples else OverFeatures(curved)


class OverFeatures(HingeSystem):
    """Elimination of the intercept, and a matrix over the features."""

    def __init__(self, curved: Curved) -> None:
        super().__init__(curved)
        design, bends = curved.design, curved.bends
        total = float(bends.sum())
        self.cross = np.zeros(design.n_features)
        self.pivot = np.inf
        if curved.intercept_curvature is None or total == 0:
            self.matrix = design.gram(bends, self.cross)
        else:
            self.cross = design.adjoint(bends[:, None])[:, 0]
            self.matrix = design.gram(bends, self.cross / total)
            # the centred Gram matrix is the Schur complement if the intercept has no curvature of
            # its own
            own = curved.intercept_curvature
            share = own / (total * (total + own))
            subtract_outer(self.matrix, self.cross, -share * self.cross)
        if curved.intercept_curvature is not None:
            self.pivot = total + curved.intercept_curvature
        np.einsum("ii->i", self.matrix)[:] += curved.diagonal

    def step(self, keep: NDArray[np.intp], slope: Array, lean: float) -> tuple[Array, float]:
        cross = self.cross[keep]
        whole = keep.size == self.cross.size
        solve = self._whole if whole else self._part(keep)
        coef = solve(-slope + cross * (lean / self.pivot))
        return coef, -(lean + float(cross @ coef)) / self.pivot

    def _part(self, keep: NDArray[np.intp]) -> Inverse:
        return inverse_of(self.matrix[np.ix_(keep, keep)], overwrite=True)


class OverSamples(HingeSystem):
    """Elimination of the coefficients, and a matrix over the samples bordered by the intercept.

    With u the change of ``c (X w + b)``: ``dw = -(r + X'u) / D`` and

        (X D^-1 X' + C^-1) u - 1 db = -X D^-1 r,    1'u + e db = -s.
    """

    def __init__(self, curved: Curved) -> None:
        super().__init__(curved)
        self.matrix = curved.design.inner_products(1.0 / curved.diagonal)
        np.einsum("ii->i", self.matrix)[:] += 1.0 / curved.bends

    def step(self, keep: NDArray[np.intp], slope: Array, lean: float) -> tuple[Array, float]:
        design, diagonal = self.curved.design, self.curved.diagonal
        whole = keep.size == diagonal.size
        solve = self._whole if whole else inverse_of(self._submatrix(keep), overwrite=True)
        spread = np.zeros((diagonal.size, 1))
        spread[keep, 0] = slope / diagonal[keep]
        columns = np.column_stack([-design.scores(spread)[:, 0], np.ones(design.n_samples)])
        solved = solve(columns)
        shift = 0.0
        if self.curved.intercept_curvature is not None:
            sums = solved.sum(axis=0)
            shift = -(lean + float(sums[0])) / (self.curved.intercept_curvature + float(sums[1]))
        change = solved[:, 0] + shift * solved[:, 1]
        pulled = design.adjoint(change[:, None])[keep, 0]
        return -(slope + pulled) / diagonal[keep], shift

    def _submatrix(self, keep: NDArray[np.intp]) -> Array:
        """The matrix without the features outside ``keep``."""
        weights = 1.0 / self.curved.diagonal
        weights[keep] = 0.0
        dropped = np.flatnonzero(weights)
        part = self.curved.design.narrowed(dropped).inner_products(weights[dropped])
        return np.subtract(self.matrix, part, out=part)


class MatrixFree(HingeSystem):
    """Conjugate gradients by products with the data, preconditioned by the diagonal."""

    def __init__(self, curved: Curved, deadline: float = np.inf) -> None:
        super().__init__(curved)
        self.deadline = deadline
        zero = np.zeros(curved.diagonal.size)
        self.scale = curved.design.column_squares(curved.bends, zero) + curved.diagonal

    def step(self, keep: NDArray[np.intp], slope: Array, lean: float) -> tuple[Array, float]:
        curved = self.curved
        whole = keep.size == curved.diagonal.size
        design = curved.design if whole else curved.design.narrowed(keep)
        fits = curved.intercept_curvature is not None
        own = 0.0 if curved.intercept_curvature is None else curved.intercept_curvature
        diagonal = np.append(curved.diagonal[keep], own)
        scale = np.append(self.scale[keep], own + curved.bends.sum() if fits else 1.0)

        def product(x: Array) -> Array:
            bent = curved.bends * (design.scores(x[:-1, None])[:, 0] + x[-1])
            pulled = design.adjoint(bent[:, None])[:, 0]
            return np.append(pulled, bent.sum() if fits else 0.0) + diagonal * x

        right = -np.append(slope, lean if fits else 0.0)
        found = conjugate_gradients(
            product, 1.0 / scale, right, CG_TOLERANCE, CG_STEPS, self.deadline
        )
        return found[:-1], float(found[-1])
