"""The library's own solvers."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "proxmargin"
    requirements = ["pip::proxmargin"]
    parameters = {"peer": ["proxmargin auto", "proxmargin gcd", "proxmargin fapg-ws"]}
