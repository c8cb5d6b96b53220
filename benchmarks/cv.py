"""`python -m benchmarks cv`: seconds to cross-validate a path, every model of it certified."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import path_runs
from benchmarks.objective import Logistic
from benchmarks.paths import PathSpec, worst_on
from benchmarks.peers.cv_peers import CV_PEERS, CvPeer, CvProblem, FittedCv

DATA = ("colon", "leukemia", "synthetic:100,5000,50,0.5", "a9a")
PEERS: dict[str, Any] = {peer.name: peer for peer in CV_PEERS}


@dataclass(frozen=True)
class CvSpec(PathSpec):
    """A path with a number of folds."""

    n_folds: int = 10

    def on(self, design: Any, labels: Any) -> CvProblem:
        return CvProblem(**vars(super().on(design, labels)), n_folds=self.n_folds)

    @property
    def models(self) -> int:
        return (self.n_folds + 1) * len(self.alphas)


def options(parser: argparse.ArgumentParser) -> None:
    path_runs.options(parser, "cv", DATA, list(PEERS))
    parser.set_defaults(limit=120.0)
    parser.add_argument("--folds", type=int, default=10)


def main(arguments: argparse.Namespace) -> int:
    grids = path_runs.grids(arguments, [Logistic()])
    specs = (CvSpec(*grid, n_folds=arguments.folds) for grid in grids)
    marks = "; ".join(f"{name}: {peer.mark}" for name, peer in PEERS.items() if peer.mark)
    remarks = [
        """The same folds and strengths for all; held-out losses and the choice are in the time.
  Every model of every fold is certified on the rows that it was fitted to, and the path of all rows
  too.""",
        """cv.glmnet and our own class keep no coefficients of folds: the same paths are made once
  more, untimed, and have to predict what was predicted. adelie's own cross-validation takes neither
  folds nor strengths: here is its loop over those given. The C of scikit-learn is that of sums: its
  strengths are those of the first fold, and in folds of another size those that this C states.""",
        f"†: {marks}.",
    ]
    title = f"Cross-validation: {arguments.folds} folds of {arguments.alphas} strengths"
    return path_runs.run(arguments, specs, PEERS, worst_of_folds, title, remarks)


def worst_of_folds(peer: CvPeer, problem: CvProblem) -> Callable[[FittedCv], float]:
    """The largest certified relative gap over strengths and folds, and the path of all rows."""
    judges = [worst_on(peer.trained(problem, k)) for k in range(problem.n_folds)]

    def gap(found: FittedCv) -> float:
        gaps = [judge(path) for judge, path in zip(judges, found.folds, strict=True)]
        return max(
            [*gaps, *([] if found.whole is None else [worst_on(problem.whole)(found.whole)])]
        )

    return gap
