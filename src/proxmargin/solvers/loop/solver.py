"""The interface of solvers: settings, limits, a first state, and one step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array

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
    def met(self, state: object) -> bool:
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
    """The rule of Chierchia et al. (2015), 4.2: ``|W_old - W_new| <= tol |W_old|``."""

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

    def rough(self, tol: float, max_iter: int | None = None) -> Stop:
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


LIPSCHITZ_MARGIN = 4.0  # factor on a bound of a Lipschitz constant, as the step test is rounded
# tolerance of a solver with a gap of its own (`Solver.computes_gap`), over the tolerance of the run
CLAIM_FRACTION = 0.5  # at first: leaves room for the rounding in the gap of the certificate
DENIED_FACTOR = 0.3  # factor on it after a claim that the certificate did not confirm
GAP_REDUCTION = 0.9  # ratio to the smallest gap so far, below which a gap is progress
SHARP_FRACTION = 1e-3  # ratio of gap to tolerance below which no polishing step is needed
# what solvers may tell of an iterate: its own objective F(u_k), minimised, in units of the problem;
# the step constant L_k; the weight of the extrapolation to it; restarts so far
MEASURES = ("objective", "step_constant", "extrapolation", "restarts")


def require(holds: bool, rule: str, value: object) -> None:
    """Raise a `ValueError` about a solver's setting unless ``holds``."""
    if not holds:
        raise ValueError(f"solver_options: {rule}, got {value!r}")


def check_numbers(
    solver: object,
    *names: str,
    above: float = -np.inf,
    least: float = -np.inf,
    below: float | None = np.inf,
    most: float = np.inf,
    whole: bool = False,
    optional: bool = False,
) -> None:
    """Raise a `ValueError` for the first of these settings that is no number within the bounds.
    It must not reach ``above`` and ``below`` (without the latter, ``below=None``, it may be
    infinite), and may reach ``least`` and ``most``; it is an integer if ``whole``, or None if
    ``optional``."""
    kind = "an integer" if whole else "a number"
    signs = {">": above, ">=": least, "<": np.inf if below is None else below, "<=": most}
    bounds = [f"{sign} {bound:g}" for sign, bound in signs.items() if np.isfinite(bound)]
    words = f"{kind} {' and '.join(bounds)}" if bounds else "a finite number"
    for name in names:
        value = getattr(solver, name)
        number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        holds = number and above < value and least <= value <= most
        holds = holds and (below is None or value < below)
        or_none = ", or None" if optional else ""
        require(holds or (optional and value is None), f"{name} must be {words}{or_none}", value)


def at_least_one(solver: object, *names: str) -> None:
    """Raise a `ValueError` for the first of these settings that is no number >= 1, or infinite."""
    check_numbers(solver, *names, least=1, below=None)


def check_flags(solver: object, *names: str, optional: bool = False) -> None:
    """Raise a `ValueError` for the first of these settings that is neither True nor False. The
    string "no" is true in Python. None is allowed if ``optional``."""
    words = "True, False or None" if optional else "True or False"
    for name in names:
        value = getattr(solver, name)
        holds = isinstance(value, bool | np.bool_) or (optional and value is None)
        require(holds, f"{name} must be {words}", value)


def check_choice(solver: object, name: str, choices: Iterable[str]) -> None:
    """Raise a `ValueError` unless this setting is one of these names."""
    value, known = getattr(solver, name), tuple(choices)
    holds = isinstance(value, str) and value in known
    require(holds, f"{name} must be one of {', '.join(known)}", value)


def check_solvers(solver: object, *names: str) -> None:
    """Raise a `ValueError` for the first of these settings that is no solver object."""
    for name in names:
        value = getattr(solver, name)
        require(isinstance(value, Solver), f"{name} must be a solver object", value)


class UnsuitableSolverError(ValueError):
    """The solver cannot take this problem."""


@dataclass(frozen=True, eq=False)
class State:
    """What a solver keeps from one step to the next. States made of arrays, numbers and records of
    them are saved and resumed bit for bit (`proxmargin.solvers.resuming.codec`); of other states
    only the point is saved."""

    n_iter: int = 0
    # objective_change, point_change: the two quantities of
    # `proxmargin.solvers.loop.solver.RelativeChange`, of the last iteration. Those of the other
    # rules are attributes of the states of solvers that stop by them
    objective_change: float = np.inf
    point_change: float = np.inf
    finished: bool = False  # another step would not change the point
    # the optimality conditions hold up to rounding, so that polishing gains nothing
    exact: bool = False
    claims: bool = False  # the solver's own gap meets its tolerance: a certificate is due
    # A run inside the last step was interrupted; the state holds the best point of that run
    interrupted: bool = False
    # the last iteration of which the solver knows that it still moved, though the gap may not show
    # it: the run is not taken for stalled soon after it
    moved_at: int = 0

    def but(self, **changes: object) -> Self:
        """The same state with other values of some attributes. Does what `dataclasses.replace` does
        in a tenth of its time, as every step makes a state."""
        assert changes.keys() <= self.__dict__.keys(), sorted(changes)
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new


