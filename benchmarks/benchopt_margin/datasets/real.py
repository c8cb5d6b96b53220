"""The real data sets, from `$PROXMARGIN_DATA/data`."""

from __future__ import annotations

from typing import Any

from benchmark_utils import PeerSolver  # noqa: F401  (makes `benchmarks` importable)
from benchmarks.datasets import READERS, load
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "real"
    parameters = {"which": list(READERS)}

    def get_data(self) -> dict[str, Any]:
        data = load(self.which)
        return {"design": data.design, "labels": data.labels}
