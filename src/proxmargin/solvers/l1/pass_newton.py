"""Newton's method that reads the data once an iteration, for data that are not in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from proxmargin.compiled.rounding import EPS, MIN_DAMPING
from proxmargin.compiled.solvers.newton import exact_step
from proxmargin.compiled.solvers.proximal_newton import end_of_step
from proxmargin.compiled.solvers.quadratic_model import (
    DAMPING,
    FLAT_CURVATURE,
    quadratic_minimum,
    room_for,
)
from proxmargin.data.designs.base import Design, Sweep, SweepPoint
from proxmargin.functions.losses.margins.margin import MarginLoss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.shifted import Shifted
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import empty_beside
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.l1.newton import CLOSED_SET_FORCING, ProximalNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import AnySolver, Solver, State, Stop, at_least_one, check_flags
from proxmargin.solvers.shared.margin_model import next_damping
from proxmargin.solvers.shared.numerical import LINE_SEARCH_TOLERANCE

# the model of a sample of the rows, where the method starts
SAMPLE_GAP = 1e-4  # relative duality gap; a sample of m rows is off by about (features / m)
SHARPER = 0.1  # gap of that model over the tolerance, where the sample is all rows
# the Hessian
SLOW_RATE = 0.1  # gap over the one before, above which the next pass forms the Hessian of all rows
NEAR_STRENGTH = 0.8  # slope over l1 strength from which on a feature is among the active ones
# regularisation of the Hessian by the share `damping` of the curvature bounds of coordinates
FIRST_DAMPING = 1e-4
LEAST_DAMPING = 1e-8  # below which there is none


@dataclass(frozen=True, eq=False, kw_only=True)
class PassState(State):
    coef: Array  # (n_features,)
    intercept: float  # of the centred features, if they are centred
    objective: float
    # (n_samples,); scores without the offset, and derivatives of the loss
    scores: Array
    dual: Array
    # (n_features,); ``X'dual`` and ``X'curvature`` for the second derivatives of the loss
    slope: Array
    cross: Array
    sums: Array  # (2,); of dual and curvature
    active: Index  # (k,); features that the next step may change
    # (k, k), optional; the last Hessian of the loss in them that a pass has formed, with the
    # intercept eliminated
    gram: Array | None
    damping: float = FIRST_DAMPING  # regularisation of the Hessian
    gap: float = np.inf  # of the last certificate
    is_slow: bool = False  # the last step reduced it by little: the next pass forms the Hessian


@dataclass(frozen=True)
class PassNewton(Solver[PassState]):
    """Proximal Newton with one pass over the data an iteration (`Design.sweep`).

    It starts from the model of a sample of the rows that fits in memory. A pass computes scores,
    derivatives and the slope at a trial point; with scores before and after it the exact line
    search needs no data, and a second pass only where the full step is a poor one. The Hessian is
    that of the sample; where the gap falls slowly, the next pass forms that of all rows. With many
    features it is that of the active ones, which an l1 norm keeps few.

    Parameters
    ----------
    max_features : int >= 1
        Largest number of features, or of active features, whose Hessian is formed.
    sampled : bool
        Start from a sample, and take its Hessian.
    """

    max_features: int = 2000
    sampled: bool = True

    name: ClassVar[str] = "pass-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    check_every: ClassVar[int] = 1
    exact_scores: ClassVar[bool] = True
    max_iter: ClassVar[int] = 200

    def __post_init__(self) -> None:
        at_least_one(self, "max_features")
        check_flags(self, "sampled")

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        many = problem.design.n_features > self.max_features
        if missing is None and many and not np.all(problem.net.l1 > 0):
            return (
                f"it needs an l1 penalty of every feature, or at most {self.max_features} features"
            )
        return missing

    def product_bytes(self, problem: Problem) -> int:
        return 0  # one thread of BLAS, whose sums do not depend on the number of cores

    def init(self, problem: Problem, start: Point, stop: Stop) -> PassState:
        steps = 0
        if self.sampled and not start.coef.any():
            steps, start = _sample_start(problem, start, stop, self)
        coef, intercept = start.coef[:, 0].copy(), float(problem.centred.intercept(start)[0])
        wanted = None if self.sampled else self._active(problem, coef, None)
        swept = self._swept(problem, coef, intercept, wanted)
        return self._reached(problem, coef, intercept, swept, wanted).but(n_iter=steps)

    def step(self, problem: Problem, state: PassState) -> PassState:
        gram = _sampled_gram(problem, state) if state.gram is None else state.gram
        direction, shift = _direction(problem, state, gram)
        if not direction.any() and shift == 0.0:
            return state.but(n_iter=state.n_iter + 1, finished=True)
        near = self._active(problem, state.coef, state.slope)
        wanted = near if state.is_slow or not self.sampled else None
        coef, intercept = state.coef + direction, state.intercept + shift
        coef = np.where(np.abs(coef) <= EPS * np.abs(state.coef), 0.0, coef)
        trial = self._swept(problem, coef, intercept, wanted)
        length, gained = _searched(problem, state, direction, shift, trial.scores)
        full = state.objective - _objective(problem, coef, intercept, trial.scores)
        if full < 0.5 * gained:  # half of the best decrease is enough for the full step
            length, coef = end_of_step(state.coef, direction, length, problem.net)
            intercept = state.intercept + length * shift
            trial = self._swept(problem, coef, intercept, wanted)
        elif length == 0.0:
            length, coef = 0.0, state.coef
            intercept = state.intercept
            wanted = near
            trial = self._swept(problem, coef, intercept, wanted)
        reached = self._reached(problem, coef, intercept, trial, wanted)
        if reached.gram is None and state.gram is not None and coef.size <= self.max_features:
            # that of an earlier pass is better than that of the sample, where it was needed before
            reached = reached.but(active=state.active, gram=state.gram)
        change = float(np.linalg.norm(coef - state.coef))
        return reached.but(
            n_iter=state.n_iter + 1,
            damping=next_damping(state.damping, length, LEAST_DAMPING),
            gap=state.gap,
            is_slow=state.is_slow,
            finished=length == 0.0 and state.gram is not None,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
            objective_change=(state.objective - reached.objective) / (1.0 + abs(reached.objective)),
        )

    def observe(self, problem: Problem, state: PassState, gap: Gap) -> PassState:
        slow = gap.gap > SLOW_RATE * state.gap and np.isfinite(state.gap)
        return state.but(gap=gap.gap, is_slow=bool(slow))

    def point(self, problem: Problem, state: PassState) -> Point:
        return problem.centred.point(state.coef[:, None], np.array([state.intercept]))

    def scores(self, problem: Problem, state: PassState) -> Array:
        return state.scores[:, None]

    def dual(self, problem: Problem, state: PassState) -> Array | None:
        """The derivatives of the loss, whose pulled-back product the last pass has computed.
        Features without a penalty are moved by the certificate, which needs those of their
        place."""
        return None if problem.unpenalised.size else state.dual[:, None]

    def _swept(
        self, problem: Problem, coef: Array, intercept: float, wanted: Index | None
    ) -> Sweep:
        loss, design = problem.margins, problem.centred.design
        cut: tuple[Array, ...] = (loss.signs[:, 0], loss.weights[:, 0])
        if problem.loss.largest_offset > 0:
            cut = (*cut, problem.offset)
        pointwise, zero = partial(_derivatives, loss.phi), np.zeros(design.n_features)
        return design.sweep(SweepPoint(coef, intercept, pointwise, cut, zero, wanted))

    def _reached(
        self,
        problem: Problem,
        coef: Array,
        intercept: float,
        sweep: Sweep,
        wanted: Index | None,
    ) -> PassState:
        slope = sweep.pulled[:, 0] + sweep.pulled[:, 1]
        active = self._active(problem, coef, slope) if wanted is None else wanted
        return PassState(
            coef=coef,
            intercept=intercept,
            objective=_objective(problem, coef, intercept, sweep.scores),
            scores=sweep.scores,
            dual=sweep.dual,
            slope=slope,
            cross=sweep.pulled[:, 2],
            sums=np.array([sweep.sums[0] + sweep.sums[1], sweep.sums[2]]),
            active=active,
            gram=None if sweep.gram is None else _eliminated(problem, sweep, active),
        )

    def _active(self, problem: Problem, coef: Array, slope: Array | None) -> Index:
        """All features, or those with coefficients or large slopes, the largest ones first."""
        if coef.size <= self.max_features:
            return np.arange(coef.size)
        share = np.zeros(coef.size) if slope is None else np.abs(slope) / problem.net.l1
        share[coef != 0.0] = np.inf
        near = np.flatnonzero(share >= NEAR_STRENGTH)
        best = near[np.argsort(-share[near], kind="stable")[: self.max_features]]
        return np.sort(best)


def _derivatives(
    phi: MarginLoss, scores: Array, signs: Array, weights: Array, *offset: Array
) -> tuple[Array, Array]:
    margins = signs * (scores + offset[0] if offset else scores)
    return -weights * signs * phi.descent(margins), weights * phi.curvature(margins)


def _eliminated(problem: Problem, sweep: Sweep, active: Index) -> Array:
    """The Hessian that a pass has formed, with the intercept eliminated."""
    total = float(sweep.sums[2]) + problem.intercept.l2 if problem.fits_intercept else 0.0
    cross = sweep.pulled[active, 2]
    assert sweep.gram is not None
    return sweep.gram - np.outer(cross, cross / total) if total > 0 else sweep.gram


def _total(problem: Problem, state: PassState) -> float:
    """Curvature of the objective in the intercept; zero if that is pinned."""
    return float(state.sums[1]) + problem.intercept.l2 if problem.fits_intercept else 0.0


def _mean(problem: Problem, state: PassState) -> Array:
    """Along a step d the best intercept changes by ``-mean'd``."""
    total = _total(problem, state)
    return state.cross / total if total > 0 else np.zeros_like(state.cross)


