"""Two methods in turns, if it is not known beforehand which one is faster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from proxmargin.certificates.gap import Gap
from proxmargin.loop.solver import Solver, State, check_solvers
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solvers.papers.accelerated import FastProximalGradientStar
from proxmargin.solvers.papers.proximal_gradient import ProximalGradient
from proxmargin.traits import Trait

__all__ = ["Turn", "Turns"]

FIRST_TURN = 500  # iterations of the first method's first turn
SECOND_TURN = 250  # iterations of the second method's first turn
TURN_GROWTH = 2  # factor on the turns of a method, which bounds the total work


@dataclass(frozen=True, eq=False)
class Turn(State):
    """The states of both methods, and whose turn it is.

    Attributes
    ----------
    inner, other : State
        State of the method that runs, and of the one that waits; None before its first turn.
    turn : int
        Number of turns that have ended: the first method runs at even numbers.
    left : int
        Remaining iterations of this turn.
    """

    inner: State = field(default_factory=State)
    other: State | None = None
    turn: int = 0
    left: int = FIRST_TURN
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class Turns(Solver[Turn]):
    """Accelerated steps in the coefficients and on the dual, by turns that grow.

    In a ball that is not Euclidean the dual problem is far better conditioned if the loss has
    curvature at the scale of the scores, the primal one if it is flat there, which is not known
    beforehand. The certificate combines the best point and the best dual point of both, for little
    more than twice the work of the faster method.

    Parameters
    ----------
    first, second : Solver
    """

    first: Solver[Any] = field(default_factory=ProximalGradient)
    second: Solver[Any] = field(default_factory=FastProximalGradientStar)

    name: ClassVar[str] = "b-pgh-fapg-star"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.BALL

    def __post_init__(self) -> None:
        check_solvers(self, "first", "second")

    def stops_by(self, rule: str) -> bool:
        return super().stops_by(rule) and self.first.stops_by(rule) and self.second.stops_by(rule)

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        return missing or self.first.objection(problem) or self.second.objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Turn:
        return Turn(inner=self.first.init(problem, start, stop), stop=stop)

    def step(self, problem: Problem, state: Turn) -> Turn:
        if state.left == 0 or state.inner.finished:
            state = self._passed_on(problem, state)
        inner = self._runner(state).step(problem, state.inner)
        stuck = state.other is not None and state.other.finished
        return state.but(
            inner=inner,
            left=state.left - 1,
            n_iter=state.n_iter + 1,
            objective_change=inner.objective_change,
            point_change=inner.point_change,
            finished=inner.finished and stuck,
            exact=inner.exact,
            interrupted=inner.interrupted,
        )

    def _passed_on(self, problem: Problem, state: Turn) -> Turn:
        """The state at the beginning of the next turn."""
        after = state.but(turn=state.turn + 1)
        inner = state.other
        if inner is None:
            point = self._runner(state).point(problem, state.inner)
            inner = self._runner(after).init(problem, point, state.stop)
        if inner.finished:
            return state.but(left=FIRST_TURN)
        first = SECOND_TURN if after.turn % 2 else FIRST_TURN
        return after.but(
            inner=inner, other=state.inner, left=first * TURN_GROWTH ** min(after.turn // 2, 16)
        )

    def observe(self, problem: Problem, state: Turn, gap: Gap) -> Turn:
        return state.but(inner=self._runner(state).observe(problem, state.inner, gap))

    def point(self, problem: Problem, state: Turn) -> Point:
        return self._runner(state).point(problem, state.inner)

    def scores(self, problem: Problem, state: Turn) -> Array | None:
        return self._runner(state).scores(problem, state.inner)

    def dual(self, problem: Problem, state: Turn) -> Array | None:
        return self._runner(state).dual(problem, state.inner)

    def _runner(self, state: Turn) -> Solver[Any]:
        return self.second if state.turn % 2 else self.first
