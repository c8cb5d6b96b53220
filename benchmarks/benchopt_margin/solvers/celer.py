"""celer: working sets with extrapolated dual points."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "celer"
    requirements = ["pip::celer"]
    parameters = {"peer": ["celer-pn", "celer"]}
