"""A first-order method far from the solution, and a second-order one once it promises to win."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from proxmargin.compiled.rounding import EPS, TINY
from proxmargin.functions.losses.base import Array
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.augmented.class_system import BLAS_SPEEDUP
from proxmargin.solvers.augmented.ssnal import SemismoothNewton
from proxmargin.solvers.loop.solver import Solver, State, check_numbers, check_solvers
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradient
from proxmargin.solvers.shared.linear_algebra import LARGEST_SIDE, SMALL_SIDE

CLOSE_NEWTON_STEPS = 25  # expected of the second method from a start close to the solution
NEWTON_OVERHEAD = 5.0  # cost of a Newton step besides its system, in first-order iterations
RETRY_GAP = 0.3  # gap over that at which the second method failed, below which it is retried


@dataclass(frozen=True, eq=False)
class Leg(State):
    inner: State = field(default_factory=State)  # state of the method that runs
    leg: int = 0  # number of switches: the first method runs at even numbers
    base: int = 0  # iterations up to the last switch
    # (n_certificates, 2); iterations and relative gaps of the first method since the last switch to
    # it
    seen: Array = field(default_factory=lambda: np.empty((0, 2)))
    handed: float = np.inf  # the relative gap at the last switch to the second method
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class Relay(Solver[Leg]):
    """Accelerated steps, then Newton steps on the dual, warm-started.

    After each certificate the remaining iterations of the first method are extrapolated from its
    recent linear rate, and the work of the second is estimated from the active coefficients. The
    solver switches when the second promises to converge first. If the second stalls, the first
    continues from its point until a retry is due.

    Parameters
    ----------
    first, second : Solver
    near : float
        Relative gap up to which a start counts as close to the solution.
    far_steps : float
        Newton steps expected from other starts; infinite: the second method waits for a close one.
    """

    # fast backtracking: the first constant is small, and a trial costs a product
    first: Solver[Any] = field(default_factory=lambda: FastProximalGradient(growth=2.0))
    second: Solver[Any] = field(default_factory=SemismoothNewton)
    near: float = 2e-2
    far_steps: float = 60

    name: ClassVar[str] = "fapg-ssnal"
    check_every: ClassVar[int] = 1
    polishing: ClassVar[int] = 8

    def __post_init__(self) -> None:
        check_solvers(self, "first", "second")
        check_numbers(self, "near", above=0)
        check_numbers(self, "far_steps", above=0, below=None)

    def polishing_of(self, problem: Problem) -> int:
        """Steps of the second method, if its systems are small."""
        return self.polishing if _dual_size(problem) <= SMALL_SIDE else 0

    def stops_by(self, rule: str) -> bool:
        return self.first.stops_by(rule) and self.second.stops_by(rule)

    def objection(self, problem: Problem) -> str | None:
        return self.first.objection(problem) or self.second.objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Leg:
        if _dual_size(problem) <= SMALL_SIDE:
            return Leg(inner=self.second.init(problem, start, stop), leg=1, stop=stop)
        return Leg(inner=self.first.init(problem, start, stop), stop=stop)

    def step(self, problem: Problem, state: Leg) -> Leg:
        solver, inner = self._runner(state), state.inner
        if inner.finished and solver is self.second:
            point = self.point(problem, state)._replace(dual=self.dual(problem, state))
            return self._switched(problem, replace(state, seen=np.empty((0, 2))), point)
        end = inner.n_iter + solver.check_every
        if state.stop.max_iter is not None:
            end = min(end, state.stop.max_iter - state.base)
        while inner.n_iter < end and not (inner.finished or inner.interrupted):
            inner = solver.step(problem, inner)
            if state.stop.is_over:
                break
        return self._around(state, inner)

    def observe(self, problem: Problem, state: Leg, gap: Gap) -> Leg:
        state = self._around(state, self._runner(state).observe(problem, state.inner, gap))
        if self._runner(state) is self.second:
            return state
        if state.leg and np.isinf(state.handed):  # the second method ran first and failed
            state = replace(state, handed=gap.relative_gap)
        seen = np.vstack([state.seen, [[state.n_iter, gap.relative_gap]]])
        state = replace(state, seen=seen)
        steps = CLOSE_NEWTON_STEPS if gap.relative_gap <= self.near else self.far_steps
        work = steps * _newton_step_work(problem, gap)
        again = gap.relative_gap > RETRY_GAP * state.handed
        # at least as much work before: bounds the cost of a wrong guess
        if again or state.n_iter <= work or self._remaining_iterations(state) <= work:
            return state
        state = replace(state, handed=gap.relative_gap)
        handed = self._switched(problem, state, gap.point._replace(dual=gap.dual_point))
        return self._around(handed, self.second.observe(problem, handed.inner, gap))

    def point(self, problem: Problem, state: Leg) -> Point:
        return self._runner(state).point(problem, state.inner)

    def scores(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).scores(problem, state.inner)

    def dual(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).dual(problem, state.inner)

    def _runner(self, state: Leg) -> Solver[Any]:
        return self.second if state.leg % 2 else self.first

    def _switched(self, problem: Problem, state: Leg, point: Point) -> Leg:
        """The state after switching to the other method at ``point``."""
        left = state.stop.max_iter
        stop = state.stop if left is None else replace(state.stop, max_iter=left - state.n_iter)
        after = replace(state, leg=state.leg + 1, base=state.n_iter)
        handed = replace(after, inner=self._runner(after).init(problem, point, stop))
        return self._around(handed, handed.inner)

    def _around(self, state: Leg, inner: State) -> Leg:
        return replace(
            state,
            inner=inner,
            n_iter=state.base + inner.n_iter,
            objective_change=inner.objective_change,
            point_change=inner.point_change,
            finished=inner.finished and self._runner(state) is self.first,
            exact=inner.exact,
            interrupted=inner.interrupted,
        )

    def _remaining_iterations(self, state: Leg) -> float:
        """Iterations that the first method still needs at its rate over the latest half of gaps."""
        earlier = state.seen[(len(state.seen) - 1) // 2]
        now = state.seen[-1]
        gained = np.log10(earlier[1] / max(now[1], TINY))
        missing = np.log10(max(now[1] / max(state.stop.tol, EPS), 1.0))
        if missing == 0:
            return 0.0
        return float(missing * (now[0] - earlier[0]) / gained) if gained > 0 else np.inf


def _dual_size(problem: Problem) -> int:
    return int(np.count_nonzero(problem.loss.dual_support))


def _newton_step_work(problem: Problem, gap: Gap) -> float:
    """Work of a Newton step, in iterations of the first method; infinite if too large."""
    design, live = problem.design, gap.point.coef != 0
    n, p, outputs = design.n_samples, design.n_features, problem.loss.n_outputs
    ranks = live.sum(axis=0).astype(float)
    rows = float(np.count_nonzero(live.any(axis=1)))
    size = float(_dual_size(problem))
    if min(rows, size) > LARGEST_SIDE:
        return np.inf
    by_samples = 2.0 * outputs * n**2 * rows + size**3 / 3.0
    by_features = float((2.0 * n * ranks**2 + 3.0 * ranks**3).sum()) + rows**3
    iteration = 4.0 * max(n * p * design.density, 1.0) * outputs  # empty data have no entries
    return NEWTON_OVERHEAD + min(by_samples, by_features) / (BLAS_SPEEDUP * iteration)
