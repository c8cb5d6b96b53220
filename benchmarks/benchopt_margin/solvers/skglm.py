"""skglm: coordinate descent and prox-Newton, with the losses that it does not ship."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "skglm"
    requirements = ["pip::skglm"]
    parameters = {"peer": ["skglm-acd", "skglm-pn", "skglm-acd-shipped", "skglm-pn-shipped"]}
