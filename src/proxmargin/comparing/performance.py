"""Performing the tasks of a comparison, in processes, until they are done or the time is over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from threading import Thread, current_thread, main_thread

import numpy as np

from proxmargin.comparing.candidates import Candidate
from proxmargin.comparing.comparison import Comparison, ComparisonEnding
from proxmargin.comparing.directory import RunDirectory
from proxmargin.comparing.metrics import Metric
from proxmargin.comparing.rows import LabelledRows, TrainTestRows
from proxmargin.comparing.searches import AlphaPath
from proxmargin.comparing.setup import Setup
from proxmargin.comparing.work import FoldTask, Outcome, perform
from proxmargin.inputs.preprocessing import Preprocessed
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import Carried

__all__ = ["Performance", "tasks_of", "unhindered"]

# seconds between two checks that the parent is alive; joblib keeps an idle worker, with hundreds
# of megabytes, for five minutes
LOOK_EVERY = 1.0


@dataclass
class Performance:
    """Performs the tasks that are not finished."""

    tasks: Sequence[FoldTask]
    data: LabelledRows
    metrics: Sequence[Metric]
    setup: Setup
    kept: RunDirectory | None
    n_jobs: int | None
    progress: bool
    time_limit: float | None

    def performed(self) -> Comparison:
        """The comparison, of what is done and what is not yet."""
        if self.kept is None:
            return self._compared({})
        with self.kept.opened() as setup:
            self.setup = setup
            return self._compared(dict(self.kept.outcomes))

    def _compared(self, done: dict[tuple[str, int], Outcome]) -> Comparison:
        ending = self._finish(done)
        outcomes = [done[task.key] for task in self.tasks if task.key in done]
        notes = self.kept.notes if self.kept is not None else []
        return Comparison(self.setup, outcomes, ending, notes)

    def _finish(self, done: dict[tuple[str, int], Outcome]) -> ComparisonEnding:
        """Take in the outcomes in the order of completion; how that ended."""
        missing = [task for task in self.tasks if _is_missing(done.get(task.key))]
        total = len(self.tasks)
        try:
            with ProgressBar("compare", total, shown=self.progress) as shown:
                shown.skip(total - len(missing))
                for outcome in self._running(unhindered(missing, done), shown):
                    self._take(outcome, done)
                    shown.advance()
        except (KeyboardInterrupt, BrokenExecutor) as error:
            if not done:
                raise
            died = isinstance(error, BrokenExecutor)
            return ComparisonEnding.WORKER_DIED if died else ComparisonEnding.INTERRUPTED
        whole = all(task.key in done for task in self.tasks)
        return ComparisonEnding.COMPLETE if whole else ComparisonEnding.TIME_LIMIT

    def _take(self, outcome: Outcome, done: dict[tuple[str, int], Outcome]) -> None:
        estimator = outcome.estimator
        if estimator is not None and self.data.names is not None:
            # the fits saw plain arrays; the final ones get the names of the caller's columns
            whole = isinstance(estimator, Preprocessed)
            with suppress(AttributeError):  # of a pipeline, which asks its first step
                first = estimator.transformer if whole else estimator
                first.feature_names_in_ = self.data.names
        known = done.get(outcome.key)
        if known is not None:  # only its model was missing, which no file holds
            done[outcome.key] = replace(known, estimator=estimator)
            return
        done[outcome.key] = outcome
        if self.kept is not None:
            self.kept.add(outcome)

    def _running(self, tasks: Iterable[FoldTask], shown: ProgressBar) -> Iterator[Outcome]:
        from joblib import Parallel, delayed

        # one by one, so that nothing is lost at an interruption and limits of time hold
        parallel = Parallel(
            n_jobs=self.n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        me, carried = os.getpid(), Carried(self.data)
        outcomes: Iterator[Outcome] = parallel(
            delayed(_performed)(me, task, carried, self.metrics)
            for task in self._in_time(tasks, shown)
        )
        return outcomes

    def _in_time(self, tasks: Iterable[FoldTask], shown: ProgressBar) -> Iterator[FoldTask]:
        """The tasks until the time limit, and the first in any case; shows what begins."""
        limit, folds = np.inf if self.time_limit is None else self.time_limit, self.setup.n_folds
        started = time.perf_counter()
        for number, task in enumerate(tasks):
            if number and time.perf_counter() - started > limit:
                return
            label = "all samples"
            if task.fold is not None:
                repeat, fold = divmod(task.fold, folds)
                again = f" (repeat {repeat + 1})" if repeat else ""
                label = f"fold {fold + 1} of {folds}{again}"
            shown.starts(f"{task.candidate.name}, {label}")
            yield task


def _is_missing(outcome: Outcome | None) -> bool:
    """Whether a task is to be done: nothing is known of it, or its model was not saved."""
    return outcome is None or (outcome.fold is None and outcome.estimator is None)


# -- the order of tasks -------------------------------------------------------------------------


def tasks_of(
    candidates: Sequence[Candidate], splits: Sequence[TrainTestRows], seed: int
) -> Iterator[FoldTask]:
    """Fold by fold, so that after an interruption the models were scored on the same folds; the
    fits to all rows after the first repeat."""
    count = sum(split.repeat == 0 for split in splits)
    parts: list[tuple[int | None, TrainTestRows | None]] = list(enumerate(splits))
    parts.insert(count, (None, None))
    for fold, split in parts:
        for candidate in candidates:
            yield FoldTask(candidate, fold, split, seed, keeps=fold is None or fold < count)


def unhindered(
    tasks: Iterable[FoldTask], finished: Container[tuple[str, int]]
) -> Iterator[FoldTask]:
    """The tasks in their order, except that none waits for kernels while others need not wait.

    Searches along paths of alpha share their kernels, of which the first one may have to compile
    the most: until it is finished, the others are put off. ``finished`` has the keys of the tasks
    that are, and grows meanwhile.
    """
    waiting, first = list(tasks), None
    while waiting:
        busy = first is not None and first.key not in finished
        free = (at for at, task in enumerate(waiting) if not (busy and _follows_path(task)))
        task = waiting.pop(next(free, 0))
        if first is None and _follows_path(task):
            first = task
        yield task


def _follows_path(task: FoldTask) -> bool:
    return isinstance(task.candidate.search, AlphaPath)


# -- processes that end when their parent does ---------------------------------------------------


def _performed(
    parent: int, task: FoldTask, data: Carried[LabelledRows], metrics: Sequence[Metric]
) -> Outcome:
    """`perform`; a process other than ``parent`` first ties its life to it."""
    if os.getpid() != parent:
        _belong_to(parent)
    return perform(task, data.value, metrics)


@cache
def _belong_to(parent: int) -> None:
    """Ignore Ctrl-C, which the terminal sends to the whole group, and end when the parent does."""
    if current_thread() is main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() == parent:
        Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)
