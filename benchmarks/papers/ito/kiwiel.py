"""The breakpoint search with random pivots (Kiwiel 2008), the rival of Table 2."""

from __future__ import annotations

import math

import numpy as np

from proxmargin.compiled.cache import njit
from proxmargin.compiled.projections.multiplier import Piece, _narrow, _root, _search

__all__ = ["random_pivots"]


@njit(cache=True, nogil=True)
def random_pivots(problem):
    """Theta and rounds; with the sums of the library's searches, whose last stage it is."""
    whole, active = np.empty(0, np.int64), np.empty(problem.point.size, np.int64)
    piece = Piece(-math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)
    count, piece = _narrow(problem, 1.0, whole, problem.point.size, active, piece)
    piece, rounds = _search(problem, 1.0, active, count, piece, math.nan)
    return _root(piece, problem.total), rounds
