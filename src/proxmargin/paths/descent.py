"""The solutions of all strengths of a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proxmargin.estimators.base import Assembly, MarginEstimator
from proxmargin.loop.outcome import Solution, Status

__all__ = ["descended"]

Array = NDArray[np.float64]


def descended(template: MarginEstimator, assembly: Assembly, grid: Array) -> list[list[Solution]]:
    """Solutions in the order of the grid, computed from the largest alpha down."""
    starts = [problem.null_point() for problem in assembly.problems]
    solved: dict[int, list[Solution]] = {}
    for index in np.argsort(-grid, kind="stable").tolist():
        template.alpha = float(grid[index])
        penalty = template._penalty(assembly.targets, assembly.problems[0].design)
        solutions = template._solve(assembly.with_penalty(penalty), starts)
        if any(solution.status is Status.INTERRUPTED for solution in solutions):
            raise KeyboardInterrupt(f"after {len(solved)} of {grid.size} fits of a path")
        starts = [solution.point for solution in solutions]
        solved[index] = solutions
    return [solved[index] for index in range(grid.size)]
