"""The huberized hinge of Xu et al. (2015)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.losses.margins.capped_quadratic import CappedQuadratic, CappedScalars

__all__ = ["HuberizedHinge"]


@dataclass(frozen=True)
class HuberizedHinge(CappedQuadratic):
    """0 for t > 1, ``(1-t)^2 / (2 delta)`` down to ``1 - delta``, then ``1 - t - delta/2``.

    Parameters
    ----------
    delta : float > 0
        Width of the quadratic zone; towards 0 the loss becomes the hinge.
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta must be a finite number > 0, got {self.delta!r}")

    @property
    def scalars(self) -> CappedScalars:
        return CappedScalars(1.0 / self.delta, float(self.delta))

    def widened(self, zone: float) -> HuberizedHinge:
        return HuberizedHinge(max(zone, self.delta))
