"""Whole paths without the loop of a fit.

In compiled code, by `proxmargin.solvers.l1.chord_engine`: one call of the kernel solves several
strengths, but not all, so that an interruption keeps those of complete calls. A strength that it
cannot solve to the tolerance the caller solves as a single fit. And of models of all classes
together, by the steps of `ClassNewton`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.paths.state import Strengths
from proxmargin.compiled.rounding import TINY
from proxmargin.models.paths.found import Found, solution_of
from proxmargin.optimality.certificates.certificate import Certificate, Gap, lower_bound
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import quiet_threads
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.l1.chord_engine import ChordEngine, stepwise
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.l1.class_newton import ClassNewton, ClassNewtonState
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.stopping import Stop

Array = NDArray[np.float64]
Index = NDArray[np.int64]

NAME = ChordNewton.name
BECAUSE = "on a path of strengths chord Newton steps and former dual points read the data least"


class ChordPath(ChordEngine):
    """A path in progress, from the null model.

    Parameters
    ----------
    problem : Problem
        At strength one; see `ChordEngine.takes`.
    tol : float
        Relative duality gap of every strength.
    """

    def solved(self, l1: Array, l2: Array) -> Found:
        """Solutions for falling strengths; fewer if one could not be solved.

        Parameters
        ----------
        l1, l2 : (n_strengths,)
            Strengths for the features with the largest factor.
        """
        last, started = np.arange(l1.size), clock()
        if self.copies:
            l1, l2, last = stepwise(float(self.progress.scalars["strength"]), l1, l2)
        found, first, _ = self.advanced(self.blank(l1, l2), 0)
        last = last[last < first]
        seconds = (clock() - started) / max(last.size, 1)
        self.problem.design.counter.add(float(found.passes[:first].sum()))
        return _solutions(found, last, seconds)


def _solutions(found: Strengths, last: Index, seconds: float) -> Found:
    """The solutions of the requested strengths, at the indices ``last`` of all strengths."""
    features, values, starts = _entries(found, last)
    light = found._replace(indices=features[:0], values=values[:0])
    return Found(
        features=features,
        coef=values[:, None],
        starts=starts,
        intercepts=found.intercepts[last][:, None],
        primal=found.objectives[last],
        met=np.ones(last.size, np.bool_),
        certify=partial(_certificate, light, last, seconds),
    )


def _entries(found: Strengths, last: Index) -> tuple[Index, Array, Index]:
    """Features and coefficients of the strengths with these indices, and where each starts."""
    count = last.size
    if count and last[-1] == count - 1:  # no intermediate strengths
        end = found.indptr[count]
        return found.indices[:end].copy(), found.values[:end].copy(), found.indptr[: count + 1]
    first = found.indptr[last]
    starts = np.append(0, np.cumsum(found.indptr[last + 1] - first))
    own = np.arange(starts[-1]) + np.repeat(first - starts[:-1], np.diff(starts))
    return found.indices[own], found.values[own], starts


def _certificate(found: Strengths, last: Index, seconds: float, number: int) -> Certificate:
    """The certificate of a requested strength; its effort includes intermediate strengths."""
    at = last[number]
    spent = slice(last[number - 1] + 1 if number else 0, at + 1)
    primal, gap = float(found.objectives[at]), float(found.gaps[at])
    dual = lower_bound(primal, gap)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=gap / max(primal, abs(dual), TINY),
        kkt_residual=float(found.violations[at]),
        converged=True,
        stop_reason=Status.CONVERGED.value,
        n_iter=int(found.steps[spent].sum()),
        n_passes=float(found.passes[spent].sum()),
        seconds=seconds,
        solver=NAME,
        because=BECAUSE,
    )


JOINT_BECAUSE = (
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
            because=JOINT_BECAUSE,
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
