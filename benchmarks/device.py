"""`python -m benchmarks device`: data on a GPU against the same fits on the processor, and cuML."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.scale_problem import ALPHA, L1_RATIO, MODELS, TOL, blocks, planted

SIZES = {"cuda": (1_000_000, 1_000), "cpu": (20_000, 100)}  # rows and features
WARM_ROWS = 2_000  # of a fit before the clock starts, which compiles kernels and starts libraries
RIVAL = "SparseLogisticRegression"  # the model that cuML has too
RIVAL_TOLERANCES = (1e-4, 1e-8)  # of cuML, which proves none
TITLE = "Data on a GPU"
NO_GPU = "not measured: no GPU was found"
STAND_IN = (
    "**PyTorch on the processor stands for a device here: the figures show that the code runs, and "
    "say nothing of a GPU.** "
)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, help="default: 1,000,000; 20,000 on the processor")
    parser.add_argument("--features", type=int, help="default: 1,000; 100 on the processor")
    parser.add_argument(
        "--device", choices=tuple(SIZES), default="cuda", help="cpu: PyTorch on the processor"
    )
    parser.add_argument("--threads", type=int, default=1, help="of BLAS, for fits in memory")
    parser.add_argument("--output", type=Path, help="a folder; default: results/, of cpu none")


def main(arguments: argparse.Namespace) -> int:
    found = device(arguments.device)
    rows, features = SIZES[arguments.device]
    rows, features = arguments.rows or rows, arguments.features or features
    text = NO_GPU if found is None else measured(found, rows, features, arguments.threads)
    output = arguments.output or (RESULTS if arguments.device == "cuda" else None)
    if output is not None:
        write_section("device", TITLE, text, output, arguments.threads)
    print(text)
    return 0


# -- devices


@dataclass(frozen=True)
class Device:
    """A device and the library that computes on it.

    Attributes
    ----------
    name : str
        Device and library, for the reader.
    place : callable
        Moves an array of NumPy there.
    wait : callable
        Returns when all work there is done.
    """

    name: str
    place: Callable[[np.ndarray], Any]
    wait: Callable[[], object]


def device(kind: str) -> Device | None:
    """The device of this kind, by PyTorch or else CuPy; None where there is no GPU."""
    torch = _library("torch")
    if kind == "cpu":
        if torch is None:
            raise SystemExit("--device cpu needs PyTorch: pip install torch")
        return Device(f"PyTorch {torch.__version__} on the processor", torch.asarray, _nothing)
    if torch is not None and torch.cuda.is_available():
        name = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
        return Device(name, lambda X: torch.asarray(X, device="cuda"), torch.cuda.synchronize)
    cupy = _library("cupy")
    if cupy is not None and _gpus_of(cupy):
        properties = cupy.cuda.runtime.getDeviceProperties(0)
        name = f"{properties['name'].decode()}, CuPy {cupy.__version__}"
        return Device(name, cupy.asarray, cupy.cuda.Stream.null.synchronize)
    return None


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _gpus_of(cupy: Any) -> int:
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def _nothing() -> None:
    """Work on the processor is done when its call returns."""


# -- transfers


@dataclass
class Transfers:
    """What travelled between the device and the memory of the processor.

    Attributes
    ----------
    nbytes : int
    seconds : float
        Time of the copies alone: work on the device is waited for before the clock starts.
    """

    nbytes: int = 0
    seconds: float = 0.0

    def timed(self, copy: Callable[[], Any], wait: Callable[[], object]) -> Any:
        wait()
        begun = time.perf_counter()
        found = copy()
        wait()
        self.seconds += time.perf_counter() - begun
        return found


@contextmanager
def observed(there: Device) -> Iterator[Transfers]:
    """Counts and times the transfers of fits from here on."""
    from proxmargin.data.designs.blocks import device as module

    total = Transfers()
    on_host, moved = module.on_host, module.DeviceBlock._moved

    def timed_on_host(values: Any) -> Any:
        found = total.timed(lambda: on_host(values), there.wait)
        total.nbytes += 0 if values is found else found.nbytes
        return found

    def timed_moved(block: Any, values: Any) -> Any:
        total.nbytes += values.nbytes
        return total.timed(lambda: moved(block, values), there.wait)

    module.on_host = timed_on_host
    module.DeviceBlock._moved = timed_moved  # type: ignore[method-assign]
    try:
        yield total
    finally:
        module.on_host = on_host
        module.DeviceBlock._moved = moved  # type: ignore[method-assign]


# -- measurements


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Features in float32, made a few rows at a time, and labels."""
    X, y = np.empty((n, p), np.float32), np.empty(n, np.int8)
    for start, rows in blocks(n, X.itemsize * p):
        part = slice(start, start + rows)
        X[part], y[part] = planted(rows, p, start)
    return X, y


