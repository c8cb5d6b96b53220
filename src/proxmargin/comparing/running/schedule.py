"""The tasks of a comparison, in the order in which they are begun."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from proxmargin.comparing.evaluating.candidates import Candidate
from proxmargin.comparing.evaluating.folds import TrainTestRows
from proxmargin.comparing.evaluating.searches import AlphaPath
from proxmargin.comparing.evaluating.work import FoldTask, Outcome

__all__ = ["is_missing", "label", "tasks_of", "unhindered"]


def tasks_of(
    candidates: Sequence[Candidate], splits: Sequence[TrainTestRows], seed: int
) -> Iterator[FoldTask]:
    """Fold by fold, so that after an interruption the models were scored on the same folds; the
    fits to all rows after the first repeat."""
    count = sum(split.repeat == 0 for split in splits)
    for fold, split in enumerate(splits):
        if fold == count:
            yield from _final(candidates, seed)
        for candidate in candidates:
            yield FoldTask(candidate, fold, split, seed, keeps=fold < count)
    if count == len(splits):
        yield from _final(candidates, seed)


def _final(candidates: Sequence[Candidate], seed: int) -> Iterator[FoldTask]:
    for candidate in candidates:
        yield FoldTask(candidate, None, None, seed)


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


def is_missing(outcome: Outcome | None) -> bool:
    """Whether a task is to be done: nothing is known of it, or its model was not saved."""
    return outcome is None or (outcome.fold is None and outcome.estimator is None)


def label(task: FoldTask, n_folds: int) -> str:
    if task.fold is None:
        return f"{task.candidate.name}, all samples"
    repeat, fold = divmod(task.fold, n_folds)
    again = f" (repeat {repeat + 1})" if repeat else ""
    return f"{task.candidate.name}, fold {fold + 1} of {n_folds}{again}"
