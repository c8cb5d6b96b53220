"""The phases of a run, its reports to callbacks, the state it resumes from, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Integral

from proxmargin.optimality.certificates.certificate import Certificate, Gap
from proxmargin.optimality.problem import Point
from proxmargin.runtime.types import Facts
from proxmargin.solvers.loop.solver import BUDGET_FACTOR, TINY_WORK, GapState, State


class Phase(Enum):
    """The phase of a run, with its transitions; a run ends with a `Status`.

    ========== ================================================ ============================
    phase      event                                            next
    ========== ================================================ ============================
    searching  a certificate meets ``tol``                      polishing
    searching  a certificate ends it (`Run._end_of_search`)     ended, with the status there
    searching  the rule of `Stop` is met                        ended: RULE_MET
    searching  the limit of iterations or of time is reached    ended, after a certificate
    searching  the solver raises `NotFiniteError`               ended: DIVERGED
    polishing  a step is left, and the solver can take it       polishing
    polishing  no step is left, or a step raises                ended: CONVERGED
    any        Ctrl-C, or an interruption within a step         ended: INTERRUPTED
    ========== ================================================ ============================
    """

    SEARCHING = "searching"
    POLISHING = "polishing"


@dataclass(frozen=True, eq=False)
class RunCheckpoint:
    """The state of a run before a certificate, from which it resumes bit for bit."""

    state: State
    nearest: GapState | None  # the state with the smallest gap as computed by the solver
    best: Gap | None  # best, highest: the best point, and the highest lower bound
    highest: Gap | None
    uses_updated_scores: bool  # the best point was certified with scores that the solver updates
    began_elsewhere: bool  # the first state is not at the given start
    # last_progress, last_check, last_told: Iterations of the last progress, certificate and report
    last_progress: int
    last_check: int
    last_told: int
    # settled, polished: iterations in a row that met the rule of `Stop`; polishing steps
    settled: int
    polished: int
    phase: Phase
    # seconds, passes, work: spent so far; the work with that of earlier runs of the fit
    # (`Stop.effort`)
    seconds: float
    passes: float
    work: float


@dataclass(frozen=True, eq=False)
class Report:
    """The argument of callbacks, after each certificate."""

    n_iter: int
    n_passes: float
    seconds: float
    gap: Gap
    state: State
    solver: str
    tol: float
    # the state of the run before this certificate, for `minimize` to resume from
    run_checkpoint: RunCheckpoint
    measures: Mapping[
        str, float
    ]  # Numbers of the state (`proxmargin.solvers.loop.solver.Solver.measures`)
    inner: bool = False  # the report comes from a run inside a step of the main run
    # the objective that the model documents, over that of the problem; the gap is in units of the
    # problem
    scale: float = 1.0
    # Number of the problem among those of a fit: that of the class for one-vs-rest
    problem: int = 0


@dataclass(frozen=True)
class InPlaceOf:
    """Base of what stands in place of a callback: it asks for reports as often."""

    callback: Callable[[Report], object]

    @property
    def every(self) -> int | None:
        return interval_of(self.callback)


@dataclass(frozen=True)
class Changed(InPlaceOf):
    """Passes reports to a callback with other values of some fields."""

    changes: Facts

    def __call__(self, report: Report) -> object:
        return self.callback(replace(report, **self.changes))


def interval_of(callback: Callable[[Report], object]) -> int | None:
    """Iterations between two reports that a callback asks for by an attribute ``every``.

    None leaves it to the solver. Certificates for reports alone do not change a run. A callback
    whose ``every`` is in seconds has a true attribute ``counts_seconds``, and asks for no interval.

    Raises ValueError: the attribute is neither None nor an integer >= 1.
    """
    every = getattr(callback, "every", None)
    if getattr(callback, "counts_seconds", False):
        return None
    whole = isinstance(every, Integral) and not isinstance(every, bool)
    if every is not None and not (whole and every >= 1):
        raise ValueError(f"callbacks: every={every!r} must be an integer >= 1, or None")
    return None if every is None else int(every)


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
