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
from proxmargin.traits import Trait

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
    def smooth(self) -> bool:
        """The loss has a Lipschitz continuous gradient."""
        return Trait.SMOOTH in self.problem.traits

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


def _always(facts: Facts) -> bool:
    return True


# where several rules hold, the first whose solver takes the problem: what a solver is for
# (its loss, its penalty, its size) is known to the solver alone
RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "decomposition",
        "a kernel matrix and a sparse dual: small blocks of it, one after the other",
    ),
    Rule(
        _always,
        "fisher-secular",
        "MM-FDA: one decomposition of the covariance, then a scalar equation",
    ),
    Rule(_always, "probability-newton", "MM-MPM: few Newton steps in the coefficients"),
    Rule(_always, "ball-newton", "a smooth loss in a ball: few Newton steps inside it"),
    Rule(_always, "ridge-newton", "a smooth loss and a ridge: few Newton steps"),
    Rule(
        _always,
        "interior-point",
        "a loss with kinks and a ridge: few systems of the smaller of samples and features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "newton",
        "one column of scores: few Newton steps on a working set of features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "b-pgh",
        "a smooth loss in a ball that is not Euclidean: accelerated steps in the coefficients",
    ),
    Rule(
        lambda facts: facts.single,
        "fapg-star",
        "too large for second-order steps: accelerated steps on the dual",
    ),
    Rule(
        lambda facts: facts.wide,
        "fapg-ws",
        "more features than samples: accelerated steps on a working set of features",
    ),
    Rule(
        _always,
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
