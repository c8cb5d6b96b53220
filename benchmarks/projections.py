"""`python -m benchmarks projections`: multiplier searches, Table 2 of Ito, Takeda, Toh (2017)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import RESULTS, seconds, table, write_section
from proxmargin.compiled.projections.knapsack import Knapsack
from proxmargin.projections import METHODS, box_hyperplane_multiplier, capped_simplex

SIZES = ((100_000, 10.0), (100_000, 1000.0), (1_000_000, 10.0), (1_000_000, 1000.0))
NU = 0.5
CLASS_TOTAL = 0.5  # of each of the two classes of the nu-SVM
DEFAULT = "pivot"
Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": perf_counter, "cpu": process_time}
DRIFT = 1e-3  # of the range: how far the points of a warm start have moved, as between iterations


@dataclass(frozen=True)
class Run:
    """One projection of both classes."""

    milliseconds: float
    rounds: int | None  # of a search, where one is needed


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=20, help="random points (default 20)")
    parser.add_argument(
        "--sizes", type=int, default=len(SIZES), help="only the first so many sizes"
    )
    parser.add_argument(
        "--clock", choices=list(CLOCKS), default="wall", help="cpu for a machine that is busy"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    rows: list[list[str]] = []
    for name in METHODS:  # compiled before the first clock starts
        capped_simplex(np.arange(10_000.0), 1.0, 0.5, method=name)
    for n, span in SIZES[: arguments.sizes]:
        runs = _runs(n, span, arguments.trials, CLOCKS[arguments.clock])
        rows += [_cells(n, span, name, done) for name, done in runs.items()]
        print("\n".join(" ".join(row) for row in rows[-len(runs) :]), flush=True)
        write_section(
            "projections",
            "Projections (Table 2 of Ito et al.)",
            _body(arguments.trials, arguments.clock, rows),
            arguments.results,
        )
    return 0


def _runs(n: int, span: float, trials: int, clock: Clock) -> dict[str, list[Run]]:
    """All methods on the same points, in turn, so that a busy machine slows each alike."""
    warm = "from a guess"
    runs: dict[str, list[Run]] = {name: [] for name in (*METHODS, warm)}
    for seed in range(trials):
        rng = np.random.default_rng([n, int(span), seed])
        point = rng.uniform(0.0, span, n)
        before = point + rng.uniform(-DRIFT * span, DRIFT * span, n)
        for name in METHODS:
            runs[name].append(_run(point, name, [None, None], clock))
        guesses = [_theta(part) for part in _classes(before)]
        runs[warm].append(_run(point, DEFAULT, guesses, clock))
    return runs


def _run(
    point: NDArray[np.float64], method: str, guesses: Sequence[float | None], clock: Clock
) -> Run:
    cap = 1.0 / (point.size * NU)
    parts = list(zip(_classes(point), guesses, strict=True))
    start = clock()
    for part, guess in parts:
        capped_simplex(part, CLASS_TOTAL, cap, method=method, guess=guess)
    taken = clock() - start
    searched = all(guess is None for guess in guesses)
    rounds = sum(_rounds(part, cap, method) for part, _ in parts) if searched else None
    return Run(1e3 * taken, rounds)


def _classes(point: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The entries of the two classes, which are equally large here."""
    return point[: point.size // 2], point[point.size // 2 :]


def _theta(part: NDArray[np.float64]) -> float:
    cap = 1.0 / (2 * part.size * NU)
    return box_hyperplane_multiplier(part, 1.0, CLASS_TOTAL, 0.0, cap)[1]


def _rounds(part: NDArray[np.float64], cap: float, method: str) -> int:
    one, zero, most = np.ones(1), np.zeros(1), np.full(1, cap)
    problem = Knapsack(part, one, zero, most, CLASS_TOTAL)
    return METHODS[method](problem)[1]


def _body(trials: int, clock: str, rows: Sequence[Sequence[str]]) -> str:
    head = ["entries", "range", "method", "mean ms", "deviation", "mean rounds", "deviation"]
    return f"""- Uniform points onto the set of the nu-SVM with nu {NU:g}: two classes of half of
  the entries, each with sum {CLASS_TOTAL:g} and cap 1/(m nu). {clock.capitalize()} times are of
  both classes, with the checks of the input and the new array; rounds are trial values of the
  multiplier, of both classes together. Means and standard deviations over {trials} points.
- The caps of half of its entries add up to the sum of a class, so that h has a plateau at its
  root. "from a guess" is Newton's method from the multipliers of points that differ by up to
  {DRIFT:g} of the range.
- bisection is Algorithm 2 of the paper, refined-bisection its Algorithm 5, pivot a breakpoint
  search of which a sample does most of the work. The paper's own times, by Algorithm 2 in C++ on
  other hardware: 4.9, 5.5, 49.9, 53.4 ms; its breakpoint search: 8.3, 9.0, 94.2, 99.1 ms.

{table(head, rows)}"""


def _cells(n: int, span: float, name: str, runs: Sequence[Run]) -> list[str]:
    times = [run.milliseconds for run in runs]
    rounds = [run.rounds for run in runs if run.rounds is not None]
    return [
        f"{n:,}",
        f"[0, {span:g}]",
        name,
        seconds(fmean(times)),
        seconds(_deviation(times)),
        *((f"{fmean(rounds):.1f}", f"{_deviation(rounds):.1f}") if rounds else "--"),
    ]


def _deviation(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
