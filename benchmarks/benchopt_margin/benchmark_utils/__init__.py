"""What the files of this benchmark share: the peers of `benchmarks`, as solvers of benchopt."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmark_utils.peer_solver import PeerSolver

__all__ = ["PeerSolver"]
