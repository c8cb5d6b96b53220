"""``solver='auto'``: a table of rules, first match wins, each with its reason.

The rules compare the named solvers on the data sets of ``benchmarks/``; ask `choose` (or read
``certificate_.because``) which rule decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proxmargin.problem import Problem
from proxmargin.solvers.base import Solver, UnsuitableSolverError
from proxmargin.solvers.names import SOLVERS

__all__ = ["RULES", "Choice", "Facts", "Rule", "choose"]


class Facts:
    """What the rules may ask about a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def single(self) -> bool:
        """One column of scores."""
        return self.problem.loss.n_outputs == 1

    @property
    def wide(self) -> bool:
        """More features than samples."""
        return self.problem.design.n_features > self.problem.design.n_samples


@dataclass(frozen=True)
class Rule:
    """Use the solver called ``use`` when ``when`` holds, ``because`` of this."""

    when: Callable[[Facts], bool]
    use: str
    because: str


@dataclass(frozen=True)
class Choice:
    """A solver and the reason for it."""

    solver: Solver[Any]
    name: str
    because: str


RULES: tuple[Rule, ...] = (
    Rule(
        lambda facts: facts.single,
        "newton",
        "one column of scores: few Newton steps on a working set of features",
    ),
    Rule(
        lambda facts: facts.wide,
        "fapg-ws",
        "more features than samples: accelerated steps on a working set of features",
    ),
    Rule(
        lambda facts: True,
        "fapg",
        "at least as many samples as features: accelerated steps at unit feature scale",
    ),
)


def choose(problem: Problem) -> Choice:
    """The first rule that matches and whose solver takes the problem.

    Raises
    ------
    UnsuitableSolverError
        No solver takes the problem; the message says what the last one asked for lacks.
    """
    facts = Facts(problem)
    objection: str | None = "there are no rules"
    for rule in RULES:
        if not rule.when(facts):
            continue
        solver = SOLVERS[rule.use]()
        objection = solver.objection(problem)
        if objection is None:
            return Choice(solver, rule.use, rule.because)
    raise UnsuitableSolverError(f"no solver takes this problem: {objection}")
