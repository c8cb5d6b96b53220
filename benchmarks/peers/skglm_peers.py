"""skglm: coordinate descent with working sets and Anderson acceleration, and prox-Newton.

Its tolerance is absolute, on the largest violation of the optimality conditions; the ladder is in
units of l1, the natural scale of that violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Hinge, HuberizedHinge, Logistic, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, column_major

# ProxNewton divides by the sum of second derivatives, which is 0 for the huberized hinge at
# w = 0 when delta < 1. Off the bend the datafit therefore reports this share of 1/delta; of
# 0 (divides by zero), 1e-3, 1e-1 and 1 it was the fastest or level on colon, a9a, synthetic data.
CURVATURE_FLOOR = 1e-3


@dataclass(frozen=True)
class SkglmPeer:
    """A skglm solver, by its name, with the datafits of skglm_datafits.py."""

    name: str
    solver: str
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "skglm"
    mark: str = "loss supplied here"

    def solves(self, problem: Problem) -> str | None:
        if isinstance(problem.loss, Hinge):
            return "smooth losses only"
        return "no ridge on the intercept" if problem.intercept_ridge > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return column_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        weights, rounds = self.solved(problem, setting)
        coef, intercept = np.split(weights, [problem.design.shape[1]])
        return Fitted(coef, float(intercept.sum()), iterations=rounds)

    def solved(
        self, problem: Problem, setting: float, start: Floats | None = None
    ) -> tuple[Floats, int]:
        """Coefficients with the intercept, if any, at the end; and the rounds it took."""
        import skglm.solvers

        solver = getattr(skglm.solvers, self.solver)(
            tol=setting * problem.l1, fit_intercept=problem.fit_intercept, max_iter=UNLIMITED
        )
        columns = problem.design.shape[1]
        scores = None if start is None else problem.design @ start[:columns] + start[columns:].sum()
        weights, objectives, _ = solver.solve(
            problem.design, problem.labels, self.datafit(problem), penalty(problem), start, scores
        )
        return weights, len(objectives)

    def datafit(self, problem: Problem) -> Any:
        from benchmarks.peers.skglm_datafits import (
            HuberizedHingeDatafit,
            LogisticDatafit,
            SquaredHingeDatafit,
        )

        match problem.loss:
            case HuberizedHinge(delta=delta):
                return HuberizedHingeDatafit(delta, CURVATURE_FLOOR)
            case SquaredHinge():
                return SquaredHingeDatafit()
            case _:
                return LogisticDatafit()


@dataclass(frozen=True)
class ShippedSkglmPeer(SkglmPeer):
    """The same solver with the one datafit of these models that skglm ships: logistic."""

    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "skglm ships no such loss with an intercept"
        return super().solves(problem)

    def datafit(self, problem: Problem) -> Any:
        from skglm.datafits import Logistic as ShippedLogistic

        return ShippedLogistic()


def penalty(problem: Problem) -> Any:
    from skglm.penalties import L1, L1_plus_L2

    return L1(problem.l1) if problem.l2 == 0.0 else L1_plus_L2(problem.alpha, problem.l1_ratio)


PEERS = (
    SkglmPeer("skglm-acd", "AndersonCD"),
    ShippedSkglmPeer("skglm-acd-shipped", "AndersonCD"),
    SkglmPeer("skglm-pn", "ProxNewton"),
    ShippedSkglmPeer("skglm-pn-shipped", "ProxNewton"),
)
