"""`python -m benchmarks recommendation`: what the recommended model loses and saves.

The truth is the accuracy of the fitted models on fresh rows of the same distribution.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import Floats
from benchmarks.report import table, write_section
from proxmargin import Comparison, compare
from proxmargin.studies.stats.scores import ROPE

SAMPLES = 100  # of a data set
FRESH = 50_000  # rows that tell the truth
DRAWS = 100_000  # of the largest of some normal variables
MUCH = 0.01  # of accuracy that is lost
MODELS = (
    *("L2SVC", "LogisticRegression", "MarginFDA", "DWD"),
    *("SparseLogisticRegression", "HuberizedSVC", "SquaredHingeSVC", "MulticlassSVC"),
)


class Signal(NamedTuple):
    """Standard normal features, of which the first ones sum to the score."""

    features: int
    relevant: int
    noise: float = 0.0  # standard deviation of what is added to the score

    def drawn(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        X = rng.standard_normal((count, self.features))
        score = X[:, : self.relevant].sum(axis=1) + self.noise * rng.standard_normal(count)
        return X, (score > 0).astype(np.float64)


SIGNALS: Mapping[str, Signal] = {
    "dense, 40 of 40": Signal(40, 40),
    "dense, 40 of 40, noisy": Signal(40, 40, noise=4.0),
    "sparse, 5 of 200": Signal(200, 5),
    "sparse, 5 of 200, noisy": Signal(200, 5, noise=1.0),
}


class Verdict(NamedTuple):
    """One data set: accuracies on fresh rows, and features of the fits to all samples."""

    recommended: float
    best_mean: float
    truly_best: float
    features: float
    features_of_best: float
    features_of_dense: float  # of the dense model with the best mean
    dense: float  # its accuracy
    by_log_loss: float  # of the model with the least log-loss among those near the best mean
    reachable: float  # the least loss against the truly best (`reachable`)


def reachable(found: Comparison, truth: Mapping[str, float]) -> float:
    """The mean loss against the truly best model of the best choice by these scores, were they and
    their errors normal and the models alike before: ``E[max] T (1 - T / sqrt(T^2 + v))``, T the
    standard deviation of the true scores, v the variance of the errors (Nadeau and Bengio 2003)."""
    scores = found.folds.pivot_table("score", ["repeat", "fold"], "model").to_numpy()
    errors = (scores - scores.mean(axis=1, keepdims=True)).var(axis=0, ddof=1).mean()
    v = errors * (1 / len(scores) + found.setup.test_ratio)
    spread = float(np.std(list(truth.values()), ddof=1))
    best = np.random.default_rng(0).standard_normal((DRAWS, len(truth))).max(axis=1).mean()
    return float(best * spread * (1 - spread / np.hypot(spread, np.sqrt(v))))


def judged(found: Comparison, X: Floats, y: Floats) -> Verdict:
    """The recommended model of a comparison against the one with the best mean."""
    truth = {name: float(model.score(X, y)) for name, model in found.models_.items()}
    used = dict(found.table["features_used"])
    dense = next(name for name in found.names if used[name] > 0.9 * X.shape[1])
    recommended = found.recommended_
    assert recommended is not None
    binary = found.table.drop("MulticlassSVC", errors="ignore")
    near = binary["score_mean"] >= binary["score_mean"].max() - 2 * ROPE
    by_log_loss = binary["log_loss"][near].idxmin()
    return Verdict(
        truth[recommended],
        truth[found.best_name_],
        max(truth.values()),
        used[recommended],
        used[found.best_name_],
        used[dense],
        truth[dense],
        truth[by_log_loss],
        reachable(found, truth),
    )


def verdicts(signal: Signal, arguments: argparse.Namespace) -> Iterator[Verdict]:
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        rng = np.random.default_rng(seed)
        X, y = signal.drawn(SAMPLES, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = compare(
                X,
                y,
                models=arguments.models,
                repeats=arguments.repeats,
                scoring="accuracy",
                progress=False,
            )
        yield judged(found, *signal.drawn(FRESH, rng))


COLUMNS: Mapping[str, Callable[[Floats], str]] = {
    "loss": lambda loss: f"{loss.mean():+.4f} ± {loss.std(ddof=1) / np.sqrt(loss.size):.4f}",
    f"above {MUCH}": lambda loss: f"{np.count_nonzero(loss > MUCH)} of {loss.size}",
}


def row(name: str, found: list[Verdict]) -> list[str]:
    each = np.array(found)
    losses = *(each[:, k] - each[:, 0] for k in (1, 2, 6)), each[:, 2] - each[:, 7]
    counts = (f"{np.median(each[:, k]):.0f}" for k in (3, 4, 5))
    told = (form(loss) for loss in losses for form in COLUMNS.values())
    return [name, *told, f"{each[:, 8].mean():+.4f}", *counts]


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=20, help="data sets of a kind (default: 20)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--repeats", type=int, help="of the folds (default: that of compare)")
    parser.add_argument("--models", nargs="+", default=list(MODELS), help="to choose among")
    parser.add_argument("--kinds", nargs="+", default=list(SIGNALS), help="of signals")


def main(arguments: argparse.Namespace) -> int:
    rows = []
    for name in arguments.kinds:
        rows.append(row(name, list(verdicts(SIGNALS[name], arguments))))
        print(" | ".join(rows[-1]), flush=True)
    against = ("best mean", "truly best", "best dense", "by log-loss against truly best")
    headings = [f"{column}, {each}" for each in against for column in COLUMNS]
    features = ["features", "of the best mean", "of the best dense"]
    head = ["signal", *headings, "reachable, truly best", *features]
    write_section("recommendation", "The recommended model", table(head, rows))
    return 0
