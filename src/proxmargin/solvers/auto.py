"""``solver='auto'``: the first rule that fits the problem chooses the solver.

`choose` (or ``certificate_.because``) tells which rule decided. If the solver of a rule stalls, the
solver of the next rule continues from its point (`solve`).
"""

from __future__ import annotations

import numpy as np

from proxmargin.problem import Problem
from proxmargin.solvers.names import SOLVERS
from proxmargin.solvers.rules import rules_for
from proxmargin.solvers.succession import Choice, RuleTable, solve

__all__ = ["Choice", "choose", "solve"]


def choose(problem: Problem, deadline: float = np.inf) -> Choice:
    """The solver for a problem and the reason, see `RuleTable.choice`."""
    return RuleTable(rules_for(problem), SOLVERS).choice(problem, deadline)
