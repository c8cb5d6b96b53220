"""`python -m benchmarks tiny`: fits to few samples and predictions of one, where calls count."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.linear_model as linear
import sklearn.svm as svm
from sklearn.datasets import load_iris, make_classification

import proxmargin as pm
from benchmarks.report import RESULTS, table, write_section

ALPHA = 0.01  # of the elastic nets
NU = 0.6
SHAPES = ((50, 5), (100, 10), (300, 15), (1000, 20))  # samples, features
ROUNDS = 10  # in which all packages take turns
FITS = 3  # in a row in each
CALLS = 100  # in a row in each, of predictions of one sample
REMARKS = """\
- The least CPU milliseconds of {fits} fits, all packages in turn in one process, with its kernels
  loaded. Data are dense, with two classes but for iris, which has three. Ours are certified to a
  relative gap of 1e-6; the others end by their own tolerances, and have the objective of our model
  up to an intercept that LIBLINEAR penalises. `ratio` is to scikit-learn."""

# of our name: our model, and those of others for so many samples
MODELS: dict[str, tuple[Any, Callable[[int], dict[str, Any]]]] = {
    "SVC": (pm.SVC(), lambda n: {"scikit-learn": svm.SVC(kernel="linear")}),
    "SVC, rbf": (pm.SVC(kernel="rbf"), lambda n: {"scikit-learn": svm.SVC()}),
    "NuSVC": (pm.NuSVC(nu=NU), lambda n: {"scikit-learn": svm.NuSVC(nu=NU, kernel="linear")}),
    "L2SVC": (pm.L2SVC(), lambda n: {"scikit-learn": svm.LinearSVC()}),
    "LogisticRegression": (
        pm.LogisticRegression(),
        lambda n: {"scikit-learn": linear.LogisticRegression()},
    ),
    "MulticlassSVC": (
        pm.MulticlassSVC(),
        lambda n: {"scikit-learn": svm.LinearSVC(multi_class="crammer_singer")},
    ),
    "SparseLogisticRegression": (
        pm.SparseLogisticRegression(alpha=ALPHA, l1_ratio=1.0),
        lambda n: {
            "scikit-learn": linear.LogisticRegression(
                C=1.0 / (n * ALPHA), l1_ratio=1.0, solver="liblinear"
            ),
            "skglm": _skglm(),
        },
    ),
    "SquaredHingeSVC": (
        pm.SquaredHingeSVC(alpha=ALPHA, l1_ratio=1.0),
        lambda n: {
            "scikit-learn": svm.LinearSVC(C=1.0 / (n * ALPHA), penalty="l1", dual=False),
        },
    ),
    "HuberizedSVC": (pm.HuberizedSVC(alpha=ALPHA), lambda n: {}),
    "ElasticNetSVC": (pm.ElasticNetSVC(alpha=ALPHA), lambda n: {}),
}


ONE_ROW = """\
- The least CPU microseconds of a call with one row (the mean of {calls}, {rounds} times, both in
  turn) of models fitted to 1000 x 20, the row as the data were: a float64 array, a list, or a
  data frame with names."""
PREDICTING = ("SVC", "SVC, rbf", "LogisticRegression")
METHODS = ("decision_function", "predict", "predict_proba")
FORMS: dict[str, Callable[[Any], Any]] = {
    "array": np.ascontiguousarray,
    "list": np.ndarray.tolist,
    "data frame": lambda X: pd.DataFrame(X).add_prefix("x"),
}


def _skglm() -> Any:
    """Logistic regression of skglm; None where that is not installed."""
    try:
        from skglm import SparseLogisticRegression
    except ImportError:
        return None
    return SparseLogisticRegression(alpha=ALPHA)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    data = {f"{n} x {p}": _data(n, p) for n, p in SHAPES}
    data["iris"] = load_iris(return_X_y=True)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in arguments.models:
            for shape, (X, y) in data.items():
                ours, others = MODELS[name]
                models = {"proxmargin": ours, **others(len(y))}
                if shape == "iris":  # of three classes, which skglm fits by another model
                    models.pop("skglm", None)
                found = _least(models, X, y)
                ratio = found["proxmargin"] / found.get("scikit-learn", np.nan)
                packages = ("proxmargin", "scikit-learn", "skglm")
                times = [_cell(found.get(package, np.nan)) for package in packages]
                rows.append([name, shape, *times, _cell(ratio)])
                print(" ".join(rows[-1]), flush=True)
    head = ["model", "data", "proxmargin, ms", "scikit-learn, ms", "skglm, ms", "ratio"]
    body = f"{REMARKS.format(fits=ROUNDS * FITS)}\n\n{table(head, rows)}"
    head = ["model", "row", "method", "proxmargin, us", "scikit-learn, us", "ratio"]
    remarks = ONE_ROW.format(calls=CALLS, rounds=ROUNDS)
    body += f"\n\n## Predictions of one row\n\n{remarks}\n\n{table(head, list(_one_row()))}"
    write_section("tiny", "Fits to few samples", body, arguments.results)
    return 0


def _one_row() -> Iterator[list[str]]:
    """Microseconds of predictions of one row, by model, form and method."""
    X, y = _data(*SHAPES[-1])
    for name in PREDICTING:
        ours, others = MODELS[name]
        for form, made in FORMS.items():
            models = [model.fit(made(X), y) for model in (ours, others(len(y))["scikit-learn"])]
            for method in METHODS:
                if not all(hasattr(model, method) for model in models):
                    continue
                calls = [partial(getattr(model, method), made(X[:1])) for model in models]
                times = [[_microseconds(call) for call in calls] for _ in range(ROUNDS)]
                least = np.min(times, axis=0)
                yield [name, form, method, *map(_cell, least), _cell(least[0] / least[1])]
                print(f"{name} {form} {method} {least[0]:.1f} {least[1]:.1f}", flush=True)


def _microseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return 1e6 * (time.process_time() - start) / CALLS


def _data(n: int, p: int) -> Any:
    few = min(p, 5)
    return make_classification(n, p, n_informative=few, n_redundant=0, flip_y=0.1, random_state=0)


def _least(models: dict[str, Any], X: Any, y: Any) -> dict[str, float]:
    """The least milliseconds of a fit of each model; those that refuse the data are left out."""
    found: dict[str, float] = {}
    able = {name: model for name, model in models.items() if model is not None}
    for turn in range(ROUNDS + 1):  # the first loads kernels
        for name, model in list(able.items()):
            try:
                times = [_milliseconds(model, X, y) for _ in range(FITS)]
            except ValueError:  # no margin, or two classes only
                del able[name]
                continue
            if turn:
                found[name] = min(found.get(name, np.inf), *times)
    return {"proxmargin": np.nan, **found}


def _milliseconds(model: Any, X: Any, y: Any) -> float:
    start = time.process_time()
    model.fit(X, y)
    return 1e3 * (time.process_time() - start)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"
