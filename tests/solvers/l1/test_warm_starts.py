"""Warm starts of the Newton methods: none within another, and all of them within the limits."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVC, SquaredHingeSVC, open_dataset
from proxmargin.solvers.loop.solver import State

MODULES = ("newton", "pass_newton")
MOST = 12  # iterations


class Inner:
    """Runs inside of fits: how deeply they are nested, and their iterations."""

    def __init__(self) -> None:
        self.depth = self.deepest = self.steps = 0
        self.starts: list[Any] = []

    def watched(self, minimize: Any) -> Any:
        def inner(problem: Any, solver: Any, **options: Any) -> Any:
            self.starts.append((solver.name, options.get("start")))
            self.depth += 1
            self.deepest = max(self.deepest, self.depth)
            found = minimize(problem, solver, **options)
            self.depth -= 1
            self.steps += found.certificate.n_iter
            return found

        return inner


@pytest.fixture
def inner(monkeypatch) -> Inner:
    seen = Inner()
    for name in MODULES:
        module = importlib.import_module(f"proxmargin.solvers.l1.{name}")
        monkeypatch.setattr(module, "minimize", seen.watched(module.minimize))
    return seen


def coins(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Zeros and ones, labels that they do not tell, and offsets far beyond what bounds allow."""
    y = (rng.random(n) > 0.5).astype(int)
    y[:2] = 0, 1
    return (rng.random((n, p)) > 0.5).astype(float), y, 1000.0 * rng.standard_normal(n)


@pytest.mark.parametrize("make", [SquaredHingeSVC, HuberizedSVC])
@pytest.mark.parametrize("bounds", [None, (-0.1, 0.1)])
@pytest.mark.parametrize("shape", [(8, 20), (60, 40)])
def test_a_path_to_a_weak_penalty_has_no_paths_within(make, bounds, shape, inner, rng) -> None:
    X, y, offset = coins(rng, *shape)
    model = make(alpha=6.0, l1_ratio=1e-9, bounds=bounds, solver="newton")
    certificate = model.fit(X, y, offset=offset).certificate_
    assert inner.starts, "no warm start"
    assert inner.deepest == 1
    assert all(isinstance(start, State) for _, start in inner.starts)
    assert certificate.converged
    assert inner.steps <= certificate.n_iter <= 500


def fits(inner: Inner, most: int | None) -> dict[str, Any]:
    """Certificates of fits that start from a path and a sample."""
    rng = np.random.default_rng(1)
    X, y, offset = coins(rng, 40, 60)
    options = {"max_iter": most, "tol": 1e-9}
    found, inner.steps = {}, 0
    model = SquaredHingeSVC(alpha=1.0, l1_ratio=1e-8, solver="newton", **options)
    found["newton"] = model.fit(X, y, offset=offset).certificate_, inner.steps
    X = rng.standard_normal((6000, 10)) * 10.0 ** np.arange(-3.0, 2.0, 0.5)
    y = np.where(X[:, :6].sum(axis=1) + rng.standard_normal(6000) > 0, 1, -1)
    model = HuberizedSVC(alpha=1e-7, delta=0.1, **options)
    inner.steps = 0
    found["pass-newton"] = model.fit(open_dataset(X, target=y)).certificate_, inner.steps
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_iterations_of_warm_starts_count(inner, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 50_000)
    for name, (certificate, steps) in fits(inner, None).items():
        assert certificate.solver == name
        assert 0 < steps <= certificate.n_iter, name
        assert certificate.converged, name
    for name, (certificate, steps) in fits(inner, MOST).items():
        assert 0 < steps <= certificate.n_iter <= MOST, name
    assert inner.deepest == 1
