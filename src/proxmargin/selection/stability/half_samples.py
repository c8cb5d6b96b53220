"""The half-samples of a selection: drawn, fitted on several threads, and kept in a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs import Design, as_design
from proxmargin.inputs.seeds import drawn_seeds
from proxmargin.inputs.targets import Targets
from proxmargin.resuming.identity import Identity
from proxmargin.runtime.cluster import is_on_cluster, on_cluster, threads_here
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import quiet_threads
from proxmargin.selection.fitting import no_convergence_warnings
from proxmargin.selection.stability.halves import HalfSampleTask, PathEntry
from proxmargin.selection.stability.pairs import half_of
from proxmargin.selection.stability.record import Record, seed_in

__all__ = ["HalfSamples", "Samples"]

SEEDS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Samples:
    """Validated data, with the given weights of the samples."""

    X: Any
    targets: Targets
    weights: NDArray[np.float64]

    @cached_property
    def design(self) -> Design:
        """Shared by all half-samples."""
        return as_design(self.X)


@dataclass(frozen=True, eq=False)
class Half:
    """How a half-sample is fitted."""

    task: HalfSampleTask
    seed: int

    def entry(self, data: Samples, number: int) -> PathEntry | None:
        """What entered; None if interrupted."""
        rows = half_of(data.targets.codes, data.weights, self.seed, number)
        return self.task.entry(data.design, data.targets, data.weights, rows)

    def apart(self, data: Samples, number: int) -> tuple[int, PathEntry | None]:
        """The same in another process, with the number."""
        with no_convergence_warnings(), quiet_threads(0):
            return number, self.entry(data, number)


@dataclass(frozen=True, eq=False)
class HalfSamples:
    """How they are drawn and fitted.

    Parameters
    ----------
    n_pairs : int
    random_state : int, numpy.random.Generator, RandomState or None
    checkpoint : path-like or None
        The file of those that are finished.
    n_jobs : int or None
        Threads, where joblib has no cluster. Halves are fitted each on its own: the result has the
        same bits for any number.
    label : str or None
        Of the progress; None shows none.
    """

    n_pairs: int
    random_state: Any
    checkpoint: Any
    n_jobs: int | None
    label: str | None

    def entries(self, task: HalfSampleTask, data: Samples, n_units: int) -> list[PathEntry]:
        """What entered in each half-sample, in their order.

        Raises
        ------
        KeyboardInterrupt
            Some are not finished; the file has the others.
        """
        count = 2 * self.n_pairs
        record = self._record(task, data, n_units)
        record.open()
        seed = record.facts["seed"]
        missing = [number for number in range(count) if number not in record.entries]
        progress = ProgressBar(self.label or "", count, shown=self.label is not None)
        progress.skip(count - len(missing))

        half = Half(task, seed)

        def one(number: int) -> None:
            if interrupts.pending:
                return
            progress.starts(f"half {number % 2 + 1} of pair {number // 2 + 1}")
            take(number, half.entry(data, number))

        def take(number: int, entry: PathEntry | None) -> None:
            if entry is not None:
                record.add(number, entry)
                progress.advance()

        with progress, no_convergence_warnings():
            if missing and is_on_cluster():
                for found in on_cluster(half.apart, replace(data), missing, ordered=False):
                    take(*found)
            else:
                _each(one, missing, min(threads_here(self.n_jobs), len(missing)))
        if missing:
            record.write()
        if len(record.entries) < count:
            kept = "" if self.checkpoint is None else f"; {self.checkpoint} has them"
            raise KeyboardInterrupt(f"after {len(record.entries)} of {count} half-samples{kept}")
        return [record.entries[number] for number in range(count)]

    def _record(self, task: HalfSampleTask, data: Samples, n_units: int) -> Record:
        """The file of this run, or none; with the seed of an earlier run if there is no own."""
        seed = seed_in(self.checkpoint) if self.random_state is None else None
        if seed is None:
            (seed,) = drawn_seeds(self.random_state, 1, below=SEEDS)
        facts = {
            "seed": seed,
            "n_pairs": self.n_pairs,
            "q": task.limit,
            "alphas": [float(strength) for strength in task.grid],
            "units": hashlib.sha256(task.units.astype("<i8").tobytes()).hexdigest(),
        }
        identity = None
        if self.checkpoint is not None:
            arrays = (*data.targets.arrays, data.weights)
            identity = Identity.of(task.template, data.X, data.targets.classes, *arrays)
        return Record(self.checkpoint, facts, identity, n_units, task.grid.size, 2 * self.n_pairs)


def _each(one: Callable[[int], None], numbers: list[int], threads: int) -> None:
    """Call for each number, on several threads."""
    if threads <= 1:
        for number in numbers:
            one(number)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(one, numbers):
            pass
