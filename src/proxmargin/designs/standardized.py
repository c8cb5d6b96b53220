"""Features centred and scaled without touching the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from proxmargin.designs.base import Array, Design, Index

__all__ = ["StandardizedDesign", "moments"]


def moments(design: Design, weights: Array) -> tuple[Array, Array]:
    """Weighted mean and population standard deviation of each feature.

    Parameters
    ----------
    weights : (n_samples,) >= 0, summing to one

    Returns
    -------
    mean, scale : (n_features,)
        The scale of a feature that is constant up to rounding is 1, so that the standardised
        feature is zero.
    """
    mean = design.adjoint(weights[:, None])[:, 0]
    variance = design.column_squares(weights, mean)
    constant = variance <= design.rounding * mean**2
    return mean, np.sqrt(np.where(constant, 1.0, variance))


class StandardizedDesign(Design):
    """``(X - 1 centre') diag(1 / scale)``: sparse data stay sparse.

    Parameters
    ----------
    base : Design
    centre, scale : (n_features,)
    """

    def __init__(self, base: Design, centre: Array, scale: Array) -> None:
        self.base, self.centre, self.scale = base, centre, scale
        self.n_samples, self.n_features = base.n_samples, base.n_features
        self.ledger, self.share = base.ledger, base.share

    def scores(self, coef: Array) -> Array:
        raw = coef / self.scale[:, None]
        return self.base.scores(raw) - self.centre @ raw

    def adjoint(self, dual: Array) -> Array:
        centred = self.base.adjoint(dual) - np.outer(self.centre, dual.sum(axis=0))
        return centred / self.scale[:, None]

    def row_squares(self, weights: Array) -> Array:
        inner = weights / self.scale**2
        cross = self.base.scores((inner * self.centre)[:, None])[:, 0]
        raw = self.base.row_squares(inner)
        return np.maximum(raw - 2.0 * cross + inner @ self.centre**2, 0.0)

    def column_squares(self, weights: Array, centre: Array | None = None) -> Array:
        moved = self.centre if centre is None else self.centre + centre * self.scale
        squares = self.base.column_squares(weights, moved)
        constant = squares <= self.base.rounding * weights.sum() * moved**2
        return np.where(constant, 0.0, squares) / self.scale**2

    def gram(self, weights: Array) -> Array:
        raw = self.base.gram(weights)
        cross = np.outer(self.centre, self.base.adjoint(weights[:, None])[:, 0])
        raw -= cross + cross.T
        raw += weights.sum() * np.outer(self.centre, self.centre)
        return raw / np.outer(self.scale, self.scale)

    def _columns(self, index: Index) -> Design:
        return StandardizedDesign(self.base.columns(index), self.centre[index], self.scale[index])

    def rows(self, index: Index) -> Design:
        return StandardizedDesign(self.base.rows(index), self.centre, self.scale)

    def sweep_data(self) -> tuple[Any, ...] | None:
        data = self.base.sweep_data()
        if self.base.density < 1.0 or data is None or len(data[0].shape) < 2:
            return None  # centring would fill the sparse columns
        return data[0], self.centre, self.scale

    @property
    def nbytes(self) -> int:
        return self.base.nbytes

    @property
    def density(self) -> float:
        return self.base.density
