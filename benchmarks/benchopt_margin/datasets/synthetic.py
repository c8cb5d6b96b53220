"""The Gaussian classes of Xu et al. (2015), section 3.1.1."""

from __future__ import annotations

from typing import Any

from benchmark_utils import PeerSolver  # noqa: F401  (makes `benchmarks` importable)
from benchmarks.datasets import load
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """n samples, p features of which s matter, with correlation rho between these."""

    name = "synthetic"
    parameters = {
        "n, p, s, rho": [
            (200, 2000, 100, 0.8),
            (2000, 100, 10, 0.8),
            (2000, 20000, 200, 0.0),
        ],
        "seed": [0],
    }
    test_parameters = {"n, p, s, rho": [(40, 20, 5, 0.0)]}

    def get_data(self) -> dict[str, Any]:
        data = load(f"synthetic:{self.n},{self.p},{self.s},{self.rho},{self.seed}")
        return {"design": data.design, "labels": data.labels}
