"""First-order methods as iterates, one after the other, so that all are ended by one rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ended", "Iterate", "until"]

Floats = NDArray[np.float64]


class Iterate(NamedTuple):
    """Coefficients (n_features, n_classes) and intercept (n_classes,)."""

    coef: Floats
    intercept: Floats


class Ended(NamedTuple):
    """The last iterate, its number, and whether the rule was met there."""

    last: Iterate
    iterations: int
    met: bool


def until(iterates: Iterator[Iterate], tol: float, most: int) -> Ended:
    """Iterate until the relative change of the coefficients is at most ``tol``."""
    before, count = next(iterates), 1
    for new in iterates:
        count += 1
        size = float(np.linalg.norm(before.coef))
        if size > 0 and np.linalg.norm(new.coef - before.coef) <= tol * size:
            return Ended(new, count, True)
        before = new
        if count >= most:
            break
    return Ended(before, count, False)
