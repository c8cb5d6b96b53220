"""Expressions of 2,000 genes in 62 samples of colon tissue, 40 of tumours.

Those of Alon et al. (1999) where ``PROXMARGIN_DATA`` names a folder with ``data/colon.npz``, and
simulated ones of the same shape otherwise: twenty pathways move five genes each, and four of the
pathways differ in tumours.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["load"]


def load() -> tuple[NDArray[np.float64], NDArray[np.str_], str]:
    """Log expressions (62, 2000), classes (62,), and in words what they are."""
    stored = Path(os.environ.get("PROXMARGIN_DATA", ""), "data", "colon.npz")
    if stored.is_file():
        with np.load(stored, allow_pickle=False) as file:
            y = np.where(file["y"] == "t", "tumor", "normal")
            return np.log10(file["X"]), y, "the samples of Alon et al. (1999)"
    rng = np.random.default_rng(0)
    y = np.repeat(["normal", "tumor"], [22, 40])
    pathways = rng.standard_normal((62, 20))
    pathways[y == "tumor", :4] += 1.2
    X = rng.standard_normal((62, 2000))
    X[:, :100] += 1.5 * np.repeat(pathways, 5, axis=1)
    return X, y, "simulated samples"
