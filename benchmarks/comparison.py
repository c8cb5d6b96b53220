"""`python -m benchmarks peers`: seconds to certified gaps, every solver on every model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.bandwidth import Pass, one_pass
from benchmarks.comparison_table import Case, Circumstances, Results, body, told
from benchmarks.datasets import load
from benchmarks.measure import Climb, Limits, Spec, Worker, climb, judged_on, workers
from benchmarks.objective import (
    Hinge,
    HuberizedHinge,
    Logistic,
    MarginLoss,
    Problem,
    SquaredHinge,
    alpha_max,
)
from benchmarks.peers import ALL, Peer, absent
from benchmarks.peers.drsvm import reference
from benchmarks.report import RESULTS, write_section

GOALS = (1e-3, 1e-6, 1e-9)
LOSSES: dict[str, MarginLoss] = {
    "huberized-1": HuberizedHinge(1.0),
    "huberized-0.5": HuberizedHinge(0.5),
    "squared-hinge": SquaredHinge(),
    "logistic": Logistic(),
    "hinge": Hinge(),
}
DATA = (
    "colon",
    "leukemia",
    "a9a",
    "covtype",
    "news20",
    "synthetic:200,2000,100,0.8",
    "synthetic:2000,20000,200,0",
)
STRENGTHS = ("0.1:1", "0.01:1", "0.1:0.5")  # fraction of alpha_max : l1_ratio


@dataclass(frozen=True)
class Grid:
    """The problems of a run and the seconds a fit may take."""

    data: Sequence[str] = DATA
    strengths: Sequence[str] = STRENGTHS
    limit: float = 10.0


FULL = Grid()
QUICK = Grid(("colon", "a9a"), ("0.1:1", "0.1:0.5"), 5.0)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="colon and a9a, short limits")
    parser.add_argument("--data", nargs="+", help=f"data sets (default {' '.join(DATA)})")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--strengths", nargs="+", metavar="FRACTION:L1_RATIO")
    parser.add_argument("--solvers", nargs="+", choices=ALL, default=list(ALL), metavar="SOLVER")
    parser.add_argument(
        "--goals", nargs="+", type=float, default=list(GOALS), help="certified relative gaps"
    )
    parser.add_argument("--limit", type=float, help="seconds a fit (default 10; the ladder 3 x)")
    parser.add_argument(
        "--repeating", type=float, default=1.0, help="seconds for repeating a short fit (1)"
    )
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1, help="of every solver")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine that is busy"
    )
    parser.add_argument("--section", help="name of the file in the folder")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    if arguments.threads > 1 and arguments.clock == "cpu":
        raise SystemExit("--clock cpu adds up the threads: with --threads 2 use --clock wall")
    grid, goals = _grid(arguments), sorted(arguments.goals, reverse=True)
    limits = Limits(
        grid.limit,
        3 * grid.limit,
        repeating=arguments.repeating,
        clock=arguments.clock,
        threads=arguments.threads,
    )
    asked = [ALL[name] for name in arguments.solvers]
    peers = [peer for peer in asked if not absent(peer)]
    cases = list(_cases(grid, arguments.losses, peers))
    missing = {peer.name: absent(peer) for peer in asked if absent(peer)}
    around = Circumstances(limits, goals, {peer.name: peer for peer in peers}, missing, len(cases))
    section, results, passes = _section(arguments), Results(), dict[str, Pass]()
    with workers(peers, limits) as crew:
        for case in cases:
            if case.data not in passes:
                passes[case.data] = one_pass(load(case.data).design, limits.threads)
            results[case] = row_of(case, crew, goals)
            text = body(results, passes, around)
            title = f"Seconds to a certified gap ({section})"
            write_section(section, title, text, arguments.results, limits.threads)
    return 0


def _section(arguments: argparse.Namespace) -> str:
    usual = "peers-quick" if arguments.quick else "peers"
    threads = f"-{arguments.threads}-threads" if arguments.threads > 1 else ""
    return arguments.section or usual + threads


def _grid(arguments: argparse.Namespace) -> Grid:
    usual = QUICK if arguments.quick else FULL
    return Grid(
        arguments.data or usual.data,
        arguments.strengths or usual.strengths,
        arguments.limit or usual.limit,
    )


def _cases(grid: Grid, losses: Sequence[str], peers: Sequence[Peer]) -> Iterator[Case]:
    """Every model; without an intercept too where some peer has the model only so."""
    for data in grid.data:
        for text in grid.strengths:
            fraction, l1_ratio = (float(part) for part in text.split(":"))
            for name in losses:
                case = Case(data, LOSSES[name], fraction, l1_ratio, True)
                yield case
                bare = replace(case, fit_intercept=False)
                if any(_takes(peer, bare) and not _takes(peer, case) for peer in peers):
                    yield bare


def _takes(peer: Peer, case: Case) -> bool:
    """Whether the model is the peer's, whatever the size of the data."""
    data = load("synthetic:4,2,1,0")
    problem = Problem(
        data.design, data.labels, case.loss, 1.0, 0.0, fit_intercept=case.fit_intercept
    )
    return peer.solves(problem.with_strength(1.0, case.l1_ratio)) is None


def stated(case: Case) -> Problem:
    """The problem at its share of the least strength that leaves no coefficient."""
    data = load(case.data)
    blank = Problem(data.design, data.labels, case.loss, 1.0, 0.0, fit_intercept=case.fit_intercept)
    return blank.with_strength(
        case.fraction * critical_strength(blank, case.l1_ratio), case.l1_ratio
    )


def critical_strength(problem: Problem, l1_ratio: float) -> float:
    """The least that leaves no coefficient; for the hinge by the library's linear program."""
    if not isinstance(problem.loss, Hinge):
        return alpha_max(problem, l1_ratio)
    import proxmargin

    model = proxmargin.ElasticNetSVC(l1_ratio=l1_ratio, fit_intercept=problem.fit_intercept)
    return float(proxmargin.alpha_max(model, problem.design, problem.labels))


def spec_of(case: Case, problem: Problem) -> Spec:
    """What travels to the solvers' processes."""
    return Spec(case.data, case.loss, problem.l1, problem.l2, fit_intercept=case.fit_intercept)


def row_of(case: Case, crew: dict[str, Worker], goals: Sequence[float]) -> dict[str, Climb]:
    problem = stated(case)
    spec = spec_of(case, problem)
    known = [reference(problem)] if isinstance(problem.loss, Hinge) else []
    row = {}
    for name, worker in crew.items():
        if worker.peer.solves(problem) is None:
            row[name] = climb(worker, judged_on(problem, known), spec, goals)
            print(f"{case.loss.name}; {case.title}; {name}: {told(row[name])}", flush=True)
    return row
