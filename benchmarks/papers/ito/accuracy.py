"""Table 11 of Ito et al. (2017): cross-validated accuracy of the models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.datasets import DataSet, subsample
from benchmarks.papers.claims import ERRORS, Claim, judged
from benchmarks.papers.ito.agreement import (
    NAMES_OUT_OF_REACH,
    OUR_MEASURE,
    STARRED,
    is_same,
    starred,
    tested,
)
from benchmarks.papers.ito.data import loaded, reached
from benchmarks.papers.ito.printed import ACCURACY
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from proxmargin import LogisticRegression, MarginFDA, MarginMPM, NuSVC

__all__ = ["TABLES", "Score"]

FOLDS = 10
SEED = 0  # of the partition
ROWS = {Size.SMALL: 1000, Size.FULL: 100_000}  # larger sets are subsampled to it
TOL = 1e-4  # relative gap
LIMIT = 30.0  # seconds a fit
SHARES = {
    Size.SMALL: ("0.1max", "0.4max", "0.7max", "0.95max"),
    Size.FULL: tuple(f"{share:g}max" for share in np.arange(0.05, 1.0, 0.05)),
}
STRENGTHS = {
    Size.SMALL: (0.1, 1.0, 10.0),
    Size.FULL: (0.1, 0.5, *(float(c) for c in np.arange(1.0, 20.5, 1.0))),
}
MOSTLY = 0.9  # share of the cells that agree if the printed ones were drawn likewise


class Contestant(NamedTuple):
    """A model, and the name of its parameter."""

    name: str
    model: Callable[..., Any]
    parameter: str


CONTESTANTS = (
    Contestant("nu-SVM", NuSVC, "nu"),
    Contestant("logistic", LogisticRegression, "C"),
    Contestant("MM-MPM", MarginMPM, "kappa"),
    Contestant("MM-FDA", MarginFDA, "kappa"),
)


class Score(NamedTuple):
    """Per cent on the left-out folds: mean and standard error; the parameter."""

    mean: float
    error: float
    parameter: str


def _score(one: Contestant, data: DataSet, size: Size, printed: float) -> Score:
    """Of the parameter with the largest mean, among the grid and the printed one."""
    grid = STRENGTHS[size] if one.parameter == "C" else SHARES[size]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    search = GridSearchCV(
        one.model(tol=TOL, time_limit=LIMIT),
        {one.parameter: [*grid, printed]},
        cv=folds,
        error_score=0.0,  # the printed parameter may leave no margin here
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no margin, or no certificate: both show in the scores
        search.fit(data.design, data.labels)
    best = int(np.argmax(search.cv_results_["mean_test_score"]))
    found = 100.0 * np.array(
        [search.cv_results_[f"split{fold}_test_score"][best] for fold in range(FOLDS)]
    )
    parameter = search.cv_results_["params"][best][one.parameter]
    worded = parameter if isinstance(parameter, str) else f"{parameter:g}"
    return Score(float(found.mean()), float(found.std(ddof=1) / np.sqrt(FOLDS)), worded)


def _table_11(size: Size) -> Outcome:
    rows, scores = [], {}
    for name in reached(size):
        data = subsample(loaded(name), ROWS[size])
        scores[name] = row = [
            _score(one, data, size, printed)
            for one, (_, printed) in zip(CONTESTANTS, ACCURACY[name], strict=True)
        ]
        rows.append([_title(name, data), *map(_cell, ACCURACY[name], row)])
        print(f"{data.name}: {rows[-1][1:]}", flush=True)
    head = ["% right: printed, ours", *(one.name for one in CONTESTANTS)]
    note = f"""Means ± standard errors over the folds; in brackets the parameter that is best.
{STARRED} NAME@N: N samples of it by chance. {NAMES_OUT_OF_REACH}"""
    return judged(f"{note}\n\n{table(head, rows)}\n\n{_weak(scores)}", _claims(scores))


def _weak(scores: Mapping[str, Sequence[Score]]) -> str:
    widths = [ERRORS * one.error for name, row in scores.items() if is_same(name) for one in row]
    return f"""Two standard errors of {FOLDS} folds are {min(widths):.1f} to {max(widths):.1f}
points: agreement within them is a weak test, which a model of another kind could pass."""


def _title(name: str, data: DataSet) -> str:
    _, _, rows = data.name.partition("@")
    return f"{starred(name)}{f'@{rows}' if rows and is_same(name) else ''}"


def _cell(printed: tuple[float, float], ours: Score) -> str:
    return f"{printed[0]:g}, {ours.mean:.1f} ± {ours.error:.1f} ({ours.parameter})"


def _claims(scores: Mapping[str, Sequence[Score]]) -> list[Claim]:
    judged_ones = {name: row for name, row in scores.items() if is_same(name)}
    near = [
        abs(ours.mean - printed) <= ERRORS * ours.error
        for name, row in judged_ones.items()
        for ours, (printed, _) in zip(row, ACCURACY[name], strict=True)
    ]
    winners = {name: _winners([one.mean for one in row]) for name, row in judged_ones.items()}
    told = ", ".join(
        f"{one.name} on {sum(k in won for won in winners.values())}"
        for k, one in enumerate(CONTESTANTS)
    )
    return [
        Claim(
            f"the printed accuracies, within {ERRORS:g} standard errors (of the best of the grid),"
            f" in {MOSTLY:.0%} of the cells {OUR_MEASURE}",
            tested(sum(near) >= MOSTLY * len(near), near),
            f"{sum(near)} of {len(near)}",
        ),
        Claim(
            "which model is best varies with the data",
            tested(len({min(won) for won in winners.values()}) > 1, winners),
            f"best: {told}",
        ),
    ]


def _winners(means: Sequence[float]) -> list[int]:
    """The models with the largest mean, as printed."""
    rounded = np.round(means, 1)
    return [int(k) for k in np.flatnonzero(rounded == rounded.max())]


TABLES = {
    "I11": PaperTable(
        "Table 11 of Ito et al.: accuracy",
        f"""{FOLDS} disjoint sets, the parameter with the largest mean accuracy over them, as
printed (so that the means are of the folds that chose it). Inferred: stratified partitions; grids:
nu and kappa by shares of their largest values, C in {min(STRENGTHS[Size.FULL]):g} to
{max(STRENGTHS[Size.FULL]):g}, and each printed parameter; at the small size
{len(SHARES[Size.SMALL])} shares, {len(STRENGTHS[Size.SMALL])} values of C and at most
{ROWS[Size.SMALL]:,} samples (full size: {ROWS[Size.FULL]:,});
a cell agrees within {ERRORS:g} standard errors, and the table if
{MOSTLY:.0%} of the cells do. Our solvers to a certified relative gap of {TOL:g}.""",
        (1.5, 120.0),
        _table_11,
        (f"{FOLDS} folds", f"{FOLDS} folds"),
    )
}
