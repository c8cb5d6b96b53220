"""The fit of assembled problems: their limits, their solutions, and what is published of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from numbers import Real
from operator import attrgetter
from threading import local
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from proxmargin.compiled.clock import clock
from proxmargin.data.designs.base import SAMPLE_BYTES
from proxmargin.data.designs.blocks import BlockedDesign
from proxmargin.data.designs.blocks.together import blocks_under, each_in_common, over
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.models.fitting.assembly import ALL, Assembly, Features, unmet, without_rounding
from proxmargin.models.fitting.coefficients import HasCoefficients
from proxmargin.models.fitting.parameters import DataParameters, SolvingParameters
from proxmargin.optimality.certificates.certificate import combined
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import better_start
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.memory import free_bytes
from proxmargin.runtime.threads import quiet_threads, threads_here
from proxmargin.runtime.types import Array
from proxmargin.solvers.callbacks import History, Progress
from proxmargin.solvers.choice.names import Choice, choose, named_solver, solve
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Changed, InPlaceOf, Report, Solution, Status
from proxmargin.solvers.loop.run import Certify
from proxmargin.solvers.loop.solver import OVERRUN, RULES, TINY_WORK, Effort, Solver, State, Stop
from proxmargin.solvers.resuming.journal import UNRECORDED, Journal

T = TypeVar("T")

TINY_ENTRIES = 50_000  # features and inner products of the samples of a tiny problem
# memory of the problems that are solved in common passes
MEMORY_SHARE = 0.25  # of the free memory, that all of them may take together
VECTORS = 20  # with an entry a row, that one problem holds at a time: pass-newton some 14
MATRICES = 6  # of the features, or of the active ones, that it holds
MOST_ACTIVE = 2000  # features of these matrices
MOST_AT_ONCE = 100  # problems, each of which has a thread
LARGE_UNITS = 1e6  # of an entry, from which on a fit that missed its tolerance is told to rescale


class _EndOfFit(KeyboardInterrupt):
    """Ends runs as Ctrl-C does: the best point is certified and returned."""


@dataclass(eq=False)
class Guard:
    """Watches the callbacks of one fit, each of which may end it, by an error or by returning
    False: what was found is published."""

    error: Exception | None = None  # what a callback raised
    asked: bool = False  # a callback returned False

    def has_ended(self) -> bool:
        """Whether a callback asked to stop; raises what one raised."""
        if self.error is not None:
            raise self.error
        return bool(self.asked)

    def explained(self, solution: Solution) -> Solution:
        """The solution, with the callback as the reason for its end where it was."""
        ended = self.asked or self.error is not None
        if not ended or solution.status is not Status.INTERRUPTED:
            return solution
        reason = "a callback asked to stop" if self.asked else f"a callback raised {self.error!r}"
        return replace(solution, certificate=replace(solution.certificate, stop_reason=reason))


@dataclass(frozen=True)
class _Guarded(InPlaceOf):
    """A callback, whose error or False ends the fit."""

    guard: Guard

    def __call__(self, report: Report) -> None:
        try:
            answer = self.callback(report)
        except Exception as error:
            self.guard.error = error
            raise _EndOfFit from error
        if isinstance(answer, bool | np.bool_) and not answer:
            self.guard.asked = True
            raise _EndOfFit


@dataclass(frozen=True, eq=False)
class FitContext:
    """Limits, checkpoints and callbacks of one fit, and what is to be said at its end."""

    stop: Stop = field(default_factory=Stop)  # the limits, begun
    journal: Journal = UNRECORDED  # of the checkpoints
    guard: Guard = field(default_factory=Guard)  # of the callbacks
    # warnings of optima without a margin, which are issued in place of unmet tolerances
    remarks: tuple[str, ...] = ()
    # the end of the warning of an unmet tolerance: what in the data may be the cause
    hint: str = ""
    # by the signs of a problem: the nu of the next attempt, where one leaves no margin
    nus: dict[bytes, float] = field(default_factory=dict)
    # the largest kappa of each problem, where kappa is a share of it
    largest: list[Any] = field(default_factory=list)


@dataclass(frozen=True, eq=False, kw_only=True)
class CertifyOnlyState(State):
    """The start, and the number of its steps, which do nothing."""

    at: Point


@dataclass(frozen=True)
class CertifyOnly(Solver[CertifyOnlyState]):
    """Stays at the start, where no time is left: a run costs one certificate."""

    name: ClassVar[str] = "none"
    computes_gap: ClassVar[bool] = True  # nothing is certified before the run ends
    max_iter: ClassVar[int] = 2  # the first step finds the time over

    def init(self, problem: Problem, start: Point, stop: Stop) -> CertifyOnlyState:
        return CertifyOnlyState(at=start)

    def step(self, problem: Problem, state: CertifyOnlyState) -> CertifyOnlyState:
        return state.but(n_iter=state.n_iter + 1)

    def point(self, problem: Problem, state: CertifyOnlyState) -> Point:
        return state.at


TOO_LATE = Choice(CertifyOnly(), "none", "the time limit was reached before this class began")


class SolvesProblems(HasCoefficients, SolvingParameters, DataParameters):
    """Solves the problems of a fit and publishes the model."""

    n_jobs: int | None = None

    def _objective_scale(self, problem: Problem) -> float:
        """Factor from the objective of a problem to the objective that the model documents."""
        return 1.0

    def _choice(self, problem: Problem, deadline: float = np.inf) -> Choice:
        if isinstance(self.solver, Solver):
            return Choice(self.solver, self.solver.name, "given as an object")
        if self.solver != "auto":
            solver = named_solver(self.solver, self.solver_options or {}, problem)
            return Choice(solver, self.solver, "asked for by name")
        return choose(problem, deadline)

    # -- limits -----------------------------------------------------------------------------

    def _started(self) -> Stop:
        """The limits of a fit that starts now, before its parameters are checked."""
        limit = float(self.time_limit) if isinstance(self.time_limit, Real) else None
        make = RULES.get(self.stopping) if isinstance(self.stopping, str) else None
        stop = Stop(self.tol, self.max_iter, limit, make(self.tol) if make else None)
        return stop.started(clock(), ())

    @property
    def _most_work(self) -> float:
        return TINY_WORK

    @property
    def _is_free(self) -> bool:
        """Whether no solver, iterations or time are asked for."""
        return self.solver == "auto" and self.max_iter is None and self.time_limit is None

    def _bounded(self, stop: Stop, samples: int, features: int = 0) -> Stop:
        """The limits of a fit: `_most_work` for a tiny problem, unless a solver, iterations or a
        time are asked for."""
        is_tiny = samples * (samples + features) <= TINY_ENTRIES
        if not (is_tiny and self._is_free):
            return stop
        return replace(stop, most_work=self._most_work, effort=Effort())

    # -- solutions --------------------------------------------------------------------------

    def _solve(
        self,
        assembly: Assembly,
        starts: Sequence[Point | State | None],
        context: FitContext,
        certify: Certify = certify,
    ) -> list[Solution]:
        """The solutions of the problems: one after the other, on threads, or in common passes."""
        problems, journal = assembly.problems, context.journal
        callbacks: list[object] = []
        if self.callbacks:
            guarded = partial(_Guarded, guard=context.guard)
            callbacks += map(guarded, journal.recording(self.callbacks))
        in_turn = bool(callbacks) or journal.records
        threads, blocks = (1, None) if in_turn or len(problems) == 1 else at_once(problems)
        if self.verbose:
            label, together = type(self).__name__, threads > 1
            callbacks.append(Progress(label=label, fits=len(problems), together=together))
        # work that is limited is counted in turn
        alone = in_turn or callbacks or context.stop.most_work < np.inf
        if len(problems) > 1 and not alone:
            threads = max(threads, self._threads(problems))
        runs = _Runs(self, problems, context, certify, callbacks, threads)
        with quiet_threads(0) if self.n_jobs is not None or threads > 1 else nullcontext():
            return runs.solved(starts, blocks)

    def _threads(self, problems: Sequence[Problem]) -> int:
        """Threads that solve problems on their own; one where data are read in passes, which
        problems share, and where they share kernel values."""
        design = problems[0].design
        if design.passes_only or isinstance(design, KernelDesign):
            return 1
        return min(threads_here(self.n_jobs), len(problems))

    def _starts(self, assembly: Assembly) -> list[Point | None]:
        """With ``warm_start`` the previous solution, if it fits, or the null model if better."""
        problems = assembly.problems
        if not self.warm_start:
            return [None] * len(problems)
        shape = sum(problem.loss.n_outputs for problem in problems), assembly.scale.size
        if getattr(self, "coef_", np.empty(0)).shape != shape:
            return [None] * len(problems)
        points = self._points(assembly, self.coef_, self.intercept_)
        return for_each(problems, lambda k, problem: better_start(problem, points[k]))

    def _points(self, assembly: Assembly, coef: Array, intercept: Array) -> list[Point]:
        """The points of the problems with these published coefficients and intercepts."""
        return assembly.points(coef, intercept)

    # -- publishing -------------------------------------------------------------------------

    def _publish(self, assembly: Assembly, solutions: list[Solution], context: FitContext) -> None:
        self.classes_ = assembly.targets.classes
        points = map(attrgetter("point"), solutions)
        self.coef_, intercept = self._published(assembly, [*points])
        self.intercept_ = intercept if self.coef_.any() else without_rounding(intercept)
        self.__dict__.pop("feature_scale_", None)  # left by an earlier fit that standardised
        if self.standardize:
            self.feature_scale_ = assembly.scale
        certificates = map(attrgetter("certificate"), solutions)
        self.certificate_ = combined([*certificates], self.classes_)
        if unmet(solutions) and not self.standardize:
            largest = float(assembly.problems[0].design.column_bounds().max(initial=0.0))
            if largest > LARGE_UNITS:
                told = (
                    f"; X has entries of up to {largest:.3g}, against which any penalty is weak: "
                    "set standardize=True, or give the features other units"
                )
                context = replace(context, hint=context.hint + told)
        self._note_run(solutions, context)

    def _published(
        self, assembly: Assembly, points: Sequence[Point], features: Features = ALL
    ) -> tuple[Array, Array]:
        """Coefficients and intercepts in the units of the data, as `Assembly.published`."""
        return assembly.published(points, features)

    def _weights_of_samples(self, problem: Problem, solution: Solution) -> Array | None:
        """Weights of the samples in the coefficients, (n_samples,), without a product with the
        data; None for models that publish none."""
        return None

    def _note_run(self, solutions: list[Solution], context: FitContext) -> None:
        """Set the attributes of the run; raise if interrupted, warn if ``tol`` was not met."""
        self.n_iter_ = max(self.certificate_.n_iter, 1)
        for callback in reversed(self.callbacks):
            if isinstance(callback, History):
                self.history_ = callback  # the first of them in the end
        asked = bool(self.callbacks) and context.guard.has_ended()
        if not asked and Status.INTERRUPTED in map(attrgetter("status"), solutions):
            raise KeyboardInterrupt(f"the fit was interrupted; so far: {self.certificate_}")
        short = unmet(solutions, self.stopping != "gap")
        if short or context.remarks:
            message = self._shortfall(short, len(solutions), context)
            warnings.warn(message, ConvergenceWarning, stacklevel=users_level())

    def _shortfall(self, short: list[Solution], problems: int, context: FitContext) -> str:
        """The warning of a fit of whose ``problems`` those in ``short`` missed their tolerance."""
        which = f" in {len(short)} of {problems} class problems" if problems > 1 else ""
        worst = max(short, key=attrgetter("certificate.relative_gap")).certificate
        return (
            f"{type(self).__name__} stopped before its tolerance was met{which}: "
            f"{worst.stop_reason} after {worst.n_iter} iterations of {worst.solver!r}; the "
            f"objective is certified to be within a relative gap of {worst.relative_gap:.2e} "
            f"of the optimum (tol={self.tol:g}){context.hint}"
        )


@dataclass(eq=False)
class _Runs:
    """Solves the problems of a fit; after an interruption, only certifies the rest.

    Each problem gets an equal share of the remaining time, and one step at least; where other
    classes have used that up, and `OVERRUN` seconds more, the start is certified as it is. Those
    that run at the same time, on ``threads``, have the same share.
    """

    model: SolvesProblems
    problems: Sequence[Problem]
    context: FitContext
    certify: Certify
    callbacks: Sequence[object]
    threads: int
    is_interrupted: bool = False
    own: local = field(default_factory=local)

    def solved(
        self, starts: Sequence[Point | State | None], blocks: BlockedDesign | None
    ) -> list[Solution]:
        """The solutions of the problems from these starts; of ``blocks`` of rows, the threads read
        them in common passes."""
        places = range(len(self.problems))
        if blocks is not None:
            work = _seen(self.problems, lambda k, problem: self._one(k, problem, starts[k]))
            return each_in_common(work, blocks, len(places), self.threads, self._clocks())
        if self.threads == 1:
            return list(map(self._one, places, self.problems, starts))
        with ThreadPoolExecutor(self.threads, initializer=self._clocks()) as pool:
            return list(pool.map(self._one, places, self.problems, starts))

    def _clocks(self) -> Callable[[], None]:
        """Sets the time limit by the clock of a new thread: each thread has its own."""
        limits = self.context.stop
        seconds = limits.deadline - clock()

        def begin() -> None:
            self.own.limits = replace(limits, deadline=clock() + seconds)

        return begin

    def _one(self, place: int, problem: Problem, start: Point | State | None) -> Solution:
        model, journal = self.model, self.context.journal
        stop, choice = self.context.stop, None
        if len(self.problems) > 1:
            stop, choice = self._share_of(place)
        choice = choice or model._choice(problem, stop.deadline)
        scale = model._objective_scale(problem)
        told = partial(Changed, changes={"scale": scale, "problem": place})
        solution = solve(
            problem,
            choice,
            stop=stop,
            callbacks=list(map(told, self.callbacks)),
            start=start,
            certify=self.certify,
            minimize=journal.minimize if journal.records else minimize,
        )
        known, gap = solution.certificate, solution.gap
        certificate = known if scale == 1.0 else known.scaled(scale)
        if len(self.problems) > 1:
            gap = replace(gap, violations=np.zeros(0))  # frees memory for other classes
        solution = Solution(solution.point, gap, solution.status, certificate, None)
        if solution.status is Status.INTERRUPTED:
            self.is_interrupted = True
            solution = self.context.guard.explained(solution)
        return solution

    def _share_of(self, place: int) -> tuple[Stop, Choice | None]:
        """The limits of one of several problems that begins now, and its solver if it is late."""
        limits, count = getattr(self.own, "limits", self.context.stop), len(self.problems)
        stop = limits.shared(clock(), ceil((count - place) / self.threads))
        if self.threads > 1:
            stop = stop.apart(self.context.stop, count)
        if self.is_interrupted or (self.threads > 1 and interrupts.pending):
            stop = replace(stop, max_iter=0)
        if place >= self.threads and limits.is_late(-OVERRUN):
            # no rule of a paper is met by a point that does not move
            return replace(stop, rule=None), TOO_LATE
        return stop, None


def for_each(problems: Sequence[Problem], work: Callable[[int, Problem], T]) -> list[T]:
    """``work(k, problem)`` for each problem, in common passes where they read blocks of rows."""
    threads, blocks = at_once(problems)
    if blocks is None:
        return [work(k, problem) for k, problem in enumerate(problems)]
    return each_in_common(_seen(problems, work), blocks, len(problems), threads)


def _seen(
    problems: Sequence[Problem], work: Callable[[int, Problem], T]
) -> Callable[[int, BlockedDesign], T]:
    """The work on each problem as one that reads its rows through a view."""

    def seen(place: int, view: BlockedDesign) -> T:
        problem = problems[place]
        return work(place, replace(problem, design=over(problem.design, view)))

    return seen


def at_once(problems: Sequence[Problem]) -> tuple[int, BlockedDesign | None]:
    """How many of the problems are solved at a time in common passes, and the rows that these
    read; one and None where there are no such rows, or no other problem."""
    blocks = blocks_under(problems[0].design) if len(problems) > 1 else None
    if blocks is None:
        return 1, None
    order = min(blocks.n_features, MOST_ACTIVE)
    numbers = VECTORS * blocks.n_samples + MATRICES * order * order
    each = 8 * numbers + min(blocks.nbytes, SAMPLE_BYTES)
    fitting = int(MEMORY_SHARE * free_bytes() / each)
    count = min(len(problems), max(fitting, 1), MOST_AT_ONCE)
    return (count, blocks) if count > 1 else (1, None)
