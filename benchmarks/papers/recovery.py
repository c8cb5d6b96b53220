"""Table 3 of Xu et al. (2015): which of the planted features are found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.papers import xu2015
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.report import table
from proxmargin import ElasticNetSVCCV, HuberizedSVCCV

__all__ = ["TABLES"]

DRAWS = {Size.SMALL: 25, Size.FULL: 500}
SAMPLES, FEATURES, RELEVANT, TESTED = 50, 300, 20, 1000
STRENGTHS = 30
RATIOS = {"strong ridge": (0.01, 0.02, 0.05), "all ratios": (0.02, 0.1, 0.3, 0.6, 1.0)}
MODELS = {
    "B-PGH, B-PGH-2, GCD (the same optimum)": (HuberizedSVCCV, "B-PGH"),
    "ADMM (the plain hinge)": (ElasticNetSVCCV, "ADMM"),
}
PROTOCOL = f"""n = {SAMPLES}, p = {FEATURES}, s = {RELEVANT}, {TESTED} samples to test, 10-fold
cross-validated accuracy, delta = 1, as printed; 500 draws there. Inferred: the "large grid", here
{STRENGTHS} strengths with lambda2 between 19 and 99 times lambda1 ("strong ridge"), or between 0
and 49 times ("all ratios"); of equal scores the sparsest; no ridge on the intercept."""


def draw(rng: np.random.Generator, samples: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples of both classes as in 3.1.1: (samples, FEATURES), and labels."""
    y = np.repeat([1, -1], samples // 2)
    X = rng.standard_normal((samples, FEATURES))
    shared = rng.standard_normal((samples, 1))
    X[:, :RELEVANT] = np.sqrt(1 - rho) * X[:, :RELEVANT] + np.sqrt(rho) * shared + y[:, None]
    return X, y


def _run(size: Size) -> Outcome:
    rows = []
    accurate = True
    for rho, printed in xu2015.RECOVERY.items():
        for name, (model, theirs) in MODELS.items():
            for grid, ratios in RATIOS.items():
                found = _recovered(model, ratios, rho, DRAWS[size])
                means, errors = found.mean(axis=0), found.std(axis=0)
                cells = [
                    f"{mean:.1f} ({error:.1f})" for mean, error in zip(means, errors, strict=True)
                ]
                rows.append([f"{rho:g}", name, grid, *cells, _printed(printed[theirs])])
                accurate &= grid != "strong ridge" or abs(means[2] - printed[theirs][2]) < 1.5
    head = ["rho", "method", "grid", "relevant", "noise", "accuracy %", "printed: the three"]
    verdict = Verdict.IN_SHAPE if accurate else Verdict.NOT
    why = "accuracies agree; how many noise features are kept depends on the grid, not printed"
    return Outcome(table(head, rows), verdict, why)


def _recovered(model: Any, ratios: Sequence[float], rho: float, draws: int) -> np.ndarray:
    """Relevant and noise features chosen, and accuracy in per cent, (draws, 3)."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X, y = draw(rng, SAMPLES, rho)
        fresh, labels = draw(rng, TESTED, rho)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            best = model(l1_ratios=ratios, alphas=STRENGTHS, cv=10, scoring="accuracy").fit(X, y)
        chosen = best.coef_[0] != 0
        counts = chosen[:RELEVANT].sum(), chosen[RELEVANT:].sum()
        found.append((*counts, 100 * best.score(fresh, labels)))
    return np.array(found)


def _printed(numbers: tuple[float, float, float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


TABLES = {"X3": PaperTable("Table 3 of Xu et al.: support recovery", PROTOCOL, (2.0, 40.0), _run)}
