"""The tasks of a comparison, in the order in which they are begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proxmargin.comparing.evaluating.candidates import Candidate
from proxmargin.comparing.evaluating.folds import Split
from proxmargin.comparing.evaluating.searches import AlphaPath
from proxmargin.comparing.evaluating.work import Outcome, Task

__all__ = ["is_missing", "label", "tasks_of"]


def tasks_of(candidates: Sequence[Candidate], splits: Sequence[Split], seed: int) -> Iterator[Task]:
    """Fold by fold, so that after an interruption the models were scored on the same folds; the
    fits to all rows after the first repeat."""
    candidates = _apart(candidates)
    count = sum(split.repeat == 0 for split in splits)
    for fold, split in enumerate(splits):
        if fold == count:
            yield from _final(candidates, seed)
        for candidate in candidates:
            yield Task(candidate, fold, split, seed, keeps=fold < count)
    if count == len(splits):
        yield from _final(candidates, seed)


def _apart(candidates: Sequence[Candidate]) -> list[Candidate]:
    """All but the first of the searches along paths of alpha last: they run the same kernels, and
    of several processes that need one, one compiles it and the others wait."""
    later = [each for each in candidates if isinstance(each.search, AlphaPath)][1:]
    return [*(each for each in candidates if each not in later), *later]


def _final(candidates: Sequence[Candidate], seed: int) -> Iterator[Task]:
    for candidate in candidates:
        yield Task(candidate, None, None, seed)


def is_missing(outcome: Outcome | None) -> bool:
    """Whether a task is to be done: nothing is known of it, or its model was not saved."""
    return outcome is None or (outcome.fold is None and outcome.estimator is None)


def label(task: Task, n_folds: int) -> str:
    if task.fold is None:
        return f"{task.candidate.name}, all samples"
    repeat, fold = divmod(task.fold, n_folds)
    again = f" (repeat {repeat + 1})" if repeat else ""
    return f"{task.candidate.name}, fold {fold + 1} of {n_folds}{again}"
