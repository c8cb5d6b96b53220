"""skglm: coordinate descent with working sets and Anderson acceleration, and prox-Newton.

Its tolerance is absolute, on the largest violation of the optimality conditions; the ladder is in
units of l1, the natural scale of that violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from skglm.datafits import Logistic as ShippedLogistic
from skglm.penalties import L1, L1_plus_L2
from skglm.solvers import AndersonCD, ProxNewton

from benchmarks.datasets import Design
from benchmarks.objective import HuberizedHinge, Logistic, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, column_major
from benchmarks.peers.skglm_datafits import (
    HuberizedHingeDatafit,
    LogisticDatafit,
    SquaredHingeDatafit,
)

# ProxNewton divides by the sum of second derivatives, which is 0 for the huberized hinge at
# w = 0 when delta < 1. Off the bend the datafit therefore reports this share of 1/delta; of
# 0 (divides by zero), 1e-3, 1e-1 and 1 it was the fastest or level on colon, a9a, synthetic data.
CURVATURE_FLOOR = 1e-3


@dataclass(frozen=True)
class SkglmPeer:
    """A skglm solver with the datafits of skglm_datafits.py."""

    name: str
    solver: type
    caps: dict[str, int]  # iteration caps that never bind
    ladder: tuple[float, ...] = DECADES[:10]

    def solves(self, problem: Problem) -> str | None:
        return "no ridge on the intercept" if problem.intercept_ridge > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return column_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        solver = self.solver(
            tol=setting * problem.l1, fit_intercept=problem.fit_intercept, **self.caps
        )
        weights, objectives, _ = solver.solve(
            problem.design, problem.labels, self.datafit(problem), penalty(problem)
        )
        coef, intercept = np.split(weights, [problem.design.shape[1]])
        return Fitted(coef, float(intercept.sum()), iterations=len(objectives))

    def datafit(self, problem: Problem) -> Any:
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

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "skglm ships no such loss with an intercept"
        return super().solves(problem)

    def datafit(self, problem: Problem) -> Any:
        return ShippedLogistic()


def penalty(problem: Problem) -> Any:
    return L1(problem.l1) if problem.l2 == 0.0 else L1_plus_L2(problem.alpha, problem.l1_ratio)


ANDERSON = {"max_iter": UNLIMITED}
NEWTON = {"max_iter": UNLIMITED}
PEERS = (
    SkglmPeer("skglm-acd", AndersonCD, ANDERSON),
    ShippedSkglmPeer("skglm-acd-shipped", AndersonCD, ANDERSON),
    SkglmPeer("skglm-pn", ProxNewton, NEWTON),
)
