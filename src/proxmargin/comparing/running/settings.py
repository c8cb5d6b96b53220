"""The run directory of a comparison, known by its data and by what decides the result."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import hash as joblib_hash

from proxmargin.comparing.evaluating.candidates import Candidate
from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.comparing.evaluating.metrics import Metric
from proxmargin.comparing.evaluating.work import FoldTask
from proxmargin.comparing.running.directory import RunDirectory
from proxmargin.comparing.running.setup import Setup
from proxmargin.resuming.identity import Identity

__all__ = ["directory_of"]


def directory_of(
    run_dir: str | os.PathLike[str] | None,
    tasks: Sequence[FoldTask],
    data: LabelledRows,
    metrics: Sequence[Metric],
    setup: Setup,
    cv: Any,
) -> RunDirectory | None:
    if run_dir is None:
        return None
    settings = _Settings.of(tasks, data, metrics, setup, cv)
    identity = Identity.of(settings, data.seen().X, np.unique(data.y), *_targets(data))
    return RunDirectory(Path(run_dir), [task.key for task in tasks], identity, setup)


class _Settings:
    """What decides a comparison besides the data, as the parameters of an estimator."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return self.settings

    @classmethod
    def of(
        cls,
        tasks: Sequence[FoldTask],
        data: LabelledRows,
        metrics: Sequence[Metric],
        setup: Setup,
        cv: Any,
    ) -> _Settings:
        candidates = {task.candidate.name: task.candidate for task in tasks}
        return cls(
            models=list(candidates),
            **{f"models[{name!r}]": _facts(each) for name, each in candidates.items()},
            cv=cv if isinstance(cv, int) else [list(split) for split in setup.splits],
            repeats=setup.protocol.repeats,
            scoring=metrics[0].name,
            metrics=sorted(metric.name for metric in metrics),
            scorers=[metric.of for metric in metrics if metric.needs_rows],
            groups=setup.protocol.grouped,
            preprocess=setup.protocol.preprocess,
            **({} if data.preprocess is None else {"entries": joblib_hash(data.X)}),
            seed=setup.protocol.random_state,
            feature_names=None if data.names is None else [str(name) for name in data.names],
        )


def _facts(candidate: Candidate) -> list[Any]:
    return [repr(candidate.make()), candidate.search]


def _targets(data: LabelledRows) -> list[Any]:
    codes = np.unique(data.y, return_inverse=True)[1]
    return [codes, *(each for each in (data.weights, data.groups) if each is not None)]
