"""The augmented Lagrangian method with semismooth Newton steps, for hinges with an elastic net."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.compiled.solvers.nets import Net
from proxmargin.functions.losses.classes.multinomial import CrammerSinger
from proxmargin.functions.rows import largest_of_rows, live_rows
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.binary import BinaryHinge
from proxmargin.solvers.augmented.classes import MulticlassHinge
from proxmargin.solvers.augmented.multipliers import HingeModel, MultiplierState
from proxmargin.solvers.loop.solver import Solver, Stop, at_least_one
from proxmargin.solvers.shared.margin_model import hinge_objection
from proxmargin.solvers.shared.working_set import with_worst

TARGET_STEPS = 6.0  # Newton steps; the growth of the sharpness is this over the last number
MIN_ADDED_FEATURES = 64  # at once, if as many violate the optimality conditions


@dataclass(frozen=True)
class MultiplierNewton(Solver[MultiplierState]):
    """Augmented Lagrangian method for the hinge, of two classes or more, plus an elastic net.

    Around the multipliers a and the coefficients of the last step it minimises, for two classes
    with upper bounds u of the multipliers,

        sum_i max_{0 <= c <= u_i} {c (1 - y_i z_i) - (c - a_i)^2 / (2 s u_i)}
        + l1 |w|_1 + l2/2 |w|^2 + d/2 |w - w_last|^2,

    and for more classes the same with multipliers in unit simplices (`binary`, `classes`), by
    semismooth Newton steps on the active coefficients: the loss is smooth, with curvature in the
    samples whose maximiser c is strictly inside. The maximisers are the next multipliers; the
    sharpness s grows and d falls from step to step. As in any augmented Lagrangian method,
    smoothing around the multipliers leaves no bias: s need not go to infinity. The multipliers
    price the features, and a smoothed problem contains a working set only.

    Parameters
    ----------
    max_stalled : int >= 1
        Steps at the largest sharpness without a smaller gap, which has reached rounding, after
        which the method ends.

    Notes
    -----
    Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm in
    convex programming"; the models are (2) of Liu, Qian, Dai and Zhang (2013) and (7) of Chierchia,
    Pustelnik, Pesquet and Pesquet-Popescu (2015). An iteration is a Newton step; a step of the
    solver solves one smoothed problem.
    """

    max_stalled: int = 4

    name: ClassVar[str] = "multiplier-newton"
    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 3000

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, CrammerSinger):
            return hinge_objection(problem, Trait.NET) or _objection_to_net(problem)
        penalty = problem.penalty
        if Trait.UNIFORM_NET not in penalty.traits or penalty.l2 + penalty.l1 <= 0:
            return f"it needs {Trait.UNIFORM_NET.sentence()}"
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> MultiplierState:
        model = model_of(problem)
        at, scores, sharpness = model.start(start)
        first = MultiplierState(
            at=at,
            centre=at,
            scores=scores,
            violations=np.zeros(len(at.coef)),
            members=live_rows(at.coef),
            sharpness=sharpness,
            sharpest=model.max_sharpness,
            residual=model.first_residual,
            stop=stop,
        )
        measured = self._with_gap(model, first)
        # a warm start may be optimal: given multipliers have a gap that tells; without them a
        # certificate decides
        return measured if start.dual is not None else measured.but(claims=True)

    def step(self, problem: Problem, state: MultiplierState) -> MultiplierState:
        """Solve the next smoothed problem, or the same one on a larger working set."""
        model = model_of(problem)
        state = _prepared(model, state)
        at, scores, slopes, end = model.solved(state)
        coef = np.zeros_like(state.at.coef)
        coef[state.members] = at.coef
        there = state.after(end, model.least_sharpness).but(
            at=at._replace(coef=coef), scores=scores
        )
        every = state.members.size == len(coef)
        return self._with_gap(model, there, slopes if every else None)

    def point(self, problem: Problem, state: MultiplierState) -> Point:
        return model_of(problem).point(state.at)

    def dual(self, problem: Problem, state: MultiplierState) -> Array:
        return model_of(problem).dual(state.at.multipliers)

    def _with_gap(
        self, model: HingeModel, state: MultiplierState, slopes: Array | None = None
    ) -> MultiplierState:
        """The state with all violations and the gap of the multipliers (rounding ignored);
        ``slopes`` are ``X'q`` for the dual point q, if known."""
        problem, dual = model.problem, model.dual(state.at.multipliers)
        if slopes is None:
            slopes = model.design.adjoint(dual)
        l1: float | Array = problem.level
        l2: float | Array = problem.penalty.l2
        if Trait.UNIFORM_NET in problem.penalty.traits:
            violations = np.abs(slopes)
        else:
            net = problem.net
            l1, l2 = net.l1[:, None], net.l2[:, None]
            violations = _towards_open_sides(net, slopes)
        violations -= l1
        np.maximum(violations, 0.0, out=violations)
        coef, intercept, ridge = state.at.coef, state.at.intercept, problem.intercept.l2
        primal = model.loss(state.scores) + problem.penalty.value(coef)
        primal += 0.5 * ridge * float(intercept @ intercept)
        bound = model.dual_value(state.at.multipliers)
        if problem.penalty.l2 > 0:
            bound -= 0.5 * float((violations * (violations / l2)).sum())
        else:
            off = violations > 0
            shares = np.divide(l1, l1 + violations, out=np.ones_like(violations), where=off)
            bound *= float(shares.min(initial=1.0))
        if problem.fits_intercept:
            sums = dual.sum(axis=0)
            free = float(np.abs(sums) @ np.abs(intercept))
            bound -= 0.5 * float(sums @ sums) / ridge if ridge > 0 else free
        relative = (primal - bound) / max(abs(primal), abs(bound), problem.negligible)
        measured = state.measured(relative, self.max_stalled)
        return measured.but(violations=largest_of_rows(violations))


