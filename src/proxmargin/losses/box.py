"""Losses whose dual points lie in a box: piecewise linear or quadratic functions of one margin."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Box"]

Array = NDArray[np.float64]


class Box(NamedTuple):
    """``min over rho  pull rho + sum_i max {a (goal_i + rho - y_i z_i) - bends_i a^2 / 2}``.

    The maximum is over ``0 <= a <= caps_i``; with ``pull = 0`` there is no variable ``rho``. All
    arrays are (n_samples,).
    """

    signs: Array
    caps: Array
    bends: Array
    goal: Array
    pull: float