def _sampled_gram(problem: Problem, state: PassState) -> Array:
    """The Hessian from the sample, scaled to the weight of all rows."""
    design, loss = problem.centred.design, problem.margins
    index, active = design.sample_index(), state.active
    rows = design.rows(index)
    rows = rows if active.size == rows.n_features else rows.columns(active)
    signs, weights = loss.signs[index, 0], loss.weights[index, 0]
    offset = (problem.offset[index],) if problem.loss.largest_offset > 0 else ()
    _, curvature = _derivatives(loss.phi, state.scores[index], signs, weights, *offset)
    total = float(curvature.sum())
    if total <= 0.0:
        return np.zeros((active.size, active.size))
    mean = rows.adjoint(curvature[:, None])[:, 0] / total if problem.fits_intercept else 0.0
    gram = rows.gram(curvature, np.broadcast_to(mean, (active.size,)).copy())
    return gram * (float(state.sums[1]) / total)


def _direction(problem: Problem, state: PassState, gram: Array) -> tuple[Array, float]:
    """The step to the minimiser of the quadratic model, and that of the intercept."""
    active, total, mean = state.active, _total(problem, state), _mean(problem, state)
    penalty = problem.penalty
    whole = active.size == state.coef.size
    net = problem.net if whole else penalty.restricted(active).net(active.size)
    rise = float(state.sums[0]) + problem.intercept.l2 * state.intercept if total > 0 else 0.0
    coef = state.coef[active]
    slope = state.slope[active] - mean[active] * rise
    major = problem.margins.phi.smoothness * _squares(problem)[active]
    hessian = gram.copy()
    diagonal = np.einsum("ii->i", hessian)
    diagonal += (MIN_DAMPING + state.damping) * major
    diagonal += np.where(diagonal < FLAT_CURVATURE * major, DAMPING * major, 0.0) + net.l2
    diagonal += np.where(diagonal > 0, 0.0, 1.0)  # for features that are zero everywhere
    slope = slope + net.l2 * coef
    bounded = np.isfinite(net.lower).any() or np.isfinite(net.upper).any()
    step = None if net.l1.any() or bounded else _unbounded_step(hessian, slope)
    if step is not None:
        found = coef + step
    else:
        off = penalty.violations(state.coef[:, None], -state.slope[:, None])
        target = CLOSED_SET_FORCING * float(off.max(initial=0.0))
        found, nothing = coef.copy(), np.zeros(coef.size)
        quadratic_minimum(room_for(hessian), nothing, slope, found, net, target, 0)
    direction = np.zeros_like(state.coef)
    direction[active] = found - coef
    shift = -(rise / total + float(mean @ direction)) if total > 0 else 0.0
    return direction, shift


