"""What a peer is: a name, a ladder of tolerances, and a fit of one problem at one rung.

The package of a peer is imported when it fits, so that the others run where it is not installed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Problem

DECADES = tuple(10.0**-k for k in range(1, 13))  # loosest first; a peer takes the part it can use
UNLIMITED = 10**9  # an iteration cap that never binds: the clock ends a fit, not a counter


@dataclass(frozen=True)
class Fitted:
    """Coefficients (p,), intercept, and what the solver told about the way there.

    `dual` are its alpha_i >= 0, where it has them; `clocked` is the (wall, CPU) time of the
    solving alone, for a solver whose call does other work too.
    """

    coef: Floats
    intercept: float
    passes: float | None = None  # products with X or X', where the solver counts them
    iterations: int | None = None
    note: str = ""
    dual: Floats | None = None
    clocked: tuple[float, float] | None = None


class Peer(Protocol):
    """A solver; `solves` returns None, or in words why this problem is not one of its own.

    `package` is the name that it is imported by; `mark` says what of it is not the package's own.
    """

    @property
    def name(self) -> str: ...
    @property
    def package(self) -> str: ...
    @property
    def mark(self) -> str: ...
    @property
    def ladder(self) -> tuple[float, ...]: ...
    def solves(self, problem: Problem) -> str | None: ...
    def prepared(self, design: Design) -> Design: ...
    def fit(self, problem: Problem, setting: float) -> Fitted: ...


def column_major(design: Design) -> Design:
    """CSC or Fortran order: what coordinate methods read; made once, outside the clock."""
    return design.tocsc() if issparse(design) else np.asfortranarray(design)


def row_major(design: Design) -> Design:
    """CSR or C order: what the row methods of scikit-learn read."""
    return design.tocsr() if issparse(design) else np.ascontiguousarray(design)


def absent(peer: Peer) -> str:
    """Why the peer cannot run here; empty where it can."""
    return "" if find_spec(peer.package) else f"{peer.package} is not installed"


def threads() -> int:
    """How many this process was given."""
    return int(os.environ.get("OMP_NUM_THREADS", "1"))


def mean_seconds(fit: Callable[[], Any], times: int) -> tuple[float, float]:
    """(wall, CPU) seconds of a fit, the mean of so many, one right after the other.

    By the clock of the fit itself where it has one (`clocked`).
    """
    watch = Stopwatch()
    with watch.running():
        own = [getattr(fit(), "clocked", None) for _ in range(times)]
    told = [one for one in own if one is not None]
    wall, cpu = np.sum(told, axis=0) if len(told) == times else watch.times
    return float(wall) / times, float(cpu) / times


class Stopwatch:
    """The (wall, CPU) seconds of a block."""

    def __init__(self) -> None:
        self.times = (0.0, 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.times = (time.perf_counter() - wall, time.process_time() - cpu)
