"""The official LIBLINEAR package."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "liblinear"
    requirements = ["pip::liblinear-official"]
    parameters = {"peer": ["liblinear"]}
