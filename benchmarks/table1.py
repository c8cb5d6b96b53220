"""`python -m benchmarks table1`: settings of B-PGH, the shape of Table 1 of Xu et al. (2015)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from benchmarks.datasets import load
from benchmarks.measure import Limits, Spec, Trial, Trouble, Worker, judged_on, trial, workers
from benchmarks.objective import HuberizedHinge, Problem, alpha_max
from benchmarks.peers.own import OwnPeer
from benchmarks.report import seconds, table, write_section

SIZES = ((3000, 300, 30), (2000, 20000, 200))
TOLERANCE = 1e-6  # of the paper's rule (20)
MOST_ITERATIONS = 2000  # the largest count in the paper's table
DELTA = 1.0
# the paper does not say which penalties it used
L1_FRACTION = 0.1  # of the least strength without coefficients
L2 = 0.01
SETTINGS = (
    ("ours: grown L, re-update", {"backtracking": True, "monotone": True}),
    ("[34]: grown L, no re-update", {"backtracking": True, "monotone": False}),
    ("[38]: L = L_f, no re-update", {"backtracking": False, "monotone": False}),
)


@dataclass(frozen=True)
class Row:
    """One size under one setting, over the trials."""

    size: tuple[int, int, int]
    setting: str
    outcomes: Sequence[Trial | Trouble]
    objectives: Sequence[float]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=3, help="independent data sets (default 3)")
    parser.add_argument(
        "--sizes", type=int, default=len(SIZES), help="only the first so many sizes"
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a fit")


def main(arguments: argparse.Namespace) -> int:
    limits = Limits(per_fit=arguments.limit)
    peers = [_peer(name, settings) for name, settings in SETTINGS]
    rows: list[Row] = []
    with workers(peers, limits) as crew:
        for size in SIZES[: arguments.sizes]:
            for name, worker in crew.items():
                rows.append(_row(size, name, worker, arguments.trials))
                write_section("table1", "Settings of B-PGH (Table 1 of Xu et al.)", _body(rows))
    return 0


def _peer(name: str, settings: dict[str, bool]) -> OwnPeer:
    stop = {"stopping": "relative-change", "max_iter": MOST_ITERATIONS}
    return OwnPeer(name, "b-pgh", {"solver_options": settings, **stop})


def _row(size: tuple[int, int, int], name: str, worker: Worker, trials: int) -> Row:
    outcomes: list[Trial | Trouble] = []
    objectives = []
    for seed in range(trials):
        spec, problem = _stated(size, seed)
        outcome = trial(worker, judged_on(problem), spec, TOLERANCE)
        outcomes.append(outcome)
        if isinstance(outcome, Trial):
            fitted = outcome.fitted
            objectives.append(problem.primal(fitted.coef, fitted.intercept))
        print(f"{size}, {name}, seed {seed}: {_in_words(outcome)}", flush=True)
    return Row(size, name, outcomes, objectives)


def _in_words(outcome: Trial | Trouble) -> str:
    if isinstance(outcome, Trouble):
        return outcome.why
    return f"{outcome.fitted.iterations} iterations, {seconds(outcome.seconds)} s"


def _stated(size: tuple[int, int, int], seed: int) -> tuple[Spec, Problem]:
    name = "synthetic:" + ",".join(str(part) for part in (*size, 0, seed))
    data = load(name)
    loss = HuberizedHinge(DELTA)
    blank = Problem(data.design, data.labels, loss, 1.0, 0.0, intercept_ridge=L2)
    spec = Spec(name, loss, L1_FRACTION * alpha_max(blank, 1.0), L2, intercept_ridge=L2)
    return spec, spec.on(data.design, data.labels)


def _body(rows: Sequence[Row]) -> str:
    trials = max((len(row.outcomes) for row in rows), default=0)
    head = ["(n, p, s)", "setting", "iterations", "seconds", "objective", "certified relative gap"]
    return f"""- Synthetic data of section 3.1.1 with rho 0 and delta {DELTA:g}; lambda2 = lambda3 =
  {L2:g}, lambda1 is {L1_FRACTION:g} of the smallest that gives w = 0. The paper does not print
  its own, so objectives and counts compare between the rows here, not with the paper's.
- Stopped by rule (20) with tolerance {TOLERANCE:g}, at most {MOST_ITERATIONS} iterations.
  Means over the data sets (here {trials}), and the largest gap. The times include our
  certificates.

{table(head, [_cells(row) for row in rows])}"""


def _cells(row: Row) -> list[str]:
    done = [one for one in row.outcomes if isinstance(one, Trial)]
    if len(done) < len(row.outcomes):
        why = next(one.why for one in row.outcomes if isinstance(one, Trouble))
        return [str(row.size), row.setting, why, "-", "-", "-"]
    return [
        str(row.size),
        row.setting,
        f"{fmean(float(one.fitted.iterations or 0) for one in done):.0f}",
        seconds(fmean(one.seconds for one in done)),
        f"{fmean(row.objectives):.5g}",
        f"{max(one.gap for one in done):.1e}",
    ]
