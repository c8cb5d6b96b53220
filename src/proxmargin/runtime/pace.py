"""Estimated times of steps that cannot be interrupted, from the measured speed of BLAS."""

from __future__ import annotations

from functools import cache

import numpy as np

from proxmargin.compiled.clock import clock

TRIAL_SIDE = 256  # of the matrices whose product is timed: some milliseconds in all
TRIALS = 3  # repetitions, of which the median counts
STEP_SHARE = 0.2  # of the remaining time that a step may take, unless stated otherwise
SPARSE_COST = 8.0  # time of an operation on sparse rows, over that in a dense product
EIGEN_COST = 10.0  # time of an eigendecomposition, over that of a dense product of the same size


def operations_in(seconds: float) -> float:
    """Multiply-adds of dense products that take ``seconds``, which may be infinite."""
    return seconds * _per_second() if np.isfinite(seconds) else np.inf


def affordable(operations: float, deadline: float, share: float = STEP_SHARE) -> bool:
    """Whether a step takes at most a share of the time left until the deadline.

    ``operations``: multiply-adds. ``deadline``: on the clock of `proxmargin.compiled.clock`.
    ``share``: float in (0, 1].
    """
    if not np.isfinite(deadline):
        return True
    return operations <= operations_in(share * max(deadline - clock(), 0.0))


def gram_work(rows: int, columns: int, density: float = 1.0) -> float:
    """Operations of the inner products of columns; dense data need one triangle only."""
    share = 0.5 if density == 1.0 else SPARSE_COST * density**2
    return share * rows * float(columns) ** 2


def factor_work(side: int) -> float:
    """Operations of a Cholesky factorisation, doubled as it runs at half the speed of products."""
    return float(side) ** 3 / 3.0


def eigen_work(side: int) -> float:
    """Operations of eigenvalues and eigenvectors of a symmetric matrix."""
    return EIGEN_COST * float(side) ** 3


@cache
def _per_second() -> float:
    """Multiply-adds per second of a dense product, the median of the trials."""
    matrix = np.ones((TRIAL_SIDE, TRIAL_SIDE))
    times = []
    for _ in range(TRIALS):
        started = clock()
        matrix @ matrix
        times.append(clock() - started)
    return float(TRIAL_SIDE**3 / np.median(times))
