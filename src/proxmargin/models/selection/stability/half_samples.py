"""The half-samples of a selection: drawn in pairs, fitted on several threads, kept in a file."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs import Design, as_design
from proxmargin.data.inputs.seeds import drawn_seeds
from proxmargin.data.inputs.targets import Targets
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.paths.descent import solve_grid
from proxmargin.models.paths.found import Found
from proxmargin.models.selection.splitting import no_convergence_warnings
from proxmargin.models.selection.stability.record import PathEntry, Record, seed_in
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import is_on_cluster, on_cluster, quiet_threads, threads_here
from proxmargin.solvers.resuming.identity import Identity

Index = NDArray[np.intp]

FEWEST = 4  # samples of a class: at least two in each half


def half_of(codes: NDArray[np.intp], weights: NDArray[Any], seed: int, number: int) -> Index:
    """The rows of half-sample ``number``, in increasing order; 2k and 2k + 1 are a pair.

    Both have ``floor(m / 2)`` of the m samples of each class with positive weight: of an odd
    number one sample, drawn by chance, is in neither.

    ``codes``, ``weights``: (n_samples,). ``seed``: pairs are drawn independently of each other, so
    that their order does not matter.
    """
    pair, second = divmod(number, 2)
    rng = np.random.default_rng([seed, pair])
    parts = []
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero((codes == code) & (weights > 0)))
        size = members.size // 2
        parts.append(members[second * size : (second + 1) * size])
    return np.sort(np.concatenate(parts))


def check_classes(
    classes: NDArray[Any], codes: NDArray[np.intp], weights: NDArray[np.float64]
) -> None:
    """Raise ValueError for a class that is too small to be halved, with its name and size."""
    sizes = np.bincount(codes[weights > 0], minlength=classes.size)
    smallest = int(np.argmin(sizes))
    if sizes[smallest] < FEWEST:
        count = int(sizes[smallest])
        raise ValueError(
            f"class {classes[smallest]!s} has {count} sample{'s' * (count != 1)}, and half-samples "
            f"need at least {FEWEST} of each class, two in each half: leave the class out, or join "
            "it with another one"
        )


Array = NDArray[np.float64]

DOUBLED = 2.0  # weight of the samples of a half: their total is that of all, as C multiplies it


@dataclass(frozen=True, eq=False)
class HalfSampleTask:
    template: MarginEstimator  # with validated parameters
    grid: Array  # (n_strengths,), from the strongest penalty
    # (n_features,) integers, the unit of each feature; -1 for a feature that does not compete
    units: Index
    limit: int | None  # units after which the path of a half-sample ends

    def entry(
        self, design: Design, targets: Targets, weights: Array, rows: Index
    ) -> PathEntry | None:
        """Fit the path of some rows; None if interrupted. Other rows have weight zero: no sum over
        the samples reads them, and nothing is copied."""
        half = np.zeros_like(weights)
        half[rows] = DOUBLED * weights[rows]
        assembly = self.template._assembled(
            design, targets.weighted(half, self.template.class_weight)
        )
        entries = Entries(self.units, self.limit)
        for found in solve_grid(self.template, assembly, self.grid):
            entries.take(found)
            if entries.is_full:
                return entries.whole
        complete = entries.count == self.grid.size
        return None if interrupts.pending and not complete else entries.whole


class Entries:
    """Collects the units that enter along a path, until there are ``limit``.

    Of those that enter at the same strength the larger coefficient, in the units that the
    penalty sees, comes first: it would have entered first on a finer grid, were coefficients
    linear in the strength.
    """

    def __init__(self, units: Index, limit: int | None) -> None:
        self.units = units
        self.limit = int(units.max()) + 1 if limit is None else limit
        self.count = 0
        self._seen = np.zeros(int(units.max()) + 1, np.bool_)
        self._shares: list[Index] = []  # what entered at each strength
        self._entered = self._unmet = 0
        self._worst = 0.0

    @property
    def is_full(self) -> bool:
        return self._entered >= self.limit

    def take(self, found: list[Found]) -> None:
        """Take in the solutions of all problems for some strengths."""
        for k in range(found[0].count):
            if self.is_full:
                return
            gaps = [one.certify(k).relative_gap for one in found if not one.met[k]]
            self._unmet += bool(gaps)
            self._worst = max(self._worst, *gaps, 0.0)
            self._admit(*_used(found, k))
            self.count += 1

    def _admit(self, features: Index, sizes: Array) -> None:
        units = self.units[features]
        is_new = (units >= 0) & ~self._seen[units]
        units, sizes = units[is_new], sizes[is_new]
        order = np.lexsort((units, -sizes))
        units = units[order]
        _, first = np.unique(units, return_index=True)
        entering = units[np.sort(first)][: self.limit - self._entered]
        self._seen[entering] = True
        self._entered += entering.size
        self._shares.append(entering)

    @property
    def whole(self) -> PathEntry:
        strengths = np.repeat(np.arange(self.count), [share.size for share in self._shares])
        units = np.concatenate([np.empty(0, np.intp), *self._shares]).astype(np.intp)
        return PathEntry(units, strengths, self.count, self._unmet, self._worst)


def _used(found: list[Found], k: int) -> tuple[Index, Array]:
    """The features of strength k in all problems, and the largest coefficient of each there."""
    parts = [slice(one.starts[k], one.starts[k + 1]) for one in found]
    features = [one.features[part] for one, part in zip(found, parts, strict=True)]
    sizes = [
        np.abs(one.coef[part]).max(axis=1, initial=0.0)
        for one, part in zip(found, parts, strict=True)
    ]
    return np.concatenate(features).astype(np.intp), np.concatenate(sizes)


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
    task: HalfSampleTask
    seed: int

    def entry(self, data: Samples, number: int) -> PathEntry | None:
        """What entered; None if interrupted."""
        rows = half_of(data.targets.codes, data.weights, self.seed, number)
        return self.task.entry(data.design, data.targets, data.weights, rows)

    def in_subprocess(self, data: Samples, number: int) -> tuple[int, PathEntry | None]:
        """The same in another process, with the number."""
        with no_convergence_warnings(), quiet_threads(0):
            return number, self.entry(data, number)


def path_entries(
    settings: Any, task: HalfSampleTask, data: Samples, n_units: int
) -> list[PathEntry]:
    """What entered in each half-sample, in their order; the same bits for any number of threads.

    ``settings``: a selector, with the parameters on how half-samples are drawn and fitted. Raises
    KeyboardInterrupt: some are not finished; the file has the others.
    """
    count = 2 * int(settings.n_pairs)
    record = _record(settings, task, data, n_units)
    record.open()
    missing = [number for number in range(count) if number not in record.entries]
    label = f"{type(settings).__name__}: half-samples"
    progress = ProgressBar(label, count, shown=bool(settings.verbose))
    progress.skip(count - len(missing))
    half = Half(task, record.facts["seed"])

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
        threads = min(threads_here(settings.n_jobs), len(missing))
        if missing and is_on_cluster():
            for found in on_cluster(half.in_subprocess, replace(data), missing, ordered=False):
                take(*found)
        elif threads <= 1:
            for number in missing:
                one(number)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(one, missing))
    if missing:
        record.write()
    if len(record.entries) < count:
        kept = "" if settings.checkpoint is None else f"; {settings.checkpoint} has them"
        raise KeyboardInterrupt(f"after {len(record.entries)} of {count} half-samples{kept}")
    return [record.entries[number] for number in range(count)]


def _record(settings: Any, task: HalfSampleTask, data: Samples, n_units: int) -> Record:
    """The file of this run, or none; with the seed of an earlier run if there is no own."""
    path, count = settings.checkpoint, int(settings.n_pairs)
    seed = seed_in(path) if settings.random_state is None else None
    if seed is None:
        (seed,) = drawn_seeds(settings.random_state, 1, below=SEEDS)
    facts = {
        "seed": seed,
        "n_pairs": count,
        "q": task.limit,
        "alphas": [float(strength) for strength in task.grid],
        "units": hashlib.sha256(task.units.astype("<i8").tobytes()).hexdigest(),
    }
    identity = None
    if path is not None:
        arrays = (*data.targets.arrays, data.weights)
        identity = Identity.of(task.template, data.X, data.targets.classes, *arrays)
    return Record(path, facts, identity, n_units, task.grid.size, 2 * count)
