"""No method at all: certifies where a fit starts, for problems that no time is left for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from proxmargin.loop.solver import Solver, State
from proxmargin.loop.stopping import Stop
from proxmargin.problem import Point, Problem

__all__ = ["CertifyOnly"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifyOnlyState(State):
    """The start, and the number of its steps, which do nothing."""

    at: Point


@dataclass(frozen=True)
class CertifyOnly(Solver[CertifyOnlyState]):
    """Stays at the start: the cost of a run is that of one certificate."""

    name: ClassVar[str] = "none"
    computes_gap: ClassVar[bool] = True  # nothing is certified before the run ends
    max_iter: ClassVar[int] = 2  # the first step finds the time over

    def init(self, problem: Problem, start: Point, stop: Stop) -> CertifyOnlyState:
        return CertifyOnlyState(at=start)

    def step(self, problem: Problem, state: CertifyOnlyState) -> CertifyOnlyState:
        return state.but(n_iter=state.n_iter + 1)

    def point(self, problem: Problem, state: CertifyOnlyState) -> Point:
        return state.at