def measured(there: Device, n: int, p: int, threads: int) -> str:
    X, y = data(n, p)
    total = Transfers()
    total.timed(lambda: there.place(X[:WARM_ROWS]), there.wait)  # starts the library
    loading = Transfers()
    placed = loading.timed(lambda: there.place(X), there.wait)
    rows: list[Sequence[str]] = []
    for name in MODELS:
        rows.append(on_device(name, there, placed, y))
        rows.append(in_memory(name, X, y, threads))
        if name == RIVAL:
            rows += cuml(there, placed, X, y)
    head = ("model", "where", "s", "passes", "certified relative gap", "objective")
    head = (*head, "of the s: transfers", "MB transferred")
    is_stand_in = there.wait is _nothing
    return (
        f"{STAND_IN if is_stand_in else ''}{n:,} rows of {p:,} features in float32, "
        f"{X.nbytes / 1e9:.2f} GB; alpha={ALPHA}, l1_ratio={L1_RATIO}, tol={TOL}. Device: "
        f"{there.name}. Moving the data there, once, took {seconds(loading.seconds)} s, which is "
        "not in the table. Fits on the device compute products there in float64; vectors and "
        "matrices of second derivatives travel. Transfers are those of another fit, in which each "
        "copy waits for the work before it. The fit in memory is the default one for NumPy arrays, "
        f"with {threads} thread{'s' if threads > 1 else ''} of BLAS. Gaps are those of "
        "`certificate_`, of cuML of `proxmargin.certify`.\n\n" + table(head, rows)
    )


def estimator(name: str) -> Any:
    import proxmargin

    return getattr(proxmargin, name)(alpha=ALPHA, l1_ratio=L1_RATIO, tol=TOL)


def on_device(name: str, there: Device, placed: Any, y: np.ndarray) -> list[str]:
    estimator(name).fit(placed[:WARM_ROWS], y[:WARM_ROWS])
    there.wait()
    begun = time.perf_counter()
    certificate = estimator(name).fit(placed, y).certificate_
    spent = time.perf_counter() - begun
    with observed(there) as transfers:
        estimator(name).fit(placed, y)
    cells = _cells(name, "device", spent, certificate)
    return [*cells, seconds(transfers.seconds), f"{transfers.nbytes / 1e6:.1f}"]


def in_memory(name: str, X: np.ndarray, y: np.ndarray, threads: int) -> list[str]:
    with threadpool_limits(threads):
        estimator(name).fit(X[:WARM_ROWS], y[:WARM_ROWS])
        begun = time.perf_counter()
        certificate = estimator(name).fit(X, y).certificate_
        spent = time.perf_counter() - begun
    where = f"memory, `{certificate.solver}`"
    return [*_cells(name, where, spent, certificate), "-", "-"]


def _cells(name: str, where: str, spent: float, certificate: Any) -> list[str]:
    found = f"{certificate.n_passes:.1f}", f"{certificate.relative_gap:.1e}"
    return [name, where, seconds(spent), *found, f"{certificate.primal:.8f}"]


def cuml(there: Device, placed: Any, X: np.ndarray, y: np.ndarray) -> list[list[str]]:
    """cuML's elastic net logistic regression on the same data on the device, to two tolerances."""
    from proxmargin import certify
    from proxmargin.data.designs.blocks.device import on_host

    module = _library("cuml")
    if module is None or there.wait is _nothing:
        reason = "not installed" if module is None else "needs a GPU"
        return [[RIVAL, f"cuML: {reason}", *["-"] * 6]]
    strength = {"penalty": "elasticnet", "C": 1.0 / (len(y) * ALPHA), "l1_ratio": L1_RATIO}
    labels, rows = there.place(y.astype(np.float32)), []
    for tol in RIVAL_TOLERANCES:
        other = module.LogisticRegression(**strength, tol=tol, max_iter=100_000)
        other.fit(placed[:WARM_ROWS], labels[:WARM_ROWS])
        there.wait()
        begun = time.perf_counter()
        other.fit(placed, labels)
        there.wait()
        spent = time.perf_counter() - begun
        coef, intercept = (
            on_host(each).astype(float).reshape(-1) for each in (other.coef_, other.intercept_)
        )
        proof = certify(estimator(RIVAL), X, y, coef, intercept, tol=TOL)
        cells = _cells(RIVAL, f"cuML {module.__version__}, tol={tol:g}", spent, proof)
        rows.append([*cells[:3], "-", *cells[4:], "-", "-"])
    return rows
