"""What every solver is: settings, a first state, and one step; the loop is `minimize`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from proxmargin.certificate import Gap
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["ROOM", "SURE", "PricedState", "Solver", "State", "UnsuitableSolverError", "require"]

# how far beyond its bound in exact arithmetic a step constant may grow in floating point
ROOM = 4.0
# what a solver takes for good enough is this share of the tolerance, so that certificates confirm
# it; a gap of that share needs no polishing; and where they do not, it aims at so much less
SURE, SHARP, DENIED = 0.5, 1e-3, 0.3


def require(holds: bool, rule: str, value: object) -> None:
    """Raise a sentence about a solver's setting unless it holds."""
    if not holds:
        raise ValueError(f"solver_options: {rule}, got {value!r}")


class UnsuitableSolverError(ValueError):
    """The solver cannot take this problem."""


@dataclass(frozen=True, eq=False)
class State:
    """Where a solver stands.

    States of arrays, numbers and records of them are saved and resumed bit for bit
    (`proxmargin.resuming.encoding`); of a state that holds more, the point is saved.

    Attributes
    ----------
    n_iter : int
    objective_change, point_change : float
        The two quantities of `proxmargin.stopping.RelativeChange`, of the last iteration.
    finished : bool
        The solver has nothing left to do: another step would not move the point.
    exact : bool
        The point solves the conditions of optimality up to rounding: no use in polishing it.
    claims : bool
        The solver takes the point to be good enough: time for a certificate.
    interrupted : bool
        A run inside the last step was interrupted, and the state holds what it had found.
    """

    n_iter: int = 0
    objective_change: float = np.inf
    point_change: float = np.inf
    finished: bool = False
    exact: bool = False
    claims: bool = False
    interrupted: bool = False

    def but(self, **changes: Any) -> Self:
        """The same state with other values of some attributes.

        What `dataclasses.replace` does, in a tenth of its time: there are states at every step.
        """
        assert changes.keys() <= self.__dict__.keys(), sorted(changes)
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new


@dataclass(frozen=True, eq=False)
class PricedState(State):
    """The state of a solver that knows a gap of its own (`Solver.prices`).

    Attributes
    ----------
    relative_gap : float
    final : bool
        It is that of the problem itself, not of one on the way to it.
    tol : float
        Relative gap to reach; falls where a certificate did not confirm it.
    unpolished : bool
        The tolerance was not met before, and one more step is to follow where it is just met:
        a relative gap of 1e-6 leaves errors of 1e-3 in the coefficients, and a step of Newton's
        method squares it.
    """

    relative_gap: float = np.inf
    final: bool = False
    tol: float = 0.0
    unpolished: bool = False

    def claimed(self, final: bool) -> Self:
        """Claims where the gap is met and polished, if it is that of the ``final`` problem."""
        met = final and self.relative_gap <= self.tol
        polished = self.exact or not self.unpolished or self.relative_gap <= SHARP * self.tol
        return self.but(
            final=final, claims=met and polished, unpolished=self.unpolished and not met
        )

    def observed(self) -> Self:
        """After a certificate: a claim that it did not confirm asks for more."""
        return self.but(claims=False, tol=DENIED * self.tol) if self.claims else self


S = TypeVar("S", bound=State)


class Solver(ABC, Generic[S]):
    """An algorithm with its settings; it holds no data and no loop."""

    name: ClassVar[str] = ""
    needs: ClassVar[Trait] = Trait.NONE
    check_every: ClassVar[int] = 10
    """Iterations between two certificates."""
    prices: ClassVar[bool] = False
    """The solver knows a gap of its own, and `State.claims` that it is met: there is no need for a
    certificate before, except to tell callbacks."""
    max_iter: ClassVar[int] = 100_000
    """Iterations after which the solver gives up unless told otherwise."""

    polishing: ClassVar[int] = 0
    """Steps to take after the tolerance was met, a certificate each; the best point is kept.

    For methods whose last steps gain many digits: a relative gap of 1e-6 leaves errors of 1e-3 in
    the coefficients, and one more step of Newton's method squares the gap.
    """

    reads_columns: ClassVar[bool] = False
    """The solver reads the data by columns, and is slow on data stored by rows."""

    @abstractmethod
    def init(self, problem: Problem, start: Point, stop: Stop) -> S:
        """The first state, at ``start``."""

    @abstractmethod
    def step(self, problem: Problem, state: S) -> S:
        """One iteration. The old state stays valid, so that an interruption loses nothing."""

    @abstractmethod
    def point(self, problem: Problem, state: S) -> Point:
        """The coefficients and intercept that the state stands for."""

    def scores(self, problem: Problem, state: S) -> Array | None:
        """Scores of `point` when the state has them."""
        return None

    def dual(self, problem: Problem, state: S) -> Array | None:
        """A dual point to certify with, where it proves more than a gradient of the loss."""
        return None

    def observe(self, problem: Problem, state: S, gap: Gap) -> S:
        """Take note of a certificate of the current point."""
        return state

    def polishing_of(self, problem: Problem) -> int:
        """`polishing`, where it is worth its price for ``problem``."""
        return self.polishing

    def work(self, problem: Problem) -> float:
        """Multiplications with additions of one step, where it makes and factors a matrix.

        What cannot be interrupted on the way; the first step and what is made ready for it count.
        """
        return 0.0

    def objection(self, problem: Problem) -> str | None:
        """A sentence that says why this solver cannot take the problem, or None."""
        missing = self.needs & ~problem.traits
        return f"it needs {missing.sentence()}" if missing else None
