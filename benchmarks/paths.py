"""`python -m benchmarks paths`: seconds for a path of 100 strengths, each certified."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bandwidth import Pass, one_pass
from benchmarks.datasets import load
from benchmarks.measure import Climb, Limits, climb, judged_on, workers
from benchmarks.objective import HuberizedHinge, Logistic, MarginLoss, SquaredHinge, alpha_max
from benchmarks.peers import absent
from benchmarks.peers.path_peers import PATH_PEERS, FittedPath, PathProblem
from benchmarks.report import RESULTS, seconds, table, write_section

GOAL = 1e-6
DATA = ("colon", "leukemia", "synthetic:100,5000,50,0.5", "synthetic:20000,50,10,0.5")
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
    def title(self) -> str:
        free = "" if self.fit_intercept else ", no intercept"
        return f"{self.loss.name}; {self.data}{free}"


Rows = dict[PathSpec, Mapping[str, Climb]]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--solvers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--alphas", type=int, default=100, help="strengths of a path (100)")
    parser.add_argument("--eps", type=float, default=1e-2, help="the last over the first (1e-2)")
    parser.add_argument("--l1-ratio", type=float, default=1.0)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a path (30)")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    limits = Limits(
        per_fit=arguments.limit,
        per_ladder=3 * arguments.limit,
        repeats=3,
        clock=arguments.clock,
        threads=arguments.threads,
    )
    peers = [PEERS[name] for name in arguments.solvers if not absent(PEERS[name])]
    rows: Rows = {}
    passes: dict[str, Pass] = {}
    with workers(peers, limits) as crew:
        for name in arguments.data:
            passes[name] = one_pass(load(name).design, limits.threads)
            for loss in arguments.losses:
                for free in (True, False) if loss == "logistic" else (True,):
                    spec = _spec(name, LOSSES[loss], free, arguments)
                    rows[spec] = _row(spec, crew)
                    text = _body(rows, passes, arguments, limits)
                    title = f"Paths of {arguments.alphas} strengths"
                    write_section("paths", title, text, arguments.results, limits.threads)
    return 0


def _spec(name: str, loss: MarginLoss, free: bool, arguments: argparse.Namespace) -> PathSpec:
    """Strengths in geometric progression from the least that leaves no coefficient."""
    data = load(name)
    problem = PathProblem(data.design, data.labels, loss, (1.0,), arguments.l1_ratio, free).at(1.0)
    most = alpha_max(problem, arguments.l1_ratio)
    alphas = np.geomspace(most, arguments.eps * most, arguments.alphas)
    return PathSpec(name, loss, tuple(map(float, alphas)), arguments.l1_ratio, free)


def _row(spec: PathSpec, crew: Mapping[str, Any]) -> dict[str, Climb]:
    data = load(spec.data)
    path = spec.on(data.design, data.labels)
    row = {}
    for name, worker in crew.items():
        if worker.peer.solves(path) is None:
            row[name] = climb(worker, worst_on(path), spec, [GOAL])
            print(f"{spec.title}; {name}: {_told(row[name])}", flush=True)
    return row


def worst_on(path: PathProblem) -> Callable[[FittedPath], float]:
    """The largest certified relative gap over the strengths."""

    def gap(found: FittedPath) -> float:
        return max(judged_on(one)(fit) for one, fit in zip(path, found.fits, strict=True))

    return gap


def _told(one: Climb) -> str:
    if GOAL in one.reached:
        reached = one.reached[GOAL]
        return f"{seconds(reached.seconds)} s at tol {reached.setting:.1e}, gap {reached.gap:.1e}"
    return f"smallest gap {one.smallest_gap:.1e}: {one.ended}"


def _body(
    rows: Rows, passes: Mapping[str, Pass], arguments: argparse.Namespace, limits: Limits
) -> str:
    shapes = "; ".join(
        f"{name} ({load(name).shape_in_words}; {one.in_words})" for name, one in passes.items()
    )
    marks = "; ".join(f"{name}: {peer.mark}" for name, peer in PEERS.items() if peer.mark)
    notes = [
        f"- {name} on {spec.title}: {_told(one)}"
        for spec, row in rows.items()
        for name, one in row.items()
        if one.ended
    ]
    return "\n\n".join(
        [
            f"""- Data, with the time of one product X v: {shapes}.
- {arguments.alphas} strengths in geometric progression from the least that leaves no coefficient
  to {arguments.eps:g} of it; l1_ratio {arguments.l1_ratio:g}. A time is the {limits.clock} time of
  the whole path at the loosest setting (decades, then half decades) at which every strength is
  certified to {GOAL:g} by `benchmarks/objective.py`; at most {limits.per_fit:g} s a path and
  {limits.per_ladder:g} s for the settings of a ladder.
- In brackets: the ratio to the fastest other package. Effective passes: seconds over those of one
  product. Memory: the growth of the process's resident memory to its highest point.
- Packages without paths of their own run in a loop with warm starts. †: {marks}.""",
            _table(rows, passes),
            *(["### Where a solver did not certify", "\n".join(notes)] if notes else []),
        ]
    )


def _table(rows: Rows, passes: Mapping[str, Pass]) -> str:
    head = ["path", "solver", f"s to {GOAL:g}", "products", "effective passes", "MB", "nonzeros"]
    lines = []
    for spec, row in rows.items():
        title = spec.title
        best = min((t for name, t in _times(row).items() if not _is_ours(name)), default=math.inf)
        for name, one in row.items():
            marked = f"{name} †" if PEERS[name].mark else name
            lines.append([title, marked, *_cells(one, best, passes[spec.data])])
            title = ""
    return table(head, lines)


def _is_ours(name: str) -> bool:
    return bool(PEERS[name].package == "proxmargin")


def _times(row: Mapping[str, Climb]) -> dict[str, float]:
    return {name: one.reached[GOAL].seconds for name, one in row.items() if GOAL in one.reached}


def _cells(one: Climb, best: float, a_pass: Pass) -> list[str]:
    if GOAL not in one.reached:
        return ["late" if one.ended.startswith("more than") else "stalls", "", "", "", ""]
    reached = one.reached[GOAL]
    ratio = f" ({reached.seconds / best:.2g})" if math.isfinite(best) else ""
    counted = reached.fitted.passes
    return [
        seconds(reached.seconds) + ratio,
        "" if counted is None else f"{counted:.4g}",
        f"{reached.seconds / a_pass.seconds:.3g}",
        f"{reached.memory / 1e6:.3g}",
        str(reached.nonzeros),
    ]
