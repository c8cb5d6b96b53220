"""Snap ML: coordinate descent in single precision."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "snapml"
    requirements = ["pip::snapml"]
    parameters = {"peer": ["snapml"]}
