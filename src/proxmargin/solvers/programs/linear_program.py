"""Hinge losses with l1 and group l_inf norms: the simplex method with row and column generation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.functions.losses.base import Array
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.loop.solver import Solver, State
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.programs.gauge_columns import Atoms, gauge_columns
from proxmargin.solvers.programs.hinge_program import (
    HingeProgram,
    HingeRows,
    hinge_program,
    hinge_rows,
)
from proxmargin.solvers.programs.restricted_program import Basis, solved

Ids = NDArray[np.intp]
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
    limit: int = 0  # limit of rounds
    deadline: float = np.inf


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
            limit=self.max_iter if stop.max_iter is None else stop.max_iter,
            deadline=stop.deadline,
        )

    def step(self, problem: Problem, state: LinearProgramState) -> LinearProgramState:
        """At least one round; more until nothing is violated or `STEP_PIVOTS` pivots are spent."""
        program = _program_of(problem)
        pivots = state.pivots + STEP_PIVOTS
        state = _round(program, state)
        while (
            not (state.finished or state.exact or state.n_iter >= state.limit)
            and state.pivots < pivots
            and clock() < state.deadline
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
    """Solve the restricted program, and add the rows and columns that its vertex violates.

    If the method fails from the last basis, it starts anew.
    """
    restricted, design = program.restricted(state.rows, state.columns), program.problem.design
    solve = partial(solved, restricted, pivots=ROUND_PIVOTS, deadline=state.deadline)
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
