"""A prototype of the path engine, beside the data (`engine/fits`): a race, not a package.

Its code is read from there. It has paths only, with a free intercept.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from benchmarks.datasets import Design, data_root
from benchmarks.objective import Floats, HuberizedHinge, Logistic, Problem, SquaredHinge
from benchmarks.peers.base import column_major, row_major

__all__ = ["Prototype"]

KINDS = {Logistic: "logistic", SquaredHinge: "squared_hinge", HuberizedHinge: "huberized"}


@dataclass(frozen=True)
class Prototype:
    """`fit_path` of its two files: for wide dense data, and for tall or sparse data."""

    name: str = "prototype"
    package: str = ""
    mark: str = "no package: the prototype that the path engine started from"

    @property
    def missing(self) -> str:
        return "" if (_folder() / "wide.py").exists() else f"{_folder()} is missing"

    def solves(self, problem: Problem) -> str | None:
        if type(problem.loss) not in KINDS:
            return f"it knows no {problem.loss.name}"
        return None if problem.fit_intercept else "its intercept is free"

    def prepared(self, design: Design) -> Design:
        by_columns = issparse(design) or _is_wide(design)
        return column_major(design) if by_columns else row_major(design)

    def path(self, path: Any, setting: float) -> tuple[Any, Floats, float]:
        """Coefficients, intercepts and passes over the data."""
        with _kernels_elsewhere():
            module = import_module("wide" if _is_wide(path.design) else "tall")
        coefs, intercepts, _, told = module.fit_path(
            path.design,
            path.labels,
            np.asarray(path.alphas),
            path.l1_ratio,
            KINDS[type(path.loss)],
            delta=getattr(path.loss, "delta", 1.0),
            tol=setting,
        )
        return coefs, intercepts, float(told["passes"])


def _folder() -> Path:
    return data_root() / "engine" / "fits"


def _is_wide(design: Design) -> bool:
    return not issparse(design) and design.shape[1] > design.shape[0]


@contextmanager
def _kernels_elsewhere() -> Iterator[None]:
    """Imports from the folder without writing to it: its kernels are kept with temporary files."""
    import numba

    kept, writes = numba.config.CACHE_DIR, sys.dont_write_bytecode
    numba.config.CACHE_DIR = str(Path(tempfile.gettempdir()) / "proxmargin-prototype-kernels")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(_folder()))
    try:
        yield
    finally:
        sys.path.remove(str(_folder()))
        numba.config.CACHE_DIR, sys.dont_write_bytecode = kept, writes