def _unbounded_step(hessian: Array, slope: Array) -> Array | None:
    try:
        step: Array = -cho_solve(cho_factor(hessian), slope)
        return step
    except LinAlgError:
        return None


def _objective(problem: Problem, coef: Array, intercept: float, scores: Array) -> float:
    ridge = 0.5 * problem.intercept.l2 * intercept**2
    return problem.loss.value(scores[:, None]) + problem.penalty.value(coef[:, None]) + ridge


def _searched(
    problem: Problem, state: PassState, direction: Array, shift: float, scores: Array
) -> tuple[float, float]:
    """The best step length, from the scores at both ends of the full step, and its decrease."""
    loss, net, ridge = problem.margins, problem.net, problem.intercept.l2
    here = state.scores
    if problem.loss.largest_offset > 0:
        here = here + problem.offset
    moved = np.subtract(scores, state.scores, out=empty_beside(scores))
    length = exact_step(
        loss.phi.scalars,
        here,
        moved,
        loss.signs[:, 0],
        loss.weights[:, 0],
        state.coef,
        direction,
        net.l1,
        net.l2,
        ridge * state.intercept * shift,
        ridge * shift * shift,
        LINE_SEARCH_TOLERANCE,
    )
    length, coef = end_of_step(state.coef, direction, length, net)
    ahead = np.multiply(moved, length, out=moved)
    ahead += state.scores
    value = _objective(problem, coef, state.intercept + length * shift, ahead)
    return float(length), state.objective - value


