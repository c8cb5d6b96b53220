"""Timed runs of the algorithms of Chierchia et al. (2015) and of rivals."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.multiclass_data import Split
from benchmarks.papers.claims import ERRORS, Claim, standard_error
from benchmarks.report import seconds
from proxmargin import MulticlassSVC

__all__ = [
    "End",
    "Method",
    "Spent",
    "Timed",
    "Told",
    "joined",
    "losses",
    "mean_cells",
    "own",
    "paired",
    "ratio_told",
    "timed",
]


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


class Spent(NamedTuple):
    """CPU seconds; those of a run that did not get there are a lower bound."""

    seconds: float
    there: bool


Told = tuple[bool | None, str]


def joined(sentence: str, parts: Mapping[str, Told], *, main: bool = False) -> Claim:
    """Holds if all parts do; fails if one does."""
    verdicts = [holds for holds, _ in parts.values()]
    holds = False if False in verdicts else None if None in verdicts else True
    return Claim(sentence, holds, "; ".join(f"{k}: {told}" for k, (_, told) in parts.items()), main)


def paired(
    runs: Sequence[Mapping[str, Spent]], one: str, other: str
) -> tuple[np.ndarray | None, str]:
    """Seconds of both, (2, problems), where one of both gets there: a time that is a lower bound
    makes the ratio one too, against the method that is late."""
    pairs = [(run[one], run[other]) for run in runs]
    known = [(a.seconds, b.seconds) for a, b in pairs if a.there or b.there]
    if len(known) < 2:
        return None, f"one of both gets there on {len(known)} of {len(pairs)}"
    return np.array(known).T, ""


def ratio_told(logs: np.ndarray) -> str:
    within = np.exp(ERRORS * standard_error(logs))
    return f"{np.exp(logs.mean()):.2g} times within a factor of {within:.2g} ({logs.size} problems)"


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
