"""Performing the tasks of a comparison, in processes, until they are done or the time is over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from proxmargin.comparing.comparison import Comparison, ComparisonEnding
from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.metrics import Metric
from proxmargin.comparing.evaluating.work import FoldTask, Outcome, perform
from proxmargin.comparing.running.apart import performed_apart
from proxmargin.comparing.running.directory import RunDirectory
from proxmargin.comparing.running.schedule import is_missing, label, unhindered
from proxmargin.comparing.running.setup import Setup
from proxmargin.inputs.preprocessing import Preprocessed
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import Carried

__all__ = ["Performance"]


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
        if self.kept is None:
            return self._compared({})
        with self.kept.opened() as setup:
            self.setup = setup
            return self._compared(dict(self.kept.outcomes))

    def _compared(self, done: dict[tuple[str, int], Outcome]) -> Comparison:
        """The comparison, of what is done and what is not yet."""
        ending = self._finish(done)
        outcomes = [done[task.key] for task in self.tasks if task.key in done]
        notes = self.kept.notes if self.kept is not None else []
        return Comparison(self.setup, outcomes, ending, notes)

    def _finish(self, done: dict[tuple[str, int], Outcome]) -> ComparisonEnding:
        """Take in the outcomes in the order of completion; how that ended."""
        missing = [task for task in self.tasks if is_missing(done.get(task.key))]
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
        known = done.get(outcome.key)
        if known is not None:  # only its model was missing, which no file holds
            done[outcome.key] = replace(known, estimator=self._named(outcome.estimator))
            return
        outcome = replace(outcome, estimator=self._named(outcome.estimator))
        done[outcome.key] = outcome
        if self.kept is not None:
            self.kept.add(outcome)

    def _named(self, estimator: Any) -> Any:
        """The fits saw plain arrays; give the final ones the names of the caller's columns."""
        if estimator is not None and self.data.names is not None:
            with suppress(AttributeError):  # of a pipeline, which asks its first step
                first = estimator.transformer if _is_whole(estimator) else estimator
                first.feature_names_in_ = self.data.names
        return estimator

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
            delayed(performed_apart)(me, perform, task, carried, self.metrics)
            for task in self._in_time(tasks, shown)
        )
        return outcomes

    def _in_time(self, tasks: Iterable[FoldTask], shown: ProgressBar) -> Iterator[FoldTask]:
        """The tasks until the time limit, and the first in any case; shows what begins."""
        started = perf_counter()
        for number, task in enumerate(tasks):
            late = self.time_limit is not None and perf_counter() - started > self.time_limit
            if late and number:
                return
            shown.starts(label(task, self.setup.n_folds))
            yield task


def _is_whole(estimator: Any) -> bool:
    return isinstance(estimator, Preprocessed)
