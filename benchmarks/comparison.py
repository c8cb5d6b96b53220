"""`python -m benchmarks peers`: seconds to a certified gap, every solver on every model."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.datasets import load
from benchmarks.measure import Climb, Limits, Spec, Worker, climb, workers
from benchmarks.objective import (
    HuberizedHinge,
    Logistic,
    MarginLoss,
    Problem,
    SquaredHinge,
    alpha_max,
)
from benchmarks.peers import ALL, Peer
from benchmarks.report import seconds, table, write_section

GOALS = (1e-4, 1e-6)
LOSSES: dict[str, MarginLoss] = {
    "huberized-1": HuberizedHinge(1.0),
    "huberized-0.5": HuberizedHinge(0.5),
    "squared-hinge": SquaredHinge(),
    "logistic": Logistic(),
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


@dataclass(frozen=True)
class Case:
    """One row: a model at a strength, relative to the strength at which everything is zero."""

    data: str
    loss: MarginLoss
    fraction: float
    l1_ratio: float
    fit_intercept: bool

    @property
    def title(self) -> str:
        free = "" if self.fit_intercept else ", no intercept"
        return f"{self.data}, {self.fraction:g} alpha_max, l1_ratio {self.l1_ratio:g}{free}"


Results = dict[Case, dict[str, Climb]]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="colon and a9a, short limits")
    parser.add_argument("--data", nargs="+", help=f"data sets (default {' '.join(DATA)})")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--strengths", nargs="+", metavar="FRACTION:L1_RATIO")
    parser.add_argument("--solvers", nargs="+", choices=ALL, default=list(ALL), metavar="SOLVER")
    parser.add_argument("--limit", type=float, help="seconds a fit (default 10; the ladder 3 x)")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine that is busy"
    )
    parser.add_argument("--section", help="name of the section in RESULTS.md")


def main(arguments: argparse.Namespace) -> int:
    grid = _grid(arguments)
    limits = Limits(per_fit=grid.limit, per_ladder=3 * grid.limit, clock=arguments.clock)
    peers = [ALL[name] for name in arguments.solvers]
    cases = list(_cases(grid, arguments.losses))
    section = arguments.section or ("peers-quick" if arguments.quick else "peers")
    results: Results = {}
    with workers(peers, limits) as crew:
        for case in cases:
            results[case] = _row(case, crew)
            write_section(section, _title(section), _body(results, peers, limits, len(cases)))
    return 0


def _title(section: str) -> str:
    return f"Seconds to a certified gap ({section})"


def _grid(arguments: argparse.Namespace) -> Grid:
    usual = QUICK if arguments.quick else FULL
    return Grid(
        arguments.data or usual.data,
        arguments.strengths or usual.strengths,
        arguments.limit or usual.limit,
    )


def _cases(grid: Grid, losses: Sequence[str]) -> Iterator[Case]:
    for data in grid.data:
        for text in grid.strengths:
            fraction, l1_ratio = (float(part) for part in text.split(":"))
            for name in losses:
                yield Case(data, LOSSES[name], fraction, l1_ratio, True)
                if l1_ratio == 1.0 and name in ("squared-hinge", "logistic"):
                    yield Case(data, LOSSES[name], fraction, l1_ratio, False)


def _row(case: Case, crew: dict[str, Worker]) -> dict[str, Climb]:
    data = load(case.data)
    problem = Problem(
        data.design, data.labels, case.loss, 1.0, 0.0, fit_intercept=case.fit_intercept
    )
    strength = case.fraction * alpha_max(problem, case.l1_ratio)
    problem = problem.with_strength(strength, case.l1_ratio)
    spec = Spec(case.data, case.loss, problem.l1, problem.l2, fit_intercept=case.fit_intercept)
    row = {}
    for name, worker in crew.items():
        if worker.peer.solves(problem) is None:
            row[name] = climb(worker, problem, spec, GOALS)
            print(f"{case.loss.name}; {case.title}; {name}: {_told(row[name])}", flush=True)
    return row


def _told(one: Climb) -> str:
    times = ", ".join(f"{goal:g} in {seconds(t.seconds)} s" for goal, t in one.reached.items())
    return times + (f" [{_smallest(one)}: {one.ended}]" if one.ended else "")


# ---- Markdown ----------------------------------------------------------------------------------


def _body(results: Results, peers: Sequence[Peer], limits: Limits, planned: int) -> str:
    done = "" if len(results) == planned else f"**Unfinished: {len(results)} of {planned} rows.**"
    parts = [done, _method(results, limits), _summary(results, peers)]
    for goal in GOALS:
        for loss in dict.fromkeys(case.loss for case in results):
            parts.append(_table_of_times(results, peers, loss, goal))
    parts.append(_table_of_work(results, peers))
    parts.append(_notes(results))
    return "\n\n".join(part for part in parts if part)


def _method(results: Results, limits: Limits) -> str:
    busiest = max((one.busiest for row in results.values() for one in row.values()), default=1.0)
    shapes = "; ".join(
        f"{name} ({load(name).shape_in_words})" for name in dict.fromkeys(c.data for c in results)
    )
    return f"""- Data: {shapes}.
