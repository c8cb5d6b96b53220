"""scikit-learn: its copy of LIBLINEAR, and SAGA."""

from __future__ import annotations

from benchmark_utils import PeerSolver


class Solver(PeerSolver):
    name = "scikit-learn"
    requirements = ["pip::scikit-learn"]
    parameters = {"peer": ["sklearn-linearsvc", "sklearn-liblinear", "sklearn-saga"]}
