"""`python -m benchmarks scale`: data on disk that outgrow memory, in passes; Dask workers."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS, seconds, table, write_section

GIGABYTE = 1_000_000_000
LEFT_ON_DISK = 20 * GIGABYTE  # that the default size leaves free
CHUNK = 1 << 25  # bytes of rows made, copied or multiplied at a time: 32 MB
MODELS = ("HuberizedSVC", "SparseLogisticRegression")
ALPHA, L1_RATIO, TOL = 0.01, 0.9, 1e-6
INFORMATIVE = 30  # features with an effect
MEMORY = 2 * GIGABYTE  # limit of the process that fits
WORKERS = (1, 2)
BLOCKS = 8  # on the workers
TITLES = {
    "disk": "Data beyond memory: passes over a file",
    "dask": "Data beyond one machine: Dask workers",
}
TINY_ROWS = 4_000  # of a pass that is all overhead


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gigabytes", type=float, help="size; default: all but 20 GB of the disk")
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="where the data are made; kept if given")
    parser.add_argument("--dask-megabytes", type=float, default=400.0)
    parser.add_argument("--parts", nargs="+", choices=("disk", "dask"), default=["disk", "dask"])
    parser.add_argument("--output", type=Path, default=RESULTS)


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="proxmargin-scale-") as temporary:
        folder = arguments.folder or Path(temporary)
        parts = []
        if "disk" in arguments.parts:
            parts.append(on_disk(folder, _size(arguments, folder), arguments.features))
        if "dask" in arguments.parts:
            parts.append(on_workers(arguments.dask_megabytes, arguments.features))
    for name, text in zip(arguments.parts, parts, strict=True):
        write_section(f"scale-{name}", TITLES[name], text, arguments.output)
        print(text)
    return 0


def _size(arguments: argparse.Namespace, folder: Path) -> int:
    if arguments.gigabytes is not None:
        return int(arguments.gigabytes * GIGABYTE)
    return max(shutil.disk_usage(folder).free - LEFT_ON_DISK, GIGABYTE)


# -- data


def planted(rows: int, features: int, seed: int) -> tuple[Any, Any]:
    """Rows of a logistic model with few effects, features with a common factor."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features), dtype=np.float32)
    X += np.float32(0.5) * rng.standard_normal((rows, 1), dtype=np.float32)
    effects = np.where(np.arange(features) < INFORMATIVE, 0.3, 0.0).astype(np.float32)
    effects[1::2] *= -1
    return X, (X @ effects + rng.logistic(size=rows) > 0).astype(np.int8)


def blocks(n: int, p: int) -> Iterator[tuple[int, int]]:
    step = max(1, CHUNK // (4 * p))
    return ((start, min(step, n - start)) for start in range(0, n, step))


def make(folder: Path, n: int, p: int) -> None:
    """Write ``X.npy`` and ``y.npy``, unless they are there in this size."""
    X_file, y_file = folder / "X.npy", folder / "y.npy"
    if y_file.exists() and np.load(X_file, mmap_mode="r").shape == (n, p):
        return
    y = np.empty(n, np.int8)
    with X_file.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, p)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start, rows in blocks(n, p):
            X, y[start : start + rows] = planted(rows, p, start)
            X.tofile(stream)
    np.save(y_file, y)


# -- on disk


def on_disk(folder: Path, nbytes: int, p: int) -> str:
    n = nbytes // (4 * p)
    make(folder, n, p)
    size = n * p * 4 / GIGABYTE
    reading = _clocked(lambda: _cat(folder / "X.npy"))
    product = _clocked(lambda: _product(folder / "X.npy", n, p))
    rows = []
    for model in MODELS:
        found = _fitted(model, folder)
        passes = found["passes"]
        rows.append(
            [
                model,
                f"{passes:.0f}",
                f"{found['relative_gap']:.1e}",
                seconds(found["seconds"]),
                seconds(found["seconds"] / passes / size),
                seconds(found["seconds"] / passes / reading),
                seconds(found["seconds"] / passes / product),
                f"{found['peak_bytes'] / GIGABYTE:.2f}",
                f"{found['objective']:.8f}",
                _rival(model, folder, int(passes), found["objective"], n, p),
            ]
        )
    head = ("model", "passes", "relative gap", "s", "s per pass and GB", "pass / cat")
    head = (*head, "pass / product", "peak GB", "objective", "SGD above it")
    return (
        f"{n:,} rows of {p} features in float32, {size:.1f} GB in one `.npy` file; "
        f"alpha={ALPHA}, l1_ratio={L1_RATIO}, tol={TOL}. Passes count all readings of the file, "
        f"the first one, which checks the data, included. The process that fits is limited to "
        f"{MEMORY / GIGABYTE:.0f} GB of data (`RLIMIT_DATA`); its peak is the resident size. "
        f"`cat` of the file to /dev/null took {seconds(reading)} s, one product of NumPy by chunks "
        f"{seconds(product)} s. SGD: `SGDClassifier.partial_fit`, as many passes over the same "
        "chunks; by how much its objective is above ours, relative.\n\n" + table(head, rows)
    )


