"""Random small paths against single fits, which have other solvers.

``python -m tests.fuzz.test_paths N SEED`` prints counts of N paths by how they ended, and all
faults.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from proxmargin import HuberizedSVC, SparseLogisticRegression, SquaredHingeSVC, margin_path
from proxmargin.models.paths.chord_path import NAME
from proxmargin.optimality.unpenalised import DependentError

QUICK = 40
ROUNDING = 1e-12  # relative, of objectives
TOL = 1e-9  # of single fits


class Case(NamedTuple):
    """A path."""

    model: Any
    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    offset: np.ndarray | None


def case(rng: np.random.Generator) -> Case:
    """Few samples; features with duplicates, zeros and units from 1e-8 to 1e8."""
    n, p = int(rng.integers(4, 40)), int(rng.choice([1, 3, 10, 40, 120]))
    X = rng.standard_normal((n, p)) * rng.choice([1.0, 1e-3, 1e3])
    if rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-8, 8, p)
    if rng.random() < 0.3:
        X = X[:, rng.integers(0, p, p)]
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.7] = 0.0
    if rng.random() < 0.2:
        X += 10.0 ** rng.uniform(-1, 3) * np.abs(X).max()
    separable = rng.random() < 0.4
    score = X[:, 0] / (np.abs(X[:, 0]).max() or 1.0)
    y = np.where(score + (0.0 if separable else 0.7) * rng.standard_normal(n) > 0, 1, -1)
    y[:2] = 1, -1
    weights = None
    if rng.random() < 0.4:
        weights = rng.integers(0, 3, n) * 10.0 ** rng.uniform(-2, 2)
        weights[:2] = 1.0
    layout = rng.choice(["C", "F", "sparse"])
    X = sparse.csr_array(X) if layout == "sparse" else np.array(X, order=layout)
    model = _model(rng, n, p)
    offset = None
    if rng.random() < 0.3:
        offset = 10.0 ** rng.uniform(-3, 2) * (rng.standard_normal(n) + rng.choice([0.0, 3.0]))
    return Case(model, X, y, weights, offset)


def _model(rng: np.random.Generator, n: int, p: int) -> Any:
    options: dict[str, Any] = {
        "l1_ratio": float(rng.choice([1.0, 1.0, 0.9, 0.3, 0.01])),
        "fit_intercept": bool(rng.random() < 0.8),
        "standardize": bool(rng.random() < 0.4),
        "tol": float(10.0 ** rng.uniform(-8, -3)),
    }
    if rng.random() < 0.2:
        options["bounds"] = [(0.0, np.inf), (-1.0, 2.0), (-np.inf, 0.01)][rng.integers(3)]
    if rng.random() < 0.2:
        options["penalty_factor"] = rng.uniform(0.1, 10.0, p)
    if p > 1 and rng.random() < 0.2:  # some features without a penalty, fewer than the samples
        factors = options.setdefault("penalty_factor", np.ones(p))
        factors[rng.permutation(p)[: rng.integers(1, min(n // 2, p, 6))]] = 0.0
    kind = [SparseLogisticRegression, SquaredHingeSVC, HuberizedSVC][rng.integers(3)]
    if kind is HuberizedSVC:
        options["delta"] = float(rng.choice([2.0, 0.5, 0.05, 1e-3]))
    return kind(**options)


def faults(one: Case, rng: np.random.Generator) -> tuple[str, list[str]]:
    """How the path ended, and what is wrong with one of its models."""
    model, X, y, *given = one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            path = margin_path(
                model, X, y, n_alphas=8, eps=0.03, sample_weight=one.weights, offset=one.offset
            )
        except DependentError:
            return "refused: dependent features", []
        k = int(rng.integers(len(path)))
        found, claimed = path.model(k), path.certificates[k]
        single = type(model)(**{**found.get_params(), "tol": TOL}).fit(X, y, *given)
    assembly = model._assemble(X, y, *given)
    penalty = found._penalty(assembly.targets, assembly.problems[0].design)
    (problem,) = assembly.with_penalty(penalty).problems
    value = problem.value(assembly.points(found.coef_, found.intercept_)[0])
    exact, room = single.certificate_, ROUNDING * abs(value)
    # scores are sums of terms that may be larger than they are
    dense = X.toarray() if sparse.issparse(X) else X
    reach = np.abs(found.coef_) @ np.abs(dense).max(axis=0) + np.abs(found.intercept_)
    shift = 0.0 if one.offset is None else float(np.abs(one.offset).max())
    room += 64 * np.finfo(float).eps * (float(reach[0]) + shift + abs(value))
    wrong = {
        "the objective is another": abs(value - claimed.primal) > room,
        "the gap is too small": value - exact.primal > claimed.gap + room,
        "the bound is above a value": claimed.dual > exact.primal + room,
        "the gap is not met": claimed.converged and not claimed.relative_gap <= model.tol,
    }
    ending = "engine" if claimed.solver == NAME else "single fit"
    return f"{ending}, {'met' if claimed.converged else 'unmet'}", [
        f"{name}: {value!r}, {claimed}, {exact}" for name, is_so in wrong.items() if is_so
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled(4)
def test_no_random_path_has_a_fault(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(QUICK):
        assert faults(case(rng), rng)[1] == []


def survey(count: int, start: int) -> Counter[str]:
    """Counts of how paths ended; faults are printed."""
    counts: Counter[str] = Counter()
    for seed in range(start, start + count):
        rng = np.random.default_rng(seed)
        try:
            ending, found = faults(case(rng), rng)
        except Exception as error:
            ending, found = f"raised {type(error).__name__}", [repr(error)]
        counts[ending] += 1
        counts["faults"] += len(found)
        for fault in found:
            print(f"{seed}: {fault}", flush=True)
    return counts


if __name__ == "__main__":
    for what, number in sorted(survey(int(sys.argv[1]), int(sys.argv[2])).items()):
        print(f"{what:30} {number}")
