"""`python -m benchmarks permutations`: permutation tests, in single fits, and under the null."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kstest

from benchmarks.datasets import load
from benchmarks.report import RESULTS, seconds, table, write_section
from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    HuberizedSVC,
    LogisticRegression,
    MarginFDA,
    NuSVC,
    permutation_test,
)

MODELS: dict[str, Callable[[], Any]] = {
    "DWD": DWD,
    "L2SVC": L2SVC,
    "LogisticRegression": LogisticRegression,
    "SVC": SVC,
    "NuSVC": NuSVC,
    "MarginFDA": MarginFDA,
    "HuberizedSVC": lambda: HuberizedSVC(alpha=0.1),
}
COUNTS = (1000, 10_000)
MANY_FOR = ("DWD",)  # the models that are also tested with the larger count
NULL_SETS = 200
NULL_SHAPE = (40, 200)
NULL_PERMUTATIONS = 199
SINGLE_FITS = 5  # of which the fastest counts


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=["colon", "leukemia"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows = []
    for data in arguments.data:
        for name in arguments.models:
            for count in COUNTS if name in MANY_FOR else COUNTS[:1]:
                rows.append(_row(data, name, count))
                print(" | ".join(rows[-1]), flush=True)
    body = f"{_method()}\n\n{table(HEAD, rows)}\n\n### Under the null\n\n{_null()}"
    write_section("permutations", "Permutation tests", body, arguments.results)
    return 0


HEAD = ["data", "model", "permutations", "a fit, s", "test, s", "in fits", "p", "z", "largest gap"]


def _row(data: str, name: str, count: int) -> list[str]:
    drawn = load(data)
    X, y, model = drawn.design, drawn.labels, MODELS[name]()
    permutation_test(model, X, y, n_permutations=2, random_state=0)  # compiles
    single = min(_spent(lambda: model.fit(X, y)) for _ in range(SINGLE_FITS))
    started = time.process_time()
    test = permutation_test(model, X, y, n_permutations=count, random_state=0)
    spent = time.process_time() - started
    return [
        data,
        name,
        str(count),
        seconds(single),
        seconds(spent),
        f"{spent / single:.1f}",
        f"{test.pvalue:.4g}",
        f"{test.zscore:.1f}",
        f"{test.largest_gap:.1e}",
    ]


def _spent(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _null() -> str:
    """Kolmogorov and Smirnov's test of p-values where the classes do not differ."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], NULL_SHAPE[0] // 2)
    found = [
        permutation_test(
            DWD(),
            rng.standard_normal(NULL_SHAPE),
            y,
            n_permutations=NULL_PERMUTATIONS,
            random_state=seed,
        ).pvalue
        for seed in range(NULL_SETS)
    ]
    # p-values are multiples of 1 / (1 + n): spread evenly over the cell below
    spread = np.array(found) - rng.uniform(0.0, 1.0 / (1 + NULL_PERMUTATIONS), NULL_SETS)
    result = kstest(spread, "uniform")
    small = np.mean(np.array(found) <= 0.05)
    return (
        f"{NULL_SETS} sets of {NULL_SHAPE[0]} x {NULL_SHAPE[1]} normal numbers, two classes, "
        f"DWD, {NULL_PERMUTATIONS} permutations each: distance of the p-values from a uniform "
        f"distribution {result.statistic:.3f} (Kolmogorov-Smirnov p = {result.pvalue:.2f}); "
        f"{small:.1%} of them at most 0.05."
    )


def _method() -> str:
    return """- `permutation_test(model, X, y)`: the difference of means, default parameters, for
  HuberizedSVC alpha = 0.1; standardised data; CPU seconds on one core, after a test that compiles.
  A fit is the fastest of five.
- DWD, L2SVC, LogisticRegression, SVC, NuSVC and MarginFDA are fitted side by side on one Gram
  matrix, HuberizedSVC one by one.
- No rival: DiProPerm exists as a package of R that Debian does not have."""
