"""The base of losses that transform another loss of the same scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array, Loss

__all__ = ["Wrapped"]


@dataclass(frozen=True, eq=False)
class Wrapped(Loss):
    """Forwards shapes, weights and the dual support to the inner loss."""

    loss: Loss

    @property
    def n_outputs(self) -> int:
        return self.loss.n_outputs

    @property
    def sample_count(self) -> float:
        return self.loss.sample_count

    @property
    def shares(self) -> Array:
        return self.loss.shares

    @property
    def dual_support(self) -> NDArray[np.bool_]:
        return self.loss.dual_support
