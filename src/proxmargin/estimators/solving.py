"""The fit of assembled problems: their limits, their solutions, and what is published of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from proxmargin.callbacks import History, Progress
from proxmargin.certificates.certify import certify
from proxmargin.compiled.clock import clock
from proxmargin.estimators.assembly import (
    ALL,
    Assembly,
    Features,
    certificate_of,
    unmet,
    without_rounding,
)
from proxmargin.estimators.coefficients import HasCoefficients
from proxmargin.estimators.context import FitContext
from proxmargin.estimators.frames import users_level
from proxmargin.estimators.parameters import DataParameters, SolvingParameters
from proxmargin.estimators.runs import Runs, at_once, for_each
from proxmargin.kernels.kernel_design import KernelDesign
from proxmargin.loop.incumbent import Certify
from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.report import Report
from proxmargin.loop.solver import Solver, State
from proxmargin.loop.stopping import RULES, TINY_WORK, Effort, Stop
from proxmargin.problem import Point, Problem
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import threads_here
from proxmargin.solvers.fallback import Choice
from proxmargin.solvers.names import choose, named_solver

__all__ = ["SolvesProblems"]

Array = NDArray[np.float64]

TINY_ENTRIES = 50_000  # features and inner products of the samples of a tiny problem


class SolvesProblems(HasCoefficients, SolvingParameters, DataParameters):
    """Solves the problems of a fit and publishes the model."""

    n_jobs: int | None = None

    def _objective_scale(self, problem: Problem) -> float:
        """Factor from the objective of a problem to the objective that the model documents."""
        return 1.0

    def _fit_assembled(
        self,
        assembly: Assembly,
        starts: Sequence[Point | None] | None = None,
        context: FitContext | None = None,
    ) -> None:
        """Solve the problems and publish the model; without a context as a fit of its own."""
        context = context or FitContext(self._started())
        starts = self._starts(assembly) if starts is None else starts
        self._publish(assembly, self._solve(assembly, starts, context), context)
        interrupts.act()

    def _choice(self, problem: Problem, deadline: float = np.inf) -> Choice:
        if isinstance(self.solver, Solver):
            return Choice(self.solver, self.solver.name, "given as an object")
        if self.solver != "auto":
            solver = named_solver(self.solver, self.solver_options or {}, problem)
            return Choice(solver, self.solver, "asked for by name")
        return choose(problem, deadline)

    def _started(self) -> Stop:
        """The limits of a fit that starts now, before its parameters are checked."""
        limit = float(self.time_limit) if isinstance(self.time_limit, Real) else None
        return self._stop(limit).started(clock(), ())

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

    def _stop(self, time_left: float | None) -> Stop:
        make = RULES.get(self.stopping) if isinstance(self.stopping, str) else None
        return Stop(self.tol, self.max_iter, time_left, make(self.tol) if make else None)

    def _solve(
        self,
        assembly: Assembly,
        starts: Sequence[Point | State | None],
        context: FitContext,
        certify: Certify = certify,
    ) -> list[Solution]:
        """The solutions of the problems (`Runs`)."""
        limits, journal = context.stop.started(clock(), ()), context.journal
        told = [context.guard.around(callback) for callback in journal.recording(self.callbacks)]
        together, blocks = (1, None) if told or journal.records else at_once(assembly.problems)
        callbacks = [*told, *self._progress(len(assembly.problems), together)]
        alone = bool(callbacks) or np.isfinite(limits.most_work)  # their work is counted in turn
        threads = max(1 if alone or journal.records else self._threads(assembly), together)
        runs = Runs(
            assembly=assembly,
            context=context.within(limits),
            choose=self._choice,
            scale=self._objective_scale,
            certify=certify,
            callbacks=callbacks,
            threads=threads,
            quiet=self.n_jobs is not None or threads > 1,
            blocks=blocks,
        )
        return runs.solved(starts)

    def _threads(self, assembly: Assembly) -> int:
        """Threads that solve problems on their own; one where data are read in passes, which
        problems share, and where they share kernel values."""
        count, design = len(assembly.problems), assembly.problems[0].design
        shared = design.passes_only or isinstance(design, KernelDesign)
        if count == 1 or shared:
            return 1
        return min(threads_here(self.n_jobs), count)

    def _progress(self, count: int, together: int) -> Iterator[Callable[[Report], object]]:
        if self.verbose:
            yield Progress(label=type(self).__name__, fits=count, together=together > 1)

    def _starts(self, assembly: Assembly) -> list[Point | None]:
        """With ``warm_start`` the previous solution, if it fits, or the null model if better."""
        shape = (
            sum(problem.loss.n_outputs for problem in assembly.problems),
            assembly.scale.size,
        )
        if not self.warm_start or getattr(self, "coef_", np.empty(0)).shape != shape:
            return [None] * len(assembly.problems)
        points = self._points(assembly, self.coef_, self.intercept_)
        return for_each(assembly.problems, lambda k, problem: problem.better_start(points[k]))

    def _points(self, assembly: Assembly, coef: Array, intercept: Array) -> list[Point]:
        """The points of the problems with these published coefficients and intercepts."""
        return assembly.points(coef, intercept)

    def _publish(self, assembly: Assembly, solutions: list[Solution], context: FitContext) -> None:
        self.classes_ = assembly.targets.classes
        points = [solution.point for solution in solutions]
        self.coef_, intercept = self._published(assembly, points)
        self.intercept_ = intercept if self.coef_.any() else without_rounding(intercept)
        self.__dict__.pop("feature_scale_", None)  # left by an earlier fit that standardised
        if self.standardize:
            self.feature_scale_ = assembly.scale
        self.certificate_ = certificate_of(solutions, self.classes_)
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
        histories = [c for c in self.callbacks if isinstance(c, History)]
        if histories:
            self.history_ = histories[0]
        asked = context.guard.has_ended()
        if any(solution.status is Status.INTERRUPTED for solution in solutions) and not asked:
            raise KeyboardInterrupt(f"the fit was interrupted; so far: {self.certificate_}")
        self._warn(solutions, context)

    def _warn(self, solutions: list[Solution], context: FitContext) -> None:
        short = unmet(solutions, self.stopping != "gap")
        if short:
            count = f" in {len(short)} of {len(solutions)} class problems"
            which = count if len(solutions) > 1 else ""
            worst = max(short, key=lambda s: s.certificate.relative_gap).certificate
            warnings.warn(
                f"{type(self).__name__} stopped before its tolerance was met{which}: "
                f"{worst.stop_reason} after {worst.n_iter} iterations of {worst.solver!r}; the "
                f"objective is certified to be within a relative gap of {worst.relative_gap:.2e} "
                f"of the optimum (tol={self.tol:g}){context.hint}",
                ConvergenceWarning,
                stacklevel=users_level(),
            )