@dataclass(frozen=True, eq=False)
class GapState(State):
    """The state of a solver that computes a gap of its own (`Solver.computes_gap`)."""

    relative_gap: float = np.inf
    final: bool = False  # the gap is that of the problem itself, not of a stage of a homotopy
    tol: float = 0.0  # relative gap to reach; it falls when a certificate does not confirm a claim
    # take one more step after the tolerance is first met: at a relative gap of 1e-6 the
    # coefficients have errors of 1e-3, and a Newton step squares the gap
    unpolished: bool = False

    def claimed(self, final: bool) -> Self:
        """The state, which claims convergence if its gap meets ``tol`` and is polished. ``final``
        says whether the gap is that of the problem, not of a stage of a homotopy."""
        met = final and self.relative_gap <= self.tol
        polished = (
            self.exact or not self.unpolished or self.relative_gap <= SHARP_FRACTION * self.tol
        )
        return self.but(
            final=final, claims=met and polished, unpolished=self.unpolished and not met
        )


S = TypeVar("S", bound=State)


class Solver(ABC, Generic[S]):
    """An algorithm with its settings; it holds no data and no loop."""

    name: ClassVar[str] = ""
    needs: ClassVar[Trait] = Trait.NONE
    is_portable: ClassVar[bool] = True
    """Settings are plain values or parts of the library, so that a model file can store them."""
    check_every: ClassVar[int] = 10
    """Iterations between two certificates."""
    computes_gap: ClassVar[bool] = False
    """The solver computes a gap of its own, and `State.claims` says that it meets the tolerance.
    Until then certificates are computed for callbacks only."""
    max_iter: ClassVar[int] = 100_000
    """Iterations after which the solver gives up unless told otherwise."""

    rules: ClassVar[tuple[str, ...]] = ()
    """The rules of `proxmargin.solvers.loop.solver` that the solver's states have the quantities
    for."""

    polishing: ClassVar[int] = 0
    """Steps after the tolerance is met, each with a certificate; the best point is kept.

    For methods with local quadratic convergence: at a relative gap of 1e-6 the coefficients have
    errors of 1e-3, and one more Newton step squares the gap.
    """

    exact_scores: ClassVar[bool] = False
    """`scores` are products of the data with the coefficients of `point`, plus its intercept. Sums
    of updates drift from them, and are computed anew for a certificate."""

    reads_columns: ClassVar[bool] = False
    """The solver reads the data by columns, and is slow on C-ordered data."""

    @abstractmethod
    def init(self, problem: Problem, start: Point, stop: Stop) -> S:
        """The first state, at ``start``."""

    @abstractmethod
    def step(self, problem: Problem, state: S) -> S:
        """One iteration. The old state stays valid, so that an interruption loses nothing."""

    @abstractmethod
    def point(self, problem: Problem, state: S) -> Point:
        """The coefficients and intercept of the state."""

    def scores(self, problem: Problem, state: S) -> Array | None:
        """Scores of `point` when the state has them."""
        return None

    def dual(self, problem: Problem, state: S) -> Array | None:
        """A dual point to certify with, if it is better than a gradient of the loss."""
        return None

    def observe(self, problem: Problem, state: S, gap: Gap) -> S:
        """The state updated by a certificate of its point. A claim still made by a solver with a
        gap of its own was refuted, and lowers its ``tol``."""
        if isinstance(state, GapState) and state.claims:
            return state.but(claims=False, tol=DENIED_FACTOR * state.tol)
        return state

    def measures(self, state: S) -> Mapping[str, float]:
        """Numbers of a state for callbacks, those of `MEASURES` under these names. Others are
        constants of the method, under the names of its options and in their units."""
        return {}

    def polishing_of(self, problem: Problem) -> int:
        """`polishing` for this problem: fewer steps where they cost more than they gain."""
        return self.polishing

    def work(self, problem: Problem) -> float:
        """Multiply-adds of one step that forms and factors a matrix, and cannot be interrupted. The
        first step and its setup count; zero for solvers without such steps."""
        return 0.0

    def product_bytes(self, problem: Problem) -> int:
        """Bytes that one product of BLAS reads in a step: more than one thread pays for many."""
        return problem.design.nbytes

    def stops_by(self, rule: str) -> bool:
        """Whether a run of this solver can end by this rule of a paper."""
        return rule in self.rules

    def objection(self, problem: Problem) -> str | None:
        """A sentence that says why this solver cannot take the problem, or None."""
        if self.needs in problem.traits:
            return None
        missing = self.needs & ~problem.traits
        return f"it needs {missing.sentence()}"


AnySolver: TypeAlias = Solver[Any]  # of states that only it knows
