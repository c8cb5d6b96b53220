"""Solvers of the hinge with an elastic net: the library's own, and Clarabel through cvxpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Design
from benchmarks.family import Solved
from benchmarks.objective import (
    FLOOR,
    Floats,
    Problem,
    _correlation,
    _gap,
    _scales,
    balanced,
    exact_intercept,
)
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, row_major
from benchmarks.peers.family_clarabel import _now
from benchmarks.peers.own import told

OURS = ("auto", "isvm1", "isvm2", "isvm3", "admm")


@dataclass(frozen=True)
class OwnDrsvmPeer:
    """One of our solvers by its name, with a time limit of its own so that it answers."""

    name: str
    time_limit: float
    ladder: tuple[float, ...] = DECADES[1:9]

    def solves(self, problem: Problem) -> str | None:
        return "many samples" if self.name.startswith("isvm") and _rows(problem) > 6000 else None

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        import proxmargin

        model = proxmargin.ElasticNetSVC(
            alpha=problem.alpha,
            l1_ratio=problem.l1_ratio,
            solver=self.name,
            tol=setting,
            max_iter=UNLIMITED,
            time_limit=self.time_limit,
        )
        return told(model.fit(problem.design, problem.labels))


@dataclass(frozen=True)
class ClarabelDrsvmPeer:
    """The tolerance is that of gaps and feasibility; `most` are the stored entries it is given.

    The time is that of its own call: cvxpy's translation into cones is outside the clock.
    """

    most: int
    name: str = "Clarabel"
    ladder: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)

    def solves(self, problem: Problem) -> str | None:
        design = problem.design
        stored = design.nnz if sp.issparse(design) else design.size
        return "more data than it is given" if stored > self.most else None

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Solved:
        import cvxpy as cp

        rows, columns = problem.design.shape
        w, b, slack = cp.Variable(columns), cp.Variable(), cp.Variable(rows, nonneg=True)
        margins = cp.multiply(problem.labels, problem.design @ w + b)
        value = cp.sum(slack) / rows + problem.l1 * cp.norm1(w)
        if problem.l2 > 0:
            value += problem.l2 / 2 * cp.sum_squares(w)
        program = cp.Problem(cp.Minimize(value), [slack >= 1 - margins])
        tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), setting)
        data, chain, inverse = program.get_problem_data(cp.CLARABEL, solver_opts=tolerances)
        start = _now()
        raw = chain.solve_via_data(program, data, solver_opts=tolerances)
        wall, cpu = _now() - start
        program.unpack_results(raw, chain, inverse)
        return Solved(
            coef=np.asarray(w.value),
            intercept=float(b.value),
            iterations=int(program.solver_stats.num_iters),
            clocked=(wall, cpu),
        )


def _rows(problem: Problem) -> int:
    return int(problem.design.shape[0])


def relative_gap(problem: Problem, solved: Fitted, duals: Sequence[Floats]) -> float:
    """Of (w, b) with its own or the best intercept, by whichever dual point proves most."""
    coef = solved.coef
    if not (np.isfinite(coef).all() and np.isfinite(solved.intercept)):
        return float("inf")
    scores, gaps = problem.design @ coef, []
    for intercept in (solved.intercept, exact_intercept(problem, scores, solved.intercept)):
        primal = problem.primal(coef, intercept)
        for dual in duals:
            beta = balanced(problem, np.clip(dual, 0.0, 1.0))
            pulled = _correlation(problem, beta)
            for scale in _scales(problem, pulled):
                gap = _gap(problem, coef, intercept, scores, scale * beta, scale * pulled)
                gaps.append(gap / max(primal, FLOOR))
    return min(gaps)


def reference(problem: Problem) -> Floats:
    """A dual point of our own at a tight tolerance: any dual point proves a bound."""
    from proxmargin.designs import as_design
    from proxmargin.losses import Hinge, MarginSum
    from proxmargin.minimize import minimize
    from proxmargin.penalties import ElasticNet, Ridge
    from proxmargin.problem import Problem as Stated
    from proxmargin.solvers.hinge_newton import HingeNewton
    from proxmargin.stopping import Stop

    rows = problem.labels.size
    loss = MarginSum(Hinge(), problem.labels[:, None], np.full((rows, 1), 1.0 / rows), float(rows))
    stated = Stated(loss, ElasticNet(problem.l1, problem.l2), as_design(problem.design), Ridge())
    found = minimize(stated, HingeNewton(), stop=Stop(tol=1e-10, time_limit=120.0))
    return -rows * problem.labels * found.gap.dual_point[:, 0]
