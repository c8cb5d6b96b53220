"""``solver='auto'``: the first rule that fits chooses the solver.

Ask `choose` (or read ``certificate_.because``) which rule decided. Where the solver of a rule gives
up, that of the next one goes on (`solve`).
"""

from __future__ import annotations

import numpy as np

from proxmargin.problem import Problem
from proxmargin.solvers.names import SOLVERS
from proxmargin.solvers.rules import rules_for
from proxmargin.solvers.succession import Choice, Table, solve

__all__ = ["Choice", "choose", "solve"]


def choose(problem: Problem, deadline: float = np.inf) -> Choice:
    """The solver for a problem and the reason, see `Table.choice`."""
    return Table(rules_for(problem), SOLVERS).choice(problem, deadline)
