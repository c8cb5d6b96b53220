"""`python -m benchmarks paths`: seconds for a path of 100 strengths, each certified."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import path_runs
from benchmarks.measure import judged_on
from benchmarks.objective import HuberizedHinge, Logistic, MarginLoss, SquaredHinge
from benchmarks.peers.path_peers import PATH_PEERS, FittedPath, PathProblem

DATA = (
    "colon",
    "leukemia",
    "synthetic:100,5000,50,0.5",
    "synthetic:20000,50,10,0.5",
    "a9a",
    "covtype@50000",
    "news20",
)
LOSSES: dict[str, MarginLoss] = {
    "huberized-1": HuberizedHinge(1.0),
    "squared-hinge": SquaredHinge(),
    "logistic": Logistic(),
}
PEERS: dict[str, Any] = {peer.name: peer for peer in PATH_PEERS}


@dataclass(frozen=True)
class PathSpec:
    """A path in a few words: what travels to a solver's process."""

    data: str
    loss: MarginLoss
    alphas: tuple[float, ...]
    l1_ratio: float
    fit_intercept: bool

    def on(self, design: Any, labels: Any) -> PathProblem:
        return PathProblem(
            design, labels, self.loss, self.alphas, self.l1_ratio, self.fit_intercept
        )

    @property
    def kind(self) -> tuple[object, ...]:
        return self.data, type(self.loss), self.l1_ratio < 1.0, self.fit_intercept

    @property
    def models(self) -> int:
        return len(self.alphas)

    @property
    def title(self) -> str:
        net = "" if self.l1_ratio == 1.0 else f", l1_ratio {self.l1_ratio:g}"
        free = "" if self.fit_intercept else ", no intercept"
        return f"{self.loss.name}; {self.data}{net}{free}"


def options(parser: argparse.ArgumentParser) -> None:
    path_runs.options(parser, "paths", DATA, list(PEERS))
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))


def main(arguments: argparse.Namespace) -> int:
    losses = [LOSSES[name] for name in arguments.losses]
    specs = (PathSpec(*grid) for grid in path_runs.grids(arguments, losses))
    marks = "; ".join(f"{name}: {peer.mark}" for name, peer in PEERS.items() if peer.mark)
    remarks = [
        f"Packages without paths of their own run in a loop with warm starts. †: {marks}.",
        """gcdnet, the R package of the huberized and the squared hinge, is not among Debian's
  packages and takes no part.""",
    ]
    title = f"Paths of {arguments.alphas} strengths"
    return path_runs.run(arguments, specs, PEERS, lambda _, path: worst_on(path), title, remarks)


def worst_on(path: PathProblem) -> Callable[[FittedPath], float]:
    """The largest certified relative gap over the strengths."""

    def gap(found: FittedPath) -> float:
        return max(judged_on(one)(fit) for one, fit in zip(path, found, strict=True))

    return gap