def _squares(problem: Problem) -> Array:
    """Weighted mean square of each centred feature."""
    mean, variance = problem.design.mean_and_variance(problem.loss.shares)
    return variance if problem.intercept.is_shift_invariant else variance + mean**2


def _sample_start(
    problem: Problem, start: Point, stop: Stop, solver: PassNewton
) -> tuple[int, Point]:
    """The iterations and the end of a fit of the sample, at a loose gap unless it is everything."""
    loss, design = problem.margins, problem.design
    index = design.sample_index()
    part = MarginSum(loss.phi, loss.signs[index], loss.weights[index])
    total = float(part.weights.sum())
    if total <= 0.0 or np.ptp(part.signs[part.weights > 0]) == 0.0:
        return 0, start
    part = replace(part, weights=part.weights / total)
    rows: Design = design.rows(index)
    has_offset = problem.loss.largest_offset > 0
    loss_of_part = Shifted(part, problem.loss.offset[index]) if has_offset else part
    some = replace(problem, loss=loss_of_part, design=rows)
    many = design.n_features > solver.max_features and rows.has_columns
    newton, alone = ProximalNewton(), replace(solver, sampled=False)
    method: AnySolver = newton if many else alone
    if method.objection(some) is not None:
        return 0, start
    tol = SHARPER * stop.tol if index.size == design.n_samples else SAMPLE_GAP
    rough = stop.rough(max(tol, stop.tol * SHARPER), stop.iterations(solver.max_iter))
    first = newton.state_at(some, some.origin(), rough) if many else None  # no path within this
    found = minimize(some, method, stop=rough, start=first)
    return found.certificate.n_iter, found.point._replace(dual=None)
