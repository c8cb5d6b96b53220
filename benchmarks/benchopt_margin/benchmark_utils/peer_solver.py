"""A solver of benchopt around one of the peers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.objective import Problem
from benchmarks.peers import ALL, Peer, absent
from benchopt import BaseSolver

from benchmark_utils.certified import Certified


class PeerSolver(BaseSolver):
    """`peer` is a name in `benchmarks.peers.ALL`; what is timed is all of its `fit`."""

    sampling_strategy = "tolerance"
    stopping_criterion = Certified()
    peer: str

    @property
    def adapter(self) -> Peer:
        return ALL[self.peer]

    def skip(self, problem: Problem) -> tuple[bool, str | None]:
        reason = absent(self.adapter) or self.adapter.solves(problem)
        return bool(reason), reason or None

    def set_objective(self, problem: Problem) -> None:
        """The data in the layout that the peer reads, which is not timed."""
        self.problem = replace(problem, design=self.adapter.prepared(problem.design))

    def warm_up(self) -> None:
        """Kernels are compiled."""
        self.run(self.adapter.ladder[0])

    def run(self, tolerance: float) -> None:
        self.fitted = self.adapter.fit(self.problem, min(tolerance, self.adapter.ladder[0]))

    def get_result(self) -> dict[str, Any]:
        return {"fitted": self.fitted}
