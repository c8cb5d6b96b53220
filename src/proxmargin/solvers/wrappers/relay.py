"""First-order steps while they are quick, second-order ones for what they would take long for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from proxmargin.certificate import Gap
from proxmargin.compiled.clock import clock
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solver import Solver, State
from proxmargin.solvers.classes.dual_newton_systems import MAX_SIDE, SMALL_SIDE
from proxmargin.solvers.classes.ssnal import SemismoothNewton
from proxmargin.solvers.first_order.accelerated import FastProximalGradient
from proxmargin.stopping import Stop

__all__ = ["Leg", "Relay"]

# Newton steps that the second method takes from near the solution
NEAR_STEPS = 25
# what matrix products and factors gain over products with the data, in operations a second; and
# what a Newton step costs at least, in first-order iterations
GAIN, OVERHEAD = 6.0, 5.0
# certificates that rates are taken over, as a share of all; and what the first method has to have
# spent before, as a share of the work of the second: a wrong guess then costs no more than that
RECENT, SPENT = 0.5, 1.0
# the share of the gap at which the second method failed where it may try again
AGAIN = 0.3


@dataclass(frozen=True, eq=False)
class Leg(State):
    """The state of a relay.

    Attributes
    ----------
    inner : State
        Of the method that runs now.
    leg : int
        How often the baton changed hands: the first method runs at even numbers.
    base : int
        Iterations of the methods that ran before.
    seen : (n_certificates, 2)
        Iterations and relative gaps of the first method, since it has the baton.
    handed : float
        The relative gap at which the second method got it last.
    """

    inner: State = field(default_factory=State)
    leg: int = 0
    base: int = 0
    seen: Array = field(default_factory=lambda: np.empty((0, 2)))
    handed: float = np.inf
    stop: Stop = field(default_factory=Stop)


def _quickly_growing() -> Solver[Any]:
    """FAPG whose step constant soon leaves its small first guess, which costs a product a trial."""
    return FastProximalGradient(growth=2.0)


@dataclass(frozen=True)
class Relay(Solver[Leg]):
    """Accelerated steps, then Newton steps on the dual from where they got to.

    After each certificate the iterations that the first method still needs are told from the
    digits that it gained lately, and the work of the second from the coefficients that are live.
    The baton changes hands when the second promises to be there first; should it give up, the
    first goes on from there, to the end or to where the second may try again.

    Parameters
    ----------
    first, second : Solver
    near : float
        The relative gap up to which the second starts near the solution.
    far_steps : float
        Newton steps that are expected from anywhere else; infinite: it waits until it is near.
    label : str
        The name to report.
    """

    first: Solver[Any] = field(default_factory=_quickly_growing)
    second: Solver[Any] = field(default_factory=SemismoothNewton)
    near: float = 2e-2
    far_steps: float = 60
    label: str = "fapg-ssnal"

    check_every: ClassVar[int] = 1
    polishing: ClassVar[int] = 8

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.label

    def polishing_of(self, problem: Problem) -> int:
        """Steps of the second method, where they are those of small systems."""
        return self.polishing if _dual_size(problem) <= SMALL_SIDE else 0

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
            return self._handed(problem, replace(state, seen=np.empty((0, 2))), point)
        end = inner.n_iter + solver.check_every
        if state.stop.max_iter is not None:
            end = min(end, state.stop.max_iter - state.base)
        while inner.n_iter < end and not (inner.finished or inner.interrupted):
            inner = solver.step(problem, inner)
            if clock() >= state.stop.deadline:
                break
        return self._wrapped(state, inner)

    def observe(self, problem: Problem, state: Leg, gap: Gap) -> Leg:
        state = self._wrapped(state, self._runner(state).observe(problem, state.inner, gap))
        if self._runner(state) is self.second:
            return state
        if state.leg and np.isinf(state.handed):  # the second began, and failed here
            state = replace(state, handed=gap.relative_gap)
        seen = np.vstack([state.seen, [[state.n_iter, gap.relative_gap]]])
        state = replace(state, seen=seen)
        steps = NEAR_STEPS if gap.relative_gap <= self.near else self.far_steps
        work = steps * _newton_step_work(problem, gap)
        again = gap.relative_gap > AGAIN * state.handed
        if again or state.n_iter <= SPENT * work or self._left(state) <= work:
            return state
        state = replace(state, handed=gap.relative_gap)
        handed = self._handed(problem, state, gap.point._replace(dual=gap.dual_point))
        return self._wrapped(handed, self.second.observe(problem, handed.inner, gap))

    def point(self, problem: Problem, state: Leg) -> Point:
        return self._runner(state).point(problem, state.inner)

    def scores(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).scores(problem, state.inner)

    def dual(self, problem: Problem, state: Leg) -> Array | None:
        return self._runner(state).dual(problem, state.inner)

    def _runner(self, state: Leg) -> Solver[Any]:
        return self.second if state.leg % 2 else self.first

    def _handed(self, problem: Problem, state: Leg, point: Point) -> Leg:
        """The state after the baton changed hands at ``point``."""
        left = state.stop.max_iter
        stop = state.stop if left is None else replace(state.stop, max_iter=left - state.n_iter)
        after = replace(state, leg=state.leg + 1, base=state.n_iter)
        handed = replace(after, inner=self._runner(after).init(problem, point, stop))
        return self._wrapped(handed, handed.inner)

    def _wrapped(self, state: Leg, inner: State) -> Leg:
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

    def _left(self, state: Leg) -> float:
        """Iterations that the first method needs to gain the digits that are missing."""
        earlier = state.seen[int(RECENT * (len(state.seen) - 1))]
        now = state.seen[-1]
        gained = np.log10(earlier[1] / max(now[1], np.finfo(float).tiny))
        missing = np.log10(max(now[1] / max(state.stop.tol, np.finfo(float).eps), 1.0))
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
    if min(rows, size) > MAX_SIDE:
        return np.inf
    by_samples = 2.0 * outputs * n**2 * rows + size**3 / 3.0
    by_features = float((2.0 * n * ranks**2 + 3.0 * ranks**3).sum()) + rows**3
    iteration = 4.0 * max(n * p * design.density, 1.0) * outputs  # empty data have no entries
    return OVERHEAD + min(by_samples, by_features) / (GAIN * iteration)
