"""Snap ML: stochastic coordinate descent for the l1-regularised logistic loss, in single precision.

Its intercept is penalised: it takes part where there is none. Its tolerance is on the change of
the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Design
from benchmarks.objective import Logistic, Problem
from benchmarks.peers.base import DECADES, Fitted, column_major, threads

SWEEPS = 10**8  # a C int; it never binds
SEED = 0


@dataclass(frozen=True)
class SnapLogisticPeer:
    """The primal solver, which reads columns."""

    name: str = "snapml"
    ladder: tuple[float, ...] = DECADES[:9]
    package: str = "snapml"
    mark: str = "single precision"

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "logistic only"
        if problem.fit_intercept:
            return "penalises the intercept: compared where there is none"
        return "no ridge term beside l1" if problem.l2 > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return column_major(design.astype(np.float32))

    def fit(self, problem: Problem, setting: float) -> Fitted:
        from snapml import LogisticRegression

        model = LogisticRegression(
            penalty="l1",
            dual=False,
            regularizer=problem.labels.size * problem.l1,
            tol=setting,
            max_iter=SWEEPS,
            n_jobs=threads(),
            random_state=SEED,
        )
        model.fit(problem.design, problem.labels)
        return Fitted(np.ravel(model.coef_).astype(np.float64), 0.0)


PEERS = (SnapLogisticPeer(),)
