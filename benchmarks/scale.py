"""`python -m benchmarks scale`: data on disk that outgrow memory, in passes; Dask workers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.scale_classes import of_classes
from benchmarks.scale_dask import on_workers
from benchmarks.scale_fit import objective_of
from benchmarks.scale_growth import growth
from benchmarks.scale_problem import (
    ALPHA,
    GIGABYTE,
    L1_RATIO,
    MEMORY,
    MODELS,
    TOL,
    blocks,
    clocked,
    make,
)

ROWS = 40_000_000  # by default
LEFT_ON_DISK = 20 * GIGABYTE  # that the default size leaves free
FITTING = GIGABYTE  # of rows that another package fits in memory
DASK_FEATURES = 500
CLASS_FEATURES = 500
TITLES = {
    "disk": "Data beyond memory: passes over a file",
    "growth": "Data beyond memory: how a pass grows",
    "dask": "Data beyond one machine: Dask workers",
    "classes": "Data beyond memory: one-vs-rest in common passes",
}
PARTS = tuple(TITLES)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gigabytes",
        type=float,
        help="size; default: 40 million rows, or all but 20 GB of the disk",
    )
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64")
    parser.add_argument("--folder", type=Path, help="where the data are made; kept if given")
    parser.add_argument("--dask-megabytes", type=float, default=400.0)
    parser.add_argument("--classes-gigabytes", type=float, default=1.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--output", type=Path, default=RESULTS)


def main(arguments: argparse.Namespace) -> int:
    for name in arguments.parts:
        with tempfile.TemporaryDirectory(prefix="proxmargin-scale-") as temporary:
            text = _text_of(name, arguments, arguments.folder or Path(temporary))
        write_section(f"scale-{name}", TITLES[name], text, arguments.output)
        print(text)
    return 0


def _text_of(part: str, arguments: argparse.Namespace, folder: Path) -> str:
    if part == "dask":
        return on_workers(arguments.dask_megabytes, DASK_FEATURES)
    if part == "classes":
        return of_classes(folder, arguments.classes_gigabytes, CLASS_FEATURES)
    if part == "growth":
        return growth(folder)
    kind = np.dtype(arguments.dtype)
    return on_disk(folder, _rows(arguments, folder, kind), arguments.features, kind)


def _rows(arguments: argparse.Namespace, folder: Path, kind: np.dtype[Any]) -> int:
    row = kind.itemsize * arguments.features
    if arguments.gigabytes is not None:
        return int(arguments.gigabytes * GIGABYTE) // row
    allowed = max(shutil.disk_usage(folder).free - LEFT_ON_DISK, GIGABYTE)
    return min(ROWS, allowed // row)


# -- on disk


def on_disk(folder: Path, n: int, p: int, kind: np.dtype[Any]) -> str:
    make(folder, n, p, kind)
    size = n * p * kind.itemsize / GIGABYTE
    found = {}
    with limited(MEMORY) as group:
        reading, product = (_alone(what, folder, group)["seconds"] for what in ("cat", "product"))
        rows = []
        for model in MODELS:
            found[model] = one = _alone(model, folder, group)
            passes = one["passes"]
            cells = [model, f"{passes:.0f}", f"{one['relative_gap']:.1e}", seconds(one["seconds"])]
            paces = [one["seconds"] / passes / unit for unit in (size, reading, product)]
            peak = f"{one['peak_bytes'] / GIGABYTE:.2f}"
            rows.append([*cells, *map(seconds, paces), peak, f"{one['objective']:.8f}"])
        way = "a control group" if group else "`RLIMIT_DATA`"
    head = ("model", "passes", "relative gap", "s", "s per pass and GB", "pass / cat")
    head = (*head, "pass / product", "peak GB", "objective")
    logistic = found["SparseLogisticRegression"]
    return (
        f"{n:,} rows of {p} features in {kind}, {size:.1f} GB in one `.npy` file; "
        f"alpha={ALPHA}, l1_ratio={L1_RATIO}, tol={TOL}. Passes count all readings of the file, "
        f"the first one, which checks the data, included. The process that fits is limited to "
        f"{MEMORY / GIGABYTE:.0f} GB by {way}; its peak is that of memory that no file backs. "
        f"Within the same limit `cat` of the file to /dev/null took {seconds(reading)} s, and one "
        f"product of NumPy by chunks {seconds(product)} s.\n\n{table(head, rows)}\n\n"
        "The objective of SparseLogisticRegression by others, evaluated on all rows: "
        "`SGDClassifier.partial_fit` with as many passes over the file, and scikit-learn's "
        f"`LogisticRegression(solver='saga')` on the first rows, {FITTING / GIGABYTE:.1f} GB of "
        "them, which fit in memory.\n\n"
        + table(
            ("other", "rows", "passes", "s", "above ours, relative"),
            [
                _stochastic(folder, n, p, kind, int(logistic["passes"]), logistic["objective"]),
                _of_first_rows(folder, n, p, kind, logistic["objective"]),
            ],
        )
    )


@contextmanager
def limited(nbytes: int) -> Iterator[Path | None]:
    """A control group with this limit of memory, or None where none can be made."""
    group = Path("/sys/fs/cgroup/memory") / f"proxmargin-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        (group / "memory.limit_in_bytes").write_text(str(nbytes))
        yield group
    finally:
        group.rmdir()


def _alone(what: str, folder: Path, group: Path | None) -> dict[str, Any]:
    """What a process of its own, within its limit of memory, measures (`benchmarks.scale_fit`)."""
    command = [sys.executable, "-m", "benchmarks.scale_fit", what, str(folder)]
    command += [str(group)] if group else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _stochastic(
    folder: Path, n: int, p: int, kind: np.dtype[Any], passes: int, ours: float
) -> list[str]:
    """Stochastic gradients: how far their objective is above ours after as many passes."""
    from sklearn.linear_model import SGDClassifier

    y = np.load(folder / "y.npy")
    penalty = {"penalty": "elasticnet", "alpha": ALPHA, "l1_ratio": L1_RATIO}
    other = SGDClassifier(loss="log_loss", **penalty, random_state=0)
    X = np.load(folder / "X.npy", mmap_mode="r")

    def fit() -> None:
        for _ in range(passes):
            for start, rows in blocks(n, p * kind.itemsize):
                part = slice(start, start + rows)
                other.partial_fit(X[part], y[part], classes=[0, 1])

    spent = clocked(fit)
    return ["SGDClassifier", f"{n:,}", str(passes), seconds(spent), _above(other, X, y, ours)]


def _of_first_rows(folder: Path, n: int, p: int, kind: np.dtype[Any], ours: float) -> list[str]:
    """scikit-learn's model of the rows that fit in memory: how far it is from ours on all rows."""
    from sklearn.linear_model import LogisticRegression

    count = min(n, FITTING // (p * kind.itemsize))
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    some = np.array(X[:count])
    other = LogisticRegression(
        penalty="elasticnet",
        C=1.0 / (ALPHA * count),
        l1_ratio=L1_RATIO,
        solver="saga",
        tol=1e-4,
        random_state=0,
    )
    spent = clocked(lambda: other.fit(some, y[:count]))
    passes = str(int(other.n_iter_[0]))
    name = "LogisticRegression(saga)"
    return [name, f"{count:,}", passes, seconds(spent), _above(other, X, y, ours)]


def _above(other: Any, X: Any, y: Any, ours: float) -> str:
    """How far the objective of a fitted model on all rows is above ours, relative."""
    parts = blocks(len(y), X.shape[1] * X.dtype.itemsize)
    theirs = objective_of(X, y, other.coef_[0], float(other.intercept_[0]), parts)
    return f"{theirs / ours - 1.0:.1e}"
