"""The base of solvers that use the samples through their inner products only."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from proxmargin.loop.solver import GapState, Solver, at_least_one
from proxmargin.losses.base import Array
from proxmargin.problem import Problem
from proxmargin.runtime.pace import factor_work, gram_work

__all__ = ["InSamples"]

S = TypeVar("S", bound=GapState)


@dataclass(frozen=True)
class InSamples(Solver[S]):
    """A solver for a ridge with ``w = X'a``, for weights a of the samples.

    It needs only ``X X'`` of the data (`Problem.centred`), which is formed once for all problems on
    a design. It can continue from one ridge strength to the next, as on a path.

    Parameters
    ----------
    max_samples : int >= 1
        Largest number of samples; the inner products and a factor of 3000 samples take 72 MB each.
    """

    max_samples: int = 3000

    check_every: ClassVar[int] = 1
    computes_gap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least_one(self, "max_samples")

    @abstractmethod
    def onward(self, problem: Problem, state: S) -> S:
        """The first state for a problem with another ridge, from the solution of this one."""

    @abstractmethod
    def weights_of(self, problem: Problem, state: S) -> Array:
        """The weights a, (n_samples,)."""

    @abstractmethod
    def dual(self, problem: Problem, state: S) -> Array:
        """A dual point close to ``-l2 a``, (n_samples, 1)."""

    def objection(self, problem: Problem) -> str | None:
        missing = super().objection(problem)
        if missing:
            return missing
        if not (problem.has_ridge_alone and problem.has_plain_intercept):
            return "it needs a ridge penalty (without l1) and an intercept with a ridge or none"
        samples = problem.design.n_samples
        if samples > problem.design.n_features:
            return (
                "it needs as many features as samples or more: others have singular inner products"
            )
        if samples > self.max_samples:
            return (
                f"it factorises inner products of samples, {self.max_samples} at most, and there "
                f"are {samples}"
            )
        return None

    def work(self, problem: Problem) -> float:
        samples, design = problem.design.n_samples, problem.design
        return gram_work(design.n_features, samples, design.density) + factor_work(samples)
