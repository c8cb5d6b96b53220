"""Seconds to a certified gap: the loosest setting of a solver's ladder that reaches it.

A solver lives in a process of its own with one thread (or as many as it is given), so that a fit
that does not end can be ended. Its kernels are compiled before the clock runs: by a toy problem,
then by the real one at the loosest setting. Loading, change of layout and the certificate are
outside the clock too. The process is the solver's for the whole run; only the data set in hand is
kept.

The memory of a fit is the growth of the process's resident memory to its highest point in it, over
what it holds before (the data in the solver's layout): VmHWM of Linux, reset before the fit.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix, issparse

from benchmarks.datasets import load
from benchmarks.objective import Floats, MarginLoss, Problem, relative_gap
from benchmarks.peers.base import Fitted, Peer, mean_seconds
from benchmarks.shares import Shares, shares

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# a problem whose only purpose is to load and compile
TOY_ROWS = 40
TOY_COLUMNS = 30
NEARLY = 0.95  # of the limit of a fit: a solver with a time limit of its own ended by it


@dataclass(frozen=True)
class Spec:
    """A problem in a few words: what travels to a solver's process."""

    data: str
    loss: MarginLoss
    l1: float
    l2: float
    intercept_ridge: float = 0.0
    fit_intercept: bool = True

    def on(self, design: Any, labels: Any) -> Problem:
        return Problem(
            design, labels, self.loss, self.l1, self.l2, self.intercept_ridge, self.fit_intercept
        )

    @property
    def kind(self) -> tuple[object, ...]:
        """Problems of one kind run the same compiled code."""
        strengths = self.l2 > 0.0, self.intercept_ridge > 0.0
        return self.data, type(self.loss), *strengths, self.fit_intercept


@dataclass(frozen=True)
class Limits:
    """Seconds and threads; a fit is repeated as often as fits into `repeating`, up to `repeats`.

    Fits below `batch` seconds are repeated in batches of at least so long, without a pause, and a
    batch counts by its mean.
    """

    per_fit: float = 10.0
    per_ladder: float = 30.0
    for_compiling: float = 120.0
    repeating: float = 1.0
    repeats: int = 10
    batch: float = 0.0
    clock: Literal["wall", "cpu"] = "wall"  # the limits are wall time whatever is reported
    threads: int = 1


@dataclass(frozen=True)
class Clocked:
    """A fit and its time; `cpu` far below `wall` tells of a machine that was busy otherwise."""

    fitted: Any
    wall: float
    cpu: float
    memory: float = float("nan")  # bytes

    def seconds(self, limits: Limits) -> float:
        return self.cpu if limits.clock == "cpu" else self.wall

    @property
    def busy(self) -> float:
        return self.wall / max(self.cpu, 1e-9)


@dataclass(frozen=True)
class Trouble:
    """Why there is no fit, in words: over the limit, or the error."""

    why: str


# ---- in the solver's process -------------------------------------------------------------------


@dataclass
class Bench:
    """The solver with the problem in hand.

    Memory is measured in the first fit at each setting. It needs free pages to be given back to the
    system, which the next fit would have to ask for again: a millisecond, and not for packages in
    other processes.
    """

    peer: Peer
    data: str = ""
    design: Any = None
    labels: Any = None
    measured: set[tuple[Any, float]] = field(default_factory=set)

    def problem(self, spec: Spec) -> Problem:
        if spec.data != self.data:
            self.design = None  # let go of the old one before reading the new one
            data = load(spec.data)
            self.data, self.labels = spec.data, data.labels
            self.design = self.peer.prepared(data.design)
        return spec.on(self.design, self.labels)

    def warm_up(self, spec: Spec) -> None:
        problem = self.problem(spec)
        toy = replace(problem, **_toy(issparse(problem.design)))
        toy = replace(toy, design=self.peer.prepared(toy.design))
        for setting in self.peer.ladder[:2]:
            self.peer.fit(toy, setting)
        self.peer.fit(problem, self.peer.ladder[0])

    def clocked(self, spec: Spec, setting: float) -> Clocked:
        problem = self.problem(spec)
        gc.collect()
        first = (spec, setting) not in self.measured
        before = resident_now() if first else math.nan
        self.measured.add((spec, setting))
        wall, cpu = time.perf_counter(), time.process_time()
        fitted = self.peer.fit(problem, setting)
        times = time.perf_counter() - wall, time.process_time() - cpu
        return Clocked(fitted, *(fitted.clocked or times), resident_at_most() - before)

    def mean_seconds(self, spec: Spec, setting: float, times: int) -> tuple[float, float]:
        """(wall, CPU) seconds, the mean of so many fits, one right after the other."""
        problem = self.problem(spec)
        gc.collect()
        return mean_seconds(lambda: self.peer.fit(problem, setting), times)

    def shares(self, spec: Spec, setting: float) -> Shares:
        """Where the time of another fit goes."""
        problem = self.problem(spec)
        return shares(lambda: self.peer.fit(problem, setting))


