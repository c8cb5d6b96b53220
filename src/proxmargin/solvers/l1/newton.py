"""Proximal Newton on a working set of features, with an exact line search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.linalg import norm
from numpy.typing import NDArray

from proxmargin.compiled.losses.margins import optimal_intercept_and_gradient
from proxmargin.compiled.paths.model import KEPT_SLOPE
from proxmargin.compiled.products.columns import Compressed, forward, scale_lines
from proxmargin.compiled.rounding import CONSTANT_VARIANCE
from proxmargin.compiled.solvers.nets import Net
from proxmargin.compiled.solvers.newton import ROUNDING_VIOLATION
from proxmargin.compiled.solvers.proximal_newton import newton_steps, violations_and_gap
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.samples import narrow_indices
from proxmargin.data.inputs.parameters import LARGEST
from proxmargin.functions.rows import live_rows
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array, Matrix
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import (
    CLAIM_FRACTION,
    GAP_REDUCTION,
    GapState,
    Solver,
    Stop,
    at_least_one,
    check_numbers,
)


def readable(problem: Problem) -> bool:
    """Whether columns can be read without making a sparse matrix dense."""
    stored = problem.design.stored
    if stored.base.compressed is None or problem.intercept.is_shift_invariant:
        return True
    return not stored.centre.any()


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """Columns ``(x_j - mean_j) / unit_j`` of some features."""

    members: NDArray[np.intp]  # (k,) integers, the features, in the order of the columns
    columns: Any  # (n_samples, k) matrix in Fortran order, or sparse by columns
    # (k,); a free intercept absorbs the mean. Dense columns are centred: with the intercept
    # eliminated the Hessian is a covariance, which would cancel if means were large. Of sparse
    # columns only full ones are centred; others would become dense, and their standard deviation is
    # of the order of their mean. For sparse standardised data ``mean`` is minus the centre over the
    # scale, so that the stored columns need not be centred
    mean: Array
    unit: Array

    @classmethod
    def of(cls, problem: Problem, members: NDArray[np.intp]) -> ColumnSet:
        """Copy the columns of ``members``."""
        weights = problem.loss.shares
        raw, mean = _copied_columns(problem.design, members)
        if not isinstance(raw, np.ndarray):
            counts = np.diff(raw.indptr)
            if problem.intercept.is_shift_invariant:
                full = np.where(counts == raw.shape[0], weights @ raw, 0.0)
                raw.data -= np.repeat(full, counts)
                mean = mean + full
            unit = np.sqrt(weights @ raw.multiply(raw))
            unit[unit == 0] = 1.0
            raw.data /= np.repeat(unit, counts)
        else:
            unit, centres = np.empty(members.size), problem.intercept.is_shift_invariant
            scale_lines(raw.T, weights, centres, CONSTANT_VARIANCE, mean, unit)
        return cls(members, raw, mean, unit)

    def changed(self, problem: Problem, wanted: NDArray[np.bool_]) -> ColumnSet:
        """The columns of the ``wanted`` features: first those in this set, then the new ones."""
        if not self.members.size:
            return ColumnSet.of(problem, np.flatnonzero(wanted))
        kept = wanted[self.members]
        absent = wanted.copy()
        absent[self.members] = False
        new = np.flatnonzero(absent)
        if kept.all() and not new.size:
            return self
        added = ColumnSet.of(problem, new)
        if isinstance(added.columns, np.ndarray):
            together = np.concatenate([self.columns.T[kept], added.columns.T]).T
        else:
            together = sp.hstack((self.columns[:, kept], added.columns), format="csc")
        return ColumnSet(
            np.concatenate([self.members[kept], new]),
            together,
            np.concatenate([self.mean[kept], added.mean]),
            np.concatenate([self.unit[kept], added.unit]),
        )

    @property
    def kernel(self) -> Any:
        """The columns in the form of compiled kernels: rows of an array, or compressed columns."""
        matrix = self.columns
        if isinstance(matrix, np.ndarray):
            return matrix.T
        return Compressed(matrix.shape[0], matrix.data, matrix.indices, matrix.indptr)

    def offset(self, coef: Array) -> float:
        """``mean' w``, for coefficients (k,) of the columns, which have unit mean square: the
        intercept for the columns minus this is the intercept for the features."""
        return float(self.mean @ (coef / self.unit))


def _copied_columns(design: Design, members: NDArray[np.intp]) -> tuple[Matrix, Array]:
    """A copy of the columns as float64, and the mean with which they must be read."""
    base, centre, scale = design.stored
    plain = base is design
    if base.compressed is not None:
        matrix: Any = base.columns(members).matrix  # type: ignore[attr-defined]
        copied: Any = sp.csc_array(matrix, dtype=np.float64, copy=True)
        copied.sum_duplicates()
        copied.indices, copied.indptr = narrow_indices(copied)
        if plain:
            return copied, np.zeros(members.size)
        copied.data /= np.repeat(scale[members], np.diff(copied.indptr))
        # the features are these columns minus centre / scale
        return copied, -centre[members] / scale[members]
    raw = base.dense_columns(members)
    if not plain:
        raw -= centre[members]
        raw /= scale[members]
    return raw, np.zeros(members.size)


# working set; violations and gradients are relative to the l1 strength
CLOSED_SET_FORCING = 1e-3  # residual over the violation, if no feature enters
RESIDUAL_FRACTION = 0.1  # residual over the tolerance, below which it is not reduced
# one compiled call: interrupts and the deadline are checked only between calls
STEPS_PER_CALL = 25  # at most
ENTRIES_PER_CALL = 20_000_000  # limit of entries read: a fraction of a second
WORK_PER_CALL = 400_000_000  # limit of multiply-adds, for Hessians: the same
# larger supports use coordinate sweeps only, without a Gram matrix and its factor
MAX_GRAM_SIDE = 1000  # 8 MB each; or the square root of the entries of the columns, if larger
# polishing after the tolerance is met
POLISHED_VIOLATION = 1e-12  # target, over the l1 strength
POLISHING_STEPS = 4  # limit on a working set
# homotopy in the l1 strength, for a cold start far from lambda_max (the least l1 strength at which
# all coefficients are zero)
FAR_RATIO = 300.0  # lambda_max / l1 above which it is used
PATH_RATIO = 0.3  # from one strength of the path to the next
PATH_GAP = 1e-2  # relative gap at which a strength is left
PATH_STEPS = 100  # iteration limit for one strength
# homotopy in the width of the quadratic zone of the loss, if that is narrow
FIRST_WIDTH = 0.3  # in units of the margin
WIDTH_RATIO = 0.2  # from one stage to the next
STAGE_GAP = 0.3  # relative gap over width at which a stage is left: the width changes the loss
STAGE_WEIGHT = 0.1  # first majoriser weight of a stage, which starts close to its solution


@dataclass(frozen=True, eq=False, kw_only=True)
class ProximalNewtonState(GapState):
    coef: Array  # (n_features,)
    intercept: float = 0.0
    scores: Array  # (n_samples,)
    working: ColumnSet
    violations: Array  # (n_features,); violations of the optimality conditions of the current stage
    # the largest violation, and its smallest value since the working set last grew
    violation: float = np.inf
    least: float = np.inf
    objective: float = np.inf
    # weight of the reweighted least-squares majoriser where the loss has no curvature
    weight: float = 1.0
    # width of the loss's quadratic zone at this stage; infinite if the loss has no linear piece
    width: float = np.inf
    stop: Stop = field(default_factory=Stop)
    idle: int = 0  # iterations without a smaller violation or a new feature in the working set


@dataclass(frozen=True)
class ProximalNewton(Solver[ProximalNewtonState]):
    """Proximal Newton for smooth margin losses with an elastic net, on a working set of features.

    Each step minimises a quadratic model of the loss plus the penalty, by coordinate descent and
    Newton steps on the support, then searches the true objective along the step. The Hessian of the
    model is ``X' D X`` with the curvature of the loss in D. Samples on a linear piece of the loss
    have none; there ``weight`` times the majoriser of reweighted least squares bounds the model far
    from the solution, and weight goes to zero. The intercept is eliminated from the model, and
    minimised exactly before each step. For piecewise quadratic losses the method terminates
    finitely.

    The working set is the support and the features that violate optimality most at the last product
    with all data; its columns are copied.

    Parameters
    ----------
    smallest : int
        Least number of violating features in the set; by default ``max(64, sqrt(8 p))``.
    forcing : float
        Residual of the restricted problem over the violation of the whole problem.
    max_stalled : int >= 1
        Steps without a smaller violation, which has reached rounding, after which it ends.
    """

    smallest: int = 0
    forcing: float = 0.1
    max_stalled: int = 3

    name: ClassVar[str] = "newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 2000

    def __post_init__(self) -> None:
        check_numbers(self, "smallest", least=0, whole=True)
        check_numbers(self, "forcing", above=0, below=1)
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if not readable(problem):
            return "it reads columns, and centring would fill those of sparse data"
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> ProximalNewtonState:
        state = self.state_at(problem, start, stop)
        loss = problem.margins
        pieces = not loss.phi.is_strictly_convex
        level = problem.level
        far = 0.0 < FAR_RATIO * level < state.violation < LARGEST * level  # or the path is too long
        # the classes of many more samples than features overlap, whatever the penalty
        if start.coef.any() or not pieces or not far or problem.design.is_tall:
            return state
        steps, point = self._warm_start_by_path(problem, state, stop)
        return self.state_at(problem, point, stop).but(n_iter=steps)

    def _warm_start_by_path(
        self, problem: Problem, state: ProximalNewtonState, stop: Stop
    ) -> tuple[int, Point]:
        """The end of a path of decreasing l1 strengths, each solved loosely; and its iterations.

        With a weak penalty Newton's method must identify the samples in the quadratic zone of the
        loss; few of them change from one strength to the next. Each fit starts at the state of the
        last point: `init` would start it by a path of its own.
        """
        level, most = problem.level, stop.iterations(self.max_iter)
        steps, point = 0, self.point(problem, state)
        strength = PATH_RATIO * (state.violation + level)
        while strength > level and steps < most and not stop.is_over:
            rough = stop.rough(PATH_GAP, min(PATH_STEPS, most - steps))
            stronger = replace(problem, penalty=problem.penalty.with_l1_times(strength / level))
            first = self.state_at(stronger, point, rough)
            found = minimize(stronger, self, stop=rough, start=first)
            steps, point = steps + found.certificate.n_iter, found.point
            if found.status is Status.INTERRUPTED:
                break
            strength *= PATH_RATIO
        return steps, point

    def state_at(self, problem: Problem, start: Point, stop: Stop) -> ProximalNewtonState:
        """The state at a point, whatever it is worth; `init` may start elsewhere."""
        loss = problem.margins
        members = live_rows(start.coef)
        state = ProximalNewtonState(
            coef=start.coef[:, 0],
            intercept=float(start.intercept[0]),
            scores=(problem.design.scores(start.coef) + start.intercept)[:, 0] + problem.offset,
            working=ColumnSet.of(problem, members),
            violations=np.zeros(start.coef.shape[0]),
            width=max(loss.phi.zone, FIRST_WIDTH),
            tol=CLAIM_FRACTION * stop.tol,
            stop=stop,
        )
        return self._with_gap(problem, state).but(unpolished=stop.polish)

    def step(self, problem: Problem, state: ProximalNewtonState) -> ProximalNewtonState:
        loss, level = problem.margins, problem.level
        wanted, new = self._members(state, problem.net.l1)
        working = state.working.changed(problem, wanted)
        last = loss.phi.zone >= state.width
        # the violation to which the restricted problem is solved
        share = self.forcing if new else CLOSED_SET_FORCING
        target = max(share * state.violation, RESIDUAL_FRACTION * state.tol * level)
        most = max(min(STEPS_PER_CALL, ENTRIES_PER_CALL // max(working.columns.size, 1)), 1)
        alone = last and working.members.size == state.coef.size
        if alone or state.relative_gap <= state.tol:  # solved, and to be polished
            target, most = (
                POLISHED_VIOLATION * level,
                most if alone else min(most, POLISHING_STEPS),
            )
        coef, scores = state.coef[working.members] * working.unit, state.scores.copy()
        intercept, weight, steps, left = newton_steps(
            working.kernel,
            working.unit,
            loss.phi.widened(state.width).scalars,
            loss.signs[:, 0],
            loss.weights[:, 0],
            Net(*map(itemgetter(working.members), problem.net)),
            problem.level,
            problem.fits_intercept,
            problem.intercept.l2,
            coef,
            scores,
            state.intercept + working.offset(coef),
            state.weight,
            target,
            max(min(most, state.stop.iterations(self.max_iter) - state.n_iter), 1),
            max(MAX_GRAM_SIDE, math.isqrt(working.columns.size)),
        )
        problem.design.counter.add(
            3
            * max(steps, 1)
            * problem.design.share
            * working.members.size
            / max(state.coef.size, 1)
        )
        forward(working.kernel, coef, scores)  # recomputed: updates accumulate rounding
        scores += intercept + problem.offset
        whole = np.zeros(state.coef.size)
        whole[working.members] = coef / working.unit
        reached = state.but(
            n_iter=state.n_iter + max(steps, 1),
            coef=whole,
            intercept=intercept - working.offset(coef),
            scores=scores,
            working=working,
            weight=weight,
            exact=alone and left <= ROUNDING_VIOLATION * level,
            point_change=float(norm(whole - state.coef) / (1.0 + norm(state.coef))),
        )
        measured = self._with_gap(problem, reached)
        least = state.least if new == 0 and measured.width == state.width else np.inf
        idle = 0 if measured.violation < GAP_REDUCTION * least else state.idle + 1
        least = min(least, measured.violation)
        return measured.but(least=least, idle=idle, finished=idle >= self.max_stalled)

    def point(self, problem: Problem, state: ProximalNewtonState) -> Point:
        return Point(state.coef[:, None], np.array([state.intercept]))

    def _members(self, state: ProximalNewtonState, l1: Array) -> tuple[NDArray[np.bool_], int]:
        """The mask of the next working set (p,), and how many features are new in it. It holds the
        support, members near the threshold, and the worst violators."""
        p, inside = state.coef.size, state.working.members
        outside = state.violations.copy()
        outside[inside] = 0.0
        least = self.smallest or max(64, int(np.sqrt(8 * p)))
        if p <= least:
            return np.ones(p, np.bool_), p - inside.size
        wanted = state.coef != 0
        room = max(least, int(np.count_nonzero(wanted)))
        worst = np.flatnonzero(outside > 0)
        if worst.size > room:
            worst = worst[np.argpartition(outside[worst], worst.size - room)[-room:]]
        wanted[inside] |= state.violations[inside] > (KEPT_SLOPE - 1.0) * l1[inside]
        wanted[worst] = True
        return wanted, worst.size

    def _with_gap(self, problem: Problem, state: ProximalNewtonState) -> ProximalNewtonState:
        """Violations and gap over all features, by one product; then the next stage if due."""
        loss = problem.margins
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        phi = loss.phi.widened(state.width)
        scores, intercept, ridge = state.scores.copy(), state.intercept, problem.intercept.l2
        dual = np.empty(scores.size)
        intercept += optimal_intercept_and_gradient(
            phi.scalars, scores, signs, weights, problem.fits_intercept, ridge, intercept, dual
        )
        slope = problem.design.adjoint(dual[:, None])[:, 0]
        violations, curvature = np.empty(slope.size), np.zeros(slope.size)
        curvature[state.working.members] = phi.smoothness * state.working.unit**2
        worst, objective, gap = violations_and_gap(
            phi.scalars,
            scores,
            signs,
            weights,
            slope,
            state.coef,
            curvature,
            problem.net,
            problem.unpenalised.size > 0,
            violations,
        )
        objective += 0.5 * ridge * intercept**2
        measured = state.but(
            scores=scores,
            intercept=intercept,
            violations=violations,
            violation=worst,
            relative_gap=gap / max(objective, problem.negligible),
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(objective)),
        )
        zone = loss.phi.zone
        if zone < state.width and measured.relative_gap <= max(STAGE_GAP * state.width, state.tol):
            width = max(zone, WIDTH_RATIO * state.width)
            return self._with_gap(problem, measured.but(width=width, weight=STAGE_WEIGHT))
        return measured.claimed(final=zone >= state.width)