- A time is the {limits.clock} time of the loosest setting in a solver's ladder (decades, then
  half decades) whose solution has that certified relative gap, judged by
  `benchmarks/objective.py`; fits below {limits.repeating:g} s are run again, up to
  {limits.repeats} times, and the fastest counts.
  Kernels are compiled beforehand; the layout (by columns or rows) is each solver's own, made
  outside the clock.
- At most {limits.per_fit:g} s a fit and {limits.per_ladder:g} s for the settings of a ladder.
- Largest ratio of wall to CPU time among the times shown: {busiest:.2f}.
- `-`: not its model. `late`: over a limit. `stalls`: its tightest setting does not certify.
  `fails`: an error. The notes below say which.
- scikit-learn's LIBLINEAR solvers penalise the intercept: they appear in the rows without one.
- skglm ships no huberized hinge, and no squared hinge with an intercept: `skglm-acd` and `skglm-pn`
  run it with the datafits of `benchmarks/peers/skglm_datafits.py`, which also give it an exact
  intercept; `skglm-acd-shipped` is its own logistic datafit."""


def _best(row: dict[str, Climb], goal: float) -> float:
    return min(
        (o.reached[goal].seconds for o in row.values() if goal in o.reached), default=math.nan
    )


def _cell(row: dict[str, Climb], name: str, goal: float) -> str:
    if name not in row:
        return "-"
    one = row[name]
    if goal not in one.reached:
        return _word(one)
    time = one.reached[goal].seconds
    ratio = time / _best(row, goal)
    text = f"{seconds(time)} ({ratio:.1f})"
    return f"**{text}**" if ratio == 1.0 else text


def _word(one: Climb) -> str:
    if one.ended.startswith("more than"):
        return "late"
    return "stalls" if one.ended.startswith("its tightest") else "fails"


def _table_of_times(results: Results, peers: Sequence[Peer], loss: MarginLoss, goal: float) -> str:
    rows = {case: row for case, row in results.items() if case.loss == loss}
    names = [peer.name for peer in peers if any(peer.name in row for row in rows.values())]
    lines = [[c.title, *(_cell(row, name, goal) for name in names)] for c, row in rows.items()]
    return f"### {loss.name}: seconds to gap {goal:g} (ratio to the best)\n\n" + table(
        ["problem", *names], lines
    )


def _summary(results: Results, peers: Sequence[Peer]) -> str:
    lines = [
        [peer.name, *(_standing(results, peer.name, goal) for goal in GOALS)]
        for peer in peers
        if any(peer.name in row for row in results.values())
    ]
    head = ["solver", *(f"gap {goal:g}: ratio, certified" for goal in GOALS)]
    return (
        "### Summary: geometric mean of the ratio to the best where it certified\n\n"
        + table(head, lines)
        + "\n\nA mean over the rows a solver finishes flatters one that leaves out the hard ones:"
        " read it with the count."
    )


def _standing(results: Results, name: str, goal: float) -> str:
    rows = [row for row in results.values() if name in row]
    logs = [
        math.log(row[name].reached[goal].seconds / _best(row, goal))
        for row in rows
        if goal in row[name].reached
    ]
    mean = f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "-"
    return f"{mean}, {len(logs)} of {len(rows)}"


def _table_of_work(results: Results, peers: Sequence[Peer]) -> str:
    """Nonzeros of the fastest certified solution, and passes where a solver counts them."""
    goal = min(GOALS)
    counting = [
        p.name for p in peers if any(_passes(row, p.name, goal) for row in results.values())
    ]
    lines = [
        [
            f"{case.loss.name}; {case.title}",
            _nonzeros(row, goal),
            *(_passes(row, name, goal) or "-" for name in counting),
        ]
        for case, row in results.items()
    ]
    return f"### Nonzeros and passes over the data to gap {goal:g}\n\n" + table(
        ["problem", "nonzeros", *counting], lines
    )


def _passes(row: dict[str, Climb], name: str, goal: float) -> str:
    if name not in row or goal not in row[name].reached:
        return ""
    fitted = row[name].reached[goal].fitted
    if fitted.passes is None:
        return ""
    used = f" ({fitted.note})" if fitted.note and fitted.note not in name else ""
    return f"{fitted.passes:.4g}{used}"


def _nonzeros(row: dict[str, Climb], goal: float) -> str:
    """The spread of counts over the solvers that certified."""
    counts = sorted({o.reached[goal].nonzeros for o in row.values() if goal in o.reached})
    return "-" if not counts else "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))


def _notes(results: Results) -> str:
    lines = [
        f"- {name} on {case.loss.name}; {case.title}: {_smallest(one)}; {one.ended}"
        for case, row in results.items()
        for name, one in row.items()
        if one.ended
    ]
    return "### Where a solver did not certify\n\n" + "\n".join(lines) if lines else ""


def _smallest(one: Climb) -> str:
    seen = math.isfinite(one.smallest_gap)
    return f"smallest gap {one.smallest_gap:.1e}" if seen else "no fit in time"
