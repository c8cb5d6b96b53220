"""When a run ends: limits, and the rules of the papers, which bound no error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from proxmargin.compiled.clock import clock

# seconds after the time limit from which on even a first step is cut short
OVERRUN = 0.5
TINY_WORK = 1.8e9  # multiply-adds of a tiny problem for which no limit is set: some two seconds
BUDGET_FACTOR = 5.0  # on it for a budget, whose multiplier takes 10 to 20 such problems


@dataclass(frozen=True)
class StoppingRule(ABC):
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
class RelativeChange(StoppingRule):
    """Rule (20) of Xu et al. (2015): small relative changes, three times in a row.

    With F the objective and u the stacked coefficients and intercept, both
    ``(F_old - F_new) / (1 + |F_old|)`` and ``|u_old - u_new| / (1 + |u_old|)`` are at most ``tol``.
    The paper prints ``1 + F_old``: its objectives are >= 0.

    The first is a fall, as printed: a rise of F meets it, whatever its size. It does not end a run
    by itself. A convex F is Lipschitz continuous on bounded sets within its domain, with a constant
    l, so that a step that meets the second condition raises F by at most ``l tol (1 + |u_old|)``:
    what ends is a run whose last steps hardly moved. A rise to infinity, to a point outside of the
    domain of F, meets nothing.
    """

    times: int = 3

    name: ClassVar[str] = "relative-change"

    def met(self, state: Any) -> bool:
        fall = state.objective_change
        return bool(-np.inf < fall <= self.tol and state.point_change <= self.tol)


@dataclass(frozen=True)
class IterateChange(StoppingRule):
    """The rule of Chierchia et al. (2015), 5.2: ``|W_old - W_new| <= tol |W_old|``."""

    name: ClassVar[str] = "iterate-change"

    def met(self, state: Any) -> bool:
        return bool(state.iterate_change <= self.tol)


@dataclass(frozen=True)
class PrimalResidual(StoppingRule):
    """The rule of Liu et al. (2013), section 3: ``|u - w|_2 <= tol``, once.

    w is the copy of the coefficients in the loss, u that in the l1 norm. Of their ISVM1 the
    residual counts where the subproblem for fixed multipliers is solved.
    """

    name: ClassVar[str] = "primal-residual"

    def met(self, state: Any) -> bool:
        return bool(state.primal_residual <= self.tol)


@dataclass(frozen=True)
class StepResidual(StoppingRule):
    """One of the two tests of Algorithm 4 of Ito et al. (2017), in every iteration.

    ``L_k |alpha_k - beta_k|`` is at most ``tol``: the residual of the optimality condition (5) at
    the extrapolated point beta_k, which needs no product with the data. Section 4.3.2 takes it in
    place of that at alpha_k (`FixedPoint`).
    """

    name: ClassVar[str] = "step-residual"

    def met(self, state: Any) -> bool:
        return bool(state.step_residual <= self.tol)


@dataclass(frozen=True)
class FixedPoint(StoppingRule):
    """``L_k |T_L(alpha_k) - alpha_k|``, the residual of the optimality condition (5) of Ito et al.
    (2017) at the iterate, is at most ``tol``; or `StepResidual` is.

    By default the test of Algorithm 4 as printed, which computes this residual in the iterations 1,
    101, 201 and so on, because it costs a product with the data, and tests the step in all.

    Parameters
    ----------
    every : int >= 1, default 100
        Iterations between two computations of the residual. With 1 the step is not tested: this is
        the rule of Algorithms 1 and 3, which compute the residual in every iteration.
    """

    every: int = 100

    name: ClassVar[str] = "fixed-point"

    def __post_init__(self) -> None:
        whole = isinstance(self.every, Integral) and not isinstance(self.every, bool)
        if not (whole and self.every >= 1):
            raise ValueError(f"every={self.every!r} must be an integer >= 1")

    def is_due(self, n_iter: int) -> bool:
        """Whether the residual at the iterate is to be computed in this iteration, from 1 on."""
        return (n_iter - 1) % self.every == 0

    def met(self, state: Any) -> bool:
        steps = self.every > 1 and state.step_residual <= self.tol
        return bool(steps or state.point_residual <= self.tol)


@dataclass(frozen=True)
class PointResidual(FixedPoint):
    """`FixedPoint` in every iteration, as Algorithms 1 and 3 of Ito et al. (2017) print it."""

    every: int = 1

    name: ClassVar[str] = "point-residual"


RULES: Mapping[str, type[StoppingRule]] = {
    rule.name: rule
    for rule in (
        RelativeChange,
        IterateChange,
        PrimalResidual,
        StepResidual,
        FixedPoint,
        PointResidual,
    )
}


@dataclass(eq=False)
class Effort:
    """The multiply-adds of the runs of a fit so far, which add to it: the same on every machine,
    however busy that is."""

    taken: float = 0.0


@dataclass(frozen=True)
class Stop:
    """Limits of a minimisation; the first that is reached ends it."""

    tol: float = 1e-6  # relative duality gap
    max_iter: int | None = None  # Iterations of the solver; None leaves the solver's own limit
    time_limit: float | None = None  # seconds, without the compilation of kernels
    rule: StoppingRule | None = None  # ends the run instead of the gap
    # the end of the time limit on the clock of `proxmargin.compiled.clock`; set when the run starts
    deadline: float = float("inf")
    # multiply-adds (`Effort`) that a fit without limits of its own may take
    most_work: float = float("inf")
    # those that it has taken; set when the fit starts
    effort: Effort = field(default_factory=Effort, compare=False)
    # multiply-adds of each solver that goes on where the one before gave up
    most_further_work: float = float("inf")
    # Callbacks of the run; set when it starts, for solvers that run others inside
    callbacks: tuple[Callable[[Any], object], ...] = ()
    polish: bool = True  # whether to take the solver's polishing steps once the tolerance is met

    def is_late(self, reserved: float = 0.0) -> bool:
        """Whether no more than the seconds ``reserved`` are left until the deadline."""
        return clock() + reserved >= self.deadline

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed or the work is done."""
        return self.effort.taken >= self.most_work or self.is_late()

    def started(self, now: float, callbacks: Sequence[Callable[[Any], object]]) -> Stop:
        """The same limits for a run that starts ``now`` on that clock."""
        told = tuple(callbacks)
        if self.time_limit is None and told == self.callbacks:
            return self
        left = float("inf") if self.time_limit is None else self.time_limit
        return replace(self, deadline=min(self.deadline, now + left), callbacks=told)

    def iterations(self, own: int) -> int:
        """The iteration limit of a solver whose ``own`` limit holds where none is set."""
        return own if self.max_iter is None else self.max_iter

    def further(self, max_iter: int | None) -> Stop:
        """The limits of a solver that goes on, with ``max_iter`` iterations left."""
        stop = replace(self, max_iter=max_iter)
        if np.isfinite(self.most_work) or np.isinf(self.most_further_work):
            return stop
        return replace(stop, most_work=self.most_further_work, effort=Effort())

    def rough(self, tol: float, max_iter: int) -> Stop:
        """The limits of a warm start: a loose gap, within the same time and ``max_iter``."""
        return replace(self, tol=tol, max_iter=max_iter, rule=None, callbacks=(), polish=False)

    def shared(self, now: float, parts: int) -> Stop:
        """The limits of the next of ``parts`` runs that share the remaining time, and the work,
        equally."""
        if self.time_limit is None and parts == 1:
            return self
        return replace(
            self,
            time_limit=None,
            deadline=_share(self.deadline, now, parts),
            most_work=_share(self.most_work, self.effort.taken, parts),
        )

    def apart(self, within: Stop, parts: int) -> Stop:
        """The same for one of ``parts`` runs at the same time, each of which counts its own work
        and has its share of that left ``within`` other limits."""
        share = _share(within.most_work, within.effort.taken, parts) - within.effort.taken
        return replace(self, most_work=share, effort=Effort())


def _share(end: float, now: float, parts: int) -> float:
    """The end of the next of equal parts of what is left until ``end``."""
    return min(end, now + max(end - now, 0.0) / parts)
