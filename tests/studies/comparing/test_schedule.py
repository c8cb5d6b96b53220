"""Tasks are begun fold by fold, but none waits for kernels that another one compiles."""

from __future__ import annotations

import numpy as np

from proxmargin.studies.comparing.candidates import named_candidates
from proxmargin.studies.comparing.rows import TrainTestRows
from proxmargin.studies.comparing.run import tasks_of, unhindered
from proxmargin.studies.comparing.work import FoldTask

PATHS = ["HuberizedSVC", "SquaredHingeSVC", "SparseLogisticRegression"]
OTHERS = ["L2SVC", "MarginFDA"]


def tasks() -> list[FoldTask]:
    candidates = named_candidates([*PATHS, *OTHERS], standardize=True)
    splits = [
        TrainTestRows(np.arange(2), np.array([2])),
        TrainTestRows(np.arange(1, 3), np.array([0])),
    ]
    return list(tasks_of(candidates, splits, seed=0))


def names(found: list[FoldTask]) -> list[str]:
    return [task.candidate.name for task in found]


def test_the_folds_follow_each_other_and_all_samples_come_last() -> None:
    assert names(tasks()) == 3 * [*PATHS, *OTHERS]
    assert [task.fold for task in tasks()] == 5 * [0] + 5 * [1] + 5 * [None]


def test_one_process_keeps_the_order() -> None:
    finished, begun = set(), []
    for task in unhindered(tasks(), finished):
        begun.append(task)
        finished.add(task.key)
    assert [task.key for task in begun] == [task.key for task in tasks()]


def test_other_paths_wait_until_the_first_is_finished() -> None:
    finished: set[tuple[str, int]] = set()
    order = unhindered(tasks(), finished)
    first = next(order)
    assert first.candidate.name == PATHS[0]
    assert names([next(order), next(order), next(order)]) == [*OTHERS, OTHERS[0]]
    finished.add(first.key)
    rest = list(order)
    assert names(rest[:3]) == [*PATHS[1:], PATHS[0]]
    assert len(rest) == len(tasks()) - 4


def test_paths_are_begun_when_nothing_else_is_left() -> None:
    begun = list(unhindered(tasks(), set()))
    assert names(begun[:7]) == [PATHS[0], *OTHERS, *OTHERS, *OTHERS]
    assert sorted(task.key for task in begun) == sorted(task.key for task in tasks())