def _clocked(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _cat(path: Path) -> None:
    with Path("/dev/null").open("wb") as nowhere:
        subprocess.run(["cat", str(path)], stdout=nowhere, check=True)


def _product(path: Path, n: int, p: int) -> None:
    with path.open("rb") as stream:
        np.lib.format.read_magic(stream)
        np.lib.format.read_array_header_1_0(stream)
        right = np.ones(p, np.float32)
        for _, rows in blocks(n, p):
            np.fromfile(stream, np.float32, rows * p).reshape(rows, p) @ right


def _fitted(model: str, folder: Path) -> dict[str, Any]:
    """The fit of a process of its own, within its limit of memory."""
    command = [sys.executable, "-m", "benchmarks.scale_fit", model, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _rival(model: str, folder: Path, passes: int, ours: float, n: int, p: int) -> str:
    """Relative distance of the objective of stochastic gradients from ours, where they agree."""
    if model != "SparseLogisticRegression":
        return "-"
    from sklearn.linear_model import SGDClassifier

    from benchmarks.scale_fit import objective_of

    y = np.load(folder / "y.npy")
    penalty = {"penalty": "elasticnet", "alpha": ALPHA, "l1_ratio": L1_RATIO}
    other = SGDClassifier(loss="log_loss", **penalty, random_state=0)
    X = np.load(folder / "X.npy", mmap_mode="r")
    for _ in range(passes):
        for start, rows in blocks(n, p):
            part = slice(start, start + rows)
            other.partial_fit(X[part], y[part], classes=[0, 1])
    theirs = objective_of(X, y, other.coef_[0], float(other.intercept_[0]), blocks(n, p))
    return f"{theirs / ours - 1.0:.1e}"


# -- Dask


def spread(rows: int, p: int) -> Any:
    """Blocks that the workers make, so that each has some of them."""
    import dask
    import dask.array as da

    made = [dask.delayed(_features)(rows, p, k) for k in range(BLOCKS)]
    return da.concatenate([da.from_delayed(each, (rows, p), np.float32) for each in made])


def _features(rows: int, p: int, seed: int) -> Any:
    return planted(rows, p, seed)[0]


def on_workers(megabytes: float, p: int) -> str:
    """Time of a fit with one and with two worker processes, and the overhead of a pass."""
    import dask.array as da
    import distributed

    from proxmargin import SparseLogisticRegression
    from proxmargin.designs.blocks.dask_blocks import on_workers as placed

    n = BLOCKS * (int(megabytes * 1e6) // (4 * p * BLOCKS))
    y = np.concatenate([planted(n // BLOCKS, p, k)[1] for k in range(BLOCKS)])
    X = planted(TINY_ROWS, p, 0)[0]
    rows: list[Sequence[str]] = []
    first = None
    for count in WORKERS:
        kind = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster) as client:
            there = client.persist(spread(n // BLOCKS, p))
            distributed.wait(there)
            model = SparseLogisticRegression(alpha=ALPHA, l1_ratio=L1_RATIO, tol=TOL)
            model.fit(there, y)  # compiles the kernels of the workers
            spent = _clocked(lambda model=model, there=there: model.fit(there, y))
            whole, square = placed(there, np.inf), (np.ones(n), np.zeros(p))
            whole.gram(*square)
            hessian = min(_clocked(lambda d=whole, s=square: d.gram(*s)) for _ in range(3))
            tiny = placed(da.from_array(X, chunks=(TINY_ROWS // BLOCKS, -1)), np.inf)
            coef = np.ones((p, 1))
            tiny.scores(coef)
            overhead = min(
                _clocked(lambda tiny=tiny, coef=coef: tiny.scores(coef)) for _ in range(9)
            )
        first = first or (spent, hessian)
        passes = f"{model.certificate_.n_passes:.0f}"
        cells = [str(count), passes, seconds(spent), f"{first[0] / spent:.2f}", seconds(hessian)]
        rows.append([*cells, f"{first[1] / hessian:.2f}", f"{1e3 * overhead:.1f}"])
    head = ("workers", "passes", "fit, s", "speed-up", "pass with Hessian, s", "speed-up")
    head = (*head, "overhead of a pass, ms")
    return (
        f"{n:,} rows of {p} features in float32, {n * p * 4 / 1e6:.0f} MB in {BLOCKS} blocks on "
        "the workers of a `LocalCluster`, each a process of one thread; SparseLogisticRegression "
        f"to {TOL}. Workers need a core each to be faster than one: see the load average. The "
        "model of a sample, where the fit begins, is computed by the client alone. The "
        f"overhead is that of a pass over {TINY_ROWS:,} rows in as many blocks. Device arrays: not "
        "measured, for want of a GPU.\n\n" + table(head, rows)
    )
