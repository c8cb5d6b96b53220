"""`python -m benchmarks cells`: single fits of everyday models against other packages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from benchmarks.bandwidth import Pass, one_pass
from benchmarks.bounds import bound_in_words
from benchmarks.comparison import LOSSES, row_of, spec_of, stated
from benchmarks.comparison_table import Case, told
from benchmarks.datasets import DataSet, load
from benchmarks.family import OneVsRest, Regularized, with_penalised_intercept
from benchmarks.family_data import load_scaled
from benchmarks.family_measure import Referee, Task, family_row, family_workers
from benchmarks.measure import Climb, Limits, Trial, Worker, workers
from benchmarks.objective import Hinge, Logistic, SquaredHinge
from benchmarks.paired import paired_body
from benchmarks.peers import ALL, absent
from benchmarks.peers.base import DECADES
from benchmarks.peers.family import (
    LiblinearPeer,
    LogisticPeer,
    OwnAugmentedPeer,
    OwnFamilyPeer,
)
from benchmarks.peers.family_official import (
    PENALISED,
    OfficialLiblinearDualPeer,
    OfficialLiblinearPeer,
    ReHLineRidgePeer,
    SnapSvmPeer,
)
from benchmarks.peers.own import OwnPeer
from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.shares import SLOWER, Shares

GOALS = (1e-3, 1e-6)
OURS = "proxmargin"
TITLE = "Single fits"
WIDE = f"{OURS} augmented"
MARKED = PENALISED | {WIDE}  # a †
LADDER = DECADES[1:10]  # of ours
REFERENCE_LIMIT = 60.0  # seconds for a dual point to judge with
STRENGTHS = (0.5, 0.1, 0.01)  # of the critical one
TALL = ("synthetic:60000,8,4,0.5", "synthetic:50000,22,5,0.5")

Row = Mapping[str, Climb]
Crew = dict[str, Worker]


# ---- lines and the solvers that are asked for them ----------------------------------------------


class Line(Protocol):
    """A model on data."""

    @property
    def data(self) -> str: ...
    @property
    def parameter(self) -> str: ...
    def loaded(self) -> DataSet: ...
    def row(self, crew: Crew, referee: Referee) -> Row: ...
    def spec(self, *, wide: bool) -> Any: ...


@dataclass(frozen=True)
class RidgeLine:
    """A model of the family, judged with a dual point of the reference."""

    task: Task

    @property
    def data(self) -> str:
        return self.task.data

    @property
    def parameter(self) -> str:
        return f"{self.task.model.name}, {self.task.model.parameter}"

    def loaded(self) -> DataSet:
        return load_scaled(self.data)

    def row(self, crew: Crew, referee: Referee) -> Row:
        def tell(name: str, one: Climb) -> None:
            print(f"{self.parameter}; {self.data}; {name}: {told(one)}", flush=True)

        return family_row(self.task, crew, referee, GOALS, tell)

    def spec(self, *, wide: bool) -> Task:
        (augmented,) = with_penalised_intercept(self.task.model)
        return replace(self.task, model=augmented) if wide else self.task


@dataclass(frozen=True)
class L1Line:
    """A model with an l1 norm, which judges itself."""

    case: Case

    @property
    def data(self) -> str:
        return self.case.data

    @property
    def parameter(self) -> str:
        return f"{self.case.fraction:g} of the critical strength"

    def loaded(self) -> DataSet:
        return load(self.data)

    def row(self, crew: Crew, referee: Referee) -> Row:
        return row_of(self.case, crew, GOALS)

    def spec(self, *, wide: bool) -> Any:
        return spec_of(self.case, stated(self.case))


CrewMaker = Callable[[Limits], AbstractContextManager[Crew]]


@dataclass(frozen=True)
class Part:
    """Lines for the same solvers."""

    title: str
    lines: tuple[Line, ...]
    crew: CrewMaker


def _family(*others: Any) -> CrewMaker:
    def crew(limits: Limits) -> AbstractContextManager[Crew]:
        own_limit = 0.97 * limits.per_fit  # late, and not killed
        ours = [
            OwnFamilyPeer(OURS, "auto", own_limit, LADDER),
            OwnAugmentedPeer(WIDE, "auto", own_limit, LADDER),
        ]
        return family_workers([*ours, *_present(others)], limits)

    return crew


def _l1(*names: str) -> CrewMaker:
    def crew(limits: Limits) -> AbstractContextManager[Crew]:
        return workers([OwnPeer(OURS, "auto"), *_present([ALL[name] for name in names])], limits)

    return crew


def _present(peers: Sequence[Any]) -> list[Any]:
    return [peer for peer in peers if not (hasattr(peer, "package") and absent(peer))]


def _ridges(data: Sequence[str], loss: Any, strengths: Sequence[float]) -> tuple[Line, ...]:
    return tuple(RidgeLine(Task(name, Regularized(loss, C))) for name in data for C in strengths)


def _l1_lines(data: Sequence[str]) -> tuple[Line, ...]:
    loss = LOSSES["logistic"]
    return tuple(
        L1Line(Case(name, loss, share, 1.0, False)) for name in data for share in STRENGTHS
    )


DUAL = OfficialLiblinearDualPeer()
PRIMAL = OfficialLiblinearPeer()
LBFGS = LogisticPeer("lbfgs", "lbfgs")
PARTS = {
    "hinge": Part(
        "Hinge and ridge",
        _ridges(("news20-halves", "news20", "a9a"), Hinge(), (0.01, 1.0))
        + _ridges(("covtype",), Hinge(), (0.01,)),
        _family(DUAL, LiblinearPeer(), ReHLineRidgePeer(), SnapSvmPeer()),
    ),
    "text": Part(
        "Squared hinge or logistic, and ridge, on text",
        _ridges(("news20-halves",), SquaredHinge(), (0.01, 1.0, 100.0))
        + _ridges(("news20-halves",), Logistic(), (0.01, 1.0, 100.0)),
        _family(PRIMAL, LBFGS, LogisticPeer("newton-cg", "newton-cg"), DUAL),
    ),
    "classes": Part(
        "Hinge and ridge, every class against the rest",
        (RidgeLine(Task("classes:news20", OneVsRest(Regularized(Hinge(), 1.0)))),),
        _family(DUAL),
    ),
    "l1": Part(
        "Logistic and l1, no intercept",
        _l1_lines(("a9a", "covtype", TALL[1], "sparse:50000,300,0.05")),
        _l1("snapml", "skglm-acd-shipped", "skglm-pn-shipped", "celer-pn", "liblinear"),
    ),
    "ridge": Part(
        "Logistic and ridge, many samples and few features",
        _ridges((*TALL, "covtype@50000", "dense:a9a"), Logistic(), (1.0,)),
        _family(LogisticPeer("newton-cholesky", "newton-cholesky"), LBFGS, PRIMAL, DUAL),
    ),
}


ROWS = (*PARTS, "paired")  # the last in one process


# ---- the command --------------------------------------------------------------------------------


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit; 2 x the ladder")
    parser.add_argument("--repeating", type=float, default=0.5, help="seconds for a short fit")
    parser.add_argument(
        "--explain", action="store_true", help=f"profile ours where its ratio is over {SLOWER:g}"
    )
    parser.add_argument(
        "--patience", type=float, default=60.0, help="seconds a fit that no other package has"
    )
    parser.add_argument("--name", default="cells", help="the section to write")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    limit = arguments.limit
    limits = Limits(limit, 2 * limit, repeating=arguments.repeating, clock="cpu")
    done: list[Measured] = []
    with closing(Referee(REFERENCE_LIMIT, clarabel_size=0)) as referee:
        for name in (row for row in arguments.rows if row in PARTS):
            done.append(Measured(PARTS[name], {}, {}))
            for _ in done[-1].measuring(limits, referee, arguments.explain):
                write_section(arguments.name, TITLE, body(done, limits), arguments.results)
    if "paired" in arguments.rows:
        parts = [body(done, limits)] if done else []
        for pairs in paired_body(arguments.patience):
            text = "\n\n".join([*parts, pairs])
            title = TITLE if done else f"{TITLE} in turn"
            write_section(arguments.name, title, text, arguments.results)
    return 0


@dataclass(frozen=True)
class Measured:
    """What the solvers of a part reached, and of ours where it is slower, profiles.

    ``passes`` are those over the data, by name, where a profile was made.
    """

    part: Part
    rows: dict[Line, Row]
    profiles: dict[tuple[Line, float, str], Shares]
    passes: dict[str, Pass] = field(default_factory=dict)

    def measuring(self, limits: Limits, referee: Referee, explain: bool) -> Iterator[Line]:
        """Line after line, once it is measured."""
        with self.part.crew(limits) as crew:
            for line in self.part.lines:
                self.rows[line] = line.row(crew, referee)
                if explain:
                    self._profile(line, crew)
                yield line

    def _profile(self, line: Line, crew: Crew) -> None:
        for goal in GOALS:
            row = self.rows[line]
            for ours in dict.fromkeys(one.ours for one in ratios(row, goal) if one.value > SLOWER):
                spec = line.spec(wide=ours == WIDE)
                found = crew[ours].shares(spec, row[ours].reached[goal].setting)
                if isinstance(found, Shares):
                    self.profiles[line, goal, ours] = found
                if line.data not in self.passes:
                    self.passes[line.data] = one_pass(line.loaded().design)


@dataclass(frozen=True)
class Ratio:
    """The time of ours over that of the fastest of the others, in a column of the table."""

    column: str
    ours: str
    other: str
    value: float


# column: ours, and whether the others have a penalised intercept
COLUMNS = {"ratio": (OURS, False), "ratio †": (WIDE, True), "free / †": (OURS, True)}


def ratios(row: Row, goal: float) -> list[Ratio]:
    """Those of which both sides certify."""
    times = {name: one.reached[goal].seconds for name, one in row.items() if goal in one.reached}
    found = []
    for column, (ours, marked) in COLUMNS.items():
        others = [name for name in times if name not in (OURS, WIDE) and (name in MARKED) == marked]
        if others and ours in times:
            best = min(others, key=times.__getitem__)
            found.append(Ratio(column, ours, best, times[ours] / times[best]))
    return found


# ---- Markdown -----------------------------------------------------------------------------------


def body(done: Sequence[Measured], limits: Limits) -> str:
    parts = [_method(done, limits)]
    parts += [f"### {one.part.title}\n\n{_table(one)}" for one in done]
    slow = [sentence for one in done for sentence in _slow(one)]
    if slow:
        parts.append(f"### Where the ratio is over {SLOWER:g}\n\n" + "\n".join(slow))
    missing = [note for one in done for note in _uncertified(one)]
    if missing:
        parts.append("### Where a solver did not certify\n\n" + "\n".join(missing))
    return "\n\n".join(parts)


def _method(done: Sequence[Measured], limits: Limits) -> str:
    lines = {line.data: line for one in done for line in one.rows}
    shapes = "; ".join(f"{name} ({line.loaded().shape_in_words})" for name, line in lines.items())
    busiest = max(
        one.busiest for part in done for row in part.rows.values() for one in row.values()
    )
    return f"""- Data: {shapes}.
