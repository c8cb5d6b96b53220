"""Tolerances in half decades until a relative gap is certified."""

from __future__ import annotations

from typing import Any

from benchopt.stopping_criterion import StoppingCriterion

LOOSEST = 0.1  # the first tolerance
HALF_DECADE = 10.0**0.5  # between two tolerances


class Certified(StoppingCriterion):
    """Ends at the goal, as `Objective.evaluate_result` certifies it."""

    def __init__(
        self,
        goal: float = 1e-9,
        strategy: str = "tolerance",
        key_to_monitor: str = "relative_gap",
        minimize: bool = True,
    ) -> None:
        self.goal = goal
        super().__init__(
            goal=goal, strategy=strategy, key_to_monitor=key_to_monitor, minimize=minimize
        )

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        met = objective_list[-1][self.key_to_monitor_] <= self.goal
        return bool(met), float(met)

    def get_next_stop_val(self, stop_val: float) -> float:
        return LOOSEST if stop_val > LOOSEST else stop_val / HALF_DECADE
