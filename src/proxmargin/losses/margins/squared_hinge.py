"""The squared hinge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxmargin.compiled.losses.margins import Shape
from proxmargin.losses.margins.margin import CappedQuadratic

__all__ = ["SquaredHinge"]


@dataclass(frozen=True)
class SquaredHinge(CappedQuadratic):
    """``[1 - t]_+^2``; its conjugate at -a is ``-a + a^2/4`` for a >= 0."""

    @property
    def shape(self) -> Shape:
        return Shape(logistic=False, curvature=2.0, cap=np.inf)
