"""Paths of models with a ridge of data with more features than samples.

Such a model knows the samples by their inner products K alone: with signed dual points v,
``w = X'v / l2``, and the scores are ``K v / l2 + b``. K is formed once; a strength then costs
systems of the size of K, and the coefficients of all strengths one product with the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.certificate import Certificate
from proxmargin.certificates.certify import certify_together
from proxmargin.certificates.gap import Gap
from proxmargin.compiled.clock import clock
from proxmargin.loop.outcome import Solution, Status
from proxmargin.paths.active_set import ActiveSet
from proxmargin.paths.dual_newton import DualNewton
from proxmargin.problem import Point, Problem
from proxmargin.runtime.pace import factor_work
from proxmargin.runtime.threads import quiet_threads
from proxmargin.traits import Trait

__all__ = ["InnerProducts"]

Array = NDArray[np.float64]

BECAUSE = (
    "a ridge and fewer samples than features: on a path of strengths the inner products of the "
    "samples, formed once, replace the features"
)
MOST_SAMPLES = 3000  # of which inner products and a factor are held: 72 MB each
# of a call, so that an interruption finds all strengths that are complete
ENTRIES_PER_CALL = 2_000_000  # of the coefficients of its strengths: 16 MB
WORK_PER_CALL = 10**10  # multiply-adds of factors of the inner products: about a second
NEEDED = Trait.MARGINS | Trait.SINGLE_OUTPUT


@dataclass(eq=False)
class InnerProducts:
    """A path under way, from the strongest ridge.

    Parameters
    ----------
    problem : Problem
        With any of the strengths; see `InnerProducts.takes`.
    tol : float
        Relative duality gap of every strength.
    """

    problem: Problem
    tol: float

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether all strengths like this one can be solved here."""
        design, intercept = problem.design, problem.intercept
        wide = design.n_samples < design.n_features and design.n_samples <= MOST_SAMPLES
        plain = intercept.is_shift_invariant or intercept.is_pinned
        if not (wide and plain and problem.has_ridge_alone and NEEDED in problem.traits):
            return False
        return problem.largest_offset == 0 and any(way.takes(problem) for way in WAYS)

    def __post_init__(self) -> None:
        self.design, self.centre = self.problem.centred
        kernel = self.design.outer_gram()
        self.way = next(way for way in WAYS if way.takes(self.problem))(self.problem, kernel)

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        work = int(factor_work(self.design.n_samples))
        most = min(ENTRIES_PER_CALL // self.design.n_features, WORK_PER_CALL // work)
        return max(1, min(strengths, most))

    def solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """Solutions for falling ridges; fewer if one could not be solved."""
        started, passes = clock(), self.design.ledger.passes
        # overflow and NaN are detected by checks, not by warnings
        silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet_threads(self.design.nbytes), silent:
            gaps, steps = self._proved(problems)
        met = [gap.relative_gap <= self.tol for gap in gaps]
        count = met.index(False) if False in met else len(met)
        seconds = (clock() - started) / max(len(gaps), 1)
        read = (self.design.ledger.passes - passes) / max(len(gaps), 1)
        return [
            _solution(gap, self.way.name, each, read, seconds)
            for gap, each in zip(gaps[:count], steps[:count], strict=True)
        ]

    def _proved(self, problems: Sequence[Problem]) -> tuple[list[Gap], list[int]]:
        """The gaps of the strengths up to one that could not be solved, and their steps."""
        duals, steps = [], []
        for problem in problems:
            found = self.way.solved(problem, self.tol)
            if found is None:
                break
            duals.append(found.dual)
            steps.append(found.steps)
        return self._certified(problems[: len(duals)], duals) if duals else [], steps

    def _certified(self, problems: Sequence[Problem], duals: Sequence[Array]) -> list[Gap]:
        """The gaps of the coefficients of these dual points, on the data themselves."""
        signed = np.column_stack(duals)
        signed /= np.array([problem.penalty.l2 for problem in problems])
        coef = np.asfortranarray(self.design.adjoint(signed))
        points = [Point(column, np.zeros(1)) for column in np.hsplit(coef, len(duals))]
        return certify_together(problems, points, [-dual[:, None] for dual in duals], self.tol)

    def go_on_from(self, problem: Problem, point: Point) -> None:
        """Continue from a solution that was found elsewhere."""
        if point.dual is not None:
            self.way.restart(problem, -point.dual[:, 0])


WAYS: tuple[type[ActiveSet] | type[DualNewton], ...] = (ActiveSet, DualNewton)


def _solution(gap: Gap, name: str, steps: int, passes: float, seconds: float) -> Solution:
    certificate = Certificate(
        primal=gap.primal,
        dual=gap.dual,
        gap=gap.gap,
        relative_gap=gap.relative_gap,
        kkt_residual=gap.kkt_residual,
        converged=True,
        stop_reason=Status.CONVERGED.value,
        n_iter=steps,
        n_passes=passes,
        seconds=seconds,
        solver=name,
        because=BECAUSE,
    )
    return Solution(gap.point, gap, Status.CONVERGED, certificate, None)
