"""MM-MPM with a ridge: Newton's method in the coefficients, or in the levels of the classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.designs.base import Array
from proxmargin.loop.solver import CLAIM_FRACTION, Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.minimax import MinimaxProbability
from proxmargin.problem import Point, Problem
from proxmargin.solvers.minimax.class_spread import ClassSpread, spread_of
from proxmargin.solvers.minimax.ellipsoids import (
    coordinates_of,
    covariances,
    ellipsoid_loss,
    forms_covariances,
    is_ridge,
)
from proxmargin.solvers.minimax.level_newton import level_step
from proxmargin.solvers.minimax.probability_state import (
    GAP_REDUCTION,
    Levels,
    ProbabilityState,
    gap_of,
    priced,
)
from proxmargin.traits import Trait

__all__ = ["ProbabilityNewton", "ProbabilityState"]

# Lanckriet's reweighted iteration, while the coefficients have no margin
REWEIGHTED_REGULARISATION = 1e-14  # over the diagonal: the pooled covariance may be singular
MAX_REWEIGHTED_STEPS = 100  # after which the search for a margin ends
MARGIN_GAP = 1e-14  # gap that proves w = 0 optimal, relative to |difference of means|^2 / l2
# Newton's method in the coefficients
STALLED_STEPS = 2  # without progress: a class has nearly equal scores, continue in the levels


@dataclass(frozen=True)
class ProbabilityNewton(Solver[ProbabilityState]):
    """MM-MPM with a ridge: Newton's method in the coefficients, with an exact line search.

    ``-w'd + kappa (n_+ + n_-) + (l2/2) |w|^2`` with ``n_o^2 = w'S_o w`` has the Hessian
    ``l2 I + kappa sum_o (S_o / n_o - g_o g_o' / n_o^3)``, ``g_o = S_o w``, which is at least l2.
    The objective along a step is known from eight scalars. While w has no margin it is replaced by
    ``(sum_o S_o / n_o)^-1 d``, Lanckriet's iteration for the largest kappa with a margin, until
    there is a margin or a dual point proves that there is none.

    If all samples of a class have the same score at the optimum, n_o has a kink there and Newton's
    method in w stalls. It then continues in the two levels mu of the variational form
    ``kappa n = min over mu of n^2 / (2 mu) + kappa^2 mu / 2`` (`level_newton`).

    Parameters
    ----------
    max_stalled, max_stalled_levels : int >= 1
        Steps in w, and in the levels, without a smaller gap, which has reached rounding, after
        which the method ends. In the levels the gap can rise on the way.
    """

    max_stalled: int = 6
    max_stalled_levels: int = 8

    name: ClassVar[str] = "probability-newton"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled", "max_stalled_levels")

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, MinimaxProbability) and is_ridge(problem)
        return None if fits else "it needs the loss of minimax probability machines and a ridge"

    def init(self, problem: Problem, start: Point, stop: Stop) -> ProbabilityState:
        formed = forms_covariances(problem, stop.deadline)
        coordinates, loss = coordinates_of(problem), ellipsoid_loss(problem)
        design = coordinates.design
        coef = coordinates.of(start.coef[:, 0])
        if not coef.any():
            coef = -design.adjoint(loss.form.offset[:, None])[:, 0] / problem.penalty.l2
        return ProbabilityState(
            coef=coef,
            scores=design.scores(coef[:, None])[:, 0],
            covariances=np.stack(covariances(loss, design)) if formed else None,
            tol=CLAIM_FRACTION * stop.tol,
            unpolished=stop.polish,
            stop=stop,
        )

    def step(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        if not state.coef.any():
            return state.but(n_iter=state.n_iter + 1, finished=True)
        if state.levels is not None:
            return level_step(problem, state, state.levels, self.max_stalled_levels)
        value = ellipsoid_loss(problem).value(state.scores[:, None])
        if value >= 0:
            return _reweighted_step(problem, state)
        multiple = problem.penalty.best_multiple(state.coef[:, None], value)
        scaled = replace(state, coef=multiple * state.coef, scores=multiple * state.scores)
        return _newton_step(problem, scaled, self.max_stalled)

    def observe(self, problem: Problem, state: ProbabilityState, gap: Gap) -> ProbabilityState:
        return state.observed()

    def point(self, problem: Problem, state: ProbabilityState) -> Point:
        return Point(coordinates_of(problem).coef(state.coef)[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: ProbabilityState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]


def _newton_step(problem: Problem, state: ProbabilityState, max_stalled: int) -> ProbabilityState:
    """A Newton step in the coefficients, and the better of two dual points.

    After `STALLED_STEPS` without progress it hands over to the levels, if the covariances are
    formed; else the state is finished after ``max_stalled``.
    """
    at, l2 = _spread(problem, state), problem.penalty.l2
    gradient = at.adjoint(at.dual()) + l2 * state.coef
    direction = at.solve_hessian(l2, -gradient)
    moved = at.scores_of(direction)
    length = at.step_length(direction, moved, l2)
    coef, scores = state.coef + length * direction, state.scores + length * moved
    reached = spread_of(problem, coef, scores, state.covariances)
    duals = reached.dual(), at.model_dual(moved)
    gaps = [gap_of(problem, coef, scores, dual) for dual in duals]
    best = int(np.argmin(gaps))
    idle = 0 if gaps[best] < GAP_REDUCTION * state.gap else state.idle + 1
    change = length * float(np.linalg.norm(direction))
    # a zero step is a stall too: with equal scores in a class the objective has a kink
    stalled = idle >= STALLED_STEPS or change == 0.0
    levels = None
    if stalled and state.covariances is not None and at.kappa > 0:
        levels = Levels(reached.sizes / at.kappa, state.covariances)
    after = state.but(
        n_iter=state.n_iter + 1,
        coef=coef,
        scores=scores,
        levels=levels,
        dual=duals[best],
        gap=min(gaps[best], state.gap),
        idle=idle,
        point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
        finished=levels is None and (change == 0.0 or idle >= max_stalled),
    )
    return priced(problem, after, gaps[best])


def _reweighted_step(problem: Problem, state: ProbabilityState) -> ProbabilityState:
    """A reweighted step towards a direction with a margin, or a proof that there is none."""
    at = _spread(problem, state)
    difference = at.mean_difference()
    coef = at.solve_weighted(REWEIGHTED_REGULARISATION * at.curvatures(), difference)
    scores = at.scores_of(coef)
    reached = state.but(n_iter=state.n_iter + 1, coef=coef, scores=scores)
    u = at.weighted(at.form.deviations(scores)) / at.kappa
    if all(float(np.linalg.norm(u[one])) <= 1.0 for one in at.form.classes):
        zero = np.zeros_like(coef), np.zeros_like(scores)
        dual = at.form.dual_point(at.form.project(u))
        most = float(difference @ difference) / problem.penalty.l2
        if gap_of(problem, *zero, dual) <= MARGIN_GAP * most:
            return reached.but(coef=zero[0], scores=zero[1], dual=dual, finished=True)
    return reached.but(idle=state.idle + 1, finished=state.idle >= MAX_REWEIGHTED_STEPS)


def _spread(problem: Problem, state: ProbabilityState) -> ClassSpread:
    deadline = state.stop.deadline
    return spread_of(problem, state.coef, state.scores, state.covariances, deadline)
