"""Hinge losses with l1 and group norms as linear programs, by row and column generation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.losses.classes.multinomial import CrammerSinger
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.shifted import LevelSet
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.types import Array, Matrix
from proxmargin.solvers.loop.solver import Solver, State, Stop
from proxmargin.solvers.programs.gauge_columns import Atoms, GaugeColumns, gauge_columns
from proxmargin.solvers.programs.restricted_program import Basis, RestrictedProgram, Vertex, solved

Ids = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class HingeRows:
    """``L(Z) = sum_c costs_c [max_{rows r of c} goals_r - gains_r'z_i(r)]_+``. Row ``i K + k``
    belongs to sample i and output k. In the program the hinge c is a variable ``xi_c >= 0`` with
    ``xi_c + gains_r'z_i(r) >= goals_r``; the duals y of those rows give the dual point ``q_i =
    -sum_r y_r gains_r``."""

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
        """The most violated row of each sample, where ``rows`` determine the hinges; the shortfalls
        (n_samples, n_outputs) are of all rows, -inf excludes one. ``floors`` are the values of
        hinges without rows."""
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
    if isinstance(bare, CrammerSinger):
        exists = (bare.margins > 0) & (bare.shares > 0)[:, None]
        goals = 1.0 + loss.offset - np.take_along_axis(loss.offset, bare.codes[:, None], axis=1)
        return HingeRows(bare.shares, goals, -np.ones(goals.shape), exists, bare.codes)
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
        """The centres over scales, (n_features,), that the intercepts absorb, or None. Centring
        would make the columns of sparse data dense."""
        design = self.problem.design
        if self.free and not design.has_columns:
            _, centre, scale = design.stored
            return centre / scale
        return None

    def _matrix(self, rows: Ids, columns: Atoms) -> Matrix:
        """Rows for the sum of the intercepts, ``e - costs'xi`` within a budget, and the loss."""
        gains, each, above = self.rows.gains(rows), np.arange(rows.size), self.above
        hinges = self.free + self.limits
        intercepts = np.nonzero(gains[:, : self.free])
        products = self._products(gains, rows // self.outputs, columns)
        # values, rows and columns; SciPy's own blocks take longer than a small program
        parts = [
            (gains[intercepts], above + intercepts[0], intercepts[1]),
            (np.ones(rows.size), above + each, hinges + self.rows.hinges(rows)),
            (products.data, above + products.row, self.ahead + products.col),
        ]
        if self.level is not None:
            live = np.flatnonzero(self.rows.costs)
            budget = np.append(1.0, -self.rows.costs[live])
            parts.append(
                (budget, np.full(budget.size, self.sums), np.append(self.free, hinges + live))
            )
        if self.sums:
            free = np.arange(self.free)
            parts.append((np.ones(free.size), np.zeros_like(free), free))
        values, at, across = (np.concatenate(part) for part in zip(*parts, strict=True))
        shape = above + rows.size, self.ahead + columns.parts.size
        return sparse.csc_array((values, (at, across)), shape=shape)

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
    if design.is_dense:
        matrix, centre, scale = design.sweep_data()
        return (matrix - centre) / scale
    data, indices, indptr = design.sweep_data()
    shape = design.n_samples, design.n_features
    return sparse.csc_array((data, indices, indptr), shape=shape).tocsr()


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


FEW_ROWS = 1000  # hinge pieces up to which the first program has all rows
# simplex iterations
ROUND_PIVOTS = 20_000  # limit of one round
STEP_PIVOTS = 1000  # between two certificates, after which no further round begins
# distance to its hinge, in margins, and of its dual norm to one, up to which a row or column enters
# the first program at a warm start
WARM_DISTANCE = 0.02


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearProgramState(State):
    """The generated rows and columns, and the last vertex of their program."""

    at: Point
    # (n_samples, n_outputs)
    scores: Array | None = None
    dual: Array | None = None
    rows: Ids  # (n_rows,); ids of the rows of the loss (`HingeRows`)
    columns: Atoms  # columns of the penalty
    basis: Basis | None = None  # start basis of the next program
    multiplier: float = 1.0  # multiplier of the budget, if there is one (`LevelSet`)
    pivots: int = 0  # simplex iterations so far
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class LinearProgram(Solver[LinearProgramState]):
    """Column and row generation with the simplex method.

    With a hinge loss and an l1 or group l_inf norm the problem is a linear program, of which an
    optimal vertex has few basic columns (coefficients) and few active rows (wrong classes). A round
    solves the restricted program from the last basis, and adds what its vertex violates: for each
    sample the wrong class that exceeds its hinge most, and the columns with the most negative
    reduced costs. If there are none, the vertex solves the whole program up to rounding.

    With a budget for the loss (`LevelSet`) the program has one more row, whose dual is the
    multiplier. Solutions within a budget need not be solutions for any penalty strength: as the
    strength falls, the loss of the latter jumps from vertex to vertex.

    Notes
    -----
    (7) and (8) of Chierchia et al. (2015).
    """

    name: ClassVar[str] = "linear-program"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 1000

    def objection(self, problem: Problem) -> str | None:
        bare = problem.loss.without_budget
        if hinge_rows(bare) is None:
            return "it needs a hinge loss (plain, of the wrong classes, or Crammer and Singer's)"
        gauge = gauge_columns(problem.penalty)
        flat = gauge is not None and gauge.is_polyhedral and gauge.strength > 0
        if not flat or problem.penalty.l2 > 0:
            return "it needs an l1 or group l_inf penalty, without a ridge part"
        if problem.fits_intercept and not problem.intercept.is_shift_invariant:
            return "it needs an intercept without penalty, or none"
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> LinearProgramState:
        program = _program_of(problem)
        scores = problem.design.scores(start.coef) + start.intercept
        columns = program.gauge.starting(start.coef)
        rows = first_rows(program.rows, scores)
        if columns.parts.size:
            rows = np.union1d(rows, program.rows.near(scores, WARM_DISTANCE))
        if start.dual is not None and columns.parts.size:
            pulled = problem.design.adjoint(-start.dual) / program.gauge.strength
            limit = columns.parts.size + 2 * len(scores)
            columns = columns.joined(
                program.gauge.entering(pulled / (1.0 - WARM_DISTANCE), columns, limit)
            )
        return LinearProgramState(
            at=start,
            scores=scores,
            rows=rows,
            columns=columns,
            stop=stop,
        )

    def step(self, problem: Problem, state: LinearProgramState) -> LinearProgramState:
        """At least one round; more until nothing is violated or `STEP_PIVOTS` pivots are spent."""
        program = _program_of(problem)
        pivots, limit = state.pivots + STEP_PIVOTS, state.stop.iterations(self.max_iter)
        state = _round(program, state)
        while (
            not (state.finished or state.exact or state.n_iter >= limit)
            and state.pivots < pivots
            and not state.stop.is_late()
        ):
            state = _round(program, state)
        return state

    def point(self, problem: Problem, state: LinearProgramState) -> Point:
        return state.at

    def scores(self, problem: Problem, state: LinearProgramState) -> Array | None:
        return state.scores

    def dual(self, problem: Problem, state: LinearProgramState) -> Array | None:
        return state.dual


def _program_of(problem: Problem) -> HingeProgram:
    program = hinge_program(problem)
    assert program is not None
    return program


def first_rows(rows: HingeRows, scores: Array) -> Ids:
    """All rows if they are few or one a hinge; else the most violated row of each sample."""
    if rows.all_rows.size <= FEW_ROWS or rows.codes is None:
        return rows.all_rows
    # at the null model all wrong classes tie: perturb scores, so that each enters for some samples
    broken_ties = scores + DOMAIN_ROUNDING * np.random.default_rng(0).random(scores.shape)
    return rows.violated(rows.shortfalls(broken_ties), np.zeros(0, dtype=np.intp), -np.inf)


def _round(program: HingeProgram, state: LinearProgramState) -> LinearProgramState:
    """Solve the restricted program, and add the rows and columns that its vertex violates. If the
    method fails from the last basis, it starts anew."""
    restricted, design = program.restricted(state.rows, state.columns), program.problem.design
    solve = partial(solved, restricted, pivots=ROUND_PIVOTS, deadline=state.stop.deadline)
    vertex = solve(basis=state.basis)
    if not (vertex.optimal or vertex.limited or state.basis is None):
        vertex = solve(basis=None)
    point, dual = program.point(state.columns, vertex), program.dual(state.rows, vertex)
    scores = design.scores(point.coef) + point.intercept
    reached = replace(
        state,
        n_iter=state.n_iter + 1,
        at=point,
        scores=scores,
        dual=dual,
        multiplier=program.multiplier(vertex),
        basis=vertex.basis,
        pivots=state.pivots + vertex.pivots,
    )
    if not vertex.optimal:
        return replace(reached, finished=not vertex.limited)
    rows = program.rows.violated(program.rows.shortfalls(scores), state.rows, DOMAIN_ROUNDING)
    pulled = design.adjoint(-dual) / program.gauge.strength
    columns = program.gauge.entering(pulled, state.columns, 2 * design.n_samples)
    new = columns.parts.size
    ended = not (rows.size or new)
    return replace(
        reached,
        rows=np.concatenate([state.rows, rows]),
        columns=state.columns.joined(columns),
        basis=vertex.basis.extended(new, rows.size),
        # exact: a second solve from the same basis, as a fresh factor removes rounding of many
        # pivots
        finished=ended and state.exact,
        exact=ended,
    )
