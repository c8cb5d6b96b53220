"""The solutions of all strengths of a path."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from proxmargin.estimators.base import Assembly, MarginEstimator
from proxmargin.loop.outcome import Solution, Status
from proxmargin.paths.strength import strength_of

__all__ = ["descended"]

Array = NDArray[np.float64]


def descended(
    template: MarginEstimator, assembly: Assembly, grid: Array
) -> Iterator[list[Solution]]:
    """The solutions at each strength, one for each problem; ends early if interrupted.

    Parameters
    ----------
    template : estimator
        That assembled the data; its strength is set to those of the grid.
    grid : (n_strengths,)
        From the strongest penalty: each solution is the start of the next.
    """
    name = strength_of(template).name
    starts = [problem.null_point() for problem in assembly.problems]
    for strength in grid.tolist():
        setattr(template, name, strength)
        penalty = template._penalty(assembly.targets, assembly.problems[0].design)
        solutions = template._solve(assembly.with_penalty(penalty), starts)
        if any(solution.status is Status.INTERRUPTED for solution in solutions):
            return
        starts = [solution.point for solution in solutions]
        yield solutions
