"""The base of losses that compare all scores of a sample with the score of its class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.losses.base import Array, Loss

__all__ = ["LabelledLoss"]


class LabelledLoss(Loss):
    """A loss that knows the class of each sample and its weight.

    Parameters
    ----------
    codes : (n_samples,) integers in [0, count)
        The classes y.
    shares : (n_samples,) >= 0, summing to one
    count : int
        Number of classes.
    total : float
        The sum that the weights were divided by.
    """

    compares_classes = True

    def __init__(self, codes: ArrayLike, shares: ArrayLike, count: int, total: float = 0.0) -> None:
        self.codes: NDArray[np.intp] = np.asarray(codes, dtype=np.intp)
        self._shares: Array = np.asarray(shares, dtype=np.float64)
        self.count = count
        self.total = total

    @property
    def n_outputs(self) -> int:
        return self.count

    @property
    def sample_count(self) -> float:
        return self.total

    @property
    def shares(self) -> Array:
        return self._shares
