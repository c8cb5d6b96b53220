"""Stopping rules: limits, and the relative change of the iterates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proxmargin.compiled.clock import clock, cpu_clock

__all__ = ["TINY_SECONDS", "RelativeChange", "Stop"]

TINY_SECONDS = 1.8  # CPU time of a tiny problem for which no limit is set


@dataclass(frozen=True)
class RelativeChange:
    """Rule (20) of Xu et al. (2015): small relative changes, several times in a row.

    With F the objective and u the stacked coefficients and intercept, both
    ``(F_old - F_new) / (1 + F_old)`` and ``|u_old - u_new| / (1 + |u_old|)`` are at most ``tol``.
    It bounds no error; it exists to reproduce the paper.
    """

    tol: float
    times: int = 3

    def met(self, objective_change: float, point_change: float) -> bool:
        return abs(objective_change) <= self.tol and point_change <= self.tol


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
    change : RelativeChange, optional
        Ends with the paper's rule instead of the gap.
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
    change: RelativeChange | None = None
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
