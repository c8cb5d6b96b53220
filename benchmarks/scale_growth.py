"""How the time of a pass over data on disk grows with rows, features and chunks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from benchmarks.report import seconds, table
from benchmarks.scale_problem import GIGABYTE, make
from proxmargin import open_dataset
from proxmargin.data.designs.base import Sweep, SweepPoint
from proxmargin.data.designs.blocks import ChunkedDesign

MEGABYTE = 1_000_000
REPEATS = 3  # of a pass, of which the fastest counts


class Case(NamedTuple):
    """Sizes of a pass."""

    rows: int
    features: int
    dtype: str = "float64"
    chunk: float = 32.0  # megabytes


def cases() -> list[Case]:
    by_rows = [Case(n, 64) for n in (500_000, 1_000_000, 2_000_000)]
    by_features = [Case(GIGABYTE // (8 * p), p) for p in (16, 64, 256, 1024)]
    by_type = [Case(2_000_000, 64, "float32")]
    by_chunk = [Case(1_000_000, 64, chunk=size) for size in (0.1, 1.0, 8.0, 128.0)]
    return [*by_rows, *by_features, *by_type, *by_chunk]


def growth(folder: Path) -> str:
    """The section: each row a file, and the time of a pass over it."""
    rows = [_row(case, folder) for case in dict.fromkeys(cases())]
    head = ("rows", "features", "type", "GB", "chunk, MB", "pass, s", "s per GB")
    head = (*head, "with Hessian, s", "s per GB")
    return (
        "A pass of a Newton step over an `.npy` file that the operating system has in its cache: "
        "scores, derivatives of the logistic loss, gradient and curvature in the intercept; and "
        f"the same with the Hessian of all features. The fastest of {REPEATS}.\n\n"
        + table(head, rows)
    )


def _row(case: Case, folder: Path) -> list[str]:
    n, p, kind = case.rows, case.features, np.dtype(case.dtype)
    make(folder, n, p, kind)
    size = n * p * kind.itemsize
    per_chunk = max(1, round(case.chunk * MEGABYTE / (p * kind.itemsize)))
    y = np.load(folder / "y.npy")
    dataset = open_dataset(folder / "X.npy", target=y, chunk_rows=per_chunk)
    sizes = [min(per_chunk, n - start) for start in range(0, n, per_chunk)]
    design = ChunkedDesign(dataset, sizes, None)
    signs = np.where(y > 0, 1.0, -1.0)
    plain, full = (_fastest(design, signs, wanted) for wanted in (None, np.arange(p)))
    cells = [f"{n:,}", str(p), case.dtype, f"{size / GIGABYTE:.2f}", f"{case.chunk:g}"]
    for spent in (plain, full):
        cells += [seconds(spent), seconds(spent / size * GIGABYTE)]
    return cells


def _fastest(design: ChunkedDesign, signs: Any, wanted: Any) -> float:
    coef, centre = np.full(design.n_features, 0.01), np.zeros(design.n_features)

    def sweep() -> Sweep:
        return design.sweep(SweepPoint(coef, 0.0, _derivatives, (signs,), centre, wanted))

    found = []
    for _ in range(REPEATS + 1):  # the first one fills the cache
        begun = time.perf_counter()
        sweep()
        found.append(time.perf_counter() - begun)
    return min(found[1:])


def _derivatives(scores: Any, signs: Any) -> tuple[Any, Any]:
    share = expit(-signs * scores)
    return -signs * share, share * (1.0 - share)
