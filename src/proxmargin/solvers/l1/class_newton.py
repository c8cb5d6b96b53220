"""Proximal Newton for smooth losses of all classes together, on a working set of coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.losses.class_forms import best_shift
from proxmargin.compiled.paths.model import KEPT_SLOPE
from proxmargin.compiled.solvers.class_newton import (
    Unknowns,
    class_violations,
    newton_steps,
    scores_of,
)
from proxmargin.compiled.solvers.nets import Net
from proxmargin.compiled.solvers.newton import ROUNDING_VIOLATION
from proxmargin.functions.losses.classes.comparison import SmoothComparison
from proxmargin.functions.rows import live_rows
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.l1.newton import (
    CLOSED_SET_FORCING,
    POLISHED_VIOLATION,
    POLISHING_STEPS,
    RESIDUAL_FRACTION,
    STEPS_PER_CALL,
    WORK_PER_CALL,
    ColumnSet,
    readable,
)
from proxmargin.solvers.loop.solver import (
    CLAIM_FRACTION,
    GAP_REDUCTION,
    GapState,
    Solver,
    Stop,
    at_least_one,
    check_numbers,
)

HESSIAN_BYTES = 1 << 31  # for copies of columns, and for curvatures of pairs of classes: 2 GiB


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassNewtonState(GapState):
    coef: Array  # (n_features, n_classes)
    intercept: Array  # (n_classes,)
    scores: Array  # (n_classes, n_samples); with the offset
    working: ColumnSet
    loss: float = np.inf
    dual: Array  # (n_samples, n_classes); gradient of the loss in the scores
    slope: Array  # (n_features, n_classes); gradient of the loss in the coefficients
    violations: Array  # (n_features, n_classes); violations of the optimality conditions
    # the largest violation, and its smallest value since the working set last grew
    violation: float = np.inf
    least: float = np.inf
    objective: float = np.inf
    stop: Stop = field(default_factory=Stop)
    idle: int = 0  # iterations without a smaller violation or a new coefficient in the working set


@dataclass(frozen=True)
class ClassNewton(Solver[ClassNewtonState]):
    """Proximal Newton for smooth losses of all classes with an elastic net.

    Each step minimises a quadratic model of the loss plus the penalty, by coordinate descent and
    Newton steps on the support, and halves the step until the objective falls. The model has the
    whole Hessian of the loss in the coefficients of the working set, across the classes, and a free
    intercept is eliminated from it. As long as steps converge fast one Hessian serves them all.

    The working set has single coefficients: the support, and those that violate optimality most, or
    are next to, at the last product with all data. Columns of their features are copied.

    Parameters
    ----------
    smallest : int
        Coefficients in the set besides the support, at least; at most as many as in that.
    largest : int >= 1
        Coefficients in the working set, beyond which the method gives up: the Hessian is a matrix
        of that side.
    forcing : float
        Residual of the restricted problem over the violation of the whole problem.
    max_stalled : int >= 1
        Steps without a smaller violation, which has reached rounding, after which it ends.

    Notes
    -----
    glmnet takes the same quadratic model class by class, with its diagonal blocks alone: Friedman,
    Hastie and Tibshirani (2010), section 4. Steps across the classes converge quadratically.
    """

    smallest: int = 100
    largest: int = 1000
    forcing: float = 0.01
    max_stalled: int = 3

    name: ClassVar[str] = "class-newton"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MANY_OUTPUTS | Trait.NET
    computes_gap: ClassVar[bool] = True
    max_iter: ClassVar[int] = 500

    def __post_init__(self) -> None:
        check_numbers(self, "smallest", "largest", least=1, whole=True)
        check_numbers(self, "forcing", above=0, below=1)
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        if missing is not None:
            return missing
        if not isinstance(problem.loss.unshifted, SmoothComparison):
            return "it needs a loss that compares the scores of a sample"
        if not problem.has_unpenalised_intercept:
            return "it needs an intercept without a ridge"
        if not readable(problem):
            return "it reads columns, and centring would fill those of sparse data"
        if not float(problem.net.l1.min()) > 0:
            return "it needs an l1 norm of all features"
        n, k = problem.design.n_samples, problem.loss.n_outputs
        if 8 * n * max(2 * self.largest, k * k) > HESSIAN_BYTES:
            return f"its Hessians of {n} samples and {k} classes might not fit in memory"
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> ClassNewtonState:
        scores = problem.design.scores(start.coef) + start.intercept + problem.loss.offset
        state = ClassNewtonState(
            coef=start.coef,
            intercept=start.intercept,
            scores=np.ascontiguousarray(scores.T),
            working=ColumnSet.of(problem, live_rows(start.coef)),
            dual=scores,
            slope=start.coef,
            violations=start.coef,
            tol=CLAIM_FRACTION * stop.tol,
            stop=stop,
        )
        return _with_gap(problem, _with_gradient(problem, state)).but(unpolished=stop.polish)

    def onward(self, problem: Problem, state: ClassNewtonState, stop: Stop) -> ClassNewtonState:
        """The first state of a problem that differs in the penalty, at the same point."""
        fresh = state.but(
            tol=CLAIM_FRACTION * stop.tol,
            stop=stop,
            n_iter=0,
            least=np.inf,
            idle=0,
            finished=False,
        )
        return _with_gap(problem, fresh).but(unpolished=stop.polish)

    def step(self, problem: Problem, state: ClassNewtonState) -> ClassNewtonState:
        wanted, new = self._wanted(state, problem.net.l1)
        if not 0 < int(np.count_nonzero(wanted)) <= self.largest:
            return state.but(n_iter=state.n_iter + 1, finished=True, claims=False)
        reached = self._moved(problem, state, wanted, self._target(problem, state, new))
        measured = _with_gap(problem, _with_gradient(problem, reached))
        least = state.least if new == 0 else np.inf
        idle = 0 if measured.violation < GAP_REDUCTION * least else state.idle + 1
        least = min(least, measured.violation)
        change = float(np.linalg.norm(measured.coef - state.coef))
        return measured.but(
            least=least,
            idle=idle,
            finished=idle >= self.max_stalled,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
        )

    def point(self, problem: Problem, state: ClassNewtonState) -> Point:
        # rows of the intercept sum to zero, where the steps keep that of the last class
        return Point(state.coef, problem.intercept.into_domain(state.intercept[None, :])[0])

    def _wanted(self, state: ClassNewtonState, l1: Array) -> tuple[NDArray[np.bool_], int]:
        """The mask of the next working set (p, k), and how many coefficients in it violate
        optimality at zero. It holds the support, and the others that violate optimality most or are
        next to."""
        wanted = state.coef != 0
        near = state.violations > (KEPT_SLOPE - 1.0) * l1[:, None]
        others = np.flatnonzero(near & ~wanted)
        off = state.violations.ravel()[others]
        support = int(np.count_nonzero(wanted))
        room = max(self.smallest, min(support, self.largest - support))
        if others.size > room:
            worst = np.argpartition(off, others.size - room)[-room:]
            others, off = others[worst], off[worst]
        np.put(wanted, others, True)
        return wanted, int(np.count_nonzero(off > 0))

    def _target(self, problem: Problem, state: ClassNewtonState, new: int) -> float:
        """The violation to which the restricted problem is solved."""
        if state.relative_gap <= state.tol:  # solved, and to be polished
            return POLISHED_VIOLATION * problem.level
        share = self.forcing if new else CLOSED_SET_FORCING
        return max(share * state.violation, RESIDUAL_FRACTION * state.tol * problem.level)

    def _moved(
        self,
        problem: Problem,
        state: ClassNewtonState,
        wanted: NDArray[np.bool_],
        target: float,
    ) -> ClassNewtonState:
        """The state after Newton steps on the wanted coefficients, not yet measured."""
        loss, design, offset = _loss(problem), problem.design, problem.loss.offset
        used = np.asarray(wanted.any(axis=1))
        working = state.working.changed(problem, used)
        placed = np.nonzero(wanted[working.members].T)  # class by class
        classes, columns = map(np.ascontiguousarray, placed)
        starts = np.searchsorted(classes, np.arange(wanted.shape[1] + 1))
        unknowns = Unknowns(columns, classes, starts, working.unit[columns])
        features = working.members[columns]
        work = features.size**2 * (design.n_samples + features.size)
        most = max(min(STEPS_PER_CALL, WORK_PER_CALL // max(work, 1)), 1)
        if state.relative_gap <= state.tol:
            most = min(most, POLISHING_STEPS)
        coef, scores = state.coef[features, classes] * unknowns.unit, state.scores.copy()
        intercept = state.intercept + working.mean @ state.coef[working.members]
        net = Net(*(each[features] for each in problem.net))
        steps, _ = newton_steps(
            working.kernel,
            loss.form,
            loss.curvature,
            loss.codes,
            loss.shares,
            unknowns,
            net,
            problem.fits_intercept,
            coef,
            scores,
            intercept,
            target,
            problem.level,
            max(min(most, state.stop.iterations(self.max_iter) - state.n_iter), 1),
        )
        scores_of(working.kernel, unknowns, coef, intercept, offset, scores)
        share = design.share * working.members.size / max(design.n_features, 1)
        design.counter.add(3 * max(steps, 1) * share)
        whole = np.zeros(state.coef.shape)
        whole[features, classes] = (coef / unknowns.unit).clip(net.lower, net.upper)
        return state.but(
            n_iter=state.n_iter + max(steps, 1),
            coef=whole,
            intercept=intercept - working.mean @ whole[working.members],
            scores=scores,
            working=working,
        )


def _loss(problem: Problem) -> SmoothComparison:
    loss = problem.loss.unshifted
    assert isinstance(loss, SmoothComparison)
    return loss


def _with_gradient(problem: Problem, state: ClassNewtonState) -> ClassNewtonState:
    """The state at the best intercept, with the slopes of all coefficients: one product."""
    loss = _loss(problem)
    scores, intercept = state.scores.copy(), state.intercept.copy()
    if problem.fits_intercept:
        rates, dual = np.empty(scores.shape), np.empty(scores.shape)
        value, _ = best_shift(loss.form, scores, loss.codes, loss.shares, intercept, rates, dual)
        gradient = np.ascontiguousarray(dual.T)
    else:
        value, gradient = loss.value_and_gradient(np.ascontiguousarray(scores.T))
    slope = problem.design.adjoint(gradient)
    return state.but(scores=scores, intercept=intercept, loss=value, dual=gradient, slope=slope)


def _with_gap(problem: Problem, state: ClassNewtonState) -> ClassNewtonState:
    """The state with its violations, objective and gap, for the penalty of the problem."""
    loss, working = _loss(problem), state.working
    violations, curvature = np.empty(state.slope.shape), np.zeros(len(state.slope))
    curvature[working.members] = loss.curvature * working.unit**2
    worst, scale, fine, gap = class_violations(
        state.slope, state.coef, curvature, problem.net, violations
    )
    if scale < 1.0:
        gap += loss.fenchel_young(np.ascontiguousarray(state.scores.T), scale * state.dual)
    objective = state.loss + fine
    measured = state.but(
        violations=violations,
        violation=worst,
        exact=worst <= ROUNDING_VIOLATION * problem.level,
        relative_gap=gap / max(objective, problem.negligible),
        objective=objective,
        objective_change=(state.objective - objective) / (1.0 + abs(objective)),
    )
    return measured.claimed(final=True)
