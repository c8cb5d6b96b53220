"""`python -m benchmarks multiclass`: models of all classes together, tables of Xu et al. 3.2."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from benchmarks.multiclass_data import Split, four_classes, load_split
from benchmarks.report import RESULTS, seconds, table, write_section

PARTS = ("synthetic", "benchmark", "microarray")
BENCHMARK = ("dna", "glass", "letter", "poker", "usps", "wine")


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
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--trials", type=int, default=3, help="draws of data (3)")
    parser.add_argument("--tol", type=float, default=1e-4, help="relative gap of the fits (1e-4)")
    parser.add_argument("--limit", type=float, default=10.0, help="seconds a fit (10)")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--section", default="multiclass", help="name of the section in the file")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write into")


def main(arguments: argparse.Namespace) -> int:
    makers: dict[str, Callable[[argparse.Namespace], str]] = {
        "synthetic": _synthetic,
        "benchmark": _benchmark,
        "microarray": _microarray,
    }
    done: list[str] = []
    for part in arguments.parts:
        done.append(makers[part](arguments))
        body = "\n\n".join([_notes(arguments), *done])
        title = "Multiclass models (Xu et al. 3.2)"
        write_section(arguments.section, title, body, arguments.results)
    return 0


def _notes(arguments: argparse.Namespace) -> str:
    return (
        f"- Fits to a certified relative gap of {arguments.tol:g} or {arguments.limit:g} s; `*`"
        " marks a line with a fit that did not arrive.\n"
        f"- Seconds are {arguments.clock} time, of one fit with the parameters shown."
    )


# ---- fits --------------------------------------------------------------------------------------


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


# ---- Xu et al. ----------------------------------------------------------------------------------


def _huberized(arguments: argparse.Namespace, ridge: float = 0.0) -> tuple[Any, dict[str, Any]]:
    from proxmargin import HuberizedSVC

    model = HuberizedSVC(
        delta=1.0, intercept_ridge=ridge, tol=arguments.tol, time_limit=arguments.limit
    )
    return model, {"alpha": [0.003, 0.01, 0.03, 0.1], "l1_ratio": [0.1, 0.5, 0.9]}


def _hinge(loss: str, penalty: str, arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from proxmargin import MulticlassSVC

    groups = "features" if penalty == "group_linf" else None
    model = MulticlassSVC(
        loss=loss, penalty=penalty, groups=groups, tol=arguments.tol, time_limit=arguments.limit
    )
    return model, {"C": [0.01, 0.03, 0.1, 0.3, 1.0]}


def _ova(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from proxmargin import L2SVC

    return L2SVC(tol=arguments.tol, time_limit=arguments.limit), {"C": [1.0]}


def _ddag(arguments: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from proxmargin import SVC, DDAGClassifier

    model = DDAGClassifier(SVC(kernel="rbf", tol=arguments.tol, time_limit=arguments.limit))
    return model, {"estimator__C": [1.0, 10.0, 100.0], "estimator__gamma": ["scale", 0.01, 0.1]}


Recipes = dict[str, tuple[Any, dict[str, Any]]]


def _chosen(recipe: tuple[Any, dict[str, Any]], split: Split) -> Any:
    """The model with the parameters of the best three-fold score, not fitted."""
    model, grid = recipe
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(model, grid, cv=3, refit=False, error_score=0.0)
        search.fit(split.X, split.y)
    return model.set_params(**search.best_params_)


def _synthetic(arguments: argparse.Namespace) -> str:
    """Parameters from one draw of 100 samples; then fresh draws to train and to test."""
    text = [
        "### Four classes (Table 10 of Xu et al.): p = 500, 100 samples to train, 20,000 to test"
    ]
    for rho in (0.0, 0.8):
        recipes: Recipes = {
            "(3), huberized": _huberized(arguments),
            "l1, hinge of Lee et al.": _hinge("lee", "l1", arguments),
            "l_inf of rows, Crammer-Singer": _hinge("hinge", "group_linf", arguments),
        }
        rows = []
        for name, recipe in recipes.items():
            model = _chosen(recipe, four_classes(100, rho, np.random.default_rng(0)))
            fits, wrong = [], []
            for trial in range(arguments.trials):
                train = four_classes(100, rho, np.random.default_rng([1, trial]))
                test = four_classes(20_000, rho, np.random.default_rng([2, trial]))
                split = Split("four classes", train.X, train.y, test.X, test.y)
                fits.append(_fit(model, split, 0.0, _clock(arguments)))
                wrong.append(_incorrect_zeros(model.coef_))
                print(f"rho {rho:g}; {name}: {fits[-1]}", flush=True)
            rows.append(
                [
                    _marked(name, fits),
                    f"{100 - 100 * np.mean([fit.errors / 20_000 for fit in fits]):.1f}",
                    seconds(float(np.mean([fit.seconds for fit in fits]))),
                    f"{np.mean(wrong):.1f}",
                    *(f"{value:.1f}" for value in np.mean([f.nonzeros for f in fits], axis=0)),
                ]
            )
        head = ["model", "accuracy %", "seconds", "IZ", "NZ1", "NZ2", "NZ3", "NZ4"]
        text.append(f"rho = {rho:g}\n\n" + table(head, rows))
    return "\n\n".join(text)


def _incorrect_zeros(coef: np.ndarray, s: int = 30) -> int:
    """Zeros among the s features that each class has a mean in."""
    relevant = np.zeros(coef.shape, bool)
    relevant[:2, :s] = relevant[2:, s // 2 : s // 2 + s] = True
    return int((relevant & (coef == 0)).sum())


def _accuracies(
    names: Iterable[str], recipes: Callable[[], Recipes], arguments: argparse.Namespace
) -> Iterator[tuple[str, dict[str, list[Fit]]]]:
    """Of each model on each data set, parameters chosen on the first draw."""
    for name in names:
        fits: dict[str, list[Fit]] = {}
        for label, recipe in recipes().items():
            model = _chosen(recipe, load_split(name, 0))
            for trial in range(arguments.trials):
                split = _redrawn(load_split(name, trial), trial)
                fits.setdefault(label, []).append(_plain_fit(model, split, _clock(arguments)))
            print(f"{name}; {label}: {fits[label]}", flush=True)
        yield name, fits


def _redrawn(split: Split, trial: int) -> Split:
    """Microarrays: training and test part together, split by chance into the same sizes."""
    if split.name not in ("leukemia3", "srbct"):
        return split
    X, y = np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    order = np.random.default_rng([3, trial]).permutation(y.size)
    train, test = order[: split.y.size], order[split.y.size :]
    return Split(split.name, X[train], y[train], X[test], y[test])


def _plain_fit(model: Any, split: Split, clock: Callable[[], float]) -> Fit:
    """A fit of a model that may have no coefficients (kernels, DDAG)."""
    if hasattr(model, "estimator"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = clock()
            model.fit(split.X, split.y)
            taken = clock() - start
        errors = int((model.predict(split.X_test) != split.y_test).sum())
        return Fit(0.0, errors, [], split.X.shape[1], True, taken)
    return _fit(model, split, 0.0, clock)


def _benchmark(arguments: argparse.Namespace) -> str:
    def recipes() -> Recipes:
        return {
            "(3), huberized": _huberized(arguments, ridge=1.0),
            "one-vs-rest": _ova(arguments),
            "DDAG": _ddag(arguments),
        }

    rows, head = [], ["data", "(3), huberized", "one-vs-rest", "DDAG"]
    for name, fits in _accuracies(BENCHMARK, recipes, arguments):
        rows.append(
            [load_split(name).in_words, *(_accuracy(fits[label], name) for label in head[1:])]
        )
    return "### Benchmark data (Table 12 of Xu et al.): accuracy %\n\n" + table(head, rows)


def _microarray(arguments: argparse.Namespace) -> str:
    def recipes() -> Recipes:
        return {
            "(3), huberized": _huberized(arguments, ridge=1.0),
            "l1, hinge of Lee et al.": _hinge("lee", "l1", arguments),
            "l_inf of rows, Crammer-Singer": _hinge("hinge", "group_linf", arguments),
            "one-vs-rest": _ova(arguments),
            "DDAG": _ddag(arguments),
        }

    text = ["### Microarrays (Table 14 of Xu et al.): parts redrawn by chance, all genes"]
    for name, fits in _accuracies(("srbct", "leukemia3"), recipes, arguments):
        rows = [
            [
                _marked(label, found),
                _accuracy(found, name),
                seconds(float(np.mean([fit.seconds for fit in found]))),
                f"{np.mean([sum(fit.nonzeros) for fit in found]):.0f}"
                if found[0].nonzeros
                else "-",
            ]
            for label, found in fits.items()
        ]
        text.append(f"{name}\n\n" + table(["model", "accuracy %", "seconds", "NZ"], rows))
    return "\n\n".join(text)


def _accuracy(fits: Sequence[Fit], name: str) -> str:
    tested = load_split(name).y_test.size
    shares = [100 - 100 * fit.errors / tested for fit in fits]
    return f"{np.mean(shares):.1f}"


def _marked(name: str, fits: Sequence[Fit]) -> str:
    return name if all(fit.certified for fit in fits) else f"{name} *"
