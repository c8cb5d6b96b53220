"""Solvers of the hinge with an elastic net: the library's own, and Clarabel through cvxpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import objective
from benchmarks.datasets import Design
from benchmarks.objective import Floats, Problem, exact_intercept
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, row_major
from benchmarks.peers.clarabel_peers import ClarabelPeer as ClarabelDrsvmPeer
from benchmarks.peers.own import told

if TYPE_CHECKING:
    from proxmargin.optimality.problem import Problem as Stated

__all__ = [
    "OURS",
    "ClarabelDrsvmPeer",
    "OwnDrsvmPeer",
    "mean_hinge",
    "reference",
    "relative_gap",
]

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


def _rows(problem: Problem) -> int:
    return int(problem.design.shape[0])


def relative_gap(problem: Problem, solved: Fitted, duals: Sequence[Floats]) -> float:
    """Of (w, b) with its own or the best intercept, by whichever dual point proves most."""
    if not (np.isfinite(solved.coef).all() and np.isfinite(solved.intercept)):
        return float("inf")
    best = exact_intercept(problem, problem.design @ solved.coef, solved.intercept)
    intercepts = (solved.intercept, best)
    return min(objective.relative_gap(problem, solved.coef, b, duals) for b in intercepts)


def reference(problem: Problem) -> Floats:
    """A dual point of our own at a tight tolerance: any dual point proves a bound."""
    from proxmargin.solvers.choice.names import choose, solve
    from proxmargin.solvers.loop.solver import Stop

    parts = problem.design, problem.labels, problem.l1, problem.l2
    stated = mean_hinge(*parts, fit_intercept=problem.fit_intercept)
    found = solve(stated, choose(stated), stop=Stop(tol=1e-11, time_limit=120.0))
    return -problem.labels.size * problem.labels * found.gap.dual_point[:, 0]


def mean_hinge(
    design: Design, labels: Floats, l1: float, l2: float, *, fit_intercept: bool = True
) -> Stated:
    """The problem for solvers of the library: mean hinge + l1 |w|_1 + l2/2 |w|^2."""
    from proxmargin.data.designs import as_design
    from proxmargin.losses import Hinge, MarginSum
    from proxmargin.optimality.problem import Problem as Stated
    from proxmargin.penalties import ElasticNet, Pinned, Ridge

    rows = labels.size
    loss = MarginSum(Hinge(), labels[:, None], np.full((rows, 1), 1.0 / rows), float(rows))
    intercept = Ridge() if fit_intercept else Pinned()
    return Stated(loss, ElasticNet(l1, l2), as_design(design), intercept)
