"""`python -m benchmarks drsvm`: the hinge with an elastic net, Tables 1, 2, 4 of Liu et al. (2013).

The paper sums the losses: its strengths and its rho are divided by the number of samples here.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.datasets import DataSet, load, synthetic
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

# simulated data of the paper
TRAIN = 50
TEST = 500
RELEVANT = 10  # features
WIDTHS = (2000, 5000, 10_000)  # numbers of features
CORRELATIONS = (0.1, 0.5, 0.9)
RIDGE_WIDTHS = (500, 1000, 2000)  # numbers of features, for the table over lambda2
RIDGES = (1, 2, 3, 4, 5, 10, 20, 30, 40, 50)  # lambda2
SPLITS = {"colon": 31, "leukemia": 38}  # training samples
SIMULATED_RIDGE = 10.0  # lambda2 of Table 1
REAL_RIDGE = 1.0  # lambda2 of Table 4
RULE = 1e-4  # tau of the paper
BY_RULE = ("isvm2", "isvm3", "isvm3 as printed", "admm")
GOALS = (1e-3, 1e-6)
DATA = ("synthetic:50,2000,10,0.5", "colon", "leukemia", "a9a@5000", "news20@2000")
L1_RATIOS = (0.9, 0.5)
L1_SHARE = 0.1  # of the least alpha without coefficients
SEED = 2013
PARTS = {
    "simulated": "Simulated data (Table 1)",
    "selected": "True features selected, of ten (Table 2)",
    "expressions": "Gene expressions (Table 4)",
    "times": "Seconds to a certified gap (ratio to the best)",
}


@dataclass(frozen=True)
class Split:
    """Samples to train with, and to test with."""

    train: DataSet
    test: DataSet


@dataclass(frozen=True)
class Run:
    """One fit: how it classifies, what it took, what it selects, what is proven of it."""

    accuracy: float
    seconds: float
    iterations: int
    nonzeros: int
    relevant: int
    gap: float


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=10, help="data sets or splits (10)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit (10)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="of the times to a gap")
    parser.add_argument("--clarabel-size", type=int, default=1_000_000, help="most stored entries")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--section", default="drsvm", help="name of the section in the file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    makers = dict(
        zip(PARTS, (_simulated_table, _ridge_table, _real_table, _times_table), strict=True)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that stop early show in their gaps
        _fitted("auto", _simulated(200, 0.5, 0).train, 1.0, 1.0, arguments)  # compiled beforehand
        parts = [_titled(PARTS[name], makers[name](arguments)) for name in arguments.parts]
    body = "\n\n".join([_method(arguments), *parts])
    title = "Doubly regularised machines (Liu et al.)"
    write_section(arguments.section, title, body, arguments.results)
    return 0


def _method(arguments: argparse.Namespace) -> str:
    return f"""- Model: mean hinge + l1 |w|_1 + l2/2 |w|^2; the paper's lambda, for sums, over n.
  lambda1 is 10 times the largest entry of a linear SVM with C = 1, as the paper chooses it.
- isvm2 (rho 50), isvm3 (rho from 10, growth 1.2, at most 250; "as printed": without a bound) and
  admm stop by the paper's rules with {RULE:g}: |w - u|, and relative changes, three times in a row;
  auto stops by a certified relative gap of 1e-6. `gap` is what the certificate proves at the end.
- Means over {arguments.trials} data sets or random splits; {arguments.clock} time; at most
  {arguments.limit:g} s a fit. Kernels are compiled beforehand.
