"""Finds the public data sets and the reference optima that lie beside the checkout; made data.

Nothing here needs them at import time: where they are absent, tests skip and say why.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

CHECKOUT = Path(__file__).resolve().parents[1]


def data_root() -> Path:
    """The folder above ``data/`` and ``reference/``: PROXMARGIN_DATA, or ``../shared``."""
    return Path(os.environ.get("PROXMARGIN_DATA", CHECKOUT.parent / "shared"))


def needs_data(*paths: str) -> Any:
    """A mark that skips a test unless all ``paths`` below `data_root` are there."""
    import pytest  # here, so that benchmarks can use this module without it

    missing = [path for path in paths if not (data_root() / path).exists()]
    reason = f"{', '.join(missing)} not in {data_root()}: set PROXMARGIN_DATA to the folder above"
    return pytest.mark.skipif(bool(missing), reason=reason)


def load_set(name: str, rows: int | None = None) -> tuple[Any, np.ndarray]:
    """Features (array or CSR) and labels of ``data/<name>.npz``; ``rows`` of them at random."""
    with np.load(data_root() / "data" / f"{name}.npz", allow_pickle=False) as file:
        y = file["y"]
        if "X" in file.files:
            X: Any = file["X"]
        else:
            parts = (file["data"], file["indices"], file["indptr"])
            X = sp.csr_matrix(parts, shape=tuple(file["shape"]))
    if rows is not None and rows < y.size:
        chosen = np.sort(np.random.default_rng(0).permutation(y.size)[:rows])
        X, y = X[chosen], y[chosen]
    return X, y


@cache
def _reference() -> ModuleType | None:
    path = data_root() / "reference" / "instances.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("proxmargin_reference_instances", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference_instances(*kinds: str) -> list[dict[str, Any]]:
    """The reference instances of these kinds whose data are there; none without the folder."""
    module = _reference()
    if module is None:
        return []
    return [i for i in module.all_instances() if i["kind"] in kinds and _has_data(i["data"])]


def _has_data(name: str) -> bool:
    return name.startswith("sklearn:") or (data_root() / "data" / f"{name}.npz").exists()


def load_instance(instance: dict[str, Any]) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Features, labels and sample weights (or None) exactly as the optimum was computed for."""
    module = _reference()
    assert module is not None
    return module.load(instance, data_root() / "data")


def clouds(n: int = 40, p: int = 4, apart: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping Gaussian classes of different sizes."""
    rng = np.random.default_rng(17)
    y = (np.arange(n) % 5 < 2).astype(int)
    return rng.standard_normal((n, p)) + apart * (2 * y[:, None] - 1), y


class Vanishing:
    """An array that cannot be read any longer after so many chunks."""

    def __init__(self, X: np.ndarray, reads: int) -> None:
        self.X, self.left = X, reads
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, part: slice) -> np.ndarray:
        self.left -= 1
        if self.left < 0:
            raise FileNotFoundError("X.npy")
        return self.X[part]
