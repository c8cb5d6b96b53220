"""Clarabel, through cvxpy, whose translation is timed here too."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "clarabel"
    requirements = ["pip::clarabel", "pip::cvxpy"]
    parameters = {"peer": ["Clarabel"]}
