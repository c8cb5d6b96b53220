"""ReHLine: dual coordinate descent."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "rehline"
    requirements = ["pip::rehline"]
    parameters = {"peer": ["rehline"]}
