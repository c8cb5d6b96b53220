"""The augmented Lagrangian method on the dual, with semismooth Newton steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import MIN_DAMPING, SLOPE_ROUNDING, SUM_ROUNDING
from proxmargin.data.designs.base import Design
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.dual_newton_systems import DualNewtonSystem, newton_direction
from proxmargin.solvers.augmented.multipliers import NEWTON_STEPS, RETREAT, line_search, minimise
from proxmargin.solvers.loop.solver import GAP_REDUCTION, Solver, State, Stop, at_least_one

# proximal steps of coefficients, intercept and scores (penalty parameters of the dual)
# long ones need fewer subproblems, of more Newton steps each; those too long retreat (below)
FIRST_SCORE_STEP = 40.0  # of the scores, per sample
FIRST_STEP = 20.0  # of coefficients and intercept, per sample, over the mean squared length
# relative gap of a start below which the first subproblem skips one reduction of the residual: it
# would be solved to an accuracy that the start already has
WARM_START_GAP = 2e-2
STEP_GROWTH = 3.0  # factor from one subproblem to the next
FEW_NEWTON_STEPS = 3  # in a subproblem up to which the growth is doubled
MANY_NEWTON_STEPS = 12  # above which the growth is its square root
# divisor if the gap is rounding, to which long steps add: coefficients are differences of terms as
# large as the steps
ROUNDING_RETREAT = 12.0
# root mean square of X W + b - Z to which subproblems are solved
FIRST_RESIDUAL = 1e-2  # in units of a score
RESIDUAL_REDUCTION = 0.3  # factor from one subproblem to the next
# regularisation where the conjugate of the loss has no curvature, relative to the score step: the
# residual, within
MAX_DAMPING = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class SemismoothNewtonState(State):
    """The state of the augmented Lagrangian method."""

    # centre of the proximal terms; scores include the intercept, which is that of centred features
    # if they are centred
    coef: Array
    intercept: Array
    scores: Array
    # (n_samples, n_outputs); ``X coef + intercept``, equal to the scores at the solution
    image: Array
    dual: Array  # (n_samples, n_outputs); start of the next Newton iteration
    # (n_samples, n_outputs); a point in the domain of the loss's conjugate, for the certificate
    proven: Array
    # steps of coefficients, intercept and scores
    tau: float = 1.0
    tau_b: float = 1.0
    ts: float = 1.0
    # the root mean square of ``image - scores`` to which the next subproblem is solved
    residual: float = FIRST_RESIDUAL
    gap: float = np.inf  # smallest duality gap so far
    idle: int = 0  # subproblems without progress
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True, eq=False)
class _DualTrial:
    """The primal point of a dual point, and minus the dual function there."""

    design: Design
    dual: Array
    pulled: Array
    coef: Array
    intercept: Array
    scores: Array
    proven: Array
    value: float
    rounding: float

    @cached_property
    def image(self) -> Array:
        """``X W + 1 b``."""
        image: Array = self.design.scores(self.coef) + self.intercept
        return image


class _DualSlopes(NamedTuple):
    """The gradient of the dual function, and its norm."""

    gradient: Array
    residual: float
    least: float = 0.0


@dataclass(frozen=True)
class SemismoothNewton(Solver[SemismoothNewtonState]):
    """The proximal point method on coefficients, intercept and scores together.

    Each subproblem, with centre ``(W_t, b_t, Z_t)`` and steps tau, tau_b, ts, is solved through
    its dual: the concave, once differentiable function of q whose gradient is ``X W + 1 b - Z`` at

        ``W = prox_{tau G}(W_t - tau X'q)``,  ``b = prox_{tau_b B}(b_t - tau_b 1'q)``,
        ``Z = Z_t + ts (q - y)``,  ``y = prox_{L* / ts}(q + Z_t / ts)``.

    A semismooth Newton step uses the Jacobians of the three proximal maps (`dual_newton_systems`),
    with an Armijo line search. Steps tau grow from one subproblem to the next, which gives
    superlinear convergence; y lies in the domain of the loss's conjugate at any accuracy, and is
    the dual point of the certificate.

    For any loss and penalty whose proximal maps have known Jacobians; fast if samples or active
    coefficients are few.

    Parameters
    ----------
    max_stalled : int >= 1
        Subproblems without a smaller gap, which has reached rounding, after which the method ends.
    """

    max_stalled: int = 8

    name: ClassVar[str] = "ssnal"
    needs: ClassVar[Trait] = (
        Trait.MANY_OUTPUTS | Trait.CONJUGATE_PROX_JACOBIAN | Trait.PROX_JACOBIAN
    )
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 2000

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if Trait.PROX_JACOBIAN not in problem.intercept.traits:
            return f"it needs an intercept whose prox has a known derivative: {problem.intercept!r}"
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> SemismoothNewtonState:
        design, intercept = problem.centred.design, problem.centred.intercept(start)
        scores = design.scores(start.coef) + intercept
        shares = problem.loss.shares
        samples = float(np.count_nonzero(shares))
        square = float(shares @ design.row_norms())
        near = start.dual
        if near is None:
            _, near = problem.loss.value_and_gradient(scores)
        dual = problem.loss.balanced(near, problem.intercept)
        if start.dual is None:  # of as many active coefficients as the solution, not of all
            dual *= problem.penalty.domain_scale(-design.adjoint(dual))
        return SemismoothNewtonState(
            coef=start.coef,
            intercept=intercept,
            scores=scores,
            image=scores,
            dual=dual,
            proven=dual,
            tau=FIRST_STEP * samples / (square if square > 0 else 1.0),
            tau_b=FIRST_STEP * samples,
            ts=FIRST_SCORE_STEP * samples,
            stop=stop,
        )

    def step(self, problem: Problem, state: SemismoothNewtonState) -> SemismoothNewtonState:
        inner = _Subproblem(problem, state)
        trial, _, end = minimise(
            inner, inner.start(), inner.target, self._limit(state), state.stop.deadline
        )
        n_iter = state.n_iter + max(end.steps, 1)
        if not end.solved:
            return replace(
                state,
                n_iter=n_iter,
                idle=state.idle + 1,
                tau=state.tau / RETREAT,
                tau_b=state.tau_b / RETREAT,
                ts=state.ts / RETREAT,
                finished=state.idle + 1 >= self.max_stalled,
            )
        growth = _growth(end.steps)
        moved = np.linalg.norm(trial.coef - state.coef)
        return replace(
            state,
            n_iter=n_iter,
            coef=trial.coef,
            intercept=trial.intercept,
            scores=np.where(inner.support, trial.scores, trial.image),
            image=trial.image,
            dual=trial.dual,
            proven=trial.proven,
            tau=state.tau * growth,
            tau_b=state.tau_b * growth,
            ts=state.ts * growth,
            residual=max(state.residual * RESIDUAL_REDUCTION, SLOPE_ROUNDING),
            point_change=float(moved / (1.0 + np.linalg.norm(state.coef))),
            idle=state.idle + 1,
            finished=state.idle + 1 >= self.max_stalled,
        )

    def observe(
        self, problem: Problem, state: SemismoothNewtonState, gap: Gap
    ) -> SemismoothNewtonState:
        if gap.gap <= GAP_REDUCTION * state.gap:
            close = state.n_iter == 0 and gap.relative_gap <= WARM_START_GAP
            state = replace(state, gap=gap.gap, idle=0, finished=False)
            residual = state.residual * (RESIDUAL_REDUCTION**2 if close else 1.0)
            state = replace(state, residual=residual)
        if not gap.is_mostly_rounding:
            return state
        tau, tau_b, ts = (t / ROUNDING_RETREAT for t in (state.tau, state.tau_b, state.ts))
        return replace(state, tau=tau, tau_b=tau_b, ts=ts, residual=SLOPE_ROUNDING)

    def point(self, problem: Problem, state: SemismoothNewtonState) -> Point:
        return problem.centred.point(state.coef, state.intercept)

    def scores(self, problem: Problem, state: SemismoothNewtonState) -> Array:
        return state.image

    def dual(self, problem: Problem, state: SemismoothNewtonState) -> Array:
        return state.proven

    def _limit(self, state: SemismoothNewtonState) -> int:
        """The limit of Newton steps for the next subproblem."""
        most = self.max_iter if state.stop.max_iter is None else state.stop.max_iter
        return min(NEWTON_STEPS, max(most - state.n_iter, 1))


def _growth(steps: int) -> float:
    """The factor on the proximal steps after a subproblem of so many Newton steps."""
    if steps <= FEW_NEWTON_STEPS:
        return 2.0 * STEP_GROWTH
    return STEP_GROWTH if steps <= MANY_NEWTON_STEPS else math.sqrt(STEP_GROWTH)


class _Subproblem:
    """One subproblem: its dual function, and Newton's method on it."""

    def __init__(self, problem: Problem, state: SemismoothNewtonState) -> None:
        self.problem, self.state = problem, state
        self.design = problem.centred.design
        self.support = problem.loss.dual_support
        # scores and coefficients are differences of terms as large as the steps
        lengths = state.ts + state.tau * float(self.design.row_norms().max())
        self.rounding = 2 * SUM_ROUNDING * lengths * float(np.abs(state.dual).max())
        self.target = max(state.residual, self.rounding) * float(np.sqrt(self.support.sum()))

    def start(self) -> _DualTrial:
        dual = np.where(self.support, self.state.dual, 0.0)
        return self.at(dual, self.design.adjoint(dual))

    def slopes(self, here: _DualTrial) -> _DualSlopes:
        gradient = np.where(self.support, here.image - here.scores, 0.0)
        return _DualSlopes(gradient, float(np.linalg.norm(gradient)))

    def newton_step(
        self, here: _DualTrial, slopes: _DualSlopes, deadline: float
    ) -> tuple[_DualTrial, _DualSlopes] | None:
        """A Newton step with a line search; None if the search fails."""
        direction = newton_direction(self.system(here, slopes.gradient), slopes.gradient, deadline)
        pulled = self.design.adjoint(direction)
        first = float(np.vdot(slopes.gradient, direction))

        def along(length: float) -> _DualTrial:
            return self.at(here.dual + length * direction, here.pulled + length * pulled)

        def fall(there: _DualTrial, length: float) -> float:
            return length * first

        def ahead(there: _DualTrial, end: _DualSlopes, length: float) -> float:
            return -length * float(np.vdot(end.gradient, direction))

        noise = self.rounding * float(np.abs(here.dual).sum())
        return line_search(here, along, self.slopes, first, fall, ahead, noise)

    def at(self, dual: Array, pulled: Array) -> _DualTrial:
        """The primal point at a dual point; ``pulled`` is ``X'dual``."""
        problem, state = self.problem, self.state
        sums = dual.sum(axis=0)
        coef = problem.penalty.prox(state.coef - state.tau * pulled, state.tau)
        shifted = (state.intercept - state.tau_b * sums)[None, :]
        intercept = problem.intercept.prox(shifted, state.tau_b)[0]
        proven = problem.loss.conjugate_prox(dual + state.scores / state.ts, 1.0 / state.ts)
        scores = state.scores + state.ts * (dual - proven)
        terms = (
            problem.penalty.value(coef),
            float(np.vdot(pulled, coef)),
            _square(coef - state.coef) / (2.0 * state.tau),
            problem.intercept.value(intercept[None, :]),
            float(sums @ intercept),
            _square(intercept - state.intercept) / (2.0 * state.tau_b),
            problem.loss.value(scores),
            -float(np.vdot(dual, scores)),
            0.5 * state.ts * _square(dual - proven),
        )
        size = sum(abs(term) for term in terms)
        return _DualTrial(
            self.design,
            dual,
            pulled,
            coef,
            intercept,
            scores,
            proven,
            -sum(terms),
            2 * SUM_ROUNDING * size,
        )

    def system(self, trial: _DualTrial, gradient: Array) -> DualNewtonSystem:
        problem, state = self.problem, self.state
        shifted = state.intercept - state.tau_b * trial.dual.sum(axis=0)
        return DualNewtonSystem(
            design=self.design,
            coef=problem.penalty.prox_jacobian(state.coef - state.tau * trial.pulled, state.tau),
            intercept=problem.intercept.prox_jacobian(shifted[None, :], state.tau_b),
            dual=problem.loss.conjugate_prox_jacobian(
                trial.dual + state.scores / state.ts, 1.0 / state.ts
            ),
            support=self.support,
            tau=state.tau,
            tau_b=state.tau_b,
            ts=state.ts,
            floor=self.damping(gradient),
        )

    def damping(self, gradient: Array) -> float:
        """Regularisation where the loss has no curvature: the residual of a score over the score
        step. It vanishes with the residual, so that convergence stays superlinear."""
        count = float(np.count_nonzero(self.support))
        samples = float(np.count_nonzero(self.problem.loss.shares))
        residual = float(np.linalg.norm(gradient)) / np.sqrt(count)
        return float(np.clip(samples * residual / self.state.ts, MIN_DAMPING, MAX_DAMPING))


def _square(values: Array) -> float:
    return float(np.vdot(values, values))
