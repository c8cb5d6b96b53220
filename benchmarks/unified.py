"""`python -m benchmarks unified`: the family of models of Ito et al. (2017), against peers."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import DataSet
from benchmarks.family import (
    DistanceWeighted,
    Ellipsoids,
    Hinge,
    InBall,
    Model,
    Regularized,
    Tail,
)
from benchmarks.family_data import NAMES, load_scaled
from benchmarks.family_measure import Referee, Task, family_row, family_workers
from benchmarks.measure import Climb, Limits
from benchmarks.objective import Floats, Logistic, SquaredHinge
from benchmarks.peers import absent
from benchmarks.peers.family import FamilyPeer, LiblinearPeer, LibsvmPeer, LogisticPeer
from benchmarks.peers.family import OwnFamilyPeer as Own
from benchmarks.peers.family_clarabel import ClarabelPeer
from benchmarks.peers.family_official import AUGMENTED_PEERS, FREE_PEERS, PENALISED
from benchmarks.report import RESULTS, seconds, table, write_section

GOAL = 1e-6
C = 10.0  # of the paper
LOSSES = {"c-svm": Hinge(), "l2-svm": SquaredHinge(), "logistic": Logistic()}
MODELS = ("c-svm", "nu-svm", "l2-svm", "logistic", "dwd", "mm-mpm", "mm-fda")
FEW = ("heart", "splice", "colon", "artificial:2000,50")
ALL = (
    *(name for name in NAMES if name not in ("skin", "liver", "covtype")),
    *("covtype@20000", "artificial:10000,100"),
)
OURS = ("auto", "fapg-star", "fapg")
MARRON_SHARE = 0.1  # scale of distance weighted discrimination, over the median distance
DISTANCE_SAMPLES = 1000  # of each class, for that median

Row = dict[str, Climb]


@dataclass(frozen=True)
class Line:
    """A row of the tables: data, and a model with its parameter."""

    data: str
    model: Model


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(FEW), help="names; 'all' for every set")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--solvers", nargs="+", help="some of them by name; by default all")
    parser.add_argument("--rows", type=int, help="subsample larger sets to so many samples")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds a fit; 3 x the ladder")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine that is busy"
    )
    parser.add_argument(
        "--clarabel-size", type=int, default=1_000_000, help="most stored entries of its data"
    )
    parser.add_argument("--section", default="unified", help="name of the file in the folder")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    limit = arguments.limit
    limits = Limits(limit, 3 * limit, for_compiling=60.0, clock=arguments.clock)
    results: dict[Line, Row] = {}
    peers = _asked(_peers(limit, arguments.clarabel_size), arguments.solvers)
    referee = Referee(max(6 * limit, 30.0), arguments.clarabel_size)
    try:
        with family_workers(peers, limits) as crew:
            for name in _names(arguments.data, arguments.rows):
                for model in _models(name, arguments.models, referee):
                    task = Task(name, model)
                    results[Line(name, model)] = family_row(
                        task, crew, referee, [GOAL], partial(_tell, task)
                    )
                    body = _body(results, limits, referee)
                    which = "" if arguments.section == "unified" else f" ({arguments.section})"
                    title = f"The unified family{which}"
                    write_section(arguments.section, title, body, arguments.results)
    finally:
        referee.close()
    return 0


def _peers(limit: float, clarabel_size: int) -> list[FamilyPeer]:
    return [
        *(Own(name, name, 0.97 * limit) for name in OURS),
        LibsvmPeer(),
        LiblinearPeer(),
        LogisticPeer("newton-cholesky", "newton-cholesky"),
        *(LogisticPeer(name, name) for name in ("lbfgs", "newton-cg", "sag")),
        *(peer for peer in (*FREE_PEERS, *AUGMENTED_PEERS) if not absent(peer)),
        ClarabelPeer(clarabel_size),
    ]


def _asked(peers: Sequence[FamilyPeer], names: Sequence[str] | None) -> list[FamilyPeer]:
    if names is None:
        return list(peers)
    unknown = set(names) - {peer.name for peer in peers}
    if unknown:
        known = ", ".join(peer.name for peer in peers)
        raise SystemExit(f"no solver is called {', '.join(sorted(unknown))}; there are {known}")
    return [peer for peer in peers if peer.name in names]


def _names(asked: Sequence[str], rows: int | None) -> list[str]:
    names = ALL if list(asked) == ["all"] else asked
    if rows is None:
        return list(names)
    return [
        name if name.startswith("artificial") else f"{name.partition('@')[0]}@{rows}"
        for name in names
    ]


def _models(name: str, kinds: Sequence[str], referee: Referee) -> Iterator[Model]:
    """C is 10, nu that of the C-SVM, kappa half of its maximum, r by Marron's rule."""
    import proxmargin

    data = load_scaled(name)
    for kind in kinds:
        if kind in LOSSES:
            yield Regularized(LOSSES[kind], C)
        elif kind == "nu-svm":
            alpha = referee.dual(Task(name, Regularized(Hinge(), C)))
            if alpha is not None:
                yield Tail(float(np.clip(alpha, 0.0, 1.0).mean()))
        elif kind == "dwd":
            yield InBall(DistanceWeighted(MARRON_SHARE * median_distance(data)))
        else:
            most = proxmargin.kappa_max(data.design, data.labels, kind.removeprefix("mm-"))
            yield Ellipsoids(0.5 * most if math.isfinite(most) else 1.0, joint=kind == "mm-fda")