- A time is the {limits.clock} time of the loosest setting in a solver's ladder (decades, then half
  decades) with that relative gap, judged from (w, b) by `benchmarks/family.py` or, for l1,
  `benchmarks/objective.py`, with a dual point of the solver or of a reference, whichever proves
  more. Where each class is fitted against the rest the largest of their gaps counts. Fits below
  {limits.repeating:g} s are run again, and the fastest counts. Kernels are compiled beforehand, and
  the layout is each solver's own, made outside the clock; ours include the checks of the input.
- At most {limits.per_fit:g} s a fit and {limits.per_ladder:g} s for the settings of a ladder.
  Largest ratio of wall to CPU time among the times shown: {busiest:.2f}.
- † is a model with a penalised intercept, which some packages have instead: they are judged on
  that. Ours have it as a column of ones and no intercept. `ratio`: ours to the fastest other solver
  of the same model. `ratio †`: the same for the models with †. `free / †`: ours with a free
  intercept to the fastest other with a penalised one.
- LIBLINEAR is scikit-learn's where not called official, and not capped at 300 rounds. Snap ML
  computes in single precision.
- `late`: over a limit. `stalls`: its tightest setting does not certify. `fails`: an error. `-`:
  another model than its own. LIBSVM, which has the hinge with a free intercept, is in the section
  `unified`, on smaller data."""


def _table(measured: Measured) -> str:
    rows = measured.rows
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    found = {(line, goal): ratios(row, goal) for line, row in rows.items() for goal in GOALS}
    columns = [c for c in COLUMNS if any(one.column == c for row in found.values() for one in row)]
    head = ["data", "model", "gap", *(_marked(name) for name in names), *columns]
    lines = []
    for (line, goal), each in found.items():
        times = [_time(rows[line].get(name), goal) for name in names]
        last = {one.column: f"{one.value:.2f}" for one in each}
        known = [last.get(column, "") for column in columns]
        lines.append([line.data, line.parameter, f"{goal:g}", *times, *known])
    return table(head, lines)


def _time(one: Climb | None, goal: float) -> str:
    if one is None:
        return "-"
    return seconds(one.reached[goal].seconds) if goal in one.reached else one.word


def _marked(name: str) -> str:
    return f"{name} †" if name in MARKED else name


def _slow(measured: Measured) -> Iterator[str]:
    """A sentence for each of ours that another package is faster than, at each gap."""
    for line, row in measured.rows.items():
        for goal in GOALS:
            slower = [one for one in ratios(row, goal) if one.value > SLOWER]
            for ours in dict.fromkeys(one.ours for one in slower):
                mine = [one for one in slower if one.ours == ours]
                than = ", ".join(f"{one.value:.2f} times {_marked(one.other)}" for one in mine)
                profile = measured.profiles.get((line, goal, ours))
                reached, single = row[ours].reached[goal], measured.passes.get(line.data)
                least = min(row[one.other].reached[goal].seconds for one in mine)
                head = f"{line.data}, {line.parameter}, gap {goal:g}, {_marked(ours)}"
                work = _work(reached, profile)
                yield f"- {head}: {than}; {work}.{bound_in_words(reached, least, single, profile)}"


def _work(one: Trial, profile: Shares | None) -> str:
    fitted = one.fitted
    text = (
        f"{fitted.iterations} iterations and {fitted.passes:.3g} passes of {fitted.note},"
        f" gap {one.gap:.1e}"
    )
    if profile is not None:
        text += (
            f"; {profile.checks:.0%} of a profiled fit are checks of the input,"
            f" {profile.certificates:.0%} certificates"
        )
    return text


def _uncertified(measured: Measured) -> Iterator[str]:
    for line, row in measured.rows.items():
        for name, one in row.items():
            if one.ended:
                yield f"- {name} on {line.data}, {line.parameter}: {told(one)}"
