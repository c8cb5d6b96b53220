"""The problems of `python -m benchmarks scale`: models, tolerances, and data made by chunks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

GIGABYTE = 1_000_000_000
CHUNK = 1 << 25  # bytes of rows made, copied or multiplied at a time: 32 MB
MODELS = ("HuberizedSVC", "SparseLogisticRegression")
ALPHA, L1_RATIO, TOL = 0.01, 0.9, 1e-6
INFORMATIVE = 30  # features with an effect
MEMORY = 2 * GIGABYTE  # limit of the process that fits


def planted(rows: int, features: int, seed: int, kind: DTypeLike = np.float32) -> tuple[Any, Any]:
    """Rows of a logistic model with few effects, features with a common factor."""
    rng, kind = np.random.default_rng(seed), np.dtype(kind)
    X = rng.standard_normal((rows, features), dtype=kind)
    X += kind.type(0.5) * rng.standard_normal((rows, 1), dtype=kind)
    effects = np.where(np.arange(features) < INFORMATIVE, 0.3, 0.0).astype(kind)
    effects[1::2] *= -1
    return X, (X @ effects + rng.logistic(size=rows) > 0).astype(np.int8)


def blocks(n: int, row: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of parts of n rows, for rows of so many bytes."""
    step = max(1, CHUNK // row)
    return ((start, min(step, n - start)) for start in range(0, n, step))


def make(folder: Path, n: int, p: int, kind: np.dtype[Any]) -> None:
    """Write ``X.npy`` and ``y.npy``, unless they are there in this size."""
    X_file, y_file = folder / "X.npy", folder / "y.npy"
    if y_file.exists():
        there = np.load(X_file, mmap_mode="r")
        if there.shape == (n, p) and there.dtype == kind:
            return
    y = np.empty(n, np.int8)
    with X_file.open("wb") as stream:
        header = {"descr": kind.str, "fortran_order": False, "shape": (n, p)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start, rows in blocks(n, kind.itemsize * p):
            X, y[start : start + rows] = planted(rows, p, start, kind)
            X.tofile(stream)
    np.save(y_file, y)


def clocked(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
