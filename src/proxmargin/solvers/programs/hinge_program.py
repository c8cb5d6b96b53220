"""The linear program of a hinge loss and a gauge, with some of its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.designs.base import Design
from proxmargin.losses.base import Array
from proxmargin.losses.level_set import LevelSet
from proxmargin.problem import Point, Problem
from proxmargin.runtime.memoisation import cached_property
from proxmargin.solvers.programs.gauge_columns import Atoms, GaugeColumns, gauge_columns
from proxmargin.solvers.programs.hinge_rows import HingeRows, hinge_rows
from proxmargin.solvers.programs.restricted_program import RestrictedProgram, Vertex
from proxmargin.solvers.programs.units import InUnits
from proxmargin.traits import Trait

__all__ = ["HingeProgram", "hinge_program"]

Ids = NDArray[np.intp]


class _Triplets(NamedTuple):
    """Entries of a sparse matrix."""

    values: Array
    rows: Ids
    columns: Ids

    @classmethod
    def joined(cls, blocks: list[_Triplets]) -> _Triplets:
        return cls(*(np.concatenate(part) for part in zip(*blocks, strict=True)))

    def moved(self, rows: int, columns: int) -> _Triplets:
        return _Triplets(self.values, self.rows + rows, self.columns + columns)


@dataclass(frozen=True, eq=False)
class HingeProgram:
    """A problem as a linear program, in units of the strength of its penalty:

        min  costs'xi + cost'a   s.t.   xi_c(r) + gains_r'(X sum_c a_c A_c + 1 b')_i(r) >= goals_r,

    with ``xi, a >= 0`` and free intercepts b (`HingeRows`, `GaugeColumns`). A budget for the loss
    replaces the costs of xi by ``costs'xi <= budget + e``, with e >= 0 at the `price`.

    Columns belong to the intercepts, e, the hinges, and the gauge; rows to the sum of the
    intercepts, the budget, and the loss.
    """

    problem: Problem
    rows: HingeRows
    gauge: GaugeColumns
    level: LevelSet | None = None

    @property
    def outputs(self) -> int:
        return self.rows.n_outputs

    @property
    def free(self) -> int:
        """The number of intercepts."""
        return self.outputs if self.problem.fits_intercept else 0

    @property
    def ahead(self) -> int:
        """The number of columns before those of the gauge."""
        return self.free + self.limits + self.rows.costs.size

    @property
    def sums(self) -> int:
        """The number of rows for the sum of the intercepts."""
        return int(self.problem.intercept.sums_to_zero)

    @property
    def limits(self) -> int:
        """The number of rows, and of columns, for a budget."""
        return int(self.level is not None)

    @property
    def above(self) -> int:
        """The number of rows before those of the loss."""
        return self.sums + self.limits

    def restricted(self, rows: Ids, columns: Atoms) -> RestrictedProgram:
        """The program of some rows of the loss and some columns of the gauge."""
        size = (self.above + rows.size, self.ahead + columns.parts.size)
        entries = _Triplets.joined([
            *self._sum_of_intercepts,
            *self._budget,
            self._known_columns(rows).moved(self.above, 0),
            self._products(rows, columns).moved(self.above, self.ahead),
        ])  # fmt: skip
        lower = np.zeros(size[1])
        lower[: self.free] = -np.inf
        sums, budget = np.zeros(self.sums), np.zeros(self.limits)
        loss = self.rows.costs / self.gauge.strength
        if self.level is not None:
            budget[0], loss = -self.level.budget, np.zeros(loss.size)
            price = [self.level.price / self.gauge.strength]
        else:
            price = []
        return RestrictedProgram(
            cost=np.concatenate([np.zeros(self.free), price, loss, columns.costs]),
            lower=lower,
            upper=np.full(size[1], np.inf),
            matrix=sparse.csc_array((entries.values, (entries.rows, entries.columns)), shape=size),
            row_lower=np.concatenate([sums, budget, self.rows.goals[rows]]),
            row_upper=np.concatenate([sums, np.full(self.limits + rows.size, np.inf)]),
        )

    def point(self, columns: Atoms, vertex: Vertex) -> Point:
        shape = (self.problem.design.n_features, self.outputs)
        coef = columns.coef(vertex.columns[self.ahead :], shape)
        intercept = np.zeros(self.outputs)
        intercept[: self.free] = vertex.columns[: self.free]
        if self._absorbed is not None:
            intercept += self._absorbed @ coef
        return Point(coef, intercept)

    def multiplier(self, vertex: Vertex) -> float:
        """The multiplier of the budget; one without a budget."""
        if self.level is None:
            return 1.0
        return self.gauge.strength * float(vertex.duals[self.sums])

    def dual(self, rows: Ids, vertex: Vertex) -> Array:
        """The dual point of a vertex, (n_samples, n_outputs)."""
        duals = np.maximum(vertex.duals[self.above :], 0.0)
        return self.gauge.strength * self.rows.dual(rows, duals)

    @cached_property
    def _absorbed(self) -> Array | None:
        """The centres over scales, (n_features,), that the intercepts absorb, or None.

        Centring would make the columns of sparse data dense.
        """
        design = self.problem.design
        if self.free and not design.has_columns:
            _, centre, scale = design.stored
            return centre / scale
        return None

    @property
    def _sum_of_intercepts(self) -> list[_Triplets]:
        if not self.sums:
            return []
        each = np.arange(self.free)
        return [_Triplets(np.ones(self.free), np.zeros(self.free, np.intp), each)]

    @property
    def _budget(self) -> list[_Triplets]:
        """The row ``e - costs'xi`` of a budget."""
        if self.level is None:
            return []
        values = np.concatenate([[1.0], -self.rows.costs])
        columns = self.free + np.arange(values.size)
        return [_Triplets(values, np.full(values.size, self.sums), columns)]

    def _known_columns(self, rows: Ids) -> _Triplets:
        """The entries of intercepts and hinges in these rows."""
        each = np.arange(rows.size)
        ahead = self.free + self.limits
        hinges = _Triplets(np.ones(rows.size), each, ahead + self.rows.hinges(rows))
        if not self.free:
            return hinges
        gains = self.rows.gains(rows)
        at = np.nonzero(gains)
        return _Triplets.joined([_Triplets(gains[at], *at), hinges])

    def _products(self, rows: Ids, columns: Atoms) -> _Triplets:
        """``gains_r'(X A_c)_i(r)`` for all rows r and columns c, one output at a time."""
        gains, samples = self.rows.gains(rows), rows // self.outputs
        features, at = np.unique(columns.entries // self.outputs, return_inverse=True)
        data = self._features(features)
        blocks = [_Triplets(np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp))]
        for k in range(self.outputs):
            here = np.flatnonzero(columns.entries % self.outputs == k)
            live = np.flatnonzero(gains[:, k])
            used, local = np.unique(at[here], return_inverse=True)
            owners, column = np.unique(columns.owners[here], return_inverse=True)
            shape = (used.size, owners.size)
            combine = sparse.csc_array((columns.values[here], (local, column)), shape=shape)
            block = sparse.coo_array(data[samples[live]][:, used] @ combine)
            values = block.data * gains[live[block.row], k]
            blocks.append(_Triplets(values, live[block.row], owners[block.col]))
        return _Triplets.joined(blocks)

    def _features(self, index: Ids) -> Any:
        """Some features of all samples: an array, or CSR where the data are sparse."""
        part = self.problem.design.columns(index)
        if self._absorbed is not None:
            base, _, scale = part.stored
            return (_stored(base) / scale).tocsr()
        return _stored(part)


def _stored(design: Design) -> Any:
    if not design.has_columns:
        return design.scores(np.eye(design.n_features))
    data = design.sweep_data()
    if design.is_dense:
        matrix, centre, scale = data
        return (matrix - centre) / scale
    return sparse.csc_array(data, shape=(design.n_samples, design.n_features)).tocsr()


def hinge_program(problem: Problem) -> HingeProgram | None:
    """The program of a hinge loss with an l1 or group l_inf norm; None for another problem."""
    level = problem.level_set if Trait.BUDGET in problem.traits else None
    rows, gauge = hinge_rows(problem.loss.without_budget), gauge_columns(problem.penalty)
    if rows is None or gauge is None:
        return None
    # a smaller feature has |x_j'q| < strength for every dual point q, so that it stays at zero
    least = gauge.strength / float(rows.costs.sum())
    units = InUnits.of(gauge, problem.design.column_bounds(), least if level is None else 0.0)
    return HingeProgram(problem, rows, units, level)