- Last table: alpha is {L1_SHARE:g} of the least without coefficients. A time is that of the loosest
  setting in a solver's ladder with the gap, judged by (w, b) and a dual point of ours at 1e-10.
  Clarabel's time is that of its own call, without the translation by cvxpy. `late`: over a limit;
  `stalls`: its tightest setting does not certify; `-`: more samples or data than it is given."""


def _titled(title: str, body: str) -> str:
    return f"### {title}\n\n{body}"


# ---- Tables 1 and 4 -----------------------------------------------------------------------------


def _simulated(width: int, correlation: float, seed: int) -> Split:
    rng = np.random.default_rng([SEED, width, int(10 * correlation), seed])
    return Split(
        synthetic(TRAIN, width, RELEVANT, correlation, rng),
        synthetic(TEST, width, RELEVANT, correlation, rng),
    )


def _real(name: str, seed: int) -> Split:
    data = load(name)
    order = np.random.default_rng([SEED, seed]).permutation(data.labels.size)
    parts = [order[: SPLITS[name]], order[SPLITS[name] :]]
    return Split(*(DataSet(name, data.design[part], data.labels[part]) for part in parts))


def _simulated_table(arguments: argparse.Namespace) -> str:
    cases = {
        f"p {p}, r {r:g}": [_simulated(p, r, seed) for seed in range(arguments.trials)]
        for p in WIDTHS
        for r in CORRELATIONS
    }
    return _compared(cases, SIMULATED_RIDGE, arguments)


def _real_table(arguments: argparse.Namespace) -> str:
    cases = {name: [_real(name, s) for s in range(arguments.trials)] for name in SPLITS}
    return _compared(cases, REAL_RIDGE, arguments)


def _compared(cases: dict[str, list[Split]], ridge: float, arguments: argparse.Namespace) -> str:
    head = ["data", "solver", "test accuracy", "training", "seconds", "iterations", "features"]
    lines = []
    for name, splits in cases.items():
        strengths = [_strength(split.train) for split in splits]
        for solver in (*BY_RULE, "auto"):
            runs = [
                _run(solver, split, strength, ridge, arguments)
                for split, strength in zip(splits, strengths, strict=True)
            ]
            lines.append([name, solver, *_means(runs)])
            print(" | ".join(lines[-1]), flush=True)
    return table([*head, "largest gap"], lines)


def _means(runs: Sequence[tuple[Run, float]]) -> list[str]:
    fits = [run for run, _ in runs]
    return [
        f"{fmean(run.accuracy for run in fits):.3f}",
        f"{fmean(training for _, training in runs):.3f}",
        seconds(fmean(run.seconds for run in fits)),
        f"{fmean(run.iterations for run in fits):.0f}",
        f"{fmean(run.nonzeros for run in fits):.0f}",
        f"{max(run.gap for run in fits):.1e}",
    ]


def _strength(data: DataSet) -> float:
    """lambda1 of the paper: ten times the largest coefficient of a support vector machine."""
    import proxmargin

    machine = proxmargin.SVC(C=1.0, tol=1e-6).fit(data.design, data.labels)
    return 10.0 * float(np.abs(machine.coef_).max())


def _run(
    solver: str, split: Split, strength: float, ridge: float, arguments: argparse.Namespace
) -> tuple[Run, float]:
    """The run, and its accuracy on the training samples."""
    model, spent = _fitted(solver, split.train, strength, ridge, arguments)
    live = np.flatnonzero(model.coef_[0])
    run = Run(
        accuracy=float(model.score(split.test.design, split.test.labels)),
        seconds=spent,
        iterations=model.certificate_.n_iter,
        nonzeros=live.size,
        relevant=int((live < RELEVANT).sum()),
        gap=model.certificate_.relative_gap,
    )
    return run, float(model.score(split.train.design, split.train.labels))


def _fitted(
    solver: str, data: DataSet, strength: float, ridge: float, arguments: argparse.Namespace
) -> tuple[Any, float]:
    """The model with these strengths of the paper, and its seconds."""
    import proxmargin

    n = data.labels.size
    settings: dict[str, Any] = {"solver": solver}
    if solver != "auto":
        settings.update(stopping="relative-change", tol=RULE)
    if solver == "isvm3 as printed":
        settings.update(solver="isvm3", solver_options={"largest": np.inf})
    model = proxmargin.ElasticNetSVC(
        alpha=(strength + ridge) / n,
        l1_ratio=strength / (strength + ridge),
        time_limit=arguments.limit,
        **settings,
    )
    clock: Callable[[], float] = (
        time.process_time if arguments.clock == "cpu" else time.perf_counter
    )
    start = clock()
    model.fit(data.design, data.labels)
    return model, clock() - start


# ---- Table 2 ------------------------------------------------------------------------------------


def _ridge_table(arguments: argparse.Namespace) -> str:
    lines = []
    for width in RIDGE_WIDTHS:
        for correlation in CORRELATIONS:
            splits = [_simulated(width, correlation, s) for s in range(arguments.trials)]
            strengths = [_strength(split.train) for split in splits]
            found = [
                fmean(
                    _run("auto", split, strength, ridge, arguments)[0].relevant
                    for split, strength in zip(splits, strengths, strict=True)
                )
                for ridge in RIDGES
            ]
            lines.append([f"p {width}, r {correlation:g}", *(f"{one:.1f}" for one in found)])
            print(" | ".join(lines[-1]), flush=True)
    return table(["data", *(f"lambda2 {ridge}" for ridge in RIDGES)], lines)


# ---- times --------------------------------------------------------------------------------------


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
