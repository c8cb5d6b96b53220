"""Hinge losses as rows of a linear program: a variable for each hinge, a row for each piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array, Loss
from proxmargin.losses.classes.crammer_singer import CrammerSinger
from proxmargin.losses.margins.margin_sum import MarginSum
from proxmargin.runtime.memoisation import cached_property

__all__ = ["HingeRows", "hinge_rows"]

Ids = NDArray[np.intp]


class HingeRows(ABC):
    """``L(Z) = sum_c costs_c [max_{rows r of c} goals_r - gains_r'z_i(r)]_+``.

    Row ``i K + k`` belongs to sample i and output k. In the program the hinge c is a variable
    ``xi_c >= 0`` with ``xi_c + gains_r'z_i(r) >= goals_r``; the duals y of those rows give the dual
    point ``q_i = -sum_r y_r gains_r``.

    Attributes
    ----------
    n_outputs : int
    costs : (n_hinges,)
    goals : (n_samples n_outputs,)
        For every row: one, less the contribution of an offset of the scores.
    share_hinges : bool
        Whether a hinge has several rows, of which few are active.
    """

    n_outputs: int
    costs: Array
    goals: Array
    share_hinges: bool = False

    @abstractmethod
    def hinges(self, rows: Ids) -> Ids:
        """The hinge that each row belongs to."""

    @abstractmethod
    def gains(self, rows: Ids) -> Array:
        """The coefficients of the scores in each row, (n_rows, n_outputs)."""

    @abstractmethod
    def shortfalls(self, scores: Array) -> Array:
        """``goals_r - gains_r'z`` of each row, (n_samples, n_outputs); -inf without a row."""

    @cached_property
    def all_rows(self) -> Ids:
        """The rows of all pieces of samples with a positive weight."""
        shape = (self.n_samples, self.n_outputs)
        return np.flatnonzero(np.isfinite(self.shortfalls(np.zeros(shape))))

    @property
    @abstractmethod
    def n_samples(self) -> int: ...

    def violated(
        self, shortfalls: Array, rows: Ids, slack: float, floors: Array | float = 0.0
    ) -> Ids:
        """The most violated row of each sample, where ``rows`` determine the hinges.

        Parameters
        ----------
        shortfalls : (n_samples, n_outputs)
            For every row; -inf excludes one.
        floors : (n_hinges,) or number
            The value of each hinge without rows.
        """
        made = np.broadcast_to(floors, self.costs.shape).copy()
        np.maximum.at(made, self.hinges(rows), shortfalls.flat[rows])
        hinges = made[self.hinges(np.arange(shortfalls.size))].reshape(shortfalls.shape)
        asked = np.isfinite(shortfalls)
        above = np.subtract(shortfalls, hinges, out=np.full(shortfalls.shape, -np.inf), where=asked)
        above.flat[rows] = -np.inf
        worst = above.argmax(axis=1)
        samples = np.flatnonzero(above.max(axis=1) > slack)
        found: Ids = samples * self.n_outputs + worst[samples]
        return found

    def near(self, scores: Array, distance: float) -> Ids:
        """The rows at most ``distance`` below their hinge."""
        shortfalls = self.shortfalls(scores)
        every = np.arange(shortfalls.size)
        sizes = np.zeros(self.costs.size)
        np.maximum.at(sizes, self.hinges(every), shortfalls.ravel())
        found: Ids = np.flatnonzero(shortfalls.ravel() >= sizes[self.hinges(every)] - distance)
        return found

    def dual(self, rows: Ids, duals: Array) -> Array:
        """The dual point for duals of the rows, (n_samples, n_outputs)."""
        pulls = -duals[:, None] * self.gains(rows)
        return _summed(rows // self.n_outputs, pulls, self.n_samples)


def _summed(samples: Ids, values: Array, n_samples: int) -> Array:
    flat = samples[:, None] * values.shape[1] + np.arange(values.shape[1])
    sums = np.bincount(flat.ravel(), values.ravel(), minlength=n_samples * values.shape[1])
    return sums.astype(np.float64).reshape(n_samples, values.shape[1])


@dataclass(frozen=True, eq=False)
class _WorstClass(HingeRows):
    """One hinge a sample, for the wrong class with the largest score."""

    loss: CrammerSinger
    share_hinges = True

    @property
    def n_samples(self) -> int:
        return self.loss.codes.size

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.loss.n_outputs

    @property
    def costs(self) -> Array:  # type: ignore[override]
        return self.loss.shares

    @property
    def goals(self) -> Array:  # type: ignore[override]
        return np.ones(self.n_samples * self.n_outputs)

    def hinges(self, rows: Ids) -> Ids:
        return rows // self.n_outputs

    def gains(self, rows: Ids) -> Array:
        each = np.arange(rows.size)
        gains = np.zeros((rows.size, self.n_outputs))
        gains[each, self.loss.codes[rows // self.n_outputs]] = 1.0
        gains[each, rows % self.n_outputs] = -1.0
        return gains

    def shortfalls(self, scores: Array) -> Array:
        own = np.arange(self.n_samples), self.loss.codes
        shortfalls = 1.0 + scores - scores[own][:, None]
        shortfalls[own] = -np.inf
        shortfalls[self.loss.shares == 0] = -np.inf
        return shortfalls


@dataclass(frozen=True, eq=False)
class _EveryMargin(HingeRows):
    """One hinge with one row for each margin."""

    loss: MarginSum
    offset: Array

    @property
    def n_samples(self) -> int:
        return self.loss.signs.shape[0]

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.loss.n_outputs

    @property
    def costs(self) -> Array:  # type: ignore[override]
        return self.loss.weights.ravel()

    @cached_property
    def goals(self) -> Array:  # type: ignore[override]
        ends: Array = 1.0 - (self.loss.signs * self.offset).ravel()
        return ends

    def hinges(self, rows: Ids) -> Ids:
        return rows

    def gains(self, rows: Ids) -> Array:
        gains = np.zeros((rows.size, self.n_outputs))
        gains[np.arange(rows.size), rows % self.n_outputs] = self.loss.signs.flat[rows]
        return gains

    def shortfalls(self, scores: Array) -> Array:
        missing = self.goals.reshape(scores.shape) - self.loss.signs * scores
        shortfalls: Array = np.where(self.loss.weights > 0, missing, -np.inf)
        return shortfalls


def hinge_rows(loss: Loss) -> HingeRows | None:
    """The rows of a loss that is a sum of hinges; None for another loss."""
    return _rows_of(loss.unshifted, loss)


@singledispatch
def _rows_of(bare: Loss, loss: Loss) -> HingeRows | None:
    """The rows of ``loss``, which is ``bare`` with an offset of the scores."""
    return None


@_rows_of.register
def _rows_of_classes(bare: CrammerSinger, loss: Loss) -> HingeRows | None:
    return None if loss.offset.any() else _WorstClass(bare)


@_rows_of.register
def _rows_of_margins(bare: MarginSum, loss: Loss) -> HingeRows | None:
    return _EveryMargin(bare, loss.offset) if bare.phi.is_hinge else None
