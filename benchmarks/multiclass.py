"""`python -m benchmarks multiclass`: models of all classes together, Table 1 of Chierchia et al."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.multiclass_data import Split, load_split
from benchmarks.report import RESULTS, table, write_section

PENALTIES = ("l2", "l1", "group_l2", "group_linf")
LOSSES = ("hinge", "squared_hinge", "logistic", "one-vs-all")
BLOCK = 5  # genes in a group, Chierchia et al. 5.1
SHARES = (1.5, 2, 3, 5, 10, 30, 100)  # of the least C with coefficients


@dataclass(frozen=True)
class Fit:
    """What one fitted model did on its test data."""

    strength: float
    errors: int
    nonzeros: Sequence[int]  # of each class
    size: int  # coefficients of a class
    certified: bool
    seconds: float


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap of the fits (1e-4)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit (10)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--section", default="multiclass", help="name of the section in the file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    body = f"{_notes(arguments)}\n\n{_leukemia(arguments)}"
    title = "Multiclass models (Chierchia et al. 5.1)"
    write_section(arguments.section, title, body, arguments.results)
    return 0


def _notes(arguments: argparse.Namespace) -> str:
    return (
        f"- Fits to a certified relative gap of {arguments.tol:g} or {arguments.limit:g} s; `*`"
        " marks a line with a fit that did not arrive.\n"
        f"- Seconds are {arguments.clock} time, of one fit with the parameters shown."
    )


def _model(loss: str, penalty: str, C: float, groups: Any, arguments: argparse.Namespace) -> Any:
    from proxmargin import MulticlassSVC

    needed = groups if penalty.startswith("group") else None
    common = {"tol": arguments.tol, "time_limit": arguments.limit, "groups": needed}
    if loss == "one-vs-all":
        # (21): a problem a class; with two classes the pairwise form has w = x_1 - x_2
        return OneVsRestClassifier(
            MulticlassSVC(loss="squared_hinge", penalty=penalty, C=C, **common)
        )
    return MulticlassSVC(loss=loss, penalty=penalty, C=C, **common)


def _fit(model: Any, split: Split, strength: float, clock: Callable[[], float]) -> Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops early is marked in the table
        start = clock()
        model.fit(split.X, split.y)
        taken = clock() - start
    parts = getattr(model, "estimators_", [model])
    coef = np.vstack([part.coef_ for part in parts])
    certified = all(np.all(part.certificate_.converged) for part in parts)
    errors = int((model.predict(split.X_test) != split.y_test).sum())
    nonzeros = [int(n) for n in np.count_nonzero(coef, axis=1)]
    return Fit(strength, errors, nonzeros, coef.shape[1], certified, taken)


def _clock(arguments: argparse.Namespace) -> Callable[[], float]:
    return time.process_time if arguments.clock == "cpu" else time.perf_counter


def _least(loss: str, penalty: str, split: Split, groups: Any, arguments: Any) -> float:
    """The least C that leaves a coefficient; with a squared norm the scale of the data."""
    if penalty == "l2":
        return 1.0 / (float(np.mean((split.X**2).sum(axis=1))) * 10)
    from proxmargin import critical_C

    inner = "squared_hinge" if loss == "one-vs-all" else loss
    return float(critical_C(_model(inner, penalty, 1.0, groups, arguments), split.X, split.y))


def _sweep(loss: str, penalty: str, split: Split, groups: Any, arguments: Any) -> list[Fit]:
    least = _least(loss, penalty, split, groups, arguments)
    found = []
    for share in SHARES:
        model = _model(loss, penalty, share * least, groups, arguments)
        found.append(_fit(model, split, share, _clock(arguments)))
        print(f"{split.name}; {loss}, {penalty}, {share:g}: {found[-1]}", flush=True)
    return found


def _leukemia(arguments: argparse.Namespace) -> str:
    split = load_split("leukemia3")
    groups = np.arange(split.X.shape[1]) // BLOCK
    rows = []
    for penalty in PENALTIES:
        cells = [penalty]
        for loss in LOSSES:
            fits = _sweep(loss, penalty, split, groups, arguments)
            best = min(fits, key=lambda fit: (fit.errors, sum(fit.nonzeros)))
            mark = "" if best.certified else "*"
            split_up = " + ".join(str(count) for count in best.nonzeros)
            cells.append(f"{best.errors}/{split.y_test.size}{mark}; {split_up}")
        rows.append(cells)
    return (
        "### Leukemia, three classes (Table 1 of Chierchia et al.): errors; non-zeros of each"
        " class\n\n"
        f"{split.in_words}, groups of {BLOCK} genes; the C with the fewest test errors, then the"
        f" fewest non-zeros, of {_listed(SHARES)} times the least that leaves a coefficient.\n\n"
        + table(["penalty", *LOSSES], rows)
    )


def seen(split: Split) -> Split:
    """Without the words that no training document has; images stay as they are."""
    if isinstance(split.X, np.ndarray):
        return split
    used = np.flatnonzero(np.diff(split.X.tocsc().indptr))
    return Split(split.name, split.X[:, used], split.y, split.X_test[:, used], split.y_test)


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
