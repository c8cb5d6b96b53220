"""The interface of solvers: settings, a first state, and one step; the loop is `minimize`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from proxmargin.functions.losses.base import Array
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.solvers.loop.stopping import Stop

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
    """Raise a `ValueError` for the first of these settings that is neither True nor False.

    The string "no" is true in Python. None is allowed if ``optional``.
    """
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
    """What a solver keeps from one step to the next.

    States made of arrays, numbers and records of them are saved and resumed bit for bit
    (`proxmargin.solvers.resuming.codec`); of other states only the point is saved.
    """

    n_iter: int = 0
    # objective_change, point_change: the two quantities of
    # `proxmargin.solvers.loop.stopping.RelativeChange`, of the last iteration. Those of the other
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

    def but(self, **changes: Any) -> Self:
        """The same state with other values of some attributes.

        Does what `dataclasses.replace` does in a tenth of its time, as every step makes a state.
        """
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
        """The state, which claims convergence if its gap meets ``tol`` and is polished.

        ``final`` says whether the gap is that of the problem, not of a stage of a homotopy.
        """
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
    """The rules of `proxmargin.solvers.loop.stopping` that the solver's states have the quantities
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
        """The state updated by a certificate of its point.

        A claim still made by a solver with a gap of its own was refuted, and lowers its ``tol``.
        """
        if isinstance(state, GapState) and state.claims:
            return state.but(claims=False, tol=DENIED_FACTOR * state.tol)
        return state

    def measures(self, state: S) -> Mapping[str, float]:
        """Numbers of a state for callbacks, those of `MEASURES` under these names.

        Others are constants of the method, under the names of its options and in their units.
        """
        return {}

    def polishing_of(self, problem: Problem) -> int:
        """`polishing` for this problem: fewer steps where they cost more than they gain."""
        return self.polishing

    def work(self, problem: Problem) -> float:
        """Multiply-adds of one step that forms and factors a matrix, and cannot be interrupted.

        The first step and its setup count; zero for solvers without such steps.
        """
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
