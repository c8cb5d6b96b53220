"""Wide data in coordinates of their row span, in which a ridge or an l2 ball keeps its form."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import lapack, solve_triangular

from proxmargin.data.designs.base import Array, Design, Index
from proxmargin.data.designs.dense import DenseDesign


class Coordinates(Protocol):
    """An orthonormal basis V, ``w = V u``, of a subspace that contains an optimum."""

    design: Design  # the data in these coordinates, ``X V``

    def coef(self, u: Array) -> Array:
        """``V u``, (n_features,)."""

    def of(self, coef: Array) -> Array:
        """``V' coef``."""


class AllFeatures:
    """The features as they are: ``V = I``."""

    def __init__(self, design: Design) -> None:
        self.design = design

    def coef(self, u: Array) -> Array:
        return u

    def of(self, coef: Array) -> Array:
        return coef


class RowSpan:
    """The span of the samples, which contains the optimum under a ridge or in an l2 ball.

    With a pivoted Cholesky factor of the inner products, ``X X' = L L'``, and P its pivots,
    ``V = X_P' L_P^-T`` is orthonormal and ``X V = L`` has rank(X) columns. V is never formed.

    Parameters
    ----------
    whole : Design
        The data. The (n_samples, n_samples) matrix ``X X'`` is formed once.
    """

    def __init__(self, whole: Design) -> None:
        self.whole = whole
        factor, self.pivots = _factored(whole.outer_gram())
        self.top = factor[self.pivots]
        self.design: Design = DenseDesign(factor, whole.counter, whole.share)

    def coef(self, u: Array) -> Array:
        inner = np.zeros((self.whole.n_samples, 1))
        inner[self.pivots, 0] = solve_triangular(self.top, u, trans="T", lower=True)
        return self.whole.adjoint(inner)[:, 0]

    def of(self, coef: Array) -> Array:
        if not coef.any():
            return np.zeros(self.pivots.size)
        scores = self.whole.scores(coef[:, None])[self.pivots, 0]
        return solve_triangular(self.top, scores, lower=True)


def in_short_coordinates(design: Design) -> Coordinates:
    """The row span if there are fewer samples than features, else all features; computed once."""
    if design.n_samples < design.n_features:
        return design.remembered(RowSpan)
    return design.remembered(AllFeatures)


def short_side(design: Design) -> int:
    """min(n_samples, n_features), an upper bound of the rank."""
    return min(design.n_samples, design.n_features)


def _factored(gram: Array) -> tuple[Array, Index]:
    """``L`` with ``L L' = gram`` up to rounding, (n, rank), and the rows that are its pivots.

    Only the first ``rank`` pivots are returned; those rows of L are lower triangular.
    """
    packed, pivots, rank, _ = lapack.dpstrf(gram, lower=1)
    order = pivots - 1
    factor = np.empty((order.size, rank))
    factor[order] = np.tril(packed[:, :rank])
    return factor, order[:rank].astype(np.intp)
