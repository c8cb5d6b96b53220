"""Solve on few features, price all of them, add those that violate optimality, repeat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.functions.rows import live_rows
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.composite import lives_on_the_dual
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import (
    MEASURES,
    AnySolver,
    RelativeChange,
    Solver,
    State,
    Stop,
    check_flags,
    check_numbers,
    check_solvers,
)

# tightening of the inner tolerance, if the inner solver returns its start but the gap is not met
TOL_REDUCTION = 0.03  # factor each time
INNER_FRACTION = 0.3  # of the tolerance, to which restricted problems are solved at last
MIN_TOL_FACTOR = 1e-5  # total factor at which the method ends


@dataclass(frozen=True, eq=False, kw_only=True)
class Restricted(State):
    """The state of a working-set method."""

    # coef, intercept: arrays; the point, on all features
    coef: Array
    intercept: Array
    members: NDArray[np.intp]  # (n_members,) integers; features of the working set, sorted
    # (n_features,) or None; violations of the point for all features, if known
    violations: Array | None = None
    # (n_samples, n_outputs) or None; the best dual point of the restricted problem; for a kinked
    # loss better than a gradient
    dual: Array | None = None
    relative_gap: float = np.inf  # gap of the point for the problem with all features
    objective: float = np.inf  # objective of the point
    # factor on the inner tolerance; it falls when the inner solver returns its start
    tighter: float = 1.0
    # (len(MEASURES),) or None; what the inner solver tells of its last iterate, in the order of
    # `MEASURES`
    told: Array | None = None
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class WorkingSet(Solver[Restricted]):
    """Wraps a solver for problems whose solution uses few features.

    Each iteration restricts the problem to a working set (the support and the features whose
    optimality conditions are violated most), solves it with ``inner`` to a gap well below the
    current one, and leaves the pricing of all features to the certificate of the whole problem,
    which needs the same product. A feature left out by mistake is priced and added later.

    Parameters
    ----------
    inner : Solver
    smallest : int
        Least number of features added at once, if as many violate optimality.
    forcing : float
        Tolerance of the restricted problem over the current relative gap.
    label : str
        The name to report; by default that of ``inner`` with "-ws".
    fixed : bool
        Whether the features of the start are all that there will be, if it has any: the restricted
        problem is solved once.
    """

    inner: AnySolver
    smallest: int = 64
    forcing: float = 0.03
    label: str = ""
    fixed: bool = False

    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 1_000_000

    def __post_init__(self) -> None:
        check_solvers(self, "inner")
        check_numbers(self, "smallest", least=1, whole=True)
        check_numbers(self, "forcing", above=0, below=1)
        check_flags(self, "fixed")

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.label or f"{self.inner.name}-ws"

    @property
    def needs(self) -> Trait:  # type: ignore[override]
        return self.inner.needs

    def stops_by(self, rule: str) -> bool:
        return rule == RelativeChange.name and self.inner.stops_by(rule)

    def objection(self, problem: Problem) -> str | None:
        if lives_on_the_dual(problem):
            return "it works on a set of features, and this problem is solved on the dual side"
        if not problem.penalty.can_be_restricted:
            return "it works on a set of features, and this penalty is known for all of them only"
        return self.inner.objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Restricted:
        members = np.union1d(live_rows(start.coef), problem.unpenalised)
        return Restricted(
            coef=start.coef,
            intercept=start.intercept,
            members=members,
            objective=problem.value(start),
            stop=stop,
        )

    def step(self, problem: Problem, state: Restricted) -> Restricted:
        state = self._with_gap(problem, state)
        members = self._grown(problem, state)
        alone = members.size == state.coef.shape[0]
        whole = alone and not self.inner.reads_columns
        restricted = problem if whole else problem.on_columns(members)
        start = Point(state.coef[members], state.intercept, state.dual)
        stop = self._inner_stop(state, alone)
        solution = minimize(
            restricted, self.inner, stop=stop, start=start, callbacks=stop.callbacks
        )
        point = solution.point
        coef = np.zeros_like(state.coef)
        coef[members] = point.coef
        objective = solution.gap.primal
        moved = np.hypot(
            np.linalg.norm(coef - state.coef), np.linalg.norm(point.intercept - state.intercept)
        )
        size = np.hypot(np.linalg.norm(state.coef), np.linalg.norm(state.intercept))
        unmoved = np.array_equal(coef, state.coef) and members.size == state.members.size
        tighter = state.tighter * (TOL_REDUCTION if unmoved else 1.0)
        return replace(
            state,
            n_iter=state.n_iter + max(solution.certificate.n_iter, 1),
            coef=coef,
            intercept=point.intercept,
            members=members,
            violations=None,
            dual=solution.gap.dual_point,
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=float(moved / (1.0 + size)),
            tighter=tighter,
            told=self._told(solution.state),
            finished=self.fixed or tighter < MIN_TOL_FACTOR or (unmoved and alone),
            interrupted=solution.status is Status.INTERRUPTED,
        )

    def observe(self, problem: Problem, state: Restricted, gap: Gap) -> Restricted:
        return replace(
            state,
            coef=gap.point.coef if problem.unpenalised.size else state.coef,
            intercept=gap.point.intercept,
            violations=gap.violations,
            relative_gap=gap.relative_gap,
        )

    def point(self, problem: Problem, state: Restricted) -> Point:
        return Point(state.coef, state.intercept)

    def dual(self, problem: Problem, state: Restricted) -> Array | None:
        return state.dual

    def measures(self, state: Restricted) -> Mapping[str, float]:
        """Those of the last iteration of the inner solver, with the objective of the point."""
        inner = {} if state.told is None else dict(zip(MEASURES, state.told.tolist(), strict=True))
        return {**inner, "objective": state.objective}

    def _told(self, inner: object) -> Array:
        told = self.inner.measures(inner)
        return np.array([told.get(name, np.nan) for name in MEASURES])

    def _with_gap(self, problem: Problem, state: Restricted) -> Restricted:
        if state.violations is not None:
            return state
        return self.observe(
            problem, state, certify(problem, self.point(problem, state), dual=state.dual)
        )

    def _grown(self, problem: Problem, state: Restricted) -> NDArray[np.intp]:
        """The working set with the features that violate most added to it."""
        assert state.violations is not None
        if self.fixed and state.members.size:
            return state.members
        size = max(self.smallest, 2 * live_rows(state.coef).size)
        total = state.violations.size
        if total <= 2 * self.smallest:
            return np.arange(total)
        outside = state.violations.copy()
        outside[state.members] = 0.0
        larger = with_worst(state.members, outside, size)
        if not larger.size:
            # at a kink a subgradient may violate nothing: any features lead to a better dual point
            return np.linspace(0, total - 1, size).astype(np.intp)
        return larger

    def _inner_stop(self, state: Restricted, alone: bool) -> Stop:
        """The limits of the restricted problem; those of the run if it is the whole problem."""
        outer = state.stop
        left = None if outer.max_iter is None else max(outer.max_iter - state.n_iter, 1)
        # certificates of restricted problems are not reported to callbacks
        callbacks = outer.callbacks if alone else ()
        inner = replace(outer, max_iter=left, callbacks=callbacks, polish=alone and outer.polish)
        if alone or self.fixed or outer.rule is not None:
            return inner
        target = max(self.forcing * min(state.relative_gap, 1.0), INNER_FRACTION * outer.tol)
        return replace(inner, tol=state.tighter * target)


def with_worst(members: NDArray[np.intp], outside: Array, size: int) -> NDArray[np.intp]:
    """The working set with the features that violate most, ``size`` at most, added to it;
    ``outside`` are the violations, zero for its own features."""
    size = min(size, outside.size)
    worst = np.argpartition(outside, outside.size - size)[outside.size - size :]
    return np.union1d(members, worst[outside[worst] > 0]).astype(np.intp)
