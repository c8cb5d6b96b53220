"""`python -m benchmarks drsvm`: seconds of solvers of the hinge with an elastic net.

The tables of Liu et al. (2013) are those of `benchmarks.papers.liu`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.datasets import load
from benchmarks.family import Hinge
from benchmarks.measure import Climb, Limits, Spec, climb, workers
from benchmarks.objective import Floats
from benchmarks.peers.drsvm import (
    OURS,
    ClarabelDrsvmPeer,
    OwnDrsvmPeer,
    reference,
    relative_gap,
)
from benchmarks.report import RESULTS, seconds, table, write_section

GOALS = (1e-3, 1e-6)
DATA = ("synthetic:50,2000,10,0.5", "colon", "leukemia", "a9a@5000", "news20@2000")
L1_RATIOS = (0.9, 0.5)
L1_SHARE = 0.1  # of the least alpha without coefficients


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit (10)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--clarabel-size", type=int, default=1_000_000, help="most stored entries")
    parser.add_argument("--section", default="drsvm-times", help="name of the section in the file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that stop early show in their gaps
        body = f"{_method(arguments)}\n\n{_times_table(arguments)}"
    title = "Doubly regularised machines: seconds to a certified gap"
    write_section(arguments.section, title, body, arguments.results)
    return 0


def _method(arguments: argparse.Namespace) -> str:
    return f"""- Model: mean hinge + l1 |w|_1 + l2/2 |w|^2; alpha is {L1_SHARE:g} of the least
  without coefficients. {arguments.clock} time; at most {arguments.limit:g} s a fit. Kernels are
  compiled beforehand.
- A time is that of the loosest setting in a solver's ladder with the gap, judged by (w, b) and a
  dual point of ours at 1e-10. Clarabel's time is that of its own call, without the translation by
  cvxpy. `late`: over a limit; `stalls`: its tightest setting does not certify; `-`: more samples or
  data than it is given."""


def _times_table(arguments: argparse.Namespace) -> str:
    limit = arguments.limit
    limits = Limits(limit + 2.0, 3 * limit, for_compiling=60.0, clock=arguments.clock)
    peers = [
        *(OwnDrsvmPeer(name, 0.97 * limit) for name in OURS),
        ClarabelDrsvmPeer(arguments.clarabel_size),
    ]
    lines = []
    with workers(peers, limits) as crew:
        for name in arguments.data:
            for spec in _specs(name):
                for cells in _climbed(spec, crew):
                    lines.append(cells)
                    print(" | ".join(cells), flush=True)
    return table(["data", "l1_ratio", "gap", *(peer.name for peer in peers)], lines)


def _specs(name: str) -> Iterator[Spec]:
    import proxmargin

    data = load(name)
    for ratio in L1_RATIOS:
        most = proxmargin.alpha_max(
            proxmargin.ElasticNetSVC(l1_ratio=ratio), data.design, data.labels
        )
        alpha = L1_SHARE * most
        yield Spec(name, Hinge(), alpha * ratio, alpha * (1.0 - ratio))


def _climbed(spec: Spec, crew: dict[str, Any]) -> Iterator[list[str]]:
    data = load(spec.data)
    problem = spec.on(data.design, data.labels)
    dual: Floats = reference(problem)
    for goal in GOALS:
        row = {
            peer: climb(worker, lambda one: relative_gap(problem, one, [dual]), spec, [goal])
            for peer, worker in crew.items()
            if worker.peer.solves(problem) is None
        }
        times = [one.reached[goal].seconds for one in row.values() if goal in one.reached]
        best = min(times, default=float("inf"))
        cells = [_cell(row.get(peer), goal, best) for peer in crew]
        yield [spec.data, f"{problem.l1_ratio:g}", f"{goal:g}", *cells]


def _cell(one: Climb | None, goal: float, best: float) -> str:
    if one is None:
        return "-"
    if goal not in one.reached:
        return "stalls" if one.ended.startswith("its tightest") else "late"
    spent = one.reached[goal].seconds
    text = f"{seconds(spent)} ({spent / best:.1f})"
    return f"**{text}**" if spent == best else text
