"""The best point of a run, the highest lower bound, and the certificate of the two."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.certificates.gap import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.loop.solver import Solver, State

Certify = Callable[..., Gap]
"""``certify(problem, point, scores=..., dual=..., tol=...)``; scores and dual may be None."""

TIE = 0.01  # relative difference of two gaps below which both may consist of rounding bounds
RESIDUAL_RATIO = 1e-5  # ratio of KKT residuals below which they decide between such gaps


class Incumbent:
    """The best point so far, against the highest lower bound so far.

    Attributes
    ----------
    best, highest : Gap, optional
        The certificates of the best point and of the highest lower bound.
    uses_updated_scores : bool
        The best point was certified with scores that the solver updates. They may have drifted
        from the coefficients: `confirm` recomputes them.
    fall : float
        Best gap over the one before, at the last `check`; 1 if the point was not better.
    """

    def __init__(
        self, problem: Problem, solver: Solver[Any], tol: float, certify: Certify, known: Gap | None
    ) -> None:
        self.problem, self.solver, self.tol, self.certify = problem, solver, tol, certify
        self.known = self.highest = known
        self.best: Gap | None = None
        self.uses_updated_scores = False
        self.fall = 1.0

    def check(self, state: State) -> Gap:
        """Certify the point of a state, and keep it if it is the best."""
        problem, solver = self.problem, self.solver
        point, scores = solver.point(problem, state), solver.scores(problem, state)
        dual = solver.dual(problem, state)
        gap = self.certify(problem, point, scores=scores, dual=dual, tol=self.tol)
        updated = scores is not None and not self.solver.exact_scores
        uses_updated_scores = updated and self.certify is certify
        if uses_updated_scores and gap.relative_gap <= self.tol:
            gap, uses_updated_scores = certify(self.problem, point, dual=dual, tol=self.tol), False
        if math.isfinite(gap.dual) and (self.highest is None or gap.dual >= self.highest.dual):
            self.highest = gap
        gap = tightened(gap, self.highest)
        if self.best is not None:
            self.best = tightened(self.best, self.highest)
        self._keep(gap, uses_updated_scores)
        return gap

    def preview(self, state: State) -> Gap:
        """A certificate for callbacks only; it does not change the incumbent."""
        problem, solver = self.problem, self.solver
        parts = {"scores": solver.scores(problem, state), "dual": solver.dual(problem, state)}
        gap = self.certify(problem, solver.point(problem, state), **parts)
        return tightened(gap, self.highest)

    def confirm(self) -> None:
        """Certify the best point with recomputed scores, if the solver's were used."""
        if self.best is not None and self.uses_updated_scores:
            best = self.best
            # if it is zero, as without a penalty, no feature would violate its condition
            dual = best.dual_point if best.dual_point.any() else None
            gap = certify(self.problem, best.point, dual=dual, tol=self.tol)
            self.best, self.uses_updated_scores = tightened(gap, self.known), False
            self.highest = self.best if math.isfinite(self.best.dual) else self.known

    def consider(self, start: Point | None) -> None:
        """Keep the start (zero by default) if it is better than all later points."""
        first = self.problem.origin() if start is None else self.problem.projected(start)
        scores = None
        if not first.coef.any():
            scores = np.tile(first.intercept, (self.problem.design.n_samples, 1))
        gap = self.certify(self.problem, first, scores=scores, tol=self.tol)
        self._keep(tightened(gap, self.highest), uses_updated_scores=False)

    def _keep(self, gap: Gap, uses_updated_scores: bool) -> None:
        self.fall = 1.0
        if is_better(gap, self.best):
            if self.best is None:
                self.fall = 0.0
            elif self.best.gap > 0:  # both are zero otherwise, and residuals decide between points
                self.fall = gap.gap / self.best.gap
            self.best, self.uses_updated_scores = gap, uses_updated_scores


def is_better(gap: Gap, best: Gap | None) -> bool:
    """Whether a gap replaces the best one; it does if it is the first one of a finite point.

    Gaps within 1 % of each other may consist of the bound on rounding, and are compared without it.
    Within an ulp of the objective the KKT residual decides, if it differs by orders of magnitude:
    an error e of the coefficients changes the residual by O(e), but the gap only by O(e^2).
    """
    if best is None or not best.is_finite:
        return best is None or gap.is_finite
    if not gap.is_finite or abs(gap.gap - best.gap) > TIE * best.gap:
        return gap.is_finite and gap.gap < best.gap
    fall = (best.gap - best.rounding) - (gap.gap - gap.rounding)
    if abs(fall) <= np.spacing(abs(gap.primal)):
        if gap.kkt_residual < RESIDUAL_RATIO * best.kkt_residual:
            return True
        if best.kkt_residual < RESIDUAL_RATIO * gap.kkt_residual:
            return False
    return fall > 0.0


def tightened(gap: Gap, highest: Gap | None) -> Gap:
    """The gap to the highest lower bound so far, if that is smaller; rounding included."""
    if highest is None:
        return gap
    rounding = gap.rounding + SUM_ROUNDING * abs(gap.primal)
    against = max(gap.primal - highest.dual, 0.0) + rounding
    if against >= gap.gap:
        return gap
    return replace(gap, gap=against, dual_point=highest.dual_point)
