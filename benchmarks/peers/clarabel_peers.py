"""Clarabel, an interior point method for cones, through cvxpy: the losses with an elastic net.

The time is that of its own call: cvxpy's translation into cones is outside the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Design
from benchmarks.objective import Hinge, HuberizedHinge, Problem, SquaredHinge
from benchmarks.peers.base import Fitted, Stopwatch, row_major, threads

MOST_STORED = 1_000_000


@dataclass(frozen=True)
class ClarabelPeer:
    """The tolerance is that of gaps and feasibility; `most` are the stored entries it is given."""

    most: int = MOST_STORED
    name: str = "Clarabel"
    ladder: tuple[float, ...] = tuple(10.0**-k for k in range(3, 13))
    package: str = "clarabel"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        design = problem.design
        stored = design.nnz if sp.issparse(design) else design.size
        if stored > self.most:
            return "more data than it is given"
        return "no ridge on the intercept" if problem.intercept_ridge > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        import cvxpy as cp

        w = cp.Variable(problem.design.shape[1])
        b = cp.Variable() if problem.fit_intercept else cp.Constant(0.0)
        losses, constraints = _mean_loss(problem, w, b)
        value = losses + problem.l1 * cp.norm1(w)
        if problem.l2 > 0.0:
            value += problem.l2 / 2 * cp.sum_squares(w)
        program = cp.Problem(cp.Minimize(value), constraints)
        options: dict[str, Any] = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), setting)
        options["max_threads"] = threads()
        data, chain, inverse = program.get_problem_data(cp.CLARABEL, solver_opts=options)
        watch = Stopwatch()
        with watch.running():
            raw = chain.solve_via_data(program, data, solver_opts=options)
        program.unpack_results(raw, chain, inverse)
        if w.value is None:
            raise RuntimeError(f"Clarabel says {program.status}")
        rows = problem.labels.size
        multiplier = constraints[0].dual_value if constraints else None
        return Fitted(
            coef=np.asarray(w.value),
            intercept=float(b.value),
            iterations=int(program.solver_stats.num_iters),
            dual=None if multiplier is None else rows * np.asarray(multiplier),
            clocked=watch.times,
        )


def _mean_loss(problem: Problem, w: Any, b: Any) -> tuple[Any, list[Any]]:
    """The mean loss, and the constraint on slacks, if any, whose multiplier is beta / n."""
    import cvxpy as cp

    rows = problem.labels.size
    t = cp.multiply(problem.labels, problem.design @ w + b)
    slack = cp.Variable(rows, nonneg=True)
    match problem.loss:
        case Hinge():
            return cp.sum(slack) / rows, [slack >= 1 - t]
        case SquaredHinge():
            return cp.sum_squares(slack) / rows, [slack >= 1 - t]
        case HuberizedHinge(delta=delta):  # u = bent + straight costs bent^2/(2 delta) + straight
            bent = cp.Variable(rows)
            cost = cp.sum_squares(bent) / (2 * delta) + cp.sum(slack)
            return cost / rows, [bent + slack >= 1 - t]
        case _:
            return cp.sum(cp.logistic(-t)) / rows, []
