"""The linear program of a hinge loss and a gauge, with some of its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.base import Array, Loss
from proxmargin.functions.losses.classes.multinomial import CrammerSinger
from proxmargin.functions.losses.level_set import LevelSet
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import cached_property
from proxmargin.solvers.programs.gauge_columns import Atoms, GaugeColumns, gauge_columns
from proxmargin.solvers.programs.restricted_program import RestrictedProgram, Vertex

Ids = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HingeRows:
    """``L(Z) = sum_c costs_c [max_{rows r of c} goals_r - gains_r'z_i(r)]_+``.

    Row ``i K + k`` belongs to sample i and output k. In the program the hinge c is a variable
    ``xi_c >= 0`` with ``xi_c + gains_r'z_i(r) >= goals_r``; the duals y of those rows give the dual
    point ``q_i = -sum_r y_r gains_r``.
    """

    costs: Array  # (n_hinges,)
    goals: Array  # (n_samples, n_outputs); one, less the contribution of an offset of the scores
    signs: Array  # (n_samples, n_outputs); the gain of the score of the row's output
    # (n_samples, n_outputs) of bool; False for samples without a weight, and for their own classes
    exists: NDArray[np.bool_]
    # (n_samples,), optional; the class whose score has gain one in all rows of a sample, which
    # share one hinge; without them each row has a hinge
    codes: Ids | None = None

    @property
    def n_outputs(self) -> int:
        return self.goals.shape[1]

    @cached_property
    def all_rows(self) -> Ids:
        return np.flatnonzero(self.exists)

    def hinges(self, rows: Ids) -> Ids:
        """The hinge that each row belongs to."""
        return rows if self.codes is None else rows // self.n_outputs

    def gains(self, rows: Ids) -> Array:
        """The coefficients of the scores in each row, (n_rows, n_outputs)."""
        gains, each = np.zeros((rows.size, self.n_outputs)), np.arange(rows.size)
        if self.codes is not None:
            gains[each, self.codes[rows // self.n_outputs]] = 1.0
        gains[each, rows % self.n_outputs] = self.signs.flat[rows]
        return gains

    def shortfalls(self, scores: Array) -> Array:
        """``goals_r - gains_r'z`` of each row, (n_samples, n_outputs); -inf without a row."""
        missing = self.goals - self.signs * scores
        if self.codes is not None:
            missing -= np.take_along_axis(scores, self.codes[:, None], axis=1)
        return np.where(self.exists, missing, -np.inf)

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
        shortfalls = self.shortfalls(scores).ravel()
        hinges = self.hinges(np.arange(shortfalls.size))
        sizes = np.zeros(self.costs.size)
        np.maximum.at(sizes, hinges, shortfalls)
        return np.flatnonzero(shortfalls >= sizes[hinges] - distance)

    def dual(self, rows: Ids, duals: Array) -> Array:
        """The dual point for duals of the rows, (n_samples, n_outputs)."""
        samples, starts = rows // self.n_outputs, np.arange(rows.size + 1)
        pulls = sparse.csc_array((-duals, samples, starts), (len(self.goals), rows.size))
        return np.asarray(pulls @ self.gains(rows))


def hinge_rows(loss: Loss) -> HingeRows | None:
    """The rows of a loss that is a sum of hinges; None for another loss."""
    bare = loss.unshifted
    if isinstance(bare, CrammerSinger) and not loss.offset.any():
        shape = bare.codes.size, bare.n_outputs
        wrong = bare.codes[:, None] != np.arange(shape[1])
        exists = wrong & (bare.shares > 0)[:, None]
        ones = np.ones(shape)
        return HingeRows(bare.shares, ones, -ones, exists, bare.codes)
    if isinstance(bare, MarginSum) and bare.phi.is_hinge:
        goals = 1.0 - bare.signs * loss.offset
        return HingeRows(bare.weights.ravel(), goals, bare.signs, bare.weights > 0)
    return None


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
        size = self.ahead + columns.parts.size
        lower = np.zeros(size)
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
            upper=np.full(size, np.inf),
            matrix=self._matrix(rows, columns),
            row_lower=np.concatenate([sums, budget, self.rows.goals.flat[rows]]),
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

    def _matrix(self, rows: Ids, columns: Atoms) -> Any:
        """Rows for the sum of the intercepts, ``e - costs'xi`` within a budget, and the loss."""
        gains, each = self.rows.gains(rows), np.arange(rows.size)
        hinges = (np.ones(rows.size), (each, self.rows.hinges(rows)))
        n_hinges = self.rows.costs.size
        blocks: list[list[Any]] = [
            [
                sparse.csr_array(gains[:, : self.free]),
                sparse.csr_array((rows.size, self.limits)),
                sparse.csr_array(hinges, shape=(rows.size, n_hinges)),
                self._products(gains, rows // self.outputs, columns),
            ]
        ]
        if self.level is not None:
            one, costs = np.ones((1, 1)), -self.rows.costs[None, :]
            blocks.insert(0, [None, one, costs, None])
        if self.sums:
            blocks.insert(0, [np.ones((1, self.free)), None, None, None])
        return sparse.block_array(blocks, format="csc")

    def _products(self, gains: Array, samples: Ids, columns: Atoms) -> Any:
        """``gains_r'(X A_c)_i(r)`` for all rows r and columns c, one output at a time."""
        features, at = np.unique(columns.entries // self.outputs, return_inverse=True)
        data = self._features(features)
        blocks = [(np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp))]
        for k in range(self.outputs):
            here = np.flatnonzero(columns.entries % self.outputs == k)
            live = np.flatnonzero(gains[:, k])
            used, local = np.unique(at[here], return_inverse=True)
            owners, column = np.unique(columns.owners[here], return_inverse=True)
            shape = (used.size, owners.size)
            combine = sparse.csc_array((columns.values[here], (local, column)), shape=shape)
            block = sparse.coo_array(data[samples[live]][:, used] @ combine)
            values = block.data * gains[live[block.row], k]
            blocks.append((values, live[block.row], owners[block.col]))
        values, each, owners = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return sparse.coo_array((values, (each, owners)), shape=(len(gains), columns.parts.size))

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
    units = gauge.in_units(problem.design.column_bounds(), least if level is None else 0.0)
    return HingeProgram(problem, rows, units, level)
