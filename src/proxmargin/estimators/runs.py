"""The problems of one fit, solved one after the other, on several threads, or in common passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import ceil
from threading import local
from typing import TypeVar

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.designs.base import SAMPLE_BYTES
from proxmargin.designs.blocks import BlockedDesign
from proxmargin.designs.blocks.together import blocks_under, each_in_common, over
from proxmargin.estimators.assembly import Assembly
from proxmargin.estimators.context import FitContext
from proxmargin.loop.incumbent import Certify
from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.report import Changed, Report
from proxmargin.loop.solver import State
from proxmargin.loop.standing import CertifyOnly
from proxmargin.loop.stopping import OVERRUN, Stop
from proxmargin.problem import Point, Problem
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.memory import free_bytes
from proxmargin.runtime.threads import quiet_threads
from proxmargin.solvers.fallback import Choice, solve

__all__ = ["Runs", "at_once", "for_each"]

T = TypeVar("T")

# memory of the problems that are solved in common passes
MEMORY_SHARE = 0.25  # of the free memory, that all of them may take together
VECTORS = 20  # with an entry a row, that one problem holds at a time: pass-newton some 14
MATRICES = 6  # of the features, or of the active ones, that it holds
MOST_ACTIVE = 2000  # features of these matrices
MOST_AT_ONCE = 100  # problems, each of which has a thread
TOO_LATE = Choice(CertifyOnly(), "none", "the time limit was reached before this class began")


@dataclass(eq=False, kw_only=True)
class Runs:
    """Solves the problems of a fit; after an interruption, only certifies the rest.

    Each problem gets an equal share of the remaining time, and one step at least; where other
    classes have used that up, and `OVERRUN` seconds more, the start is certified as it is. Those
    that run at the same time have the same share.

    Parameters
    ----------
    assembly : Assembly
    context : FitContext
        Of all problems together.
    choose : callable
        ``choose(problem, deadline)``: the solver.
    scale : callable
        Units of a problem's objective as the model states it.
    certify : callable
    callbacks : sequence of callables
        Watched by the guard of the context.
    threads : int
        Without callbacks only.
    quiet : bool
        Whether BLAS has one thread, so that sums do not depend on ``threads``.
    blocks : BlockedDesign, optional
        The rows of all problems, which the threads read in common passes.
    """

    assembly: Assembly
    context: FitContext
    choose: Callable[[Problem, float], Choice]
    scale: Callable[[Problem], float]
    certify: Certify
    callbacks: Sequence[Callable[[Report], object]]
    threads: int
    quiet: bool
    blocks: BlockedDesign | None = None
    _is_interrupted: bool = field(default=False, init=False)
    _own: local = field(default_factory=local, init=False)

    def solved(self, starts: Sequence[Point | State | None]) -> list[Solution]:
        """The solutions of the problems from these starts."""
        problems = self.assembly.problems
        places = range(len(problems))
        with quiet_threads(0) if self.quiet else nullcontext():
            if self.blocks is not None:
                solve = _seen(problems, lambda k, problem: self._one(k, problem, starts[k]))
                count = len(problems)
                return each_in_common(solve, self.blocks, count, self.threads, self._clocks())
            if self.threads == 1:
                return [self._one(*each) for each in zip(places, problems, starts, strict=True)]
            with ThreadPoolExecutor(self.threads, initializer=self._clocks()) as pool:
                return list(pool.map(self._one, places, problems, starts))

    def _clocks(self) -> Callable[[], None]:
        """Sets the time limit by the clock of a new thread: each thread has its own."""
        limits = self.context.stop
        seconds = limits.deadline - clock()

        def begin() -> None:
            self._own.limits = replace(limits, deadline=clock() + seconds)

        return begin

    def _one(self, place: int, problem: Problem, start: Point | State | None) -> Solution:
        stop, choice = self._begun(place, problem)
        scale = self.scale(problem)
        told = {"scale": scale, "problem": place}
        solution = solve(
            problem,
            choice,
            stop=stop,
            callbacks=[Changed(callback, told) for callback in self.callbacks],
            start=start,
            certify=self.certify,
            minimize=self.context.journal.minimize,
        )
        if solution.status is Status.INTERRUPTED:
            self._is_interrupted = True
        stated = replace(solution, certificate=solution.certificate.scaled(scale), state=None)
        solution = self.context.guard.explained(stated)
        if len(self.assembly.problems) > 1:  # free arrays of the size of the data for other classes
            solution = replace(solution, gap=replace(solution.gap, violations=np.zeros(0)))
        return solution

    def _begun(self, place: int, problem: Problem) -> tuple[Stop, Choice]:
        """The limits of a problem that begins now, and its solver."""
        limits: Stop = getattr(self._own, "limits", self.context.stop)
        count = len(self.assembly.problems)
        stop = limits.shared(clock(), ceil((count - place) / self.threads))
        if self.threads > 1:
            stop = stop.apart(self.context.stop, count)
        overdue = place >= self.threads and limits.is_late(-OVERRUN)
        choice = TOO_LATE if overdue else self.choose(problem, stop.deadline)
        if overdue:  # no rule of a paper is met by a point that does not move
            stop = replace(stop, rule=None)
        if self._is_interrupted or (self.threads > 1 and interrupts.pending):
            stop = replace(stop, max_iter=0)
        return stop, choice


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
