"""`python -m benchmarks accuracy`: cross-validated accuracy, Table 11 of Ito et al. (2017)."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.datasets import DataSet
from benchmarks.family_data import load_scaled
from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.unified import median_distance

DATA = (
    *("australian", "diabetes", "fourclass", "german", "heart", "ionosphere", "liver", "sonar"),
    *("splice", "colon", "svmguide1", "mushrooms", "a9a"),
)
MORE = ("leukemia", "covtype", "skin")
SHARES = ("0.1max", "0.3max", "0.5max", "0.7max", "0.9max")
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
THRESHOLDS = (0.03, 0.1, 0.3, 1.0)  # of the median distance between the classes
SEED = 0
Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Contestant:
    """A model with the grid of its parameter for so many samples of some data."""

    name: str
    make: Callable[..., Any]
    grid: Callable[[DataSet, int], Grid]


@dataclass(frozen=True)
class Score:
    """Accuracies on the test folds, the parameters chosen, and the seconds for all of it."""

    accuracies: Sequence[float]
    chosen: Sequence[str]
    uncertified: int
    seconds: float

    @property
    def mean(self) -> float:
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        return float(np.std(self.accuracies, ddof=1))


Scores = dict[str, dict[str, Score]]  # by data, by model


def contestants() -> list[Contestant]:
    import proxmargin

    def dwd_grid(data: DataSet, rows: int) -> Grid:
        distance = median_distance(data)
        return {"nu": [(share * distance) ** 2 / rows for share in THRESHOLDS]}

    return [
        Contestant("nu-SVM", proxmargin.NuSVC, lambda data, rows: {"nu": SHARES}),
        Contestant("logistic", proxmargin.LogisticRegression, lambda data, rows: {"C": STRENGTHS}),
        Contestant("MM-MPM", proxmargin.MarginMPM, lambda data, rows: {"kappa": SHARES}),
        Contestant("MM-FDA", proxmargin.MarginFDA, lambda data, rows: {"kappa": SHARES}),
        Contestant("DWD", proxmargin.DWD, dwd_grid),
    ]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(DATA), help="names; 'all' for every set")
    parser.add_argument("--rows", type=int, default=500, help="larger sets are subsampled to it")
    parser.add_argument("--folds", type=int, default=10, help="outer folds (10)")
    parser.add_argument("--inner", type=int, default=3, help="folds of the inner search (3)")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap of the fits (1e-4)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit (10)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    scores: Scores = {}
    for name in (*DATA, *MORE) if arguments.data == ["all"] else arguments.data:
        data = load_scaled(f"{name}@{arguments.rows}")
        row = scores.setdefault(data.name, {})
        for one in contestants():
            row[one.name] = _score(one, data, arguments)
            print(f"{data.name}; {one.name}: {_in_words(row[one.name])}", flush=True)
        body = _body(scores, arguments)
        title = "Accuracy (Table 11 of Ito et al.)"
        write_section("accuracy", title, body, arguments.results)
    return 0


def _score(one: Contestant, data: DataSet, arguments: argparse.Namespace) -> Score:
    """Accuracy on each outer fold of the model whose parameter the inner folds choose."""
    clock = time.process_time if arguments.clock == "cpu" else time.perf_counter
    start = clock()
    outer = StratifiedKFold(arguments.folds, shuffle=True, random_state=SEED)
    accuracies, chosen, uncertified = [], [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no margin, or no certificate: both show in the scores
        for train, test in outer.split(data.design, data.labels):
            part = DataSet(data.name, data.design[train], data.labels[train])
            search = _search(one, part, arguments)
            accuracies.append(search.score(data.design[test], data.labels[test]))
            chosen.append(_worded(search.best_params_, len(train)))
            uncertified += not search.best_estimator_.certificate_.converged
    return Score(accuracies, chosen, uncertified, clock() - start)


def _search(one: Contestant, data: DataSet, arguments: argparse.Namespace) -> GridSearchCV:
    model = one.make(tol=arguments.tol, time_limit=arguments.limit)
    inner = StratifiedKFold(arguments.inner, shuffle=True, random_state=SEED)
    rows = data.labels.size
    search = GridSearchCV(model, dict(one.grid(data, rows)), cv=inner, error_score=0.0)
    return search.fit(data.design, data.labels)


def _worded(parameters: Mapping[str, Any], rows: int) -> str:
    """The value that was chosen; DWD's as its threshold sqrt(m nu)."""
    ((name, value),) = parameters.items()
    if isinstance(value, str):
        return value
    return f"{np.sqrt(rows * value):.2g}" if name == "nu" else f"{value:g}"


# ---- Markdown -----------------------------------------------------------------------------------


def _in_words(score: Score) -> str:
    return f"{score.mean:.1%}, {_often(score)}, {seconds(score.seconds)} s"


def _often(score: Score) -> str:
    """The parameter that most folds chose."""
    return max(sorted(set(score.chosen)), key=list(score.chosen).count)


def _body(scores: Scores, arguments: argparse.Namespace) -> str:
    names = [one.name for one in contestants()]
    short = sum(score.uncertified for row in scores.values() for score in row.values())
    lines = [*_lines(scores, names), ["average rank", *_ranks(scores, names)]]
    spent = ([name, *(seconds(row[m].seconds) for m in names)] for name, row in scores.items())
    return f"""- Means and standard deviations over {arguments.folds} stratified folds, the same
  for every model, of the accuracy on the fold left out; the parameter (in brackets: the one that
  most folds chose) by the accuracy in a {arguments.inner}-fold search on the others. The whole set
  is scaled as in the paper before it is split; NAME@N is a stratified subsample of N samples.
- Grids: nu and kappa {", ".join(SHARES)}; C {", ".join(f"{c:g}" for c in STRENGTHS)}; DWD's
  threshold {", ".join(f"{t:g}" for t in THRESHOLDS)} of the median distance between the classes.
- Fits to a relative gap of {arguments.tol:g} in at most {arguments.limit:g} s; fits of the
  chosen parameter that did not meet it: {short}. Bold: the largest mean of the row. Equal means
  share their rank.

{table(["data", *names], lines)}

### Seconds ({arguments.clock}) for the whole of it

{table(["data", *names], spent)}"""


def _lines(scores: Scores, names: Sequence[str]) -> Iterator[list[str]]:
    for data, row in scores.items():
        best = max(_rounded(score) for score in row.values())
        yield [data, *(_cell(row[name], best) for name in names)]


def _cell(score: Score, best: float) -> str:
    text = f"{score.mean:.1%} ± {score.deviation:.1%}"
    text = f"**{text}**" if _rounded(score) == best else text
    return f"{text} ({_often(score)})"


def _rounded(score: Score) -> float:
    """As printed, so that what reads the same ranks the same."""
    return round(score.mean, 3)


def _ranks(scores: Scores, names: Sequence[str]) -> list[str]:
    rows = [[-_rounded(row[name]) for name in names] for row in scores.values()]
    ranks = [f"{rank:.2f}" for rank in rankdata(rows, axis=1).mean(axis=0)]
    best = min(ranks, key=float)
    return [f"**{rank}**" if rank == best else rank for rank in ranks]
