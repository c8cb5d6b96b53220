"""HiGHS: the hinge with l1 alone, as a linear program."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "highs"
    requirements = ["pip::highspy"]
    parameters = {"peer": ["HiGHS simplex", "HiGHS ipm"]}