def _toy(sparse: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(TOY_ROWS) % 2 == 0, 1.0, -1.0)
    design = rng.standard_normal((TOY_ROWS, TOY_COLUMNS)) + 0.3 * labels[:, None]
    return {"design": csr_matrix(design) if sparse else design, "labels": labels}


def resident_now() -> float:
    """Bytes, from which `resident_at_most` counts anew; what malloc holds free is given back."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def resident_at_most() -> float:
    """Bytes at the highest point since `resident_now`."""
    return _status("VmHWM")


def _status(key: str) -> float:
    """A number of Linux's account of this process, in bytes; not a number elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith(key + ":"))


def serve(connection: Connection, bench: Bench, threads: int) -> None:
    """Answer requests, a method of the bench and its arguments, until None comes."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stopped early shows in its gap
        while (request := connection.recv()) is not None:
            name, *given = request
            connection.send(_answer(getattr(bench, name), *given))


def _answer(method: Callable[..., Any], *given: Any) -> Any:
    try:
        return method(*given)
    except Exception as error:  # whatever a peer raises is a result of the benchmark
        return Trouble(f"{type(error).__name__}: {error}".splitlines()[0])


# ---- in the parent -----------------------------------------------------------------------------


@dataclass
class Worker:
    """A solver's process, started when first asked, killed when late, started again when asked."""

    peer: Peer
    limits: Limits
    process: Any = None
    connection: Any = None
    warmed: set[tuple[object, ...]] = field(default_factory=set)
    bench: type[Bench] = Bench

    def clocked(self, spec: Spec, setting: float) -> Clocked | Trouble:
        if spec.kind not in self.warmed:
            limit = self.limits.for_compiling + self.limits.per_fit
            trouble = self._ask(limit, "warm_up", spec)
            if isinstance(trouble, Trouble):
                return trouble
            self.warmed.add(spec.kind)
        return self._ask(self.limits.per_fit, "clocked", spec, setting)

    def again(self, spec: Spec, setting: float, times: int) -> tuple[float, float] | Trouble:
        """(wall, CPU) seconds, the mean of so many more fits."""
        limit = times * self.limits.per_fit
        return self._ask(limit, "mean_seconds", spec, setting, times)

    def shares(self, spec: Any, setting: float) -> Shares | Trouble:
        """Where the time of another fit goes; the profiler has the same limit twice over."""
        return self._ask(2.0 * self.limits.per_fit, "shares", spec, setting)

    def _ask(self, limit: float, name: str, *given: Any) -> Any:
        if self.process is None:
            self._start()
        try:
            self.connection.send((name, *given))
            if self.connection.poll(limit):
                return self.connection.recv()
        except (EOFError, OSError):
            self._kill()
            return Trouble("the process died")
        self._kill()
        return Trouble(f"more than {limit:g} s")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        threads = self.limits.threads
        with _environment(dict.fromkeys(THREAD_LIMITS, str(threads))):
            serving = (theirs, self.bench(self.peer), threads)
            self.process = context.Process(target=serve, args=serving, daemon=True)
            self.process.start()
        theirs.close()

    def _kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.process, self.connection = None, None
        self.warmed.clear()

    def close(self) -> None:
        if self.process is not None:
            self._kill()


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes started inside."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def workers(
    peers: Sequence[Any], limits: Limits, bench: type[Bench] = Bench
) -> Iterator[dict[str, Worker]]:
    """A worker per peer, by name; all closed at the end."""
    crew = {peer.name: Worker(peer, limits, bench=bench) for peer in peers}
    try:
        yield crew
    finally:
        for worker in crew.values():
            worker.close()


@dataclass(frozen=True)
class Trial:
    """One rung of a ladder: the setting, its time, and the gap certified at its solution."""

    setting: float
    seconds: float
    busy: float  # wall over CPU time
    gap: float
    nonzeros: int
    fitted: Any
    memory: float = float("nan")  # bytes

    def wall(self, limits: Limits) -> float:
        """Seconds of wall time, which is what limits are."""
        return self.seconds * (self.busy if limits.clock == "cpu" else 1.0)


