"""How fast this machine multiplies matrices: what a step that cannot be interrupted will take."""

from __future__ import annotations

from functools import cache

import numpy as np

from proxmargin.compiled.clock import clock

__all__ = ["affordable", "eigen_work", "factor_work", "gram_work", "operations_in"]

# side of the matrices that are multiplied to find out: some milliseconds in all
SIDE = 256
# times that they are multiplied
TRIALS = 3
# share of the time that is left which one step may take, by the estimate of its operations
ONE_STEP = 0.2
# operations of a product of sparse rows, in those of a dense product
SPARSE = 8.0
# operations of an eigenvalue decomposition, in those of a dense product
EIGEN = 10.0


def operations_in(seconds: float) -> float:
    """Multiplications with additions of dense matrices that take so long; of a limit without end,
    infinitely many."""
    return seconds * _per_second() if np.isfinite(seconds) else np.inf


def affordable(operations: float, deadline: float) -> bool:
    """Whether a step of so many operations is short beside what is left until the deadline.

    Parameters
    ----------
    operations : float
        Multiplications with additions.
    deadline : float
        On the clock of `proxmargin.compiled.clock`.
    """
    if not np.isfinite(deadline):
        return True
    return operations <= operations_in(ONE_STEP * max(deadline - clock(), 0.0))


def gram_work(rows: int, columns: int, density: float = 1.0) -> float:
    """Operations of the inner products of columns: half of them for dense data."""
    share = 0.5 if density == 1.0 else SPARSE * density**2
    return share * rows * float(columns) ** 2


def factor_work(side: int) -> float:
    """Operations of a Cholesky factor, which is slower than products: twice as many as it has."""
    return float(side) ** 3 / 3.0


def eigen_work(side: int) -> float:
    """Operations of eigenvalues and eigenvectors of a symmetric matrix."""
    return EIGEN * float(side) ** 3


@cache
def _per_second() -> float:
    """By the middle one of the trials."""
    matrix = np.ones((SIDE, SIDE))
    times = []
    for _ in range(TRIALS):
        started = clock()
        matrix @ matrix
        times.append(clock() - started)
    return float(SIDE**3 / np.median(times))
