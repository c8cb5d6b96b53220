"""Timed runs of the algorithms of Chierchia et al. (2015) and of rivals."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.multiclass_data import Split
from benchmarks.report import seconds
from proxmargin import MulticlassSVC

__all__ = ["End", "Method", "Timed", "losses", "mean_cells", "own", "timed"]


class End(NamedTuple):
    """The end of a run: coefficients, iterations, whether the criterion was met before the most
    of them."""

    coef: np.ndarray
    iterations: int
    met: bool


class Timed(NamedTuple):
    """A run and its CPU seconds."""

    seconds: float
    end: End


Method = Callable[[int], End]
"""From the most iterations to the end of a run."""


def timed(method: Method, most: int) -> Timed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that ends early is marked
        start = time.process_time()
        end = method(most)
        return Timed(time.process_time() - start, end)


def own(model: MulticlassSVC, split: Split, change: float) -> Method:
    """FBPD as printed, stopped by the relative change of its iterates."""
    model.set_params(solver="fbpd", stopping="iterate-change", tol=change)

    def run(most: int) -> End:
        told = model.set_params(max_iter=most).fit(split.X, split.y).certificate_
        return End(model.coef_.copy(), told.n_iter, told.n_iter < most)

    return run


def losses(scores: np.ndarray, y: np.ndarray) -> float:
    """The sum of the hinges at scores (n, n_classes)."""
    rows, codes = np.arange(y.size), np.unique(y, return_inverse=True)[1]
    margins = 1.0 + scores - scores[rows, codes][:, None]
    margins[rows, codes] = 0.0
    return float(margins.max(axis=1).sum())


def mean_cells(draws: Sequence[Mapping[str, Timed]]) -> list[str]:
    """Of each method the mean seconds and iterations; ">" where a run was cut off."""
    cells = []
    for name in draws[0]:
        runs = [draw[name] for draw in draws]
        mean = float(np.mean([run.seconds for run in runs]))
        count = round(float(np.mean([run.end.iterations for run in runs])))
        cut = "" if all(run.end.met for run in runs) else "> "
        cells.append(f"{cut}{seconds(mean)} ({count})")
    return cells
