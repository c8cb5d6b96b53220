"""The proximal method of multipliers with semismooth Newton steps, for the hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.nets import Net
from proxmargin.designs.base import Design
from proxmargin.designs.dense import DenseDesign
from proxmargin.loop.solver import Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solvers.hinge.model import (
    first_multipliers,
    goals,
    hinge_objection,
    intercept_ridge,
    signs_and_caps,
    spread_of,
)
from proxmargin.solvers.hinge.smoothed_hinge import Centre, SmoothedHinge
from proxmargin.solvers.multipliers import MultiplierState, worst_of
from proxmargin.solvers.smoothed_newton import minimise
from proxmargin.traits import Trait

__all__ = ["HingeNewton", "HingeNewtonState"]

# sharpness, the penalty parameter of the augmented Lagrangian: move of a multiplier, over its cap,
# per unit of margin deficit
COLD_SHARPNESS = 0.2  # first value for wide data: multipliers are far from the solution
TALL_SHARPNESS = 1.0  # first value for tall data
WARM_SHARPNESS = 2.0  # first value for a warm start
SHARPNESS_GROWTH = 2.0  # factor with each multiplier update, by which proximal terms fall
MAX_SHARPNESS = 3e4  # beyond it the rounding of scores dominates the multipliers
# proximal curvature
INTERCEPT_PROXIMAL = 1e-6  # of the intercept, relative to the mean cap
UNPENALISED_PROXIMAL = 1e-3  # of unpenalised coefficients, absolute
# relative residual to which smoothed problems are solved
FIRST_RESIDUAL = 0.1  # of the first one
RESIDUAL_REDUCTION = 0.3  # factor from one problem to the next
ACCEPTED_EXCESS = 1e3  # residual over its target that is accepted if rounding ends the search
# working set of features
MIN_ADDED_FEATURES = 64  # at once, if as many violate the optimality conditions
COPIED_ENTRIES = 1 << 21  # entries up to which a working set is copied: 16 MB


@dataclass(frozen=True, eq=False, kw_only=True)
class HingeNewtonState(MultiplierState):
    """The state of the proximal method of multipliers, with its own estimate of the gap.

    Attributes
    ----------
    at, centre : Centre
        The solution of the last smoothed problem, and the point around which that was built.
        Intercepts are those of centred features if they are centred (`Problem.centred`).
    scores : (n_samples,)
        Scores of ``at``.
    violations : (n_features,)
        ``(|X'(y a)| - l1)_+`` for the multipliers a.
    """

    at: Centre
    centre: Centre
    scores: Array
    violations: Array
    residual: float = FIRST_RESIDUAL


@dataclass(frozen=True)
class HingeNewton(Solver[HingeNewtonState]):
    """Proximal method of multipliers for ``sum_i u_i [1 - y_i z_i]_+`` plus an elastic net.

    Around the multipliers a and the coefficients of the last step it minimises

        sum_i max_{0 <= c <= u_i} {c (1 - y_i z_i) - (c - a_i)^2 / (2 s u_i)}
        + l1 |w|_1 + l2/2 |w|^2 + d/2 |w - w_last|^2,

    whose loss is smooth with curvature in the samples with a maximiser c strictly inside, by
    semismooth Newton steps on the active features (`SmoothedHinge`). The maximisers are the next
    multipliers; the sharpness s grows and d falls from step to step. As in any augmented Lagrangian
    method, smoothing around the multipliers leaves no bias: s need not go to infinity. The
    multipliers price the features, and a smoothed problem contains a working set only.

    Parameters
    ----------
    max_stalled : int >= 1
        Steps at the largest sharpness without a smaller gap, which has reached rounding, after
        which the method ends.

    Notes
    -----
    Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in
    convex programming"; the model is (2) of Liu, Qian, Dai and Zhang (2013). An iteration is a
    Newton step; a step of the solver solves one smoothed problem.
    """

    max_stalled: int = 4

    name: ClassVar[str] = "hinge-newton"
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 3000

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        return hinge_objection(problem, Trait.NET) or _objection_to_bounds(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> HingeNewtonState:
        coef, unit = start.coef[:, 0].copy(), problem.remembered(_sharpness_unit)
        intercept = float(problem.centred.intercept(start)[0])
        scores = problem.centred.design.scores(coef[:, None])[:, 0] + intercept
        tall = scores.size > coef.size and unit == 1.0
        cold = TALL_SHARPNESS if tall else COLD_SHARPNESS
        at = Centre(coef, intercept, first_multipliers(problem, start, scores))
        first = HingeNewtonState(
            at=at,
            centre=at,
            scores=scores,
            members=np.flatnonzero(coef),
            violations=np.zeros_like(coef),
            sharpness=unit * (WARM_SHARPNESS if coef.any() else cold),
            sharpest=unit * MAX_SHARPNESS,
            stop=stop,
        )
        priced = self._with_gap(problem, first, _signed_adjoint(problem, first))
        # a warm start may be optimal: given multipliers have a gap that tells; without them a
        # certificate decides
        return priced if start.dual is not None else priced.but(claims=True)

    def step(self, problem: Problem, state: HingeNewtonState) -> HingeNewtonState:
        """Solve the next smoothed problem, or the same one on a larger working set."""
        state = _prepared(problem, state)
        smoothed = _smoothed(problem, state)
        here = smoothed.at(state.at.coef[state.members], state.at.intercept)
        here, slopes, end = minimise(
            smoothed, here, state.residual, state.newton_steps, state.stop.deadline, ACCEPTED_EXCESS
        )
        coef = np.zeros_like(state.at.coef)
        coef[state.members] = here.coef
        there = state.after(end, COLD_SHARPNESS * problem.remembered(_sharpness_unit)).but(
            at=Centre(coef, here.intercept, here.dual),
            scores=here.scores,
        )
        every = state.members.size == coef.size
        pulled = slopes.pulled if every else _signed_adjoint(problem, there)
        return self._with_gap(problem, there, pulled)

    def point(self, problem: Problem, state: HingeNewtonState) -> Point:
        coef = state.at.coef[:, None]
        return problem.centred.point(coef, np.array([state.at.intercept]))

    def dual(self, problem: Problem, state: HingeNewtonState) -> Array:
        signs, _ = signs_and_caps(problem)
        return (-signs * state.at.dual)[:, None]

    def _with_gap(
        self, problem: Problem, state: HingeNewtonState, pulled: Array
    ) -> HingeNewtonState:
        """The state with all violations and the gap of the multipliers (rounding ignored)."""
        l1: float | Array = problem.level
        l2: float | Array = problem.penalty.l2
        if Trait.UNIFORM_NET in problem.penalty.traits:
            violations = np.abs(pulled)
        else:
            l1, l2 = problem.net.l1, problem.net.l2
            violations = _towards_open_sides(problem.net, pulled)
        violations -= l1
        np.maximum(violations, 0.0, out=violations)
        primal, bound = _value(problem, state), float(state.at.dual @ goals(problem))
        if problem.penalty.l2 > 0:
            bound -= 0.5 * float(violations @ (violations / l2))
        else:
            off = violations > 0
            shares = np.divide(l1, l1 + violations, out=np.ones_like(violations), where=off)
            bound *= float(shares.min(initial=1.0))
        bound -= _intercept_loss_of_bound(problem, state)
        relative = (primal - bound) / max(abs(primal), abs(bound), problem.negligible)
        judged = state.judged(relative, self.max_stalled)
        return judged.but(violations=violations, claims=relative <= state.stop.tol)


def _towards_open_sides(net: Net, pulled: Array) -> Array:
    """``|X'(y a)|`` of the features that may move in its direction from zero; else zero."""
    rise, fall = np.where(net.upper > 0, pulled, 0.0), np.where(net.lower < 0, -pulled, 0.0)
    return np.maximum(rise, fall)


def _objection_to_bounds(problem: Problem) -> str | None:
    """The objection to bounds or unpenalised features; orthants need signs, slopes a penalty."""
    if Trait.UNIFORM_NET in problem.penalty.traits:
        return None
    net = problem.net
    if np.any((net.l1 == 0) & (net.l2 == 0)):
        return "it needs a penalty of every feature"
    within = np.isfinite(net.lower) & (net.lower < 0) | np.isfinite(net.upper) & (net.upper > 0)
    return "it needs bounds of coefficients that are zero or infinite" if within.any() else None


def _signed_adjoint(problem: Problem, state: HingeNewtonState) -> Array:
    """``X'(y a)`` for the multipliers a, (n_features,)."""
    signs, _ = signs_and_caps(problem)
    return problem.centred.design.adjoint((signs * state.at.dual)[:, None])[:, 0]


def _value(problem: Problem, state: HingeNewtonState) -> float:
    """The objective at ``state.at``."""
    signs, caps = signs_and_caps(problem)
    coef = state.at.coef
    hinge = float(caps @ np.maximum(goals(problem) - signs * state.scores, 0.0))
    ridge = 0.5 * (intercept_ridge(problem) or 0.0) * state.at.intercept**2
    return hinge + problem.penalty.value(coef[:, None]) + ridge


def _intercept_loss_of_bound(problem: Problem, state: HingeNewtonState) -> float:
    """Decrease of the dual bound because ``y'a`` violates the intercept's constraint."""
    signs, _ = signs_and_caps(problem)
    ridge = intercept_ridge(problem)
    if ridge is None:
        return 0.0
    lean = abs(float(signs @ state.at.dual))
    return 0.5 * lean**2 / ridge if ridge > 0 else lean * abs(state.at.intercept)


def _prepared(problem: Problem, state: HingeNewtonState) -> HingeNewtonState:
    """Recentre if the last problem is solved, and enlarge the working set."""
    outside = state.outside(state.violations)
    if state.is_complete(outside, problem.level):
        sharper = state.sharpened(SHARPNESS_GROWTH, RESIDUAL_REDUCTION)
        state = sharper.but(centre=state.at)
    if not problem.level:  # without an l1 part every feature is active
        return state.but(members=np.arange(outside.size))
    return state.but(members=_grown(state, outside))


def _grown(state: HingeNewtonState, outside: Array) -> NDArray[np.intp]:
    """The working set with the features that violate most added to it."""
    total = outside.size
    if total <= 2 * MIN_ADDED_FEATURES:
        return np.arange(total)
    size = max(MIN_ADDED_FEATURES, 2 * int(np.count_nonzero(state.at.coef)))
    wanted = np.zeros(total, dtype=bool)
    wanted[worst_of(outside, size)] = True
    wanted[state.members] = True
    return np.flatnonzero(wanted)


def _smoothed(problem: Problem, state: HingeNewtonState) -> SmoothedHinge:
    design, members, centre = problem.centred.design, state.members, state.centre
    signs, caps = signs_and_caps(problem)
    level, l2 = problem.level, problem.penalty.l2
    ridge = intercept_ridge(problem)
    return SmoothedHinge(
        design=_working_set(design, members),
        signs=signs,
        caps=caps,
        offset=problem.offset,
        widths=state.sharpness * caps,
        net=Net(*(each[members] for each in problem.net)),
        level=level,
        centre=Centre(centre.coef[members], centre.intercept, centre.dual),
        proximal=state.proximal * (max(level, l2) or UNPENALISED_PROXIMAL),
        ridge=ridge or 0.0,
        intercept_proximal=None
        if ridge is None
        else INTERCEPT_PROXIMAL * float(caps.sum()) / caps.size,
    )


def _working_set(design: Design, members: NDArray[np.intp]) -> Design:
    """The features of the working set; copied if few, because they are read often."""
    if design.is_dense and design.n_samples * members.size <= COPIED_ENTRIES:
        return design.remembered(_plain_columns, members)
    return design if members.size == design.n_features else design.narrowed(members)


def _plain_columns(design: Design, members: NDArray[np.intp]) -> DenseDesign:
    matrix = design.dense_columns(members)
    share = design.share * members.size / max(design.n_features, 1)
    return DenseDesign(matrix, design.counter, share)


def _sharpness_unit(problem: Problem) -> float:
    """Unit of the sharpness: ``l2 / mean |x_i|^2``, but at least one.

    It exceeds one if the ridge alone keeps scores within one of the intercept, and is then how far
    multipliers must move for scores to move by one.
    """
    reach = spread_of(problem)
    return max(1.0, problem.penalty.l2 / reach) if reach > 0 else 1.0
