"""``solver='auto'``: a table of rules, first match wins, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proxmargin.problem import Problem
from proxmargin.solvers.base import Solver, UnsuitableSolverError
from proxmargin.solvers.names import SOLVERS

__all__ = ["RULES", "Choice", "Rule", "choose"]


@dataclass(frozen=True)
class Rule:
    """Use solver ``use`` when ``when`` holds for the problem, ``because`` of this."""

    when: Callable[[Problem], bool]
    use: str
    because: str


@dataclass(frozen=True)
class Choice:
    """A solver and the reason for it."""

    solver: Solver[Any]
    name: str
    because: str


def _wide(problem: Problem) -> bool:
    return problem.design.n_features > problem.design.n_samples


def _single(problem: Problem) -> bool:
    return problem.loss.n_outputs == 1


RULES: tuple[Rule, ...] = (
    Rule(
        lambda problem: _single(problem) and _wide(problem),
        "gcd",
        "more features than samples: coordinate descent on a working set of columns",
    ),
    Rule(
        lambda problem: _wide(problem),
        "m-pgh-2",
        "more features than samples, classes together: gradients on the support found first",
    ),
    Rule(
        lambda problem: True,
        "fapg",
        "at least as many samples as features: few accelerated steps on the whole data",
    ),
)


def choose(problem: Problem) -> Choice:
    """The first rule that matches and whose solver takes the problem."""
    for rule in RULES:
        solver = SOLVERS[rule.use]()
        if rule.when(problem) and solver.objection(problem) is None:
            return Choice(solver, rule.use, rule.because)
    raise UnsuitableSolverError("no solver takes this problem")
