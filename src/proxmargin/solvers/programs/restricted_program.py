"""Linear programs by the simplex method with a warm start; the only module that uses HiGHS."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import DOMAIN_ROUNDING
from proxmargin.runtime.types import Array, Record

Status = NDArray[np.int8]
FEASIBILITY_TOLERANCE = 1e-10  # primal and dual; the tightest that HiGHS accepts
PROGRAM_TOLERANCE = 1e-9  # of sums and norms that follow from a solution, and of its ties

logger = logging.getLogger("proxmargin")


class Basis(NamedTuple):
    """The status of each column and row."""

    columns: Status
    rows: Status

    def extended(self, columns: int, rows: int) -> Basis:
        """The basis with new columns at their lower bounds and new basic rows, appended."""
        # codes of HiGHS: 0 at the lower bound, 1 basic
        return Basis(
            np.concatenate([self.columns, np.zeros(columns, np.int8)]),
            np.concatenate([self.rows, np.ones(rows, np.int8)]),
        )


@dataclass(frozen=True, eq=False)
class RestrictedProgram:
    """``min cost'x s.t. lower <= x <= upper, row_lower <= matrix x <= row_upper``, with a CSC
    array."""

    cost: Array
    lower: Array
    upper: Array
    matrix: Any
    row_lower: Array
    row_upper: Array


class Vertex(NamedTuple):
    # values of the columns, and duals of the rows
    columns: Array
    duals: Array
    basis: Basis
    # whether the vertex is optimal, and whether a limit was reached; neither if the method failed
    optimal: bool
    limited: bool
    pivots: int


def solved(
    program: RestrictedProgram,
    basis: Basis | None,
    *,
    pivots: int = np.iinfo(np.int32).max,
    deadline: float = np.inf,
) -> Vertex:
    """The optimal vertex, or the last one before ``pivots`` or the ``deadline`` were exhausted,
    from a basis that may be singular: HiGHS replaces dependent columns. Its errors are logged; a
    program that it rejects gives a failed vertex at zero."""
    import highspy as highs  # loaded when the first program is solved

    def failed(
        status: object,
    ) -> bool:  # warnings, as of tiny entries that HiGHS drops, do not count
        return bool(status == highs.HighsStatus.kError)

    solver = highs.Highs()  # type: ignore[no-untyped-call]
    for name, value in _options(pivots, deadline).items():
        if failed(solver.setOptionValue(name, value)):
            raise RuntimeError(f"HiGHS {solver.version()} does not take the option {name}={value}")
    if failed(solver.passModel(*_as_arrays(highs, program))):
        logger.warning("HiGHS does not take a linear program with %s", _extent(program))
        return _failed_vertex(program, basis)
    if basis is not None and failed(solver.setBasis(_basis(highs, basis))):
        logger.warning("HiGHS does not take a basis of %s, and starts anew", _extent(program))
    if failed(solver.run()):
        said = solver.modelStatusToString(solver.getModelStatus())
        logger.info("HiGHS failed (%s) at a program with %s", said, _extent(program))
    found, reached, status = solver.getSolution(), solver.getBasis(), solver.getModelStatus()
    ends = highs.HighsModelStatus.kIterationLimit, highs.HighsModelStatus.kTimeLimit
    if not found.value_valid:
        return _failed_vertex(program, basis)._replace(limited=status in ends)
    return Vertex(
        columns=_without_rounding(program, np.array(found.col_value)),
        duals=np.array(found.row_dual),
        basis=Basis(*(_codes(statuses) for statuses in (reached.col_status, reached.row_status))),
        optimal=status == highs.HighsModelStatus.kOptimal,
        limited=status in ends,
        pivots=int(solver.getInfo().simplex_iteration_count),
    )


def _options(pivots: int, deadline: float) -> Record:
    return {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",  # it would discard the basis
        "solver": "simplex",
        "simplex_strategy": 0,  # primal from a primal feasible basis, else dual
        "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE,
        "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE,
        "simplex_iteration_limit": pivots,
        "time_limit": max(deadline - clock(), 0.0),
    }


def _extent(program: RestrictedProgram) -> str:
    sizes = np.abs(program.matrix.data)
    return (
        f"{program.matrix.shape[0]} rows and {program.matrix.shape[1]} columns whose entries are "
        f"of size {sizes.min(initial=np.inf):.2g} to {sizes.max(initial=0.0):.2g}"
    )


def _failed_vertex(program: RestrictedProgram, basis: Basis | None) -> Vertex:
    """A vertex at zero that is neither optimal nor limited."""
    rows, columns = program.matrix.shape
    empty = Basis(np.zeros(0, np.int8), np.zeros(0, np.int8)).extended(columns, rows)
    return Vertex(np.zeros(columns), np.zeros(rows), basis or empty, False, False, 0)


def _as_arrays(highs: ModuleType, program: RestrictedProgram) -> tuple[Any, ...]:
    """A program as arrays, which HiGHS copies at once; assigned attributes it copies by entry."""
    matrix, (rows, columns) = program.matrix, program.matrix.shape
    return (
        columns,
        rows,
        matrix.nnz,
        int(highs.MatrixFormat.kColwise),
        int(highs.ObjSense.kMinimize),
        0.0,
        program.cost,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        matrix.indptr,
        matrix.indices,
        matrix.data,
        np.zeros(columns, dtype=np.int32),  # no integers
    )


def _basis(highs: ModuleType, basis: Basis) -> Any:
    codes = [highs.HighsBasisStatus(code) for code in range(5)]
    given = highs.HighsBasis()
    given.col_status = [codes[code] for code in basis.columns.tolist()]
    given.row_status = [codes[code] for code in basis.rows.tolist()]
    given.valid = True
    given.alien = True  # lets HiGHS complete an incomplete basis
    return given


def _without_rounding(program: RestrictedProgram, columns: Array) -> Array:
    """``columns`` with exact zeros where a degenerate vertex is zero up to rounding."""
    starts, filled = program.matrix.indptr, np.flatnonzero(np.diff(program.matrix.indptr))
    effects = np.zeros(columns.size)
    if filled.size:
        effects[filled] = np.maximum.reduceat(np.abs(program.matrix.data), starts[filled])
    effects *= np.abs(columns)
    return np.where((program.lower == 0.0) & (effects <= DOMAIN_ROUNDING), 0.0, columns)


def _codes(statuses: Any) -> Status:
    return np.fromiter(map(int, statuses), np.int8, len(statuses))
