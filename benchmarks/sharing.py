"""`python -m benchmarks sharing`: many problems on the same data, together against apart."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from benchmarks.multiclass_data import load_split, seen
from benchmarks.report import RESULTS, seconds, table, write_section

TOL = 1e-6
SHARE = 0.1  # strength of a single fit, over the largest
L1_RATIO = 0.9
N_ALPHAS = 10
EPS = 0.05  # the last strength of a grid over the first
FOLDS = 5
STRENGTHS = tuple(float(C) for C in np.geomspace(0.01, 10.0, 4))
MARGINS = ("0.2max", "0.5max", "0.8max")
REPEATS = 5  # turns of the two sides, at most
LONG = 6.0  # seconds of turns, after which no other begins

NETS = ("SparseLogisticRegression", "HuberizedSVC", "SquaredHingeSVC")
RIDGES = ("LogisticRegression", "L2SVC", "SVC")
HULLS = ("NuSVC", "DWD", "MarginFDA", "MarginMPM")
KINDS = ("classes", "grid", "folds")
DATA = ("mnist:1000", "srbct", "leukemia3", "news20:1000")


@dataclass(frozen=True)
class Case:
    """The same models twice: one after the other, each on its own, and all together."""

    kind: str
    model: str
    data: str
    count: int
    apart: Callable[[], Any]
    together: Callable[[], Any]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument("--models", nargs="+", choices=(*NETS, *RIDGES, *HULLS), default=None)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="cpu")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    clock = time.process_time if arguments.clock == "cpu" else time.perf_counter
    rows: dict[str, list[Sequence[str]]] = {}
    for kind in arguments.kinds:
        for name in arguments.data:
            for model in arguments.models or (*NETS, *RIDGES, *HULLS):
                for case in CASES[kind](model, name):
                    rows.setdefault(kind, []).append(_measured(case, clock))
                    print(kind, *rows[kind][-1], sep=" | ", flush=True)
                    _write(rows, arguments)
    return 0


def _write(rows: dict[str, list[Sequence[str]]], arguments: argparse.Namespace) -> None:
    text = [
        f"{arguments.clock} seconds from data to certificates at a relative gap of {TOL:g};"
        f" compiled code is loaded before. The two sides take turns {REPEATS} times or {LONG:g} s,"
        " and the fastest of each counts. `ratio`: together over apart."
    ]
    for kind, measured in rows.items():
        head = ["model", "data", "fits", "apart", "together", "ratio"]
        mean = float(np.exp(np.mean([np.log(float(row[-1])) for row in measured])))
        text += [f"{IN_WORDS[kind]} The geometric mean of the ratio is {mean:.2f}."]
        text += [table(head, measured)]
    title = "Many problems on the same data"
    write_section("sharing", title, "\n\n".join(text), arguments.results)


def _measured(case: Case, clock: Callable[[], float]) -> Sequence[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.together()  # compiles, or loads what is compiled
        best = [np.inf, np.inf]
        begun = time.perf_counter()
        for _ in range(REPEATS):
            for side, fit in enumerate((case.apart, case.together)):
                start = clock()
                fit()
                best[side] = min(best[side], clock() - start)
            if time.perf_counter() - begun > LONG:
                break
    ratio = best[1] / best[0]
    times = [seconds(value) for value in best]
    return [case.model, case.data, str(case.count), *times, f"{ratio:.2f}"]


# ---- cases --------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _loaded(name: str) -> tuple[Any, Any]:
    split = seen(load_split(name))
    return split.X, split.y


def _estimator(model: str, name: str, X: Any, y: Any) -> Any:
    """The model at a strength of interest; dense features at unit variance."""
    import proxmargin

    dense = not name.startswith("news20")
    estimator = getattr(proxmargin, model)(multi_class="ovr", standardize=dense, tol=TOL)
    if model not in NETS:
        return estimator
    estimator.set_params(l1_ratio=L1_RATIO)
    return estimator.set_params(alpha=SHARE * proxmargin.alpha_max(estimator, X, y))


def _classes(model: str, name: str) -> Iterator[Case]:
    X, y = _loaded(name)
    estimator, classes = _estimator(model, name, X, y), np.unique(y)

    def apart() -> None:
        for label in classes:
            clone(estimator).fit(X, y == label)

    yield Case("classes", model, name, classes.size, apart, lambda: clone(estimator).fit(X, y))


def _grid(model: str, name: str) -> Iterator[Case]:
    X, y = _binary(name)
    apart, together, count = _along(model, name, X, y)
    yield Case("grid", model, name, count, apart, together)


def _folds(model: str, name: str) -> Iterator[Case]:
    X, y = _binary(name)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(y.size), y)
    parts = [_along(model, name, X[train], y[train]) for train, _ in folds]
    yield Case(
        "folds",
        model,
        name,
        sum(count for _, _, count in parts),
        lambda: [apart() for apart, _, _ in parts],
        lambda: [together() for _, together, _ in parts],
    )


def _binary(name: str) -> tuple[Any, Any]:
    X, y = _loaded(name)
    return X, y == np.unique(y)[0]


def _along(
    model: str, name: str, X: Any, y: Any
) -> tuple[Callable[[], Any], Callable[[], Any], int]:
    """Fits of several strengths: each on its own, together, and how many there are."""
    from proxmargin.paths import alpha_grid, fitted_grid, margin_path

    estimator = _estimator(model, name, X, y)
    if model in NETS:
        alphas = alpha_grid(estimator, X, y, n_alphas=N_ALPHAS, eps=EPS)
        settings: list[dict[str, Any]] = [{"alpha": float(alpha)} for alpha in alphas]
        together: Callable[[], Any] = lambda: margin_path(estimator, X, y, alphas=alphas)  # noqa: E731
    else:
        key, values = GRIDS[model]
        settings = [{key: value} for value in values]
        together = lambda: list(fitted_grid(estimator, settings, X, y))  # noqa: E731

    def apart() -> None:
        for setting in settings:
            clone(estimator).set_params(**setting).fit(X, y)

    return apart, together, len(settings)


GRIDS: dict[str, tuple[str, Sequence[Any]]] = {
    **dict.fromkeys(RIDGES, ("C", STRENGTHS)),
    "NuSVC": ("nu", MARGINS),
    "DWD": ("nu", (0.1, 1.0, 10.0)),
    "MarginFDA": ("kappa", MARGINS),
    "MarginMPM": ("kappa", MARGINS),
}
IN_WORDS = {
    "classes": "One model a class against the rest; apart: as many binary fits.",
    "grid": f"The first class against the rest, on a grid of strengths ({N_ALPHAS} of alpha from"
    f" the largest to {EPS:g} of it, or those of the candidates of `compare`); together: a path.",
    "folds": f"The same grids on the training parts of {FOLDS} folds; together: a path a fold.",
}
CASES: dict[str, Callable[[str, str], Iterator[Case]]] = {
    "classes": _classes,
    "grid": _grid,
    "folds": _folds,
}
