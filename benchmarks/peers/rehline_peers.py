"""ReHLine: dual coordinate descent for piecewise linear-quadratic losses with an elastic net.

It has no intercept, and needs a ridge term. A sweep over its dual variables is a pass at most:
settled samples are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.datasets import Design
from benchmarks.objective import Hinge, HuberizedHinge, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, Fitted, row_major

SWEEPS = 2**31 - 1  # a C int; it never binds
LOSSES: dict[type, str] = {
    Hinge: "hinge",
    HuberizedHinge: "smooth hinge",
    SquaredHinge: "squared hinge",
}


@dataclass(frozen=True)
class ReHLinePeer:
    """The tolerance is relative, on its duality gap."""

    name: str = "rehline"
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "rehline"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if type(problem.loss) not in LOSSES:
            return "piecewise quadratic losses only"
        if isinstance(problem.loss, HuberizedHinge) and problem.loss.delta != 1.0:
            return "delta 1 only"
        if problem.fit_intercept:
            return "no intercept"
        return None if problem.l2 > 0.0 else "needs a ridge term"

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        from rehline import plqERM_ElasticNet

        model = plqERM_ElasticNet(
            {"name": LOSSES[type(problem.loss)]},
            C=1.0 / (problem.labels.size * problem.alpha),
            l1_ratio=problem.l1_ratio,
            tol=setting,
            max_iter=SWEEPS,
        )
        model.fit(problem.design, problem.labels)
        return Fitted(model.coef_, 0.0, passes=float(model.n_iter_), iterations=int(model.n_iter_))


PEERS = (ReHLinePeer(),)
