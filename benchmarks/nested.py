"""`python -m benchmarks compare`: whole comparisons, against nested searches of scikit-learn."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.datasets import _stored, load
from benchmarks.report import RESULTS, seconds, table, write_section
from proxmargin import compare
from proxmargin.studies.comparing.candidates import CANDIDATES, AlphaPath, CPath

DATA = ("colon", "leukemia", "srbct", "german", "dna", "a9a@5000", "news20:two")
GROUPS = (0, 19)  # of news20: alt.atheism, talk.religion.misc
GOAL = 0.2  # of the time of scikit-learn, a model and grid point
FOLDS = 5  # outer
INNER_FOLDS = 3
COMPILING = 0.01  # share of the time that may have gone into kernels
WARM_UP = 60  # rows of a comparison that compiles the kernels, and is not measured
L1_POINTS = 10  # strengths of an l1 norm, over three decades

Make = Callable[[], Any]


@dataclass(frozen=True)
class Pair:
    """A model of ours, and the same kind of model in scikit-learn with its grid."""

    ours: str
    theirs: str
    make: Make
    Cs: Sequence[float]


PAIRS = (
    Pair("L2SVC", "LinearSVC", lambda: LinearSVC(random_state=0), (0.01, 0.1, 1.0, 10.0)),
    Pair(
        "SparseLogisticRegression",
        "LogisticRegression(l1)",
        lambda: LogisticRegression(penalty="l1", solver="liblinear", random_state=0),
        tuple(np.geomspace(0.01, 10.0, L1_POINTS).tolist()),
    ),
    Pair("SVC-rbf", "SVC(rbf)", SVC, (0.1, 1.0, 10.0)),
)


@dataclass(frozen=True)
class Measured:
    """CPU seconds of a nested search, the number of its grid points, and its mean score."""

    seconds: float
    points: int
    score: float

    @property
    def per_point(self) -> float:
        return self.seconds / self.points


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--whole", action="store_true", help="all models of a comparison, too")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows: list[list[str]] = []
    whole: list[list[str]] = []
    for name in arguments.data:
        X, y = _data(name)
        for row in _pair_rows(name, X, y):
            rows.append(row)
            print(" | ".join(row), flush=True)
            write_section("compare", "Comparisons", _body(rows, whole), arguments.results)
        if arguments.whole:
            whole.append(_whole_row(name, X, y))
            print(" | ".join(whole[-1]), flush=True)
            write_section("compare", "Comparisons", _body(rows, whole), arguments.results)
    return 0


def _data(name: str) -> tuple[Any, Any]:
    """The samples with their own classes; of news20 two of its groups."""
    if name == "news20:two":
        X, y, train = _stored("news20")
        kept = train & np.isin(y, GROUPS)
        return X[kept], y[kept]
    if "@" in name or name in ("colon", "leukemia"):
        data = load(name)
        return data.design, data.labels
    X, y, train = _stored(name)
    return X[train], y[train]


def _pair_rows(name: str, X: Any, y: Any) -> Iterator[list[str]]:
    for pair in PAIRS:
        ours, theirs = _ours(X, y, pair.ours), _theirs(X, y, pair)
        ratio = ours.per_point / theirs.per_point
        yield [
            name,
            pair.ours,
            seconds(ours.seconds),
            str(ours.points),
            f"{ours.score:.3f}",
            pair.theirs,
            seconds(theirs.seconds),
            str(theirs.points),
            f"{theirs.score:.3f}",
            f"{ratio:.2f}",
            "yes" if ratio <= GOAL else "no",
        ]


def _ours(X: Any, y: Any, models: Any) -> Measured:
    _compared(*_few(X, y), models)
    compiles = True
    while compiles:  # kernels for a size of data that the first rows did not have
        started = time.process_time()
        found = _compared(X, y, models)
        spent = time.process_time() - started
        compiles = found.to_dict()["cost"]["compile_seconds"] > COMPILING * spent
    return Measured(spent, _points(models), float(found.table.score_mean.max()))


def _compared(X: Any, y: Any, models: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that ended early: the table tells them
        return compare(X, y, models=models, cv=FOLDS, repeats=1, progress=False)


def _few(X: Any, y: Any) -> tuple[Any, Any]:
    """Some rows of each class."""
    classes = np.unique(y)
    each = max(WARM_UP // classes.size, 4)
    rows = np.concatenate([np.flatnonzero(y == label)[:each] for label in classes])
    return X[rows], y[rows]


def _points(models: Any) -> int:
    """Settings that a comparison tries: of all models, the sum."""
    names = list(CANDIDATES) if models == "all" else [models]
    return sum(_settings(CANDIDATES[name].search) for name in names)


def _settings(search: Any) -> int:
    if isinstance(search, AlphaPath):
        return search.n_alphas * len(search.l1_ratios)
    if isinstance(search, CPath):
        return len(search.values)
    return int(np.prod([len(list(each)) for each in search.values.values()], dtype=int))


def _theirs(X: Any, y: Any, pair: Pair) -> Measured:
    """The nested search as scikit-learn's users write it, with the fit to all rows."""
    scaler = "passthrough" if hasattr(X, "tocsr") else StandardScaler()
    made, name = pair.make(), "model__C"
    if isinstance(made, LogisticRegression) and np.unique(y).size > 2:  # LIBLINEAR takes two
        made, name = OneVsRestClassifier(made), "model__estimator__C"
    model = Pipeline([("scale", scaler), ("model", made)])
    inner = StratifiedKFold(INNER_FOLDS, shuffle=True, random_state=1)
    search = GridSearchCV(model, {name: list(pair.Cs)}, cv=inner, scoring="balanced_accuracy")
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
            said = search.fit(X[train], y[train]).predict(X[test])
            scores.append(balanced_accuracy_score(y[test], said))
        search.fit(X, y)
        spent = time.process_time() - started
    return Measured(spent, len(pair.Cs), float(np.mean(scores)))


def _whole_row(name: str, X: Any, y: Any) -> list[str]:
    found = _ours(X, y, "all")
    shape = "x".join(map(str, X.shape))
    each = found.seconds / found.points
    return [name, shape, seconds(found.seconds), str(found.points), seconds(each)]


def _body(rows: Sequence[Sequence[str]], whole: Sequence[Sequence[str]]) -> str:
    head = ["data", "ours", "s", "points", "score", "scikit-learn's", "s", "points", "score"]
    notes = f"""- Nested cross-validation, {FOLDS} outer and {INNER_FOLDS} inner folds, with
  the fit to all rows: `compare(models=...)` with its six metrics and calibrated probabilities, and
  `GridSearchCV` inside a loop with balanced accuracy alone. CPU seconds, kernels compiled before.
- Points: settings tried in every inner search. Ratio: our seconds a point to scikit-learn's; the
  goal is {GOAL}. Score: mean balanced accuracy.

{table([*head, "ratio", "met"], rows)}"""
    if not whole:
        return notes
    totals = table(["data", "shape", "s", "points", "s a point"], whole)
    return f"{notes}\n\nAll models of a comparison:\n\n{totals}"
