"""Table 2 of Ito et al. (2017): searches for the multiplier of a projection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from statistics import fmean, stdev
from time import process_time
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.claims import Claim, decided, judged, order
from benchmarks.papers.ito.agreement import OUR_MEASURE
from benchmarks.papers.ito.bisections import bisection, refined_bisection
from benchmarks.papers.ito.boxes import box_hyperplane_multiplier, capped_simplex
from benchmarks.papers.ito.printed import PROJECTIONS
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import seconds, table
from proxmargin.compiled.projections.knapsack import Knapsack, pivot

__all__ = ["TABLES"]

NU = 0.5
CLASS_TOTAL = 0.5  # of each of the two classes of the nu-SVM
TRIALS = {Size.SMALL: 10, Size.FULL: 20}
BISECTION = "bisection"
BREAKPOINTS = "random pivots"
RIVAL = "the breakpoint search with random pivots"
METHODS = {BISECTION: bisection, "refined-bisection": refined_bisection, BREAKPOINTS: pivot}
WARM = "from a guess"
DRIFT = 1e-3  # of the range: how far the points of a warm start have moved, as between iterations
WITHIN = 0.3  # of the printed mean rounds: other random points


class Run(NamedTuple):
    """One projection of both classes; rounds of a search, where one is needed."""

    milliseconds: float
    rounds: int | None


Cell = tuple[int, float]
Runs = dict[str, list[Run]]


def _table_2(size: Size) -> Outcome:
    for name in METHODS:  # compiled before the first clock starts
        _run(np.arange(20_000.0), name, [None, None])
    found: dict[Cell, Runs] = {}
    for n, span in PROJECTIONS:
        found[n, span] = runs = _runs(n, span, TRIALS[size])
        print(n, span, {name: _mean(done) for name, done in runs.items()}, flush=True)
    rows = [_cells(cell, name, done) for cell, runs in found.items() for name, done in runs.items()]
    head = [
        "entries",
        "range",
        "method",
        "mean ms",
        "deviation",
        "mean rounds",
        "printed: the three",
    ]
    return judged(table(head, rows), _claims(found))


def _runs(n: int, span: float, trials: int) -> Runs:
    """All methods on the same points, in turn, so that a busy machine slows each alike."""
    runs: Runs = {name: [] for name in (*METHODS, WARM)}
    for seed in range(trials):
        rng = np.random.default_rng([n, int(span), seed])
        point = rng.uniform(0.0, span, n)
        before = point + rng.uniform(-DRIFT * span, DRIFT * span, n)
        for name in METHODS:
            runs[name].append(_run(point, name, [None, None]))
        guesses = [_theta(part) for part in _classes(before)]
        runs[WARM].append(_run(point, BREAKPOINTS, guesses))
    return runs


def _run(point: NDArray[np.float64], method: str, guesses: Sequence[float | None]) -> Run:
    cap = 1.0 / (point.size * NU)
    parts = list(zip(_classes(point), guesses, strict=True))
    with patch.object(import_module("proxmargin.functions.projections"), "pivot", METHODS[method]):
        start = process_time()
        for part, guess in parts:
            capped_simplex(part, CLASS_TOTAL, cap, guess=guess)
        taken = process_time() - start
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


def _cells(cell: Cell, name: str, runs: Sequence[Run]) -> list[str]:
    rounds = [run.rounds for run in runs if run.rounds is not None]
    breakpoints, bisection = PROJECTIONS[cell]
    printed = {BREAKPOINTS: breakpoints, BISECTION: bisection}.get(name)
    return [
        f"{cell[0]:,}",
        f"[0, {cell[1]:g}]",
        name,
        seconds(_mean(runs)),
        seconds(_deviation(runs)),
        f"{fmean(rounds):.1f}" if rounds else "-",
        "-" if printed is None else f"{printed[0]:g}, {printed[2]:g}, {printed[1]:g}",
    ]


def _mean(runs: Sequence[Run]) -> float:
    return fmean(run.milliseconds for run in runs)


def _deviation(runs: Sequence[Run]) -> float:
    return stdev(run.milliseconds for run in runs) if len(runs) > 1 else 0.0


def _claims(found: dict[Cell, Runs]) -> list[Claim]:
    spreads = [
        (_deviation(runs[BISECTION]), _deviation(runs[BREAKPOINTS])) for runs in found.values()
    ]
    rounds = {
        cell: fmean(run.rounds or 0 for run in runs[BISECTION]) / PROJECTIONS[cell][1][1]
        for cell, runs in found.items()
    }
    return [
        _faster(found),
        Claim(
            f"its times deviate less than those of {RIVAL}",
            all(one <= other for one, other in spreads),
            ", ".join(f"{seconds(one)} against {seconds(other)} ms" for one, other in spreads),
        ),
        Claim(
            f"the printed rounds of bisection, within {WITHIN:.0%} {OUR_MEASURE}",
            all(abs(ratio - 1.0) <= WITHIN for ratio in rounds.values()),
            f"over the printed ones: {_list(rounds.values())}",
        ),
    ]


def _faster(found: dict[Cell, Runs]) -> Claim:
    """By the points that both were given."""
    ratios, verdicts = [], []
    for runs in found.values():
        pairs = zip(runs[BREAKPOINTS], runs[BISECTION], strict=True)
        saved = [theirs.milliseconds - ours.milliseconds for theirs, ours in pairs]
        verdicts.append(decided(saved))
        ratios.append(_mean(runs[BREAKPOINTS]) / _mean(runs[BISECTION]))
    faster, slower = verdicts.count(True), verdicts.count(False)
    told = f"faster on {faster} of {len(verdicts)}, slower on {slower}, else within the errors"
    return Claim(
        f"bisection is faster than {RIVAL}",
        order(verdicts),
        f"{told}; ratios of the times {_list(ratios)}, printed 1.7, 1.6, 1.9, 1.9",
        main=True,
    )


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2g}" for value in values)


TABLES = {
    "I2": PaperTable(
        "Table 2 of Ito et al.: projections",
        f"""Uniform points onto the set of the nu-SVM with nu {NU:g}, as printed; means and
deviations of {TRIALS[Size.FULL]} points, {TRIALS[Size.SMALL]} at the small size. CPU times of both
classes, with checks of the input and the new array; rounds are trial values of the multipliers of
both classes together, as the printed ones seem to be. `bisection` is Algorithm 2,
`refined-bisection` Algorithm 5, `{BREAKPOINTS}` the search of Kiwiel (2008) with random pivots, the
library's own, which shares its sums with them; "{WARM}" is Newton's method from the multipliers of
points that differ by up to {DRIFT:g} of the range. Both searches are compiled; the rival's pivots
are those of random entries, and its sums are shared with the bisections, which the paper's C++ may
not have: that would explain ratios near one. The caps of half of the entries of a class add up to
its sum, so that h has a plateau at its root.""",
        (0.6, 1.2),
        _table_2,
        (str(TRIALS[Size.SMALL]), str(TRIALS[Size.FULL])),
    )
}
