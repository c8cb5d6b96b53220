"""Half-samples: drawn in pairs, fitted on several threads, kept in a file that a run continues."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs import Design, as_design
from proxmargin.data.inputs.parameters import drawn_seeds
from proxmargin.data.inputs.targets import Targets, refuse_small_classes
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.paths.descent import solve_grid
from proxmargin.models.paths.found import Found
from proxmargin.models.selection.scoring import no_convergence_warnings
from proxmargin.runtime.files import replaced
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import is_on_cluster, on_cluster, quiet_threads, threads_here
from proxmargin.runtime.types import Array, Facts, Index, Values
from proxmargin.solvers.resuming.journal import Identity

EVERY = 2.0  # seconds between two writes
# errors of NumPy and JSON on damaged archives
DAMAGE = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)
FACTS = "facts"


@dataclass(frozen=True, eq=False)
class PathEntry:
    """The units (features, or clusters of them) that entered the path of a half-sample."""

    units: Index  # (n_entered,) integers, in the order of entry
    strengths: Index  # (n_entered,) integers, the index of the strength at which each entered
    # fits, unmet: numbers of fits, and of those that did not meet their tolerance
    fits: int
    unmet: int
    worst: float  # the largest relative gap of these


@dataclass
class Record:
    """Finished half-samples, in memory and, with a path, in a file that is replaced atomically."""

    path: str | os.PathLike[str] | None  # path-like
    # what decides the result besides the data: a file with other facts is refused
    facts: Facts
    # of the model and the data; None without a path, because digests of data take time
    identity: Identity | None
    n_units: int
    n_strengths: int
    n_halves: int
    entries: dict[int, PathEntry] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock, repr=False)
    _written: float = field(default=-np.inf, repr=False)

    def open(self) -> None:
        """Read the file, or write an empty one, which fails now if it cannot be written.
        ValueError: it is damaged, or of another run. OSError: it cannot be read or written."""
        if self.path is None:
            return
        if os.path.exists(self.path):
            self.entries.update(self._read())
        else:
            self.write()

    def add(self, number: int, entry: PathEntry) -> None:
        """Take in a half-sample, from any thread; the file follows after some seconds."""
        with self._lock:
            self.entries[number] = entry
            if self.path is not None and monotonic() - self._written >= EVERY:
                self.write()

    def write(self) -> None:
        if self.path is None:
            return
        assert self.identity is not None
        facts = {"facts": self.facts, "identity": dataclasses.asdict(self.identity)}
        known = sorted(self.entries.items())
        units = [(np.full(each.units.size, k), each.units, each.strengths) for k, each in known]
        arrays = {
            "halves": np.array([(k, e.fits, e.unmet, e.worst) for k, e in known]).reshape(-1, 4),
            "entered": np.hstack([np.empty((3, 0), np.int64), *map(np.vstack, units)]),
        }
        with replaced(self.path) as stream:
            np.savez(stream, allow_pickle=False, **{FACTS: np.array(json.dumps(facts))}, **arrays)
        self._written = monotonic()

    def _read(self) -> dict[int, PathEntry]:
        halves, entered, facts = _members(self.path)
        self._refuse_another(facts)
        numbers = halves[:, 0].astype(np.intp)
        limits = np.array([[self.n_halves], [self.n_units], [self.n_strengths]])
        within = ((entered >= 0) & (entered < limits)).all() and np.isin(entered[0], numbers).all()
        known = np.isin(numbers, np.arange(self.n_halves)).all()
        if not (within and known and np.unique(numbers).size == numbers.size):
            raise ValueError(f"{os.fspath(self.path or '')} is damaged: remove it")
        own = (entered[1:, entered[0] == number] for number in numbers)
        rows = zip(numbers.tolist(), own, halves[:, 1:].tolist(), strict=True)
        return {
            k: PathEntry(units, at, int(fits), int(unmet), worst)
            for k, (units, at), (fits, unmet, worst) in rows
        }

    def _refuse_another(self, facts: Facts) -> None:
        name = os.fspath(self.path or "")
        try:
            earlier = Identity.from_plain(facts["identity"])
            known = dict(facts["facts"])
        except DAMAGE as error:
            raise ValueError(f"{name} is damaged: remove it") from error
        assert self.identity is not None
        objection = self.identity.objection(earlier)
        for key, value in self.facts.items():
            if objection is None and known.get(key) != value:
                objection = f"it has {key}={known.get(key)!s:.60}, and this run {value!s:.60}"
        if objection is not None:
            raise ValueError(f"{name} belongs to another run: {objection}")


def seed_in(path: str | os.PathLike[str] | None) -> int | None:
    """The seed of the run in a file; None without a file."""
    if path is None or not os.path.exists(path):
        return None
    facts = _members(path)[-1]
    seed = facts.get("facts", {}).get("seed") if isinstance(facts, dict) else None
    if not isinstance(seed, int):
        raise ValueError(f"{os.fspath(path)} is no file of half-samples: choose another name")
    return seed


def _members(path: Any) -> tuple[Values, Values, Any]:
    """What is known of the half-samples, (n_finished, 4); half-samples, units and strengths,
    (3, n_entered); and facts. Executes nothing."""
    try:
        with np.load(path, allow_pickle=False) as file:
            halves, entered = file["halves"].astype(float), file["entered"].astype(np.intp)
            facts = json.loads(str(file[FACTS]))
        if halves.shape[1:] != (4,) or entered.shape[:1] != (3,) or entered.ndim != 2:
            raise ValueError("its arrays have other shapes")
    except DAMAGE as error:
        raise ValueError(
            f"{os.fspath(path)} is no file of half-samples, or damaged: {error}"
        ) from error
    return halves, entered, facts


FEWEST = 4  # samples of a class: at least two in each half


def half_of(
    codes: NDArray[np.intp],
    weights: Values,
    seed: int,
    number: int,
    groups: Index | None = None,
) -> Index:
    """The rows of half-sample ``number`` in order; 2k and 2k + 1 are a pair, drawn apart from
    others. Both have ``floor(m / 2)`` of the m samples of each class with positive weight; of an
    odd number one, drawn by chance, is in neither. With ``groups``, (n_samples,), the same is true
    of groups and the sets of classes that they hold."""
    if groups is not None:
        kinds, live = kinds_of(codes, weights, groups)
        chosen = half_of(kinds, live, seed, number)
        return np.flatnonzero(np.isin(groups, chosen) & (weights > 0))
    pair, second = divmod(number, 2)
    rng = np.random.default_rng([seed, pair])
    parts = []
    for code in range(int(codes.max()) + 1):
        members = rng.permutation(np.flatnonzero((codes == code) & (weights > 0)))
        size = members.size // 2
        parts.append(members[second * size : (second + 1) * size])
    return np.sort(np.concatenate(parts))


def kinds_of(codes: Index, weights: Values, groups: Index) -> tuple[Index, NDArray[np.bool_]]:
    """For each group the number of its set of classes, and whether it has samples at all."""
    present = np.zeros((int(groups.max()) + 1, int(codes.max()) + 1), np.bool_)
    live = weights > 0
    present[groups[live], codes[live]] = True
    kinds = np.unique(present, axis=0, return_inverse=True)[1].ravel()
    return kinds, np.asarray(present.any(axis=1))


def check_classes(
    classes: Values,
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    groups: Index | None = None,
) -> None:
    """Raise ValueError for a class that is too small to be halved, with its name and size, or of
    which the halves of the groups have none."""
    if groups is not None:
        first, second = (codes[half_of(codes, weights, 0, k, groups)] for k in (0, 1))
        lacking = classes[np.setdiff1d(codes, np.intersect1d(first, second))]
        if lacking.size:
            raise ValueError(
                f"groups: too few hold samples of class {lacking[0]!s}: each half of the groups "
                "needs two or more"
            )
    sizes = np.bincount(codes[weights > 0], minlength=classes.size)
    refuse_small_classes(classes, sizes, FEWEST, "half-samples need")


DOUBLED = 2.0  # weight of the samples of a half: their total is that of all, as C multiplies it


@dataclass(frozen=True, eq=False)
class Samples:
    """Validated data, with the given weights of the samples."""

    X: Any
    targets: Targets
    weights: NDArray[np.float64]
    groups: Index | None = None  # (n_samples,), which halves keep whole

    @cached_property
    def design(self) -> Design:
        """Shared by all half-samples."""
        return as_design(self.X)


@dataclass(frozen=True, eq=False)
class HalfSampleTask:
    template: MarginEstimator  # with validated parameters
    grid: Array  # (n_strengths,), from the strongest penalty
    # (n_features,) integers, the unit of each feature; -1 for a feature that does not compete
    units: Index
    limit: int | None  # units after which the path of a half-sample ends
    seed: int = 0

    def entry(self, data: Samples, number: int) -> PathEntry | None:
        """Fit the path of a half-sample; None if interrupted. Other rows have weight zero: no sum
        over the samples reads them, and nothing is copied."""
        rows = half_of(data.targets.codes, data.weights, self.seed, number, data.groups)
        half = np.zeros_like(data.weights)
        half[rows] = DOUBLED * data.weights[rows]
        targets = data.targets.weighted(half, self.template.class_weight)
        assembly = self.template._assembled(data.design, targets)
        entries = Entries(self.units, self.limit)
        for found in solve_grid(self.template, assembly, self.grid):
            entries.take(found)
            if entries.is_full:
                return entries.whole
        complete = entries.count == self.grid.size
        return None if interrupts.pending and not complete else entries.whole

    def in_subprocess(self, data: Samples, number: int) -> tuple[int, PathEntry | None]:
        """The same in another process, with the number."""
        with no_convergence_warnings(), quiet_threads(0):
            return number, self.entry(data, number)


class Entries:
    """Collects the units that enter along a path, up to ``limit``. Of those at the same strength
    the larger coefficient, in units of the penalty, is first, as it would be on a finer grid."""

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


def path_entries(
    settings: Any, task: HalfSampleTask, data: Samples, n_units: int
) -> list[PathEntry]:
    """What entered in each half-sample, in order; the same bits for any number of threads.
    ``settings``: a selector. KeyboardInterrupt: some are not finished; the file has the others."""
    count = 2 * int(settings.n_pairs)
    record = _record(settings, task, data, n_units)
    record.open()
    missing = [number for number in range(count) if number not in record.entries]
    label = f"{type(settings).__name__}: half-samples"
    progress = ProgressBar(label, count, shown=bool(settings.verbose))
    progress.skip(count - len(missing))
    task = replace(task, seed=record.facts["seed"])

    def one(number: int) -> None:
        if interrupts.pending:
            return
        progress.starts(f"half {number % 2 + 1} of pair {number // 2 + 1}")
        take(number, task.entry(data, number))

    def take(number: int, entry: PathEntry | None) -> None:
        if entry is not None:
            record.add(number, entry)
            progress.advance()

    with progress, no_convergence_warnings():
        threads = min(threads_here(settings.n_jobs), len(missing))
        if missing and is_on_cluster():
            for found in on_cluster(task.in_subprocess, replace(data), missing, ordered=False):
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
        arrays += () if data.groups is None else (data.groups,)
        identity = Identity.of(task.template, data.X, data.targets.classes, *arrays)
    return Record(path, facts, identity, n_units, task.grid.size, 2 * count)
