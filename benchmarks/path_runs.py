"""What the benchmarks of paths and of their cross-validation share: strengths, and the run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bandwidth import Pass, one_pass
from benchmarks.datasets import DataSet, load
from benchmarks.measure import Climb, Judge, Limits, climb, workers
from benchmarks.objective import MarginLoss, alpha_max
from benchmarks.paths_table import Rows, absence, notes, table_of, told
from benchmarks.peers.path_peers import PathBench, PathProblem
from benchmarks.peers.remote import versions
from benchmarks.report import RESULTS, write_section

GOALS = (1e-4, 1e-6)
WIDE_END = 0.05  # the last strength over the first, for p > n
TALL_END = 0.01  # the same for others
BATCH = 0.05  # seconds: fits that are shorter are timed in batches


def options(
    parser: argparse.ArgumentParser, name: str, data: Sequence[str], peers: Sequence[str]
) -> None:
    parser.add_argument("--data", nargs="+", default=list(data))
    parser.add_argument("--alphas", type=int, default=100, help="strengths of a path (100)")
    parser.add_argument(
        "--eps",
        type=float,
        help=f"the last strength over the first ({WIDE_END:g} for p > n, else {TALL_END:g})",
    )
    parser.add_argument("--l1-ratios", nargs="+", type=float, default=[1.0, 0.5])
    parser.add_argument("--goals", nargs="+", type=float, default=list(GOALS))
    parser.add_argument("--intercepts", nargs="+", choices=("free", "none"), default=["free"])
    parser.add_argument("--solvers", nargs="+", choices=peers, default=list(peers))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of a fit (30)")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu")
    parser.add_argument("--section", default=name, help=f"of the results ({name})")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def grids(arguments: argparse.Namespace, losses: Sequence[MarginLoss]) -> Iterator[tuple[Any, ...]]:
    """Data, loss, strengths, l1_ratio and whether the intercept is free, of every path."""
    for name in arguments.data:
        for loss in losses:
            for l1_ratio in arguments.l1_ratios:
                for intercept in arguments.intercepts:
                    free = intercept == "free"
                    alphas = _alphas(load(name), loss, l1_ratio, free, arguments)
                    yield name, loss, alphas, l1_ratio, free


def _alphas(
    data: DataSet, loss: MarginLoss, l1_ratio: float, free: bool, arguments: argparse.Namespace
) -> tuple[float, ...]:
    """In geometric progression from the least that leaves no coefficient."""
    problem = PathProblem(data.design, data.labels, loss, (1.0,), l1_ratio, free).at(1.0)
    most = alpha_max(problem, l1_ratio)
    rows, columns = data.design.shape
    usual = WIDE_END if columns > rows else TALL_END
    end = most * (usual if arguments.eps is None else arguments.eps)
    return tuple(map(float, np.geomspace(most, end, arguments.alphas)))


def run(
    arguments: argparse.Namespace,
    specs: Iterable[Any],
    peers: Mapping[str, Any],
    judge: Callable[[Any, Any], Judge],
    title: str,
    remarks: Sequence[str],
) -> int:
    """A row for each of the problems and peers; `judge` is given the peer and the problem."""
    limits = Limits(
        per_fit=arguments.limit,
        per_ladder=3 * arguments.limit,
        clock=arguments.clock,
        threads=arguments.threads,
        batch=BATCH,
    )
    asked = [peers[name] for name in arguments.solvers]
    rows: Rows = {}
    passes: dict[str, Pass] = {}
    with workers([peer for peer in asked if not peer.missing], limits, PathBench) as crew:
        for spec in specs:
            if spec.data not in passes:
                passes[spec.data] = one_pass(load(spec.data).design, limits.threads)
            rows[spec] = _row(spec, asked, crew, judge, arguments.goals)
            parts = [
                "\n".join(f"- {one}" for one in [*_around(passes, arguments, limits), *remarks]),
                table_of(rows, peers, passes, arguments.goals),
                *notes(rows, arguments.goals),
            ]
            heading = f"{title} ({arguments.section})"
            text = "\n\n".join(parts)
            write_section(arguments.section, heading, text, arguments.results, limits.threads)
    return 0


def _row(
    spec: Any,
    asked: Sequence[Any],
    crew: Mapping[str, Any],
    judge: Callable[[Any, Any], Judge],
    goals: Sequence[float],
) -> dict[str, Climb]:
    data = load(spec.data)
    problem = spec.on(data.design, data.labels)
    row = {}
    for peer in asked:
        if peer.solves(problem) is None:
            known = peer.name in crew
            row[peer.name] = (
                climb(crew[peer.name], judge(peer, problem), spec, goals)
                if known
                else absence(peer.missing)
            )
            print(f"{spec.title}; {peer.name}: {told(row[peer.name], goals)}", flush=True)
    return row


def _around(
    passes: Mapping[str, Pass], arguments: argparse.Namespace, limits: Limits
) -> Iterator[str]:
    shapes = "; ".join(
        f"{name} ({load(name).shape_in_words}; {one.in_words})" for name, one in passes.items()
    )
    usual = f"{WIDE_END:g} (more features than samples) or {TALL_END:g} (others)"
    end = usual if arguments.eps is None else f"{arguments.eps:g}"
    goals = " and ".join(f"{goal:g}" for goal in arguments.goals)
    yield f"{versions()}."
    yield f"Data, with the time of one product X v: {shapes}."
    yield f"""{arguments.alphas} strengths in geometric progression from the least that leaves no
  coefficient to {end} of it, the same for all; the grids that glmnet makes end at 0.01 and 0.0001.
  No standardisation, samples weigh 1/n."""
    yield f"""A time is the {limits.clock} time at the loosest setting (decades, then half decades)
  at which every model is certified to {goals} by `benchmarks/objective.py`; at most
  {limits.per_fit:g} s a fit and {limits.per_ladder:g} s for the settings of a ladder. Fits below
  {limits.batch:g} s are timed in batches of that length, one fit right after the other: the clock
  of R has a resolution of 1 ms. The fastest of {limits.repeats} batches counts, or of as many as
  {limits.repeating:g} s allows. What runs in another process is timed there."""
    yield """In brackets: the ratio to the fastest other package. Products: with X or X', a model,
  where the package counts them. At the smaller gap: effective passes, seconds over those of one
  product; the growth of the process's resident memory to its highest point, where it is this
  Python's; features of the last strength."""
