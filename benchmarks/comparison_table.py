"""The Markdown of `python -m benchmarks peers`: one row a problem and solver."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.bandwidth import Pass
from benchmarks.datasets import load
from benchmarks.measure import Climb, Limits, Trial
from benchmarks.objective import MarginLoss
from benchmarks.peers import Peer
from benchmarks.report import seconds, table

OURS = "proxmargin"


@dataclass(frozen=True)
class Case:
    """A model at a strength, relative to the strength at which everything is zero."""

    data: str
    loss: MarginLoss
    fraction: float
    l1_ratio: float
    fit_intercept: bool

    @property
    def title(self) -> str:
        free = "" if self.fit_intercept else ", no intercept"
        return f"{self.data}, {self.fraction:g} alpha_max, l1_ratio {self.l1_ratio:g}{free}"


Row = Mapping[str, Climb]
Results = dict[Case, Row]


@dataclass(frozen=True)
class Circumstances:
    """What a run was asked: limits, goals (loosest first), solvers, and those not installed."""

    limits: Limits
    goals: Sequence[float]
    peers: Mapping[str, Peer]
    missing: Mapping[str, str]
    planned: int

    @property
    def rival_names(self) -> list[str]:
        return [name for name, peer in self.peers.items() if peer.package != OURS]

    @property
    def goal_of_work(self) -> float:
        """The goal at which passes and memory are told: the middle one."""
        return self.goals[len(self.goals) // 2]


def told(one: Climb) -> str:
    """A line for the screen."""
    times = ", ".join(f"{goal:g} in {seconds(t.seconds)} s" for goal, t in one.reached.items())
    return times + (f" [{_smallest(one)}: {one.ended}]" if one.ended else "")


def body(results: Results, passes: Mapping[str, Pass], around: Circumstances) -> str:
    done = len(results)
    unfinished = "" if done == around.planned else f"**Unfinished: {done} of {around.planned}.**"
    parts = [unfinished, _method(results, passes, around), _summary(results, around)]
    for loss in dict.fromkeys(case.loss for case in results):
        rows = {case: row for case, row in results.items() if case.loss == loss}
        parts.append(f"### {loss.name}\n\n{_table(rows, passes, around)}")
    parts.append(_notes(results))
    return "\n\n".join(part for part in parts if part)


def _method(results: Results, passes: Mapping[str, Pass], around: Circumstances) -> str:
    limits = around.limits
    busiest = max((one.busiest for row in results.values() for one in row.values()), default=1.0)
    shapes = "; ".join(
        f"{name} ({load(name).shape_in_words}; {one.in_words})" for name, one in passes.items()
    )
    marks = [f"{name}: {peer.mark}" for name, peer in around.peers.items() if peer.mark]
    lines = [
        f"Data, with the time of one product X v: {shapes}.",
        f"""A time is the {limits.clock} time of the loosest setting in a solver's ladder (decades,
  then half decades) whose solution has that certified relative gap, judged by
  `benchmarks/objective.py`, with the solver's own dual point where it gives one and, for the
  hinge, one of ours at a tight tolerance; fits below {limits.repeating:g} s are run again, up to
  {limits.repeats} times, and the fastest counts. Kernels are compiled beforehand; the layout (by
  columns or rows) is each solver's own, made outside the clock.""",
        """In brackets: the ratio to the fastest of the packages other than proxmargin, at the same
  gap; below 1 is faster than all of them.""",
        f"""At gap {around.goal_of_work:g}: products with X or its transpose, or sweeps, where the
  solver counts them; effective passes, its seconds over those of one product; and memory, the
  growth of the resident memory of the solver's process to its highest point in the fit (VmHWM),
  over what it held before (the data in its layout).""",
        f"""At most {limits.per_fit:g} s a fit and {limits.per_ladder:g} s for the settings of a
  ladder. Largest ratio of wall to CPU time among the times shown: {busiest:.2f}.""",
        """`late`: over a limit. `stalls`: its tightest setting does not certify. `fails`: an error.
  The notes below say which. A solver is in the rows whose very problem it solves: LIBLINEAR of
  scikit-learn, Snap ML and ReHLine have only a penalised intercept and celer none, so they are in
  the rows without one.""",
    ]
    lines += [f"†: {'; '.join(marks)}."] if marks else []
    lines += [f"Not run: {name}, {why}." for name, why in around.missing.items()]
    return "\n".join(f"- {line}" for line in lines)


# ---- tables -------------------------------------------------------------------------------------


def _table(rows: Results, passes: Mapping[str, Pass], around: Circumstances) -> str:
    head = ["problem", "solver", *(f"s to {goal:g}" for goal in around.goals)]
    head += ["passes", "effective passes", "MB", "nonzeros"]
    lines = []
    for case, row in rows.items():
        title = case.title
        for name, one in row.items():
            marked = f"{name} †" if around.peers[name].mark else name
            times = [_time(row, name, goal, around) for goal in around.goals]
            work = _work(name, one.reached.get(around.goal_of_work), passes[case.data])
            lines.append([title, marked, *times, *work])
            title = ""
    return table(head, lines)


def _time(row: Row, name: str, goal: float, around: Circumstances) -> str:
    one = row[name]
    if goal not in one.reached:
        return one.word
    time, best = one.reached[goal].seconds, _best(row, around.rival_names, goal)
    fastest = time == _best(row, around.peers, goal)
    text = seconds(time) + (f" ({time / best:.2g})" if math.isfinite(best) else "")
    return f"**{text}**" if fastest else text


def _work(name: str, one: Trial | None, a_pass: Pass) -> Iterator[str]:
    if one is None:
        yield from ("", "", "", "")
        return
    fitted = one.fitted
    used = f" {fitted.note}" if fitted.note and not name.endswith(fitted.note) else ""
    yield "" if fitted.passes is None else f"{fitted.passes:.4g}{used}"
    yield f"{one.seconds / a_pass.seconds:.3g}"
    yield f"{one.memory / 1e6:.3g}" if math.isfinite(one.memory) else ""
    yield str(one.nonzeros)


def _best(row: Row, names: Sequence[str] | Mapping[str, Peer], goal: float) -> float:
    """The least seconds to the goal among those solvers; infinite where none certifies."""
    times = (
        row[name].reached[goal].seconds
        for name in names
        if name in row and goal in row[name].reached
    )
    return min(times, default=math.inf)


def _summary(results: Results, around: Circumstances) -> str:
    taking_part = [name for name in around.peers if any(name in row for row in results.values())]
    lines = [
        [name, *(_standing(results, name, goal, around) for goal in around.goals)]
        for name in taking_part
    ]
    head = ["solver", *(f"gap {goal:g}: ratio, certified" for goal in around.goals)]
    return (
        "### Summary: geometric mean of the ratio to the fastest other package\n\n"
        + table(head, lines)
        + "\n\nOver the rows that the solver and another package certify. A mean over the rows a"
        " solver finishes flatters one that leaves out the hard ones: read it with the count."
    )


def _standing(results: Results, name: str, goal: float, around: Circumstances) -> str:
    rows = [row for row in results.values() if name in row]
    certified = [row for row in rows if goal in row[name].reached]
    logs = []
    for row in certified:
        best = _best(row, around.rival_names, goal)
        if math.isfinite(best):
            logs.append(math.log(row[name].reached[goal].seconds / best))
    mean = f"{math.exp(sum(logs) / len(logs)):.2f}" if logs else "-"
    return f"{mean}, {len(certified)} of {len(rows)}"


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
