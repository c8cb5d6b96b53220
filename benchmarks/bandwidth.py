"""The physical limit: the time of one pass over X, which no solver that reads X can undercut.

A pass is one product X v: BLAS's gemv for dense data, SciPy's for compressed rows. Data that fit
into a cache are read from there, by the product as by a solver.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks.datasets import Design
from benchmarks.peers.base import row_major

LEAST_SECONDS = 0.5  # of repeated products, of which the fastest counts
LEAST_PRODUCTS = 5


@dataclass(frozen=True)
class Pass:
    """The seconds of a product X v, the fastest of many, and the bytes of X."""

    seconds: float
    size: int

    @property
    def in_words(self) -> str:
        rate = self.size / self.seconds / 1e9
        return f"{1e3 * self.seconds:.3g} ms a pass, {self.size / 1e6:.3g} MB at {rate:.3g} GB/s"


def one_pass(design: Design, threads: int = 1) -> Pass:
    """With one thread or so many, whichever is faster; SciPy's sparse products have one."""
    design = row_major(design)
    return Pass(min(_fastest(design, count) for count in {1, threads}), _size(design))


def _fastest(design: Design, threads: int) -> float:
    """Seconds of a product, the least of many."""
    vector = np.ones(design.shape[1])
    times: list[float] = []
    with threadpool_limits(threads):
        start = time.perf_counter()
        while len(times) < LEAST_PRODUCTS or time.perf_counter() - start < LEAST_SECONDS:
            begin = time.perf_counter()
            design @ vector
            times.append(time.perf_counter() - begin)
    return min(times)


def _size(design: Design) -> int:
    if sp.issparse(design):
        return int(design.data.nbytes + design.indices.nbytes + design.indptr.nbytes)
    return int(design.nbytes)
