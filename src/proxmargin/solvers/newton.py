"""Proximal Newton on a working set of features, with a search along each step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificate import Gap
from proxmargin.compiled.clock import clock
from proxmargin.compiled.columns import forward
from proxmargin.compiled.margins import Shape, settle
from proxmargin.compiled.proximal_newton import newton_steps, pricing
from proxmargin.losses.base import Array
from proxmargin.losses.margin_sum import MarginSum
from proxmargin.minimize import minimize
from proxmargin.penalties.elastic_net import ElasticNet
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import SURE, PricedState, Solver, require
from proxmargin.solvers.column_set import ColumnSet, readable
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["ProximalNewton", "Pursuit"]

# members are kept while their gradient is above this share of the threshold
KEPT = 0.95
# steps in one compiled call, and entries they may read: between two calls, interruptions and time
# limits are looked at
STEPS, READ = 25, 4_000_000
# columns of a support whose matrix there is room for beside any data: 8 MB, and as much for its
# factor; larger ones have to be smaller than the columns
SIDE = 1000
# iterations without progress after which rounding is all that is left
PATIENCE, FALL = 3, 0.9
# a set that prices to nothing new is solved to this share of its violation
EXHAUSTED = 1e-3
# a point that is good enough is polished by a few steps more, to violations that are rounding
POLISHED, POLISHING = 1e-12, 4
# with all features, and violations of this share of the threshold, nothing is left to polish
SOLVED = 1e-9
# from nothing, an l1 norm so many times weaker than the least without coefficients is reached by a
# path of strengths, each this share of the last, solved to this gap in so many steps at most
FAR, WEAKER, ROUGH, ROUGH_STEPS = 300.0, 0.3, 1e-2, 100
# narrow quadratic zones are reached in stages, each solved to a gap of this share of its width
FIRST_WIDTH, NARROWER, STAGE_GAP, STAGE_THETA = 0.3, 0.2, 0.3, 0.1


@dataclass(frozen=True, eq=False)
class Pursuit(PricedState):
    """The state of `ProximalNewton`.

    Attributes
    ----------
    coef : (n_features,)
    intercept : float
    scores : (n_samples,)
    working : ColumnSet
    violations : (n_features,)
        Of the current stage at the current point.
    violation, least : float
        The largest of them, and the least value of that since the last new member.
    theta : float
        Weight of the majoriser of reweighted least squares where the loss has no curvature.
    width : float
        Of the quadratic zone of the loss at this stage; infinite where it has none.
    limit : int
        Iterations in all.
    idle : int
        Iterations without a smaller violation or a new member.
    """

    coef: Array = None  # type: ignore[assignment]
    intercept: float = 0.0
    scores: Array = None  # type: ignore[assignment]
    working: ColumnSet = None  # type: ignore[assignment]
    violations: Array = None  # type: ignore[assignment]
    violation: float = np.inf
    least: float = np.inf
    objective: float = np.inf
    theta: float = 1.0
    width: float = np.inf
    limit: int = 0
    idle: int = 0


@dataclass(frozen=True)
class ProximalNewton(Solver[Pursuit]):
    """Minimise a quadratic model of the loss plus the elastic net, then search along the step.

    The model's Hessian is ``X' D X`` with the curvature of the loss in D, which only the samples
    in its curved zone have; elsewhere a share ``theta`` of the majoriser of reweighted least
    squares keeps the model bounded far from the solution, and vanishes on the way. The intercept
    is eliminated from the model, and minimised exactly before each step. The model is solved by
    coordinate descent and Newton steps on its support; the search along the step is on the
    true objective. For piecewise quadratic losses the method ends after finitely many steps.

    Each iteration works on a copy of few columns: the support, and the features that violate
    optimality most at the last product with all of the data.

    Parameters
    ----------
    smallest : int
        Features taken in at least, if as many violate; by default 64, or ``sqrt(8 p)``.
    forcing : float
        The restricted problem is solved to this share of the violation of the whole.
    """

    smallest: int = 0
    forcing: float = 0.1

    name: ClassVar[str] = "newton"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.SEPARABLE
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 2000

    def __post_init__(self) -> None:
        require(self.smallest >= 0, "smallest must be >= 0", self.smallest)
        require(0 < self.forcing < 1, "forcing must be between 0 and 1", self.forcing)

    def objection(self, problem: Problem) -> str | None:
        known = isinstance(problem.loss, MarginSum) and isinstance(problem.penalty, ElasticNet)
        if not known:
            return super().objection(problem) or "it needs a loss of margins and an elastic net"
        if not readable(problem):
            return "it reads columns, and centring would fill those of sparse data"
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Pursuit:
        state = self._begun(problem, start, stop)
        loss, penalty = _parts(problem)
        pieces = loss.phi.shape is not None and not loss.phi.shape.logistic
        far = 0.0 < FAR * penalty.l1 < state.violation
        if start.coef.any() or not pieces or not far:
            return state
        steps, point = self._from_stronger(problem, state, stop)
        return self._begun(problem, point, stop).but(n_iter=steps)

    def _from_stronger(self, problem: Problem, state: Pursuit, stop: Stop) -> tuple[int, Point]:
        """Where a path of falling strengths arrives, each solved loosely; and the steps it took.

        With nearly no penalty the curved zones of the samples decide, and Newton's method gets to
        the right ones by trial: from one strength to the next few of them change.
        """
        penalty, most = _parts(problem)[1], state.limit
        steps, point = 0, self.point(problem, state)
        strength = WEAKER * (state.violation + penalty.l1)
        while strength > penalty.l1 and steps < most and clock() < stop.deadline:
            rough = replace(
                stop, tol=ROUGH, max_iter=min(ROUGH_STEPS, most - steps), callbacks=(), polish=False
            )
            stronger = replace(problem, penalty=ElasticNet(strength, penalty.l2))
            found = minimize(stronger, self, stop=rough, start=point)
            steps, point = steps + found.certificate.n_iter, found.point
            strength *= WEAKER
        return steps, point

    def _begun(self, problem: Problem, start: Point, stop: Stop) -> Pursuit:
        loss = _parts(problem)[0]
        members = np.flatnonzero(start.coef[:, 0])
        state = Pursuit(
            coef=start.coef[:, 0],
            intercept=float(start.intercept[0]),
            scores=(problem.design.scores(start.coef) + start.intercept)[:, 0],
            working=ColumnSet.of(problem, members),
            width=max(_cap(loss), FIRST_WIDTH),
            tol=SURE * stop.tol,
            limit=self.max_iter if stop.max_iter is None else stop.max_iter,
        )
        return self._priced(problem, state).but(unpolished=stop.polish)

    def step(self, problem: Problem, state: Pursuit) -> Pursuit:
        loss, penalty = _parts(problem)
        wanted, new = self._members(state, penalty.l1)
        working = state.working.changed(problem, wanted)
        last = _cap(loss) >= state.width
        target = self._target(state, penalty.l1, new)
        most = max(min(STEPS, READ // max(working.entries, 1)), 1)
        alone = last and working.members.size == state.coef.size
        if alone or state.relative_gap <= state.tol:  # solved, and to be polished
            target, most = POLISHED * penalty.l1, most if alone else min(most, POLISHING)
        coef, scores = state.coef[working.members] * working.unit, state.scores.copy()
        intercept, theta, steps, left = newton_steps(
            working.kernel,
            working.unit,
            _shape(loss, state.width),
            loss.signs[:, 0],
            loss.weights[:, 0],
            penalty.l1,
            penalty.l2,
            problem.fits_intercept,
            problem.intercept.l2,
            coef,
            scores,
            state.intercept + working.offset(coef),
            state.theta,
            target,
            max(min(most, state.limit - state.n_iter), 1),
            max(SIDE, math.isqrt(working.entries)),
        )
        problem.design.ledger.charge(
            3
            * max(steps, 1)
            * problem.design.share
            * working.members.size
            / max(state.coef.size, 1)
        )
        forward(working.kernel, coef, scores)  # without the rounding of all the steps
        scores += intercept
        whole = np.zeros_like(state.coef)
        whole[working.members] = coef / working.unit
        change = _norm(whole - state.coef)
        reached = state.but(
            n_iter=state.n_iter + max(steps, 1),
            coef=whole,
            intercept=intercept - working.offset(coef),
            scores=scores,
            working=working,
            theta=theta,
            exact=alone and left <= SOLVED * penalty.l1,
            point_change=change / (1.0 + _norm(state.coef)),
        )
        priced = self._priced(problem, reached)
        least = state.least if new == 0 and priced.width == state.width else np.inf
        idle = 0 if priced.violation < FALL * least else state.idle + 1
        least = min(least, priced.violation)
        return priced.but(least=least, idle=idle, finished=idle >= PATIENCE)

    def observe(self, problem: Problem, state: Pursuit, gap: Gap) -> Pursuit:
        return state.observed()

    def point(self, problem: Problem, state: Pursuit) -> Point:
        return Point(state.coef[:, None], np.array([state.intercept]))

    def _target(self, state: Pursuit, l1: float, new: int) -> float:
        """The violation at which the restricted problem is good enough."""
        share = self.forcing if new else EXHAUSTED
        return max(share * state.violation, 0.1 * state.tol * l1)

    def _members(self, state: Pursuit, l1: float) -> tuple[NDArray[np.bool_], int]:
        """The support, members near the threshold, the worst violators; how many are new."""
        p, inside = state.coef.size, state.working.members
        outside = state.violations.copy()
        outside[inside] = 0.0
        least = self.smallest or max(64, int(np.sqrt(8 * p)))
        if p <= least:
            return np.ones(p, np.bool_), p - inside.size
        room = max(least, int(np.count_nonzero(state.coef)))
        worst = np.flatnonzero(outside > 0)
        if worst.size > room:
            worst = worst[np.argpartition(outside[worst], worst.size - room)[-room:]]
        wanted = state.coef != 0
        wanted[inside] |= state.violations[inside] > (KEPT - 1.0) * l1
        wanted[worst] = True
        if np.count_nonzero(wanted) == 1:  # one column has two orders: kernels of the other would
            wanted[np.flatnonzero(wanted)[0] - 1] = True  # have to be compiled for it
        return wanted, worst.size

    def _priced(self, problem: Problem, state: Pursuit) -> Pursuit:
        """One product with all of the data: violations and gap, and on to the stage they allow."""
        loss, penalty = _parts(problem)
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        shape = _shape(loss, state.width)
        scores, intercept, ridge = state.scores.copy(), state.intercept, problem.intercept.l2
        dual = np.empty(scores.size)
        intercept += settle(
            shape, scores, signs, weights, problem.fits_intercept, ridge, intercept, dual
        )
        slope = problem.design.adjoint(dual[:, None])[:, 0]
        violations, curvature = np.empty(slope.size), np.zeros(slope.size)
        largest = 0.25 if shape.logistic else shape.curvature
        curvature[state.working.members] = largest * state.working.unit**2
        worst, objective, gap = pricing(
            shape,
            scores,
            signs,
            weights,
            slope,
            state.coef,
            curvature,
            penalty.l1,
            penalty.l2,
            violations,
        )
        objective += 0.5 * ridge * intercept**2
        priced = state.but(
            scores=scores,
            intercept=intercept,
            violations=violations,
            violation=worst,
            relative_gap=gap / max(objective, problem.negligible),
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        )
        cap = _cap(loss)
        if cap < state.width and priced.relative_gap <= max(STAGE_GAP * state.width, state.tol):
            width = max(cap, NARROWER * state.width)
            return self._priced(problem, priced.but(width=width, theta=STAGE_THETA))
        return priced.claimed(final=cap >= state.width)


def _parts(problem: Problem) -> tuple[MarginSum, ElasticNet]:
    """Loss and penalty, which `ProximalNewton.objection` has found to be of these types."""
    loss, penalty = problem.loss, problem.penalty
    assert isinstance(loss, MarginSum)
    assert isinstance(penalty, ElasticNet)
    return loss, penalty


def _norm(vector: Array) -> float:
    return math.sqrt(float(vector @ vector))


def _cap(loss: MarginSum) -> float:
    """The width of the quadratic zone of the loss; infinite for one without linear pieces."""
    shape = loss.phi.shape
    return np.inf if shape is None or shape.logistic else float(shape.cap)


def _shape(loss: MarginSum, width: float) -> Shape:
    """The loss, with a quadratic zone of ``width``."""
    shape = loss.phi.shape
    assert shape is not None
    return shape if width == _cap(loss) else Shape(False, 1.0 / width, width)
