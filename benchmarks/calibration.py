"""`python -m benchmarks calibration`: probabilities of held-out samples against scikit-learn's."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from benchmarks.datasets import Floats, _stored
from benchmarks.report import RESULTS, seconds, table, write_section
from proxmargin import SVC, CalibratedMargin, HuberizedSVCCV

DATA = ("australian", "german", "ionosphere", "sonar", "spambase", "dna")
TRAINING = 1000  # samples at most; the others are judged
TRAINING_SHARE = 0.6
ALPHAS = 20
MODELS: dict[str, Callable[[], Any]] = {
    "SVC": lambda: SVC(standardize=True),
    "HuberizedSVCCV": lambda: HuberizedSVCCV(
        alphas=ALPHAS, l1_ratios=(0.9,), standardize=True, multi_class="ovr"
    ),
}
METHODS = ("sigmoid", "isotonic")  # which both packages have


@dataclass(frozen=True)
class Judged:
    """Of one method on the splits of a data set: (n_splits,) each."""

    brier: Floats
    loss: Floats
    seconds: Floats


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows: list[list[str]] = []
    for name in arguments.data:
        X, y, _ = _stored(name)
        for model in arguments.models:
            for method in METHODS:
                rows.append(_row(name, X, y, model, method, arguments.splits))
                print(" | ".join(rows[-1]), flush=True)
                write_section(
                    "calibration",
                    "Calibrated probabilities",
                    _body(rows, arguments.splits),
                    arguments.results,
                )
    return 0


def _row(name: str, X: Any, y: Any, model: str, method: str, splits: int) -> list[str]:
    inner = MODELS[model]()
    ours = _judged(CalibratedMargin(inner, method=method), X, y, splits)
    theirs = _judged(CalibratedClassifierCV(inner, method=method, cv=5), X, y, splits)
    ratio = ours.seconds.sum() / theirs.seconds.sum()
    return [
        name,
        model,
        method,
        f"{ours.brier.mean():.4f}",
        f"{theirs.brier.mean():.4f}",
        _difference(ours.brier - theirs.brier),
        f"{ours.loss.mean():.4f}",
        f"{theirs.loss.mean():.4f}",
        _difference(ours.loss - theirs.loss),
        seconds(float(ours.seconds.mean())),
        f"{ratio:.2f}",
    ]


def _difference(values: Floats) -> str:
    return f"{values.mean():+.4f} +- {values.std(ddof=1) / np.sqrt(values.size):.4f}"


def _judged(model: Any, X: Any, y: Any, splits: int) -> Judged:
    _on_split(clone(model), X, y, 0)  # compiles the kernels
    found = [_on_split(clone(model), X, y, seed) for seed in range(splits)]
    return Judged(*(np.array(each) for each in zip(*found, strict=True)))


def _on_split(model: Any, X: Any, y: Any, seed: int) -> tuple[float, float, float]:
    size = min(TRAINING, int(TRAINING_SHARE * y.size))
    A, B, a, b = train_test_split(X, y, train_size=size, random_state=seed, stratify=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # of choices at the end of a grid
        started = time.process_time()
        model.fit(A, a)
        spent = time.process_time() - started
    found = model.predict_proba(B)
    return brier_score_loss(b, found), log_loss(b, found), spent


def _body(rows: Sequence[Sequence[str]], splits: int) -> str:
    head = ["data", "model", "map", "Brier", "scikit-learn's", "difference"]
    head += ["log-loss", "scikit-learn's", "difference", "s", "ratio"]
    return f"""- Ours is `CalibratedMargin`, the other `CalibratedClassifierCV(cv=5)`
  over the same model:
  means over {splits} splits, with at most {TRAINING} training samples ({TRAINING_SHARE:.0%} of
  smaller data), scored on the rest. The difference is ours less the other's, with its standard
  error; negative ones are in our favour. Scores are scikit-learn's.
- HuberizedSVCCV: {ALPHAS} strengths, one against the rest. Ours chooses the strength once, the
  other for each of five folds.
- s: CPU seconds of our fit, and the ratio to the other's.

{table(head, rows)}"""
