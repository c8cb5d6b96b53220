"""The squared hinge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.losses.margins.capped_quadratic import CappedQuadratic, CappedScalars

__all__ = ["SquaredHinge"]


@dataclass(frozen=True)
class SquaredHinge(CappedQuadratic):
    """``[1 - t]_+^2``; its conjugate at -a is ``-a + a^2/4`` for a >= 0."""

    @property
    def scalars(self) -> CappedScalars:
        return CappedScalars(2.0, np.inf)
