"""HiGHS: the hinge with l1 alone, as a linear program in (w+, w-, b, slack).

    minimise l1 sum(w+ + w-) + sum(slack)/n   with   Y X (w+ - w-) + y b + slack >= 1

The multipliers of the rows, times n, are the dual point. The program is set up outside the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Design
from benchmarks.objective import Hinge, Problem
from benchmarks.peers.base import Fitted, Stopwatch, row_major, threads

MOST_STORED = 3_000_000


@dataclass(frozen=True)
class HighsPeer:
    """The simplex method or interior points; the tolerance is that of feasibility, both sides."""

    name: str
    method: str
    most: int = MOST_STORED
    ladder: tuple[float, ...] = (1e-4, 1e-7, 1e-10)
    package: str = "highspy"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Hinge):
            return "hinge only"
        if problem.l2 > 0.0 or problem.intercept_ridge > 0.0:
            return "linear programs only"
        design = problem.design
        stored = design.nnz if sp.issparse(design) else design.size
        return "more data than it is given" if stored > self.most else None

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        import highspy

        solver = highspy.Highs()
        for option, value in self._options(setting).items():
            solver.setOptionValue(option, value)
        solver.passModel(linear_program(problem))
        watch = Stopwatch()
        with watch.running():
            solver.run()
        found = solver.getSolution()
        columns = problem.design.shape[1]
        x = np.array(found.col_value)
        intercept = float(x[2 * columns]) if problem.fit_intercept else 0.0
        return Fitted(
            coef=x[:columns] - x[columns : 2 * columns],
            intercept=intercept,
            dual=problem.labels.size * np.array(found.row_dual),
            clocked=watch.times,
        )

    def _options(self, setting: float) -> dict[str, Any]:
        return {
            "output_flag": False,
            "solver": self.method,
            "threads": threads(),
            "primal_feasibility_tolerance": setting,
            "dual_feasibility_tolerance": setting,
            "ipm_optimality_tolerance": max(1e-12, min(setting, 1e-8)),
        }


def linear_program(problem: Problem) -> Any:
    """By columns, in HiGHS's own form."""
    import highspy

    rows, columns = problem.design.shape
    signed = sp.diags_array(problem.labels) @ sp.csr_array(problem.design)
    intercept = [sp.csr_array(problem.labels[:, None])] if problem.fit_intercept else []
    matrix = sp.hstack([signed, -signed, *intercept, sp.eye_array(rows)], format="csc")
    free = len(intercept)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = matrix.shape[1], rows
    ends = (np.full(2 * columns, problem.l1), np.zeros(free), np.full(rows, 1.0 / rows))
    lp.col_cost_ = np.concatenate(ends)
    floor = (np.zeros(2 * columns), np.full(free, -highspy.kHighsInf), np.zeros(rows))
    lp.col_lower_ = np.concatenate(floor)
    lp.col_upper_ = np.full(matrix.shape[1], highspy.kHighsInf)
    lp.row_lower_ = np.ones(rows)
    lp.row_upper_ = np.full(rows, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr
    lp.a_matrix_.index_ = matrix.indices
    lp.a_matrix_.value_ = matrix.data
    return lp


PEERS = (HighsPeer("HiGHS simplex", "simplex"), HighsPeer("HiGHS ipm", "ipm"))
