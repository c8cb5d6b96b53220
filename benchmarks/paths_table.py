"""The table of paths and of their cross-validation: a row for each solver of each problem."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.bandwidth import Pass
from benchmarks.measure import Climb, Trial
from benchmarks.report import seconds, table

# by problem (with `data`, `title` and the number of `models`), then by the name of the solver
Rows = dict[Any, Mapping[str, Climb]]
ABSENT = "absent: "


def absence(why: str) -> Climb:
    """The result of a solver that cannot run here."""
    return Climb({}, math.inf, ABSENT + why)


def told(one: Climb, goals: Sequence[float]) -> str:
    """What a solver reached, in words."""
    words = [
        f"{seconds(trial.seconds)} s to {goal:g} at tol {trial.setting:.1e} (gap {trial.gap:.1e})"
        for goal, trial in ((goal, one.reached[goal]) for goal in goals if goal in one.reached)
    ]
    if one.ended:
        smallest = f"smallest gap {one.smallest_gap:.1e}; " if one.smallest_gap < math.inf else ""
        words.append(smallest + one.ended)
    return "; ".join(words)


def notes(rows: Rows, goals: Sequence[float]) -> list[str]:
    """A section on those that missed a goal, if there are any."""
    missed = [
        f"- {name} on {problem.title}: {told(one, goals)}"
        for problem, row in rows.items()
        for name, one in row.items()
        if one.ended
    ]
    return ["### Where a solver did not certify", "\n".join(missed)] if missed else []


def table_of(
    rows: Rows,
    peers: Mapping[str, Any],
    passes: Mapping[str, Pass],
    goals: Sequence[float],
) -> str:
    each = [cell for goal in goals for cell in (f"s to {goal:g}", "at", "products")]
    head = ["path", "solver", *each, "effective passes", "MB", "nonzeros"]
    lines = []
    for problem, row in rows.items():
        title = problem.title
        # the prototype is no package
        others = [one for name, one in row.items() if peers[name].package not in ("", "proxmargin")]
        fastest = {goal: _fastest(others, goal) for goal in goals}
        for name, one in row.items():
            marked = f"{name} †" if peers[name].mark else name
            cells = [
                cell for goal in goals for cell in _cells(one, goal, fastest[goal], problem.models)
            ]
            last = _last_cells(one.reached.get(min(goals)), passes[problem.data])
            lines.append([title, marked, *cells, *last])
            title = ""
    return table(head, lines)


def _fastest(row: Sequence[Climb], goal: float) -> float:
    return min((one.reached[goal].seconds for one in row if goal in one.reached), default=math.inf)


def _cells(one: Climb, goal: float, fastest: float, models: int) -> list[str]:
    """Seconds with the ratio to the fastest, the setting, products a model."""
    if goal not in one.reached:
        return [_failure(one.ended), "", ""]
    reached = one.reached[goal]
    ratio = f" ({reached.seconds / fastest:.2g})" if math.isfinite(fastest) else ""
    counted = reached.fitted.passes
    products = "" if counted is None else f"{counted / models:.3g}"
    return [seconds(reached.seconds) + ratio, f"{reached.setting:.0e}", products]


def _failure(ended: str) -> str:
    if ended.startswith(ABSENT):
        return "absent"
    return "late" if ended.startswith("more than") else "stalls"


def _last_cells(reached: Trial | None, a_pass: Pass) -> list[str]:
    if reached is None:
        return ["", "", ""]
    effective = f"{reached.seconds / a_pass.seconds:.3g}"
    memory = f"{reached.memory / 1e6:.3g}" if math.isfinite(reached.memory) else ""
    return [effective, memory, str(reached.nonzeros)]
