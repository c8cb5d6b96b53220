"""The result of a minimisation, and why it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from proxmargin.optimality.certificates.certificate import Certificate, Gap
from proxmargin.optimality.problem import Point
from proxmargin.solvers.loop.stopping import BUDGET_FACTOR, TINY_WORK


class Status(Enum):
    """Why a minimisation ended; the value is the sentence of the certificate."""

    CONVERGED = "the certified gap met the tolerance"
    RULE_MET = "the stopping rule asked for was met"
    STALLED = "the certified gap had stopped improving"
    ROUNDED = "rounding of the products with the data dominates the gap, which cannot be reduced"
    UNBALANCED = (
        "rounding of dual points to double precision is too large for a penalty that is so weak "
        "against the entries of the features"
    )
    UNPROVED = (
        "the loss is stationary up to rounding, but without a penalty no dual point proves it"
    )
    ITERATION_LIMIT = "the iteration limit was reached"
    TIME_LIMIT = "the time limit was reached"
    WORK_LIMIT = (
        f"the {TINY_WORK:.1e} multiply-adds that so small a problem, or a further solver, may take "
        f"({BUDGET_FACTOR * TINY_WORK:.0e} with a budget) were used up; time_limit allows more"
    )
    RANK_LIMIT = "the rank of the kernel's factor was too low"
    DIVERGED = "the iterates stopped being finite numbers"
    INTERRUPTED = "it was interrupted"
    DATA_LOST = "the data could not be read any longer"


@dataclass(frozen=True, eq=False)
class Solution:
    """The best point found, its gap, the status and the certificate."""

    point: Point
    gap: Gap
    status: Status
    certificate: Certificate
    state: object  # the solver's last state, from which it can resume
