"""Paths of models of all classes together: the steps of `ClassNewton`, without the loop of a fit.

From one strength to the next the products with the data stay valid, as only the penalty changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.models.paths.found import solution_of
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import quiet_threads
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.l1.class_newton import ClassNewton, ClassNewtonState
from proxmargin.solvers.loop.outcome import Solution
from proxmargin.solvers.loop.stopping import Stop

BECAUSE = (
    "on a path of strengths the coefficients, and the products with the data, of one are the start "
    "of the next"
)


class JointPath:
    """A path in progress, from the strongest penalty.

    Parameters
    ----------
    tol : float
        Relative duality gap of every strength.
    polish : bool
        Whether to go on to more digits once the gap is met.
    """

    def __init__(self, tol: float, polish: bool) -> None:
        self.stop = Stop(tol, polish=polish)
        self.solver = ClassNewton()
        self.state: ClassNewtonState | None = None

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether all strengths like this one can be solved here."""
        return choose(problem).name == ClassNewton.name

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        return min(strengths, 1)

    def solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """The solution for the next strength, alone; none if not found, or interrupted."""
        (problem,) = problems
        started, passes = clock(), problem.design.counter.passes
        # overflow and NaN are detected by checks, not by warnings
        silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet_threads(self.solver.product_bytes(problem)), silent:
            gap = self._certified(problem)
        if gap is None:
            return []
        assert self.state is not None
        solution = solution_of(
            gap,
            steps=self.state.n_iter,
            passes=problem.design.counter.passes - passes,
            seconds=clock() - started,
            solver=self.solver.name,
            because=BECAUSE,
        )
        return [solution]

    def go_on_from(self, problem: Problem, point: Point) -> None:
        """Continue from a solution that was found elsewhere."""
        self.state = self.solver.init(problem, point, self.stop)

    def _certified(self, problem: Problem) -> Gap | None:
        """The gap of the solution, with the state at it; None if the steps stall before."""
        solver = self.solver
        if self.state is None:
            state = solver.init(problem, null_point(problem), self.stop)
        else:
            state = solver.onward(problem, self.state, self.stop)
        while True:
            if state.claims:
                gap = certify(problem, solver.point(problem, state), tol=self.stop.tol)
                if gap.relative_gap <= self.stop.tol:
                    self.state = state
                    return gap
                state = solver.observe(problem, state, gap)
            if state.finished or interrupts.pending or state.n_iter >= solver.max_iter:
                return None
            state = solver.step(problem, state)