@dataclass(frozen=True)
class Climb:
    """What a solver reached: a trial per goal, the smallest gap, and why it went no further."""

    reached: dict[float, Trial]
    smallest_gap: float
    ended: str = ""

    @property
    def word(self) -> str:
        """Why a goal was not reached, for a table."""
        if self.ended.startswith("more than"):
            return "late"
        return "stalls" if self.ended.startswith("its tightest") else "fails"

    @property
    def busiest(self) -> float:
        """The largest wall over CPU time among the trials that count."""
        return max((trial.busy for trial in self.reached.values()), default=1.0)


Judge = Callable[[Any], float]  # the relative gap of what a solver found


def judged_on(problem: Problem, duals: Sequence[Floats] = ()) -> Judge:
    """By the certificate of `objective`, with these dual points and the solver's own, if any."""

    def gap(fitted: Fitted) -> float:
        own = [] if fitted.dual is None else [fitted.dual]
        return relative_gap(problem, fitted.coef, fitted.intercept, [*duals, *own])

    return gap


def trial(worker: Worker, judge: Judge, spec: Any, setting: float) -> Trial | Trouble:
    """A timed fit with its certificate."""
    answer = worker.clocked(spec, setting)
    if isinstance(answer, Trouble):
        return answer
    fitted = answer.fitted
    return Trial(
        setting=setting,
        seconds=answer.seconds(worker.limits),
        busy=answer.busy,
        gap=judge(fitted),
        nonzeros=int(np.count_nonzero(fitted.coef)),
        fitted=fitted,
        memory=answer.memory,
    )


def climb(worker: Worker, judge: Judge, spec: Any, goals: Sequence[float]) -> Climb:
    """Down the ladder until the smallest goal is certified; half rungs then sharpen each goal."""
    trials, ended = _descend(worker, judge, spec, min(goals))
    reached = {}
    for goal in goals:
        first = next((k for k, one in enumerate(trials) if one.gap <= goal), None)
        if first is not None:
            loosest = _sharpened(worker, judge, spec, goal, trials[max(first - 1, 0) : first + 1])
            reached[goal] = repeated(worker, spec, loosest)
    return Climb(reached, min((one.gap for one in trials), default=float("inf")), ended)


def _descend(worker: Worker, judge: Judge, spec: Any, goal: float) -> tuple[list[Trial], str]:
    limits, spent = worker.limits, 0.0
    trials: list[Trial] = []
    for setting in worker.peer.ladder:
        one = trial(worker, judge, spec, setting)
        if isinstance(one, Trouble):
            return trials, one.why
        trials.append(one)
        spent += one.wall(limits)
        if one.gap <= goal:
            return trials, ""
        if one.wall(limits) > NEARLY * limits.per_fit:
            return trials, f"more than {limits.per_fit:g} s"
        if spent > limits.per_ladder:
            return trials, f"more than {limits.per_ladder:g} s over its settings"
    return trials, "its tightest setting does not certify"


def _sharpened(
    worker: Worker, judge: Judge, spec: Any, goal: float, rungs: Sequence[Trial]
) -> Trial:
    """The half rung above the first rung that certifies, if it certifies too and is faster."""
    if len(rungs) == 1:
        return rungs[0]
    above, certifying = rungs
    half = trial(worker, judge, spec, float(np.sqrt(above.setting * certifying.setting)))
    fits = isinstance(half, Trial) and half.gap <= goal and half.seconds < certifying.seconds
    return half if fits else certifying


def repeated(worker: Worker, spec: Any, first: Trial) -> Trial:
    """The same fit again if it was short; the fastest counts, for every solver alike.

    Where batches are timed, the first fit alone does not count: clocks may be too coarse for it.
    """
    limits, seconds = worker.limits, max(first.seconds, 1e-6)
    times = max(1, round(limits.batch / seconds))
    found = [] if times > 1 else [first]
    for _ in range(min(limits.repeats, int(limits.repeating / (times * seconds)))):
        again = worker.again(spec, first.setting, times)
        if not isinstance(again, Trouble):
            wall, cpu = again
            taken = cpu if limits.clock == "cpu" else wall
            found.append(replace(first, seconds=taken, busy=wall / max(cpu, 1e-9)))
    return min(found, default=first, key=lambda one: one.seconds)
