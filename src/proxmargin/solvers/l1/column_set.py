"""The columns of a working set, copied once and scaled to unit mean square, for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.compiled.products.columns import Compressed, scale_lines
from proxmargin.data.designs.base import CONSTANT_VARIANCE, Array, Design
from proxmargin.data.designs.compressed import narrow_indices
from proxmargin.optimality.problem import Problem


def readable(problem: Problem) -> bool:
    """Whether columns can be read without making a sparse matrix dense."""
    stored = problem.design.stored
    if stored.base.compressed is None or problem.intercept.is_shift_invariant:
        return True
    return not stored.centre.any()


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """Columns ``(x_j - mean_j) / unit_j`` of some features.

    Attributes
    ----------
    members : (k,) integers, the features, in the order of the columns
    columns : (n_samples, k) matrix in Fortran order, or sparse by columns
    mean, unit : (k,)
        A free intercept absorbs the mean. Dense columns are centred: with the intercept eliminated
        the Hessian is a covariance, which would cancel if means were large. Of sparse columns only
        full ones are centred; others would become dense, and their standard deviation is of the
        order of their mean. For sparse standardised data ``mean`` is minus the centre over the
        scale, so that the stored columns need not be centred.
    """

    members: NDArray[np.intp]
    columns: Any
    mean: Array
    unit: Array

    @classmethod
    def of(cls, problem: Problem, members: NDArray[np.intp]) -> ColumnSet:
        """Copy the columns of ``members``."""
        weights = problem.loss.shares
        raw, mean = _copied_columns(problem.design, members)
        if not isinstance(raw, np.ndarray):
            counts = np.diff(raw.indptr)
            if problem.intercept.is_shift_invariant:
                full = np.where(counts == raw.shape[0], weights @ raw, 0.0)
                raw.data -= np.repeat(full, counts)
                mean = mean + full
            unit = np.sqrt(weights @ raw.multiply(raw))
            unit[unit == 0] = 1.0
            raw.data /= np.repeat(unit, counts)
        else:
            unit, centres = np.empty(members.size), problem.intercept.is_shift_invariant
            scale_lines(raw.T, weights, centres, CONSTANT_VARIANCE, mean, unit)
        return cls(members, raw, mean, unit)

    def changed(self, problem: Problem, wanted: NDArray[np.bool_]) -> ColumnSet:
        """The columns of the ``wanted`` features: first those in this set, then the new ones."""
        if not self.members.size:
            return ColumnSet.of(problem, np.flatnonzero(wanted))
        kept = wanted[self.members]
        absent = wanted.copy()
        absent[self.members] = False
        new = np.flatnonzero(absent)
        if kept.all() and not new.size:
            return self
        added = ColumnSet.of(problem, new)
        if isinstance(added.columns, np.ndarray):
            together = np.concatenate([self.columns.T[kept], added.columns.T]).T
        else:
            together = sp.hstack((self.columns[:, kept], added.columns), format="csc")
        return ColumnSet(
            np.concatenate([self.members[kept], new]),
            together,
            np.concatenate([self.mean[kept], added.mean]),
            np.concatenate([self.unit[kept], added.unit]),
        )

    @property
    def entries(self) -> int:
        """Number of stored values."""
        matrix = self.columns
        return int(matrix.size if isinstance(matrix, np.ndarray) else matrix.nnz)

    @property
    def kernel(self) -> Any:
        """The columns in the form of compiled kernels: rows of an array, or compressed columns."""
        matrix = self.columns
        if isinstance(matrix, np.ndarray):
            return matrix.T
        return Compressed(matrix.shape[0], matrix.data, matrix.indices, matrix.indptr)

    def offset(self, coef: Array) -> float:
        """``mean' w``: the intercept for the columns minus this is the intercept for the features.

        Parameters
        ----------
        coef : (k,)
            Coefficients of the columns, which have unit mean square.
        """
        return float(self.mean @ (coef / self.unit))


def _copied_columns(design: Design, members: NDArray[np.intp]) -> tuple[Any, Array]:
    """A copy of the columns as float64, and the mean with which they must be read."""
    base, centre, scale = design.stored
    plain = base is design
    if base.compressed is not None:
        matrix: Any = base.columns(members).matrix  # type: ignore[attr-defined]
        copied: Any = sp.csc_array(matrix, dtype=np.float64, copy=True)
        copied.sum_duplicates()
        copied.indices, copied.indptr = narrow_indices(copied)
        if plain:
            return copied, np.zeros(members.size)
        copied.data /= np.repeat(scale[members], np.diff(copied.indptr))
        # the features are these columns minus centre / scale
        return copied, -centre[members] / scale[members]
    raw = base.dense_columns(members)
    if not plain:
        raw -= centre[members]
        raw /= scale[members]
    return raw, np.zeros(members.size)
