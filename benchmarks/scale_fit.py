"""A pass or a fit in a process within a limit of memory: prints what it took as JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_problem import ALPHA, L1_RATIO, MEMORY, TOL, blocks

NOTED_EVERY = 0.1  # seconds
WARM_ROWS = 3_000  # of a fit before the clock starts, which compiles kernels


def objective_of(
    X: Any, y: Any, coef: Any, intercept: float, parts: Iterable[tuple[int, int]]
) -> float:
    """The objective of sparse logistic regression, from the data, chunk by chunk."""
    total = 0.0
    for start, rows in parts:
        part = slice(start, start + rows)
        margins = (X[part].astype(float) @ coef + intercept) * np.where(y[part] > 0, 1.0, -1.0)
        total += float(np.logaddexp(0.0, -margins).sum())
    norms = L1_RATIO * np.abs(coef).sum() + 0.5 * (1.0 - L1_RATIO) * coef @ coef
    return total / len(y) + ALPHA * float(norms)


@contextmanager
def watched() -> Iterator[list[int]]:
    """Bytes of memory that no file backs, noted ten times a second."""
    noted, ended = [_own_bytes()], threading.Event()

    def note() -> None:
        while not ended.wait(NOTED_EVERY):
            noted.append(_own_bytes())

    watcher = threading.Thread(target=note)
    watcher.start()
    try:
        yield noted
    finally:
        ended.set()
        watcher.join()


def _own_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


def main(what: str, folder: Path, group: Path | None) -> None:
    if group is None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    else:
        (group / "cgroup.procs").write_text(str(os.getpid()))
    print(json.dumps(PASSES[what](folder) if what in PASSES else fitted(what, folder)))


def printed(folder: Path) -> dict[str, float]:
    """`cat` of the file to nowhere."""
    begun = time.perf_counter()
    with Path(os.devnull).open("wb") as nowhere:
        subprocess.run(["cat", str(folder / "X.npy")], stdout=nowhere, check=True)
    return {"seconds": time.perf_counter() - begun}


def multiplied(folder: Path) -> dict[str, float]:
    """One product of NumPy, by chunks."""
    X = np.load(folder / "X.npy", mmap_mode="r")
    (n, p), kind = X.shape, X.dtype
    right = np.ones(p, kind)
    begun = time.perf_counter()
    with (folder / "X.npy").open("rb") as stream:
        stream.seek(X.offset)
        for _, rows in blocks(n, p * kind.itemsize):
            np.fromfile(stream, kind, rows * p).reshape(rows, p) @ right
    return {"seconds": time.perf_counter() - begun}


PASSES = {"cat": printed, "product": multiplied}


def fitted(model: str, folder: Path) -> dict[str, Any]:
    """A model to its tolerance, in passes."""
    import proxmargin
    from proxmargin import open_dataset

    estimator = getattr(proxmargin, model)(alpha=ALPHA, l1_ratio=L1_RATIO, tol=TOL)
    X = np.load(folder / "X.npy", mmap_mode="r")
    y = np.load(folder / "y.npy")
    some = np.array(X[:WARM_ROWS])
    estimator.fit(open_dataset(some, target=y[:WARM_ROWS], chunk_rows=WARM_ROWS // 2))
    dataset = open_dataset(folder / "X.npy", target=y)
    passes, read = [0], dataset.source.chunks

    def counted(rows: int) -> Any:
        passes[0] += 1
        return read(rows)

    dataset.source.chunks = counted  # type: ignore[method-assign]
    begun = time.perf_counter()
    with watched() as peak:
        certificate = estimator.fit(dataset).certificate_
    return {
        "seconds": time.perf_counter() - begun,
        "passes": passes[0],
        "relative_gap": certificate.relative_gap,
        "objective": certificate.primal,
        "peak_bytes": max(peak),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]) if len(sys.argv) > 3 else None)