@kept
def model_of(problem: Problem) -> HingeModel:
    """The hinge of the problem in the coordinates of its Newton systems, made once."""
    several = isinstance(problem.loss, CrammerSinger)
    return MulticlassHinge(problem) if several else BinaryHinge(problem)


def _towards_open_sides(net: Net, slopes: Array) -> Array:
    """``|X'q|`` of the features that may move against its sign from zero; else zero."""
    rise = np.where(net.upper[:, None] > 0, -slopes, 0.0)
    fall = np.where(net.lower[:, None] < 0, slopes, 0.0)
    return np.maximum(rise, fall)


def _objection_to_net(problem: Problem) -> str | None:
    """The objection to bounds or unpenalised features; orthants need signs, slopes a penalty."""
    if Trait.UNIFORM_NET in problem.penalty.traits:
        return None
    net = problem.net
    if np.any((net.l1 == 0) & (net.l2 == 0)):
        return "it needs a penalty of every feature"
    within = np.isfinite(net.lower) & (net.lower < 0) | np.isfinite(net.upper) & (net.upper > 0)
    return "it needs bounds of coefficients that are zero or infinite" if within.any() else None


def _prepared(model: HingeModel, state: MultiplierState) -> MultiplierState:
    """Recentre if the last problem is solved, and add the worst features to the working set."""
    level, outside = model.problem.level, state.violations.copy()
    outside[state.members] = 0.0
    if state.is_complete(outside, level):
        least, most = model.growths
        growth = min(max(TARGET_STEPS / max(state.steps, 1), least), most)
        state = state.sharpened(growth, model.residual_reduction)
    if not level or outside.size <= 2 * MIN_ADDED_FEATURES:
        # without an l1 part every feature is active
        return state.but(members=np.arange(outside.size))
    size = max(MIN_ADDED_FEATURES, 2 * int(np.count_nonzero(state.at.coef)))
    return state.but(members=with_worst(state.members, outside, size))