def median_distance(data: DataSet) -> float:
    """Between samples of the two classes, of a thousand of each at most."""
    parts = []
    for sign in (1.0, -1.0):
        rows = np.flatnonzero(data.labels == sign)
        part = data.design[rows[:: -(-rows.size // DISTANCE_SAMPLES)]]
        parts.append(part.toarray() if sp.issparse(part) else part)
    first, second = parts
    squares = _squares(first)[:, None] + _squares(second)[None, :] - 2.0 * first @ second.T
    return float(np.sqrt(np.maximum(np.median(squares), 0.0)))


def _squares(rows: Floats) -> Floats:
    return np.einsum("ij,ij->i", rows, rows)


def _tell(task: Task, peer: str, one: Climb) -> None:
    print(f"{task.model.name}; {task.data}; {peer}: {_in_words(one)}", flush=True)


def _in_words(one: Climb) -> str:
    if GOAL in one.reached:
        trial = one.reached[GOAL]
        return f"{seconds(trial.seconds)} s at tol {trial.setting:.1e}, gap {trial.gap:.1e}"
    return f"smallest gap {one.smallest_gap:.1e}: {one.ended}"


# ---- Markdown -----------------------------------------------------------------------------------


def _body(results: dict[Line, Row], limits: Limits, referee: Referee) -> str:
    parts = [_method(results, limits)]
    for model in dict.fromkeys(line.model.name for line in results):
        rows = {line: row for line, row in results.items() if line.model.name == model}
        parts.append(f"### {model}: seconds to gap {GOAL:g} (ratio to the best)\n\n{_table(rows)}")
    parts.append(_notes(results, referee))
    return "\n\n".join(part for part in parts if part)


def _method(results: dict[Line, Row], limits: Limits) -> str:
    shapes = "; ".join(
        f"{name} ({load_scaled(name).shape_in_words})"
        for name in dict.fromkeys(line.data for line in results)
    )
    busiest = max((one.busiest for row in results.values() for one in row.values()), default=1.0)
    return f"""- Data, scaled as in the paper: {shapes}.
- C is {C:g} as in the paper; nu is that of the C-SVM with this C; kappa is half of its maximum (1
  where that is infinite); DWD's threshold r is a tenth of the median distance between the classes.
- A time is the {limits.clock} time of the loosest setting in a solver's ladder (decades, then the
  half decade above) with a relative gap of {GOAL:g}, judged by `benchmarks/family.py` from (w, b)
  with a dual point of the solver or of a reference, whichever proves more. The intercept is the
  solver's or the best one for its w. Fits below {limits.repeating:g} s are run again, and the
  fastest counts. Kernels are compiled beforehand.
- At most {limits.per_fit:g} s a fit and {limits.per_ladder:g} s for the settings of a ladder.
  Largest ratio of wall to CPU time among the times shown: {busiest:.2f}.
- `late`: over a limit. `stalls`: its tightest setting does not certify. `fails`: an error. `-`:
  more data than it is given. The notes below say which.
- † solves another model, with a penalised intercept: it is judged on that model, and no ratio is
  to its time. Snap ML computes in single precision. Clarabel's times are those of the factors of
  the covariances and of its own call, without the translation by cvxpy; LIBSVM and LIBLINEAR are
  scikit-learn's where not called official, LIBSVM with shrinking."""


def _table(rows: dict[Line, Row]) -> str:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    head = ["data", "parameter", *(f"{n} †" if n in PENALISED else n for n in names)]
    lines = (
        [line.data, line.model.parameter, *(_cell(row, name) for name in names)]
        for line, row in rows.items()
    )
    return table(head, lines)


def _cell(row: Row, name: str) -> str:
    if name not in row:
        return "-"
    one = row[name]
    if GOAL not in one.reached:
        return one.word
    time = one.reached[GOAL].seconds
    if name in PENALISED:
        return seconds(time)
    best = min(
        other.reached[GOAL].seconds
        for peer, other in row.items()
        if peer not in PENALISED and GOAL in other.reached
    )
    text = f"{seconds(time)} ({time / best:.1f})"
    return f"**{text}**" if time == best else text


def _notes(results: dict[Line, Row], referee: Referee) -> str:
    lines = [
        f"- No reference answered for {task.model.name}, {task.data}; no nu follows from it."
        for task in referee.missing
    ]
    lines += [
        f"- {name} on {line.model.name}, {line.data}: {_in_words(one)}"
        for line, row in results.items()
        for name, one in row.items()
        if one.ended
    ]
    return "### Where a solver did not certify\n\n" + "\n".join(lines) if lines else ""
