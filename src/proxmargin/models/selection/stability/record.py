"""The file of the half-samples that are finished, from which a run continues."""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.runtime.files import replaced
from proxmargin.solvers.resuming.identity import Identity

Index = NDArray[np.intp]

EVERY = 2.0  # seconds between two writes
# errors of NumPy and JSON on damaged archives
DAMAGE = (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)
FACTS = "facts"
ARRAYS = ("numbers", "sizes", "units", "strengths", "fits", "unmet", "worst")


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
    facts: Mapping[str, Any]
    # of the model and the data; None without a path, because digests of data take time
    identity: Identity | None
    n_units: int
    n_strengths: int
    n_halves: int
    entries: dict[int, PathEntry] = field(default_factory=dict)
    _lock: Any = field(default_factory=Lock, repr=False)
    _written: float = field(default=-np.inf, repr=False)

    def open(self) -> None:
        """Read what the file has, or write an empty one: it fails now if it cannot be written.

        Raises ValueError: the file is damaged, or of another run. Raises OSError: the file cannot
        be read or written.
        """
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
        numbers = sorted(self.entries)
        each = [self.entries[number] for number in numbers]
        empty = np.empty(0, np.int64)
        arrays = {
            "numbers": np.array(numbers, np.int64),
            "sizes": np.array([entry.units.size for entry in each], np.int64),
            "units": np.concatenate([empty, *(entry.units for entry in each)]),
            "strengths": np.concatenate([empty, *(entry.strengths for entry in each)]),
            "fits": np.array([entry.fits for entry in each], np.int64),
            "unmet": np.array([entry.unmet for entry in each], np.int64),
            "worst": np.array([entry.worst for entry in each]),
        }
        with replaced(self.path) as stream:
            np.savez(stream, allow_pickle=False, **{FACTS: np.array(json.dumps(facts))}, **arrays)
        self._written = monotonic()

    def _read(self) -> dict[int, PathEntry]:
        held, facts = _members(self.path)
        self._refuse_another(facts)
        if not self._is_sound(held):
            raise ValueError(f"{os.fspath(self.path or '')} is damaged: remove it")
        ends = np.cumsum(held["sizes"])
        parts = [np.split(held[name], ends[:-1]) for name in ("units", "strengths")]
        counts = (held[name].tolist() for name in ("fits", "unmet", "worst"))
        rows = zip(held["numbers"].tolist(), *parts, *counts, strict=False)
        return {
            number: PathEntry(units.astype(np.intp), at.astype(np.intp), *tally)
            for number, units, at, *tally in rows
        }

    def _refuse_another(self, facts: Mapping[str, Any]) -> None:
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

    def _is_sound(self, held: Mapping[str, NDArray[Any]]) -> bool:
        """Whether the arrays could be those of this run."""
        kinds = {name: "f" if name == "worst" else "i" for name in ARRAYS}
        if any(held[n].dtype.kind != kind or held[n].ndim != 1 for n, kind in kinds.items()):
            return False
        limits = {"numbers": self.n_halves, "units": self.n_units, "strengths": self.n_strengths}
        within = all(np.all((held[n] >= 0) & (held[n] < most)) for n, most in limits.items())
        count, sizes = np.unique(held["numbers"]).size, held["sizes"]
        equal = all(held[n].size == count for n in ("numbers", "sizes", "fits", "unmet", "worst"))
        total = held["units"].size
        matching = np.all(sizes >= 0) and sizes.sum() == total == held["strengths"].size
        return bool(within and equal and matching)


def seed_in(path: str | os.PathLike[str] | None) -> int | None:
    """The seed of the run in a file; None without a file."""
    if path is None or not os.path.exists(path):
        return None
    _, facts = _members(path)
    seed = facts.get("facts", {}).get("seed") if isinstance(facts, dict) else None
    if not isinstance(seed, int):
        raise ValueError(f"{os.fspath(path)} is no file of half-samples: choose another name")
    return seed


def _members(path: Any) -> tuple[dict[str, NDArray[Any]], Any]:
    """The arrays and facts of a file; executes nothing."""
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in ARRAYS}
            facts = json.loads(str(file[FACTS]))
    except DAMAGE as error:
        raise ValueError(
            f"{os.fspath(path)} is no file of half-samples, or damaged: {error}"
        ) from error
    return held, facts
