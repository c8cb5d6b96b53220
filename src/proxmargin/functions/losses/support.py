"""Losses that are support functions: the largest ``<scores, dual>`` over a set of dual points."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.losses.base import Array, DualForm, Loss
from proxmargin.functions.traits import Trait


class SupportLoss(Loss):
    """A homogeneous loss of two classes that couples the samples; its conjugate is 0 on a set.

    Parameters
    ----------
    signs : (n_samples,) or (n_samples, 1) of -1 and +1
    shares : (n_samples,) or (n_samples, 1), >= 0, summing to one
        Sample weights over their sum. Both classes need some.
    sample_count : float
        The sum that the weights were divided by.
    """

    traits = Trait.SINGLE_OUTPUT | Trait.DUAL_FORM | Trait.OUTPUTWISE
    is_homogeneous = True

    def __init__(self, signs: ArrayLike, shares: ArrayLike, sample_count: float) -> None:
        self.signs: Array = np.asarray(signs, dtype=np.float64).reshape(-1)
        self._shares: Array = np.asarray(shares, dtype=np.float64).reshape(-1)
        self._sample_count = sample_count

    @property
    def n_outputs(self) -> int:
        return 1

    @property
    def sample_count(self) -> float:
        return self._sample_count

    @property
    def shares(self) -> Array:
        return self._shares

    def curvature_bound(self, row_weights: Array) -> float:
        return np.inf

    def value(self, scores: Array) -> float:
        return self.value_and_gradient(scores)[0]

    def conjugate(self, dual: Array) -> float:
        return 0.0 if self.excess(dual) <= DOMAIN_ROUNDING else np.inf

    @abstractmethod
    def excess(self, dual: Array) -> float:
        """The distance of a dual point from the domain of L*, rounding errors included."""


class IndicatorDual(DualForm):
    """A dual form whose conjugate is zero on its set: prox and projection are the same."""

    def value(self, u: Array) -> float:
        return 0.0

    def prox(self, u: Array, step: float) -> Array:
        return self.project(u, step)

    def smooth_value(self, u: Array) -> float:
        return 0.0

    def smooth_gradient(self, u: Array) -> Array:
        return np.zeros_like(u)

    def smooth_divergence(self, u: Array, base: Array) -> float:
        return 0.0

    def smooth_curvature(self) -> float:
        return 0.0
