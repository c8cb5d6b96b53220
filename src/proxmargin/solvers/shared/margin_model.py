"""The hinge in the terms of its solvers, and Newton's model, step and progress for other losses.

The intercept is no variable of these Newton methods: it is minimised exactly at every point, and
eliminated from every quadratic model.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.linalg import norm

from proxmargin.compiled.rounding import OBJECTIVE_ROUNDING
from proxmargin.compiled.solvers import newton as compiled
from proxmargin.compiled.solvers.newton import LEAST_WEIGHT
from proxmargin.data.designs.base import Design, subtract_outer
from proxmargin.data.designs.views import standardized
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array, Record
from proxmargin.solvers.loop.solver import GAP_REDUCTION, GapState, Solver, at_least_one
from proxmargin.solvers.shared.numerical import (
    LINE_SEARCH_STEPS,
    LINE_SEARCH_TOLERANCE,
    increasing_root,
)

KINK_TOLERANCE = 1e-3  # distance to the kink up to which a margin is on it at a warm start


def hinge_objection(problem: Problem, penalty: Trait = Trait.UNIFORM_NET) -> str | None:
    """The objection to a problem without a hinge or with another penalty, or None."""
    if Trait.HINGE not in problem.traits:
        return "it needs the hinge loss"
    if problem.loss.n_outputs > 1:
        return "it needs a binary problem (or multi_class='ovr')"
    if penalty not in problem.penalty.traits:
        return f"it needs {penalty.sentence()}"
    if not problem.has_plain_intercept:
        return "it needs an intercept with a ridge, a free one or none"
    return None


def signs_and_upper(problem: Problem) -> tuple[Array, Array]:
    """Signs of the samples, and upper of their multipliers, (n_samples,) each."""
    loss = problem.margins
    return loss.signs[:, 0], loss.weights[:, 0]


@kept
def target_margins(problem: Problem) -> Array:
    """The margins ``y_i z_i = 1 - y_i offset_i`` at which the hinges reach zero, (n_samples,)."""
    ends: Array = 1.0 - problem.margins.signs[:, 0] * problem.offset
    return ends


def intercept_ridge(problem: Problem) -> float | None:
    """Strength of the ridge of the intercept, zero for a free one; None without intercept."""
    return problem.intercept.l2 if problem.fits_intercept else None


def relative_changes(before: Any, after: Any, objective: float) -> Record:
    """What `RelativeChange` and histories read of a state: its ``objective``, and relative changes;
    of states with ``sparse`` coefficients, an ``intercept`` and an ``objective``."""
    change = np.append(after.sparse - before.sparse, after.intercept - before.intercept)
    size = np.linalg.norm(np.append(before.sparse, before.intercept))
    return {
        "objective": objective,
        "objective_change": (before.objective - objective) / (1.0 + abs(before.objective)),
        "point_change": float(np.linalg.norm(change) / (1.0 + size)),
    }


def spread_of(problem: Problem) -> float:
    """Mean squared norm of the samples, centred as in `Problem.centred`."""
    shares = problem.loss.shares
    if problem.intercept.is_shift_invariant:
        scale = standardized(problem.design, shares).scale
        return float(np.square(scale[np.isfinite(scale)]).sum())
    return float(shares @ problem.design.row_norms())


def first_multipliers(problem: Problem, start: Point, scores: Array) -> Array:
    """Multipliers to start from: the given ones, else those that the margins imply.

    Without coefficients, the multipliers of the lighter class are at their upper, and those of the
    heavier class scaled to the same sum. With coefficients they are at the cap for margins below
    the kink, zero above, and half the cap on it.
    """
    signs, upper = signs_and_upper(problem)
    if start.dual is not None:
        return np.clip(-signs * start.dual[:, 0], 0.0, upper)
    if start.coef.any():
        missing = target_margins(problem) - signs * scores
        return upper * np.where(np.abs(missing) <= KINK_TOLERANCE, 0.5, missing > 0)
    up, down = float(upper[signs > 0].sum()), float(upper[signs < 0].sum())
    least = min(up, down)
    return upper * np.where(signs > 0, least / (up or 1.0), least / (down or 1.0))


# convergence
ZERO_OBJECTIVE = 1e-18  # absolute decrease that counts: certificates resolve no less
# homotopy in the weight of the reweighted least-squares majoriser, controlled by the step length
DAMPING_FACTOR = 10.0  # on it after a step that is not fair, over it after a good step
GOOD_STEP_LENGTH = 0.5  # at least; one is the full Newton step
FAIR_STEP_LENGTH = 0.1  # at least


class MarginExpansion(NamedTuple):
    """A point with its best intercept, and the loss there to second order."""

    intercept: float
    scores: Array  # (n_samples,)
    value: float  # the loss plus the penalty of the intercept
    dual: Array  # (n_samples,), gradient of the loss in the scores
    # (n_samples,); second derivatives of the loss in the scores, or a majoriser where they vanish
    curvature: Array


def expanded(
    problem: Problem, scores: Array, intercept: float, majoriser: float
) -> MarginExpansion:
    """The expansion of the loss at these scores, whose intercept is given, with the best one.
    ``majoriser`` is the weight of the reweighted least-squares majoriser where the loss has no
    curvature (`next_damping`)."""
    loss, start = problem.loss, np.array([intercept])
    bare = (scores - intercept)[:, None]
    best = float(loss.best_intercept(bare, problem.intercept, start)[0])
    scores = bare[:, 0] + best
    value, dual = loss.value_and_gradient(scores[:, None])
    value += problem.intercept.value(np.array([[best]]))
    return MarginExpansion(
        best,
        scores,
        value,
        dual[:, 0],
        _curvatures(problem.margins, scores + problem.offset, majoriser),
    )


def curvature_in_shift(problem: Problem, curvature: Array) -> float:
    """Curvature of the objective in the intercept; infinite if that is pinned."""
    if not problem.fits_intercept:
        return np.inf
    return float(curvature.sum()) + problem.intercept.l2


def intercept_eliminated(problem: Problem, design: Design, curvature: Array) -> tuple[Array, Array]:
    """The Hessian of the loss in the coefficients with the intercept eliminated, ``X' D X - h h' /
    total`` with ``h = X' D 1``, and ``h / total``: along a step d the optimal intercept changes by
    ``-(h / total)' d``.
    """
    total = curvature_in_shift(problem, curvature)
    if total == 0:
        zero = np.zeros(design.n_features)
        return np.zeros((zero.size, zero.size)), zero
    cross = design.adjoint(curvature[:, None])[:, 0]
    mean = cross / total
    if problem.intercept.is_shift_invariant:
        return design.gram(curvature, mean), mean
    matrix = design.gram(curvature, np.zeros(design.n_features))
    subtract_outer(matrix, cross, mean)
    return matrix, mean


class NewtonStep(NamedTuple):
    """A step in the coordinates of a method, and the penalty along it."""

    direction: Array  # (k,)
    move: float  # change of the intercept
    moved: Array  # (n_samples,), change of the scores, including that of the intercept
    # slope, curvature: first and second derivative of the penalty of the coefficients along the
    # step
    slope: float = 0.0
    curvature: float = 0.0
    multiplier: float = 0.0  # of a constraint on the coefficients in the quadratic model


@dataclass(frozen=True, eq=False, kw_only=True)
class MarginNewtonState(GapState):
    """The state of a `MarginNewton`."""

    inner: Array  # (k,), the coefficients, in the coordinates of the method
    # with the best intercept (for the centred design, if it is centred)
    at: MarginExpansion
    slope: Array  # (k,), gradient of the loss in the coefficients
    # weight of the reweighted least-squares majoriser where the loss is linear
    majoriser: float = 0.0
    multiplier: float = 0.0  # of the last step
    objective: float = np.inf
    gap: float = np.inf  # smallest duality gap so far
    idle: int = 0  # steps without progress


S = TypeVar("S", bound=MarginNewtonState)


@dataclass(frozen=True)
class MarginNewton(Solver[S]):
    """Newton steps on a sum of margin losses and a penalty, with an exact line search.

    Samples on a linear piece of the loss get the curvature of the reweighted least-squares
    majoriser, times a weight that goes to zero.

    Parameters
    ----------
    max_stalled : int >= 1
        Steps without progress, as gap and objective have reached rounding, after which it ends.
    """

    max_stalled: int = 8

    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MARGINS | Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    longest: ClassVar[float] = np.inf
    """Largest length of a step, in full steps."""

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    @abstractmethod
    def newton(self, problem: Problem, state: S) -> NewtonStep:
        """The step to the minimum of the quadratic model."""

    @abstractmethod
    def gradient(self, problem: Problem, dual: Array) -> Array:
        """The gradient of the loss in the coefficients, of that in the scores."""

    @abstractmethod
    def with_gap(self, problem: Problem, state: S) -> S:
        """The state with objective and gap of its point (`with_progress`)."""

    def step(self, problem: Problem, state: S) -> S:
        at, step = state.at, self.newton(problem, state)
        length = min(_line_search(problem, at, step), self.longest)
        majoriser = next_damping(state.majoriser, length, LEAST_WEIGHT)
        scores, intercept = at.scores + length * step.moved, at.intercept + length * step.move
        there = expanded(problem, scores, intercept, majoriser)
        reached = state.but(
            n_iter=state.n_iter + 1,
            inner=state.inner + length * step.direction,
            at=there,
            slope=self.gradient(problem, there.dual),
            majoriser=majoriser,
            multiplier=step.multiplier,
            point_change=length * norm(step.direction) / (1.0 + norm(state.inner)),
        )
        return self.with_gap(problem, reached)

    def with_progress(
        self,
        state: S,
        objective: float,
        gap: float,
        relative_gap: float,
        *,
        passing: bool = False,
        **changes: object,
    ) -> S:
        """The state with what its point is worth, finished if its steps no longer gain anything.
        ``passing`` says that objective and gap are those of a stage of a homotopy."""
        gained = OBJECTIVE_ROUNDING * abs(objective) + ZERO_OBJECTIVE
        better = passing or gap < GAP_REDUCTION * state.gap or state.objective - objective > gained
        idle = 0 if better else state.idle + 1
        still = (
            state.n_iter > 0
            and state.point_change == 0.0
            and not passing
            and state.majoriser == 0.0
        )
        return state.but(
            objective=objective,
            gap=np.inf if passing else min(gap, state.gap),
            idle=idle,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
            finished=idle >= self.max_stalled or still,
            relative_gap=relative_gap,
            **changes,
        ).claimed(final=True)


def _line_search(problem: Problem, at: MarginExpansion, step: NewtonStep) -> float:
    """The length of the step that minimises the objective along it."""
    loss, ridge, scores = problem.margins, problem.intercept.l2, at.scores + problem.offset
    slope = step.slope + ridge * at.intercept * step.move
    curvature = step.curvature + ridge * step.move * step.move
    if loss.scalars is None:
        return _exact_step(loss, scores, step.moved, slope, curvature)
    nothing, signs, weights = np.zeros(0), loss.signs[:, 0], loss.weights[:, 0]
    ray = (scores, step.moved, signs, weights, *(nothing,) * 4, slope, curvature)
    length: float = compiled.exact_step(loss.scalars, *ray, LINE_SEARCH_TOLERANCE)
    return length


def next_damping(before: float, step: float, least: float) -> float:
    """The next damping of the Hessian: less after a good step, more after a short one. One of at
    most ``least`` vanishes after a good step, and grows from there after a short one."""
    if step < FAIR_STEP_LENGTH:
        return min(1.0, DAMPING_FACTOR * max(before, least))
    if step < GOOD_STEP_LENGTH:
        return before
    return before / DAMPING_FACTOR if before > least else 0.0


def _curvatures(loss: MarginSum, scores: Array, majoriser: float) -> Array:
    """Second derivative of the loss in each score including the offset, (n_samples,).

    Where it vanishes but the loss does not: ``majoriser`` times the curvature of the parabola that
    touches the loss there and has its vertex at zero. For a capped quadratic that is the majoriser
    of reweighted least squares.
    """
    signs, weights, phi = loss.signs[:, 0], loss.weights[:, 0], loss.phi
    t = signs * scores
    if loss.scalars is None:
        curvature = weights * phi.curvature(t)
    else:
        curvature = np.empty(scores.size)
        compiled.curvature_weights(loss.scalars, scores, signs, weights, 0.0, curvature)
    if majoriser > 0:
        flat = np.flatnonzero((curvature == 0) & (weights > 0))
        slope, value = phi.descent(t[flat]), phi.value(t[flat])
        missing = np.divide(slope**2, 2.0 * value, out=np.zeros(flat.size), where=value > 0)
        curvature[flat] = majoriser * weights[flat] * missing
    return curvature


def _exact_step(
    loss: MarginSum, scores: Array, moved: Array, fixed: float, curvature: float
) -> float:
    """`compiled.newton.exact_step` for losses without scalar functions."""
    signs = loss.signs[:, 0]
    margins, rates = signs * scores, loss.weights[:, 0] * signs * moved

    def slope(step: float) -> float:
        t = margins + step * signs * moved
        return fixed + step * curvature - float(rates @ loss.phi.descent(t))

    return increasing_root(slope, LINE_SEARCH_TOLERANCE, LINE_SEARCH_STEPS)
