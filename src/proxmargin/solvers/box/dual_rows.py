"""The data by rows, for descent along single dual points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.dual_rows import curvatures
from proxmargin.designs.base import Design
from proxmargin.designs.memory import unlocked
from proxmargin.losses.base import Array
from proxmargin.problem import Problem

__all__ = ["LARGEST_COPY", "Rows", "rows_objection", "rows_of"]

LARGEST_COPY = 1 << 30  # bytes of dense data by columns that are copied by rows
UNCENTRED_DENSITY = 0.05  # up to which the mean is short, and centring not worth two passes
BLOCK = 1 << 14  # entries of dense data by columns that are transposed at a time, in the cache


class Rows(NamedTuple):
    """The data by rows, and what coordinate descent needs of them; remembered with the design.

    Attributes
    ----------
    base : Design
        The data before any centring and scaling.
    data, indices, indptr : arrays
        Rows of a compressed matrix; of a dense one, all entries, None, and where its rows start.
    metric : (n_features,) or (1,)
        ``1 / (l2 scale^2)``, a single number if the scales are equal.
    norms, pull : (n_samples,)
        Squared norms of the centred samples over l2, and ``x_i'(metric centre)``.
    square : float
        ``centre'(metric centre)``.
    centre, scale : (n_features,)
    shift : (n_features,)
        The intercept is that of centred features less ``shift'w``.
    plain : bool
        Features are the data themselves, neither centred nor scaled.
    """

    base: Design
    data: Array
    indices: NDArray[Any] | None
    indptr: NDArray[Any]
    metric: Array
    norms: Array
    pull: Array
    square: float
    centre: Array
    scale: Array
    shift: Array
    plain: bool

    def coef(self, v: Array, lean: float) -> Array:
        """w, (n_features,), for the weighted sum v of the rows and ``lean = y'a``."""
        if self.plain:
            return v.copy()
        moved = v - lean * self.metric * self.centre
        return np.multiply(
            self.scale, moved, out=np.zeros_like(moved), where=np.isfinite(self.scale)
        )

    def weighted_sum(self, signed: Array) -> Array:
        """v, (n_features,), for the signed dual points ``y a``."""
        if not signed.any():
            return np.zeros_like(self.centre)
        return self.base.adjoint(signed[:, None])[:, 0] * self.metric


def rows_objection(problem: Problem) -> str | None:
    """The objection to data whose rows cannot be read, or None."""
    base = problem.design.stored.base.whole
    if base.compressed is not None:
        return None
    matrix = getattr(base, "matrix", None) if base.is_dense else None
    if matrix is None:
        return "it needs the rows of a matrix"
    if not matrix.flags.c_contiguous and matrix.nbytes > LARGEST_COPY:
        return (
            "it reads single rows, which are not contiguous in these dense data, of which a copy "
            f"by rows would be larger than {LARGEST_COPY >> 20} MiB"
        )
    return None


def rows_of(problem: Problem) -> Rows:
    """The rows; problems on one design with the same ridge and weights share them."""
    return problem.remembered(_rows_of)


def _rows_of(problem: Problem) -> Rows:
    shares = problem.loss.shares
    if not problem.intercept.is_shift_invariant or problem.design.density <= UNCENTRED_DENSITY:
        shares = np.zeros_like(shares)  # nothing is centred
    return problem.design.remembered(_new_rows, np.append(shares, problem.penalty.l2))


def _new_rows(design: Design, key: Array) -> Rows:
    base, given, scale = design.stored
    shares, l2 = key[:-1], float(key[-1])
    centre = base.adjoint(shares[:, None])[:, 0] if shares.any() else given
    shift = (centre - given) / scale
    metric = 1.0 / (l2 * scale**2)
    moved = bool(centre.any())
    pull = base.scores((metric * centre)[:, None])[:, 0] if moved else np.zeros(base.n_samples)
    square = float(centre @ (metric * centre))
    if metric.size and np.all(metric == metric[0]):
        metric = metric[:1].copy()
    stored, norms = base.remembered(_stored_rows), np.empty_like(pull)
    curvatures(*stored, metric, pull, square, norms)
    design.counter.add(design.share)
    plain = not moved and bool(np.all(scale == 1.0))
    return Rows(base, *stored, metric, norms, pull, square, centre, scale, shift, plain)


def _stored_rows(base: Design) -> tuple[Array, NDArray[Any] | None, NDArray[Any]]:
    if base.compressed is not None:
        matrix = base.compressed.by_rows
        return unlocked(matrix.data), unlocked(matrix.indices), unlocked(matrix.indptr)
    matrix = base.sweep_data()[0]
    starts = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
    return _by_rows(unlocked(matrix)).reshape(-1), None, starts


def _by_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """The matrix in C order: itself, or a copy that is made some rows at a time."""
    if matrix.flags.c_contiguous:
        return matrix
    copy = np.empty(matrix.shape, matrix.dtype)
    step = max(BLOCK // max(matrix.shape[1], 1), 1)
    for start in range(0, matrix.shape[0], step):
        copy[start : start + step] = matrix[start : start + step]
    return copy
