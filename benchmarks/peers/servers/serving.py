"""The protocol of peers/remote.py, for servers in Python.

These run in another environment: nothing here imports the benchmarks.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix


class Server:
    """The data in hand and the files in the folder; `prepared` is how a package wants the data."""

    def __init__(self, folder: Path, prepared: Callable[[Any], Any]) -> None:
        self.folder, self.prepared = folder, prepared
        self.design: Any = None
        self.repeats = 1
        self.times = (0.0, 0.0)

    def dense(self, rows: int, columns: int) -> None:
        entries = self._taken("design", float)
        self.design = self.prepared(entries.reshape((rows, columns), order="F"))

    def sparse(self, rows: int, columns: int, stored: int) -> None:
        names = {"data": float, "indices": np.int32, "indptr": np.int32}
        parts = tuple(self._taken(name, kind) for name, kind in names.items())
        assert len(parts[0]) == stored
        self.design = self.prepared(csc_matrix(parts, shape=(rows, columns)))

    def vector(self, name: str) -> np.ndarray:
        return np.fromfile(self.folder / name)

    def _taken(self, name: str, kind: type) -> np.ndarray:
        path = self.folder / name
        found = np.fromfile(path, dtype=kind)
        path.unlink()
        return found

    def emit(self, coefs: Any, intercepts: Any) -> None:
        """Coefficients (..., features) and intercepts (...), for `path` and `cv` to read."""
        np.ascontiguousarray(coefs, dtype=float).tofile(self.folder / "coefs")
        np.ascontiguousarray(intercepts, dtype=float).tofile(self.folder / "intercepts")

    def clocked(self, call: Callable[[], Any]) -> Any:
        """What the call returns; its seconds, the mean of as many as asked for, are the answer."""
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(self.repeats):
            found = call()
        spent = time.perf_counter() - wall, time.process_time() - cpu
        self.times = (spent[0] / self.repeats, spent[1] / self.repeats)
        return found


def serve(server: Server, commands: dict[str, Callable[..., None]]) -> None:
    """Answer the lines of the standard input; what packages print goes to the standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    known = {"dense": server.dense, "sparse": server.sparse, **commands}
    warnings.simplefilter("ignore")  # a fit that stopped early shows in its gap
    for line in sys.stdin:
        name, *words = line.split()
        given = dict(word.split("=", 1) for word in words)
        server.times = (0.0, 0.0)
        server.repeats = int(given.pop("times", 1))
        try:
            known[name](**{key: _number(word) for key, word in given.items()})
            told = "{!r} {!r}".format(*server.times)
        except Exception as error:  # whatever a package raises is a result of the benchmark
            told = f"trouble {type(error).__name__}: {' '.join(str(error).split())}"
        print(told, file=answers, flush=True)


def _number(word: str) -> float | int:
    return int(word) if word.isdigit() else float(word)
