"""What a peer is: a name, a ladder of tolerances, and a fit of one problem at one rung."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import issparse

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Problem

DECADES = tuple(10.0**-k for k in range(1, 13))  # loosest first; a peer takes the part it can use
UNLIMITED = 10**9  # an iteration cap that never binds: the clock ends a fit, not a counter


@dataclass(frozen=True)
class Fitted:
    """Coefficients (p,), intercept, and what the solver told about the way there."""

    coef: Floats
    intercept: float
    passes: float | None = None  # products with X or X', where the solver counts them
    iterations: int | None = None
    note: str = ""


class Peer(Protocol):
    """A solver; `solves` returns None, or in words why this problem is not one of its own."""

    @property
    def name(self) -> str: ...
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
