"""One-vs-rest on a file: all classes in common passes, against one class after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import seconds, table

CLASSES = 10
INFORMATIVE = 30  # features with an effect
EFFECT = 0.5  # standard deviation of an effect
ALPHA = 0.001  # penalty, of the mean loss
L1_RATIO = 0.9  # share of the l1 norm in it
TOL = 1e-6  # relative gap
ROWS_AT_ONCE = 20_000  # made at a time
WARM_ROWS = 3_000  # of a fit before the clock starts, which compiles kernels


def of_classes(folder: Path, gigabytes: float, p: int) -> str:
    """Readings and seconds of both ways, for rows of ``p`` features in float32."""
    n = int(gigabytes * 1e9) // (4 * p)
    X, y = folder / "X-classes.npy", _made(folder, n, p)
    _fit(X, y, together=True, rows=WARM_ROWS)
    found = [_fit(X, y, together=each) for each in (True, False)]
    rows = []
    for name, (model, reader, wall, cpu) in zip(("together", "in turn"), found, strict=True):
        cells = [name, str(reader.readings), f"{model.certificate_.n_passes:.0f}"]
        rows.append([*cells, seconds(wall), seconds(cpu), seconds(reader.seconds)])
    same = np.array_equal(found[0][0].coef_, found[1][0].coef_)
    head = (
        "classes",
        "readings",
        "passes of certificates",
        "s",
        "CPU s",
        "waiting for the file, s",
    )
    return (
        f"{n:,} rows of {p} features in float32, {n * p * 4 / 1e9:.1f} GB in one `.npy` file, of "
        f"{CLASSES} classes; SparseLogisticRegression(multi_class='ovr'), alpha={ALPHA}, "
        f"l1_ratio={L1_RATIO}, tol={TOL}. Readings include the first one, which checks the data. "
        "Classes are fitted in turn where a callback is told of them. The coefficients of both "
        f"are {'the same to the bit' if same else 'different'}. The CPU time is that of the "
        "products, which each class has of its own.\n\n" + table(head, rows)
    )


def _made(folder: Path, n: int, p: int) -> Any:
    """Labels of a multinomial model with few effects; writes the features to ``X-classes.npy``."""
    rng = np.random.default_rng(0)
    effects = np.zeros((p, CLASSES), np.float32)
    effects[:INFORMATIVE] = EFFECT * rng.standard_normal((min(INFORMATIVE, p), CLASSES))
    y = np.empty(n, np.int8)
    with (folder / "X-classes.npy").open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, p)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, n, ROWS_AT_ONCE):
            rows = min(ROWS_AT_ONCE, n - start)
            X = rng.standard_normal((rows, p), dtype=np.float32)
            X += np.float32(0.5) * rng.standard_normal((rows, 1), dtype=np.float32)
            X.tofile(stream)
            noise = rng.gumbel(size=(rows, CLASSES))
            y[start : start + rows] = (X @ effects + noise).argmax(axis=1)
    return y


class _Reader:
    """Counts the readings of a source, and the time that they take."""

    def __init__(self, source: Any) -> None:
        self._read = source.chunks
        self.readings, self.seconds = 0, 0.0

    def __call__(self, rows: int) -> Iterator[Any]:
        self.readings += 1
        chunks = self._read(rows)
        while True:
            begun = time.perf_counter()
            chunk = next(chunks, None)
            self.seconds += time.perf_counter() - begun
            if chunk is None:
                return
            yield chunk


def _fit(
    X: Path, y: Any, *, together: bool, rows: int | None = None
) -> tuple[Any, _Reader, float, float]:
    """The fitted model, its readings, wall-clock and CPU seconds; of the first rows if given."""
    from proxmargin import SparseLogisticRegression, open_dataset

    callbacks = [] if together else [lambda report: None]
    model = SparseLogisticRegression(
        alpha=ALPHA, l1_ratio=L1_RATIO, tol=TOL, multi_class="ovr", callbacks=callbacks
    )
    if rows is None:
        dataset = open_dataset(X, target=y)
    else:
        some = np.array(np.load(X, mmap_mode="r")[:rows])
        dataset = open_dataset(some, target=y[:rows], chunk_rows=rows // 2)
    dataset.source.chunks = reader = _Reader(dataset.source)  # type: ignore[method-assign]
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(dataset)
    return model, reader, time.perf_counter() - wall, time.process_time() - cpu
