"""`python -m benchmarks hinge`: seconds to a certified gap, exact hinge and multiclass models."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from cProfile import Profile
from dataclasses import dataclass
from pathlib import Path
from pstats import Stats
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.multiclass_data import Split, load_split, seen
from benchmarks.report import RESULTS, seconds, table, write_section

GOALS = (1e-3, 1e-6)
DATA = ("leukemia3", "srbct", "mnist:100", "mnist:1000", "news20:100")
PENALTIES = ("l1", "elasticnet", "l2", "group_l2", "group_linf")
SHARES = (3.0, 30.0)  # of the least C with coefficients
BOTH = ("l1", "group_linf")  # penalties that are fitted at both
BLOCK = 5
SMOOTH = ("srbct", "mnist:1000", "dna")
SMOOTH_SETTINGS = ("0.5:1", "0.99:1", "0.99:0.1")  # l1_ratio : delta
SMOOTH_SOLVERS = ("auto", "m-pgh", "m-pgh-2", "fapg-ws")
PARTS = ("worst-class", "huberized")
ALPHA_SHARE = 0.1
SLOW = 10.0  # seconds of a fit that is asked what bounds it


@dataclass(frozen=True)
class Run:
    """One fit: its seconds in all and to each goal, the gap that is proved, its objective."""

    seconds: float
    met: dict[float, float]
    gap: float
    objective: float


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", nargs="+", help="see multiclass_data; of all parts")
    parser.add_argument(
        "--penalties", nargs="+", choices=PENALTIES, default=list(PENALTIES), help="of worst-class"
    )
    parser.add_argument(
        "--settings",
        nargs="+",
        default=list(SMOOTH_SETTINGS),
        metavar="L1_RATIO:DELTA",
        help="of huberized",
    )
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a fit (20)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument(
        "--peer-size", type=float, default=2e6, help="most entries x classes of general solvers"
    )
    parser.add_argument("--section", default="hinge", help="name of the section in the file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    makers = {"worst-class": _worst_class_rows, "huberized": _smooth_rows}
    done: dict[str, list[Sequence[str]]] = {}
    for part in arguments.parts:
        done[part] = []
        for row in makers[part](arguments):
            done[part].append(row)
            print(" | ".join(row), flush=True)
            _write(done, arguments)
    return 0


def _worst_class_rows(arguments: argparse.Namespace) -> Iterator[Sequence[str]]:
    for name in arguments.data or DATA:
        split = seen(load_split(name))
        for penalty in arguments.penalties:
            for share in SHARES if penalty in BOTH else SHARES[:1]:
                yield _row(split, penalty, share, arguments)


def _smooth_rows(arguments: argparse.Namespace) -> Iterator[Sequence[str]]:
    for name in arguments.data or SMOOTH:
        split = seen(load_split(name))
        for setting in arguments.settings:
            l1_ratio, delta = (float(part) for part in setting.split(":"))
            yield _smooth_row(split, l1_ratio, delta, arguments)


def _write(done: dict[str, list[Sequence[str]]], arguments: argparse.Namespace) -> None:
    text = [
        f"- {arguments.clock} seconds of a fit that certifies the relative gap, in one run; at most"
        f" {arguments.limit:g} s each (`-`: not reached)."
    ]
    if "worst-class" in done:
        text += [_worst_class_notes(arguments), _worst_class_table(done["worst-class"])]
    if "huberized" in done:
        title = f"### Huberized hinge, all classes together: seconds to {GOALS[-1]:g}"
        note = f"alpha is {ALPHA_SHARE:g} of the least without coefficients."
        text += [
            title,
            note,
            table(["problem", "nnz", *SMOOTH_SOLVERS, "solver"], done["huberized"]),
        ]
    title = "Hinges of all classes together: seconds"
    write_section(arguments.section, title, "\n\n".join(text), arguments.results)


def _worst_class_notes(arguments: argparse.Namespace) -> str:
    return (
        "- C is so many times the least that leaves a coefficient; l1_ratio of the elastic net 0.5;"
        f" groups are blocks of {BLOCK} features within each class.\n"
        "- Clarabel and HiGHS solve the whole problem, written with CVXPY; their time is that of"
        " their own call, at their own tolerances. `(+1e-9)`: their objective relative to ours."
        f" Empty: not for them, or more than {arguments.peer_size:g} entries times classes.\n"
        f"- `bound`: the function with most of the time of a fit above {SLOW:g} s.\n\n"
        "### Multiclass hinge of Crammer and Singer"
    )


def _worst_class_table(rows: Sequence[Sequence[str]]) -> str:
    goals = [f"{solver}, {goal:g}" for solver in ("auto", "fbpd") for goal in GOALS]
    head = [
        "problem",
        "K",
        "nnz",
        *goals,
        "FBPD's gap",
        "Clarabel",
        "HiGHS, whole LP",
        "solver",
        "bound",
    ]
    return table(head, rows)


def _fit(model: Any, split: Split, arguments: argparse.Namespace) -> Run:
    """Fit to the last goal, and note when each was met."""
    clock: Callable[[], float] = (
        time.process_time if arguments.clock == "cpu" else time.perf_counter
    )
    met: dict[float, float] = {}

    def note(report: Any) -> None:
        for goal in GOALS:
            if report.gap.relative_gap <= goal:
                met.setdefault(goal, clock() - start)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early shows in its gap
        start = clock()
        model.set_params(callbacks=[note]).fit(split.X, split.y)
        taken = clock() - start
    certificate = model.certificate_
    return Run(taken, met, certificate.relative_gap, certificate.primal)


def _row(split: Split, penalty: str, share: float, arguments: argparse.Namespace) -> Sequence[str]:
    from proxmargin import MulticlassSVC, critical_C

    groups = np.arange(split.X.shape[1]) // BLOCK if penalty.startswith("group") else None
    model = MulticlassSVC(penalty=penalty, groups=groups, time_limit=arguments.limit)
    if penalty == "l2":
        strength = share / _mean_square(split.X)
    else:
        strength = share * float(critical_C(model, split.X, split.y))
    model.set_params(C=strength)
    model.fit(split.X, split.y)  # kernels are compiled
    cells, found = [], None
    for solver in ("auto", "fbpd"):
        found = _fit(model.set_params(solver=solver, tol=GOALS[-1]), split, arguments)
        cells += [seconds(found.met[goal]) if goal in found.met else "-" for goal in GOALS]
        if solver == "auto":
            reference, nonzeros = found.objective, int(np.count_nonzero(model.coef_))
            used = model.certificate_.solver
            bound = _bound(model, split) if found.seconds > SLOW else ""
    name = f"{split.name} ({split.X.shape[0]} x {split.X.shape[1]}), {penalty}, {share:g}"
    peers = [
        _peer(split, penalty, strength, solver, reference, arguments)
        for solver in ("CLARABEL", "HIGHS")
    ]
    classes = str(np.unique(split.y).size)
    return [name, classes, str(nonzeros), *cells, f"{found.gap:.0e}", *peers, used, bound]


def _bound(model: Any, split: Split) -> str:
    """The function that takes most of the time of a fit, and its share."""
    profile = Profile(time.process_time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        profile.runcall(model.fit, split.X, split.y)
    found = Stats(profile)
    (file, _, name), numbers = max(found.stats.items(), key=lambda item: item[1][2])
    where = name.strip("<>{}") if file == "~" else f"{Path(file).stem}.{name}"
    return f"{numbers[2] / found.total_tt:.0%} in {where}"


def _mean_square(X: Any) -> float:
    """Of the lengths of the samples."""
    squares = X.multiply(X) if sp.issparse(X) else X**2
    return float(squares.sum() / X.shape[0])


def _peer(
    split: Split,
    penalty: str,
    C: float,
    solver: str,
    reference: float,
    arguments: argparse.Namespace,
) -> str:
    """Seconds of a general solver for the whole problem; empty where it is not for it."""
    import cvxpy as cp

    n, p = split.X.shape
    classes, codes = np.unique(split.y, return_inverse=True)
    size = (split.X.nnz if sp.issparse(split.X) else n * p) * classes.size
    if size > arguments.peer_size or (solver == "HIGHS" and penalty not in ("l1", "group_linf")):
        return ""
    W, b, slack = cp.Variable((p, classes.size)), cp.Variable(classes.size), cp.Variable(n)
    scores = split.X @ W + np.ones((n, 1)) @ cp.reshape(b, (1, classes.size), "C")
    own = cp.sum(cp.multiply(scores, np.eye(classes.size)[codes]), axis=1)
    constraints = [
        slack >= scores[:, k] - own + (codes != k).astype(float) for k in range(classes.size)
    ]
    objective = C * cp.sum(slack) + _norm(cp, W, penalty)
    problem = cp.Problem(cp.Minimize(objective), constraints)
    limits = {"CLARABEL": {"time_limit": arguments.limit}, "HIGHS": {"time_limit": arguments.limit}}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve(solver=solver, **limits[solver])
    except cp.error.SolverError:
        return "-"
    if problem.status != "optimal":
        return "-"
    ahead = (problem.value - reference) / abs(reference)
    return f"{seconds(problem.solver_stats.solve_time)} ({ahead:+.0e})"


def _norm(cp: Any, W: Any, penalty: str) -> Any:
    if penalty == "l1":
        return cp.sum(cp.abs(W))
    if penalty == "l2":
        return 0.5 * cp.sum_squares(W)
    if penalty == "elasticnet":
        return 0.5 * cp.sum(cp.abs(W)) + 0.25 * cp.sum_squares(W)
    kind = 2 if penalty == "group_l2" else "inf"
    p, classes = W.shape
    full = p - p % BLOCK  # a block is a column of this
    total = cp.sum(cp.norm(cp.reshape(W[:full], (BLOCK, full // BLOCK * classes), "F"), kind, 0))
    return total if full == p else total + cp.sum(cp.norm(W[full:], kind, 0))


def _smooth_row(
    split: Split, l1_ratio: float, delta: float, arguments: argparse.Namespace
) -> Sequence[str]:
    from proxmargin import HuberizedSVC, alpha_max

    model = HuberizedSVC(l1_ratio=l1_ratio, delta=delta, time_limit=arguments.limit)
    alpha = ALPHA_SHARE * float(alpha_max(model, split.X, split.y))
    model.set_params(alpha=alpha)
    for solver in SMOOTH_SOLVERS:  # kernels are compiled
        _fit(model.set_params(solver=solver, max_iter=5), split, arguments)
    model.set_params(max_iter=None, tol=GOALS[-1])
    cells, nonzeros, used = [], "", ""
    for solver in SMOOTH_SOLVERS:
        found = _fit(model.set_params(solver=solver), split, arguments)
        met = found.gap <= GOALS[-1]
        cells.append(seconds(found.seconds) if met else f"- ({found.gap:.0e})")
        if solver == "auto":
            nonzeros, used = str(np.count_nonzero(model.coef_)), model.certificate_.solver
    shape = f"{split.X.shape[0]} x {split.X.shape[1]}"
    name = f"{split.name} ({shape}), l1_ratio {l1_ratio:g}, delta {delta:g}"
    return [name, nonzeros, *cells, used]
