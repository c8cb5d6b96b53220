"""Tasks are begun fold by fold."""

from __future__ import annotations

import numpy as np

from proxmargin.studies.comparing.candidates import named_candidates
from proxmargin.studies.comparing.rows import TrainTestRows
from proxmargin.studies.comparing.run import tasks_of
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
