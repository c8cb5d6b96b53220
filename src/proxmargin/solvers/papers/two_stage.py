"""B-PGH-2 and M-PGH-2: find the support, then solve on it (Xu et al. 2015, section 2.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.certificates.gap import Gap
from proxmargin.loop.solver import Solver, State, check_flags, check_numbers
from proxmargin.loop.stopping import RelativeChange, Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solvers.papers.proximal_gradient import (
    Momentum,
    MulticlassProximalGradient,
    ProximalGradient,
)
from proxmargin.solvers.working_set import Restricted, WorkingSet
from proxmargin.traits import Trait

__all__ = ["MulticlassTwoStage", "TwoStage"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoStageState(State):
    """Stage one until ``second`` is set; ``settled`` counts iterations that meet rule (20)."""

    first: Momentum
    second: Restricted | None = None
    settled: int = 0
    stop: Stop


@dataclass(frozen=True)
class TwoStage(Solver[TwoStageState]):
    """Stage one: plain steps with ``L_k = L_f`` until rule (20) holds at ``first_tol``. Stage two:
    B-PGH on the support found.

    The paper stops there. Its support can be wrong, so here stage two prices all features, adds
    those that violate the optimality conditions, and repeats until none does.

    Parameters
    ----------
    first_tol : float
        Tolerance of rule (20) in stage one.
    eta, first_lipschitz : float
        Of stage two, as for `ProximalGradient`: stage one takes ``L_k = L_f`` throughout. L_f is
        that of the features of stage two.
    repair : bool
        With False the printed method, which ends with the support of stage one: the certificate, of
        the whole problem, says how wrong that is.
    """

    first_tol: float = 1e-3
    repair: bool = True
    eta: float = 1.5
    first_lipschitz: float | None = None

    method: ClassVar[type[ProximalGradient]] = ProximalGradient
    """The method of both stages."""

    name: ClassVar[str] = "b-pgh-2"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.SINGLE_OUTPUT

    def __post_init__(self) -> None:
        check_numbers(self, "first_tol", above=0)
        check_flags(self, "repair")
        self.method(eta=self.eta, first_lipschitz=self.first_lipschitz)  # checks these settings

    @property
    def stage_one(self) -> ProximalGradient:
        return self.method(backtracking=False, extrapolate=False)

    @property
    def stage_two(self) -> WorkingSet:
        inner = self.method(eta=self.eta, first_lipschitz=self.first_lipschitz)
        return WorkingSet(inner, fixed=not self.repair)

    def init(self, problem: Problem, start: Point, stop: Stop) -> TwoStageState:
        return TwoStageState(first=self.stage_one.init(problem, start, stop), stop=stop)

    def step(self, problem: Problem, state: TwoStageState) -> TwoStageState:
        if state.second is None:
            return self._first_step(problem, state)
        second = self.stage_two.step(problem, state.second)
        return replace(
            state,
            second=second,
            n_iter=state.first.n_iter + second.n_iter,
            finished=second.finished,
            interrupted=second.interrupted,
            objective_change=second.objective_change,
            point_change=second.point_change,
        )

    def observe(self, problem: Problem, state: TwoStageState, gap: Gap) -> TwoStageState:
        if state.second is None:
            return state
        return replace(state, second=self.stage_two.observe(problem, state.second, gap))

    def measures(self, state: TwoStageState) -> Mapping[str, float]:
        if state.second is None or state.second.n_iter == 0:
            return self.stage_one.measures(state.first)
        return self.stage_two.measures(state.second)

    def point(self, problem: Problem, state: TwoStageState) -> Point:
        if state.second is None:
            return self.stage_one.point(problem, state.first)
        return self.stage_two.point(problem, state.second)

    def scores(self, problem: Problem, state: TwoStageState) -> Array | None:
        return None if state.second else state.first.z

    def _first_step(self, problem: Problem, state: TwoStageState) -> TwoStageState:
        first = self.stage_one.step(problem, state.first)
        rule = RelativeChange(self.first_tol)
        settled = state.settled + 1 if rule.met(first) else 0
        moved = replace(state, first=first, settled=settled, n_iter=first.n_iter)
        if settled < rule.times and np.any(first.u[:-1]):
            return moved
        start = self.stage_one.point(problem, first)
        return replace(moved, second=self.stage_two.init(problem, start, state.stop))


@dataclass(frozen=True)
class MulticlassTwoStage(TwoStage):
    """M-PGH-2: the same on all classes together."""

    method: ClassVar[type[ProximalGradient]] = MulticlassProximalGradient

    name: ClassVar[str] = "m-pgh-2"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MANY_OUTPUTS
