"""When a run ends: limits, and the rules of the papers, which bound no error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from proxmargin.compiled.clock import clock, cpu_clock

__all__ = [
    "BUDGET_FACTOR",
    "OVERRUN",
    "RULES",
    "TINY_SECONDS",
    "FixedPoint",
    "IterateChange",
    "RelativeChange",
    "Rule",
    "StepResidual",
    "Stop",
]

# seconds after the time limit from which on even a first step is cut short
OVERRUN = 0.5
TINY_SECONDS = 1.8  # CPU time of a tiny problem for which no limit is set
BUDGET_FACTOR = 5.0  # on it for a budget, whose multiplier takes 10 to 20 such problems


@dataclass(frozen=True)
class Rule(ABC):
    """A rule of a paper that ends a run in place of the gap. It bounds no error.

    Parameters
    ----------
    tol : float
    times : int
        How many iterations in a row must meet it.
    """

    tol: float
    times: int = 1

    name: ClassVar[str]
    """How estimators and solvers name it (`Solver.rules`)."""

    @abstractmethod
    def met(self, state: Any) -> bool:
        """Whether the last iteration, which led to this state of a solver, meets it."""


@dataclass(frozen=True)
class RelativeChange(Rule):
    """Rule (20) of Xu et al. (2015): small relative changes, several times in a row.

    With F the objective and u the stacked coefficients and intercept, both
    ``(F_old - F_new) / (1 + F_old)`` and ``|u_old - u_new| / (1 + |u_old|)`` are at most ``tol``.
    """

    times: int = 3

    name: ClassVar[str] = "relative-change"

    def met(self, state: Any) -> bool:
        return bool(abs(state.objective_change) <= self.tol and state.point_change <= self.tol)


@dataclass(frozen=True)
class IterateChange(Rule):
    """The rule of Chierchia et al. (2015), 5.2: ``|W_old - W_new| <= tol |W_old|``."""

    name: ClassVar[str] = "iterate-change"

    def met(self, state: Any) -> bool:
        return bool(state.iterate_change <= self.tol)


@dataclass(frozen=True)
class StepResidual(Rule):
    """The rule of every iteration of Algorithm 4 of Ito et al. (2017).

    ``L_k |alpha_k - beta_k|``, the step from the extrapolated point, is at most ``tol``.
    """

    name: ClassVar[str] = "step-residual"

    def met(self, state: Any) -> bool:
        return bool(state.step_residual <= self.tol)


@dataclass(frozen=True)
class FixedPoint(Rule):
    """The rules of Algorithm 4 of Ito et al. (2017) together.

    `StepResidual`, or at every hundredth iteration ``L_k |T_L(alpha_k) - alpha_k|``, the residual
    of the optimality condition (5) at the iterate itself, is at most ``tol``.
    """

    name: ClassVar[str] = "fixed-point"

    def met(self, state: Any) -> bool:
        return bool(min(state.step_residual, state.point_residual) <= self.tol)


RULES: Mapping[str, type[Rule]] = {
    rule.name: rule for rule in (RelativeChange, IterateChange, StepResidual, FixedPoint)
}


@dataclass(frozen=True)
class Stop:
    """Limits of a minimisation; the first that is reached ends it.

    Parameters
    ----------
    tol : float
        Relative duality gap.
    max_iter : int, optional
        Iterations of the solver; None leaves the solver's own limit.
    time_limit : float, optional
        Seconds, without the compilation of kernels.
    rule : Rule, optional
        Ends the run instead of the gap.
    deadline : float
        The end of the time limit on the clock of `proxmargin.compiled.clock`; set when the run
        starts.
    cpu_deadline : float
        The same on `proxmargin.compiled.clock.cpu_clock`: the CPU seconds that a fit without
        limits of its own may take.
    callbacks : tuple of callables
        Callbacks of the run; set when it starts, for solvers that run others inside.
    polish : bool
        Whether to take the solver's polishing steps once the tolerance is met.
    """

    tol: float = 1e-6
    max_iter: int | None = None
    time_limit: float | None = None
    rule: Rule | None = None
    deadline: float = float("inf")
    cpu_deadline: float = float("inf")
    callbacks: tuple[Callable[[Any], object], ...] = ()
    polish: bool = True

    def is_late(self, reserved: float = 0.0) -> bool:
        """Whether no more than the seconds ``reserved`` are left until the deadline."""
        return clock() + reserved >= self.deadline

    def is_spent(self, reserved: float = 0.0) -> bool:
        """The same of CPU time, whose clock is read by a system call."""
        return self.cpu_deadline < float("inf") and cpu_clock() + reserved >= self.cpu_deadline

    @property
    def is_over(self) -> bool:
        """Whether one of the two deadlines has passed."""
        return self.is_late() or self.is_spent()

    def started(self, now: float, callbacks: Sequence[Callable[[Any], object]]) -> Stop:
        """The same limits for a run that starts ``now`` on that clock."""
        told = tuple(callbacks)
        if self.time_limit is None and told == self.callbacks:
            return self
        left = float("inf") if self.time_limit is None else self.time_limit
        return replace(self, deadline=min(self.deadline, now + left), callbacks=told)

    def shared(self, now: float, parts: int) -> Stop:
        """The limits of the next of ``parts`` runs that share the remaining time equally."""
        if self.time_limit is None and parts == 1:
            return self
        return replace(
            self,
            time_limit=None,
            deadline=_share(self.deadline, now, parts),
            cpu_deadline=_share(self.cpu_deadline, cpu_clock(), parts),
        )


def _share(end: float, now: float, parts: int) -> float:
    """The end of the next of equal parts of the time until ``end``."""
    return min(end, now + max(end - now, 0.0) / parts)
