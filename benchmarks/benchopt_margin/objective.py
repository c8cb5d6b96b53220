"""Losses of a margin with an elastic net and a free intercept, or none."""

from __future__ import annotations

from typing import Any

from benchmark_utils import PeerSolver  # noqa: F401  (makes `benchmarks` importable)
from benchmarks.comparison import LOSSES, critical_strength
from benchmarks.measure import judged_on
from benchmarks.objective import Hinge, Problem
from benchmarks.peers import Fitted
from benchmarks.peers.drsvm import reference
from benchopt import BaseObjective


class Objective(BaseObjective):
    """mean phi(y (x'w + b)) + l1 |w|_1 + (l2/2) |w|^2, and the relative gap that is certified."""

    name = "Margin classifiers with an elastic net"
    min_benchopt_version = "1.7"
    parameters = {
        "loss": list(LOSSES),
        "fraction": [0.1, 0.01],  # of the least strength that leaves no coefficient
        "l1_ratio": [1.0, 0.5],
        "fit_intercept": [True, False],
    }

    def set_data(self, design: Any, labels: Any) -> None:
        blank = Problem(
            design, labels, LOSSES[self.loss], 1.0, 0.0, fit_intercept=self.fit_intercept
        )
        strength = self.fraction * critical_strength(blank, self.l1_ratio)
        self.problem = blank.with_strength(strength, self.l1_ratio)
        known = [reference(self.problem)] if isinstance(self.problem.loss, Hinge) else []
        self.gap = judged_on(self.problem, known)

    def get_objective(self) -> dict[str, Problem]:
        return {"problem": self.problem}

    def evaluate_result(self, fitted: Fitted) -> dict[str, float]:
        value = self.problem.primal(fitted.coef, fitted.intercept)
        return {"value": value, "relative_gap": self.gap(fitted)}

    def get_one_result(self) -> dict[str, Fitted]:
        import numpy as np

        return {"fitted": Fitted(np.zeros(self.problem.design.shape[1]), 0.0)}
