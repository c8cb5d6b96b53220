"""celer: working sets with extrapolated dual points, for the l1-regularised logistic loss.

It has no intercept. Its tolerance is absolute, on the duality gap of the sum of the losses; the
ladder is in units of n log 2, the objective at w = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.datasets import Design
from benchmarks.objective import Logistic, Problem
from benchmarks.peers.base import DECADES, Fitted, column_major

# caps that never bind
ROUNDS = 10**4  # celer allocates an array of this length
SWEEPS = 10**6


@dataclass(frozen=True)
class CelerPeer:
    """Prox-Newton or coordinate descent on the working sets."""

    name: str
    newton: bool
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "celer"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "logistic only"
        if problem.fit_intercept:
            return "no intercept"
        return "no ridge term beside l1" if problem.l2 > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return column_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        from celer.homotopy import celer_path

        rows = problem.labels.size
        _, coefs, _, thetas = celer_path(
            problem.design,
            problem.labels,
            "logreg",
            alphas=np.array([rows * problem.l1]),
            tol=setting * rows * np.log(2.0),
            use_PN=self.newton,
            max_iter=ROUNDS,
            max_epochs=SWEEPS,
            return_thetas=True,
        )
        return Fitted(coefs[:, 0], 0.0, dual=problem.labels * thetas[0])


PEERS = (CelerPeer("celer-pn", True), CelerPeer("celer", False))
