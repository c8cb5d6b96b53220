"""Dual coordinate descent: its law in NumPy, shrinking, and rows of every kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.compiled.solvers.dual_coordinates import (
    Descent,
    DualTerms,
    StoredRows,
    descend,
    squares,
)

MASK = (1 << 64) - 1
SEED = 12345


class Run(NamedTuple):
    """What a call leaves behind."""

    dual: np.ndarray
    coef: np.ndarray
    active: np.ndarray
    n_active: int
    residual: float
    moment: float
    low: float
    high: float
    multiplier: float
    value: float
    excess: float
    sweeps: int
    rows: int


def some_problem(rng: np.random.Generator, n: int = 24, p: int = 5) -> dict[str, Any]:
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    centre, scale, l2 = rng.standard_normal(p), np.linspace(0.5, 2.0, p), 0.7
    metric = 1.0 / (l2 * scale**2)
    return {
        "X": X,
        "centre": centre,
        "signs": np.where(rng.random(n) < 0.5, -1.0, 1.0),
        "caps": rng.uniform(0.05, 0.5, n),
        "bends": np.where(rng.random(n) < 0.5, 0.0, 0.3),
        "goals": rng.uniform(0.5, 1.5, n),
        "metric": metric,
        "pull": X @ (metric * centre),
        "square": float(centre @ (metric * centre)),
        "stiffness": 0.2,
        "base": 0.1,
    }


def rows_of(problem: dict[str, Any], kind: str) -> StoredRows:
    X, own = problem["X"], (problem["metric"], problem["pull"], problem["square"])
    if kind == "dense":
        starts = np.arange(len(X) + 1) * X.shape[1]
        return StoredRows(X.reshape(-1).copy(), np.empty(0, np.int32), starts, *own)
    matrix = sp.csr_array(X)
    return StoredRows(matrix.data, matrix.indices, matrix.indptr, *own)


def run(
    problem: dict[str, Any], enough: float, limit: int, kind: str = "sparse", budget: int = 10**9
) -> Run:
    n, p = problem["X"].shape
    dual, coef, active = np.zeros(n), np.zeros(p), np.arange(n)
    rows, norms = rows_of(problem, kind), np.empty(n)
    squares(rows, norms)
    terms = DualTerms(*(problem[name] for name in ("signs", "caps", "bends", "goals")), False)
    diagonal = norms + problem["stiffness"] + problem["bends"]
    at = Descent(n, 0.0, 0.0, -np.inf, np.inf, problem["base"], 0.0)
    *found, _ = descend(
        *(rows, terms, diagonal, dual, coef, active, at, problem["stiffness"]),
        *(False, enough, -1.0, limit, budget, np.uint64(SEED)),
    )
    return Run(dual, coef, active, *found)


def hessian(problem: dict[str, Any]) -> np.ndarray:
    y, centred = problem["signs"], problem["X"] - problem["centre"]
    Q = y[:, None] * (centred * problem["metric"] @ centred.T + problem["stiffness"]) * y
    return Q + np.diag(problem["bends"])


def objective(problem: dict[str, Any], a: np.ndarray) -> float:
    linear = problem["base"] * problem["signs"] - problem["goals"]
    return float(0.5 * a @ hessian(problem) @ a + linear @ a)


def by_formula(problem: dict[str, Any], enough: float, limit: int) -> tuple[np.ndarray, int, int]:
    """Dual points, active samples and sweeps, with the whole Hessian."""
    y, caps, goals, Q = problem["signs"], problem["caps"], problem["goals"], hessian(problem)
    a, state, active, low, high = np.zeros(y.size), SEED, list(range(y.size)), -np.inf, np.inf
    for sweep in range(1, limit + 1):  # noqa: B007
        violations, k = [], 0
        for place in range(len(active)):
            state ^= state << 13 & MASK
            state ^= state >> 7
            state ^= state << 17 & MASK
            other = place + (state >> 11) % (len(active) - place)
            active[place], active[other] = active[other], active[place]
        while k < len(active):
            i = active[k]
            slope = Q[i] @ a - goals[i] + problem["base"] * y[i]
            if (a[i] == 0 and slope > high) or (a[i] == caps[i] and slope < low):
                active[k] = active[-1]
                active.pop()
                continue
            inside = slope
            if a[i] == 0:
                inside = min(slope, 0.0)
            elif a[i] == caps[i]:
                inside = max(slope, 0.0)
            violations.append(inside)
            if inside:
                a[i] = np.clip(a[i] - slope / Q[i, i], 0.0, caps[i])
            k += 1
        least, most = min(violations), max(violations)
        if most - least <= enough:
            break
        low, high = (least if least < 0 else -np.inf), (most if most > 0 else np.inf)
    return a, len(active), sweep


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("limit", [1, 4, 500])
def test_steps_and_shrinking_are_those_of_the_formula(kind: str, limit: int, rng) -> None:
    problem = some_problem(rng)
    dual, n_active, sweeps = by_formula(problem, 1e-9, limit)
    found = run(problem, 1e-9, limit, kind)
    assert (found.n_active, found.sweeps) == (n_active, sweeps)
    np.testing.assert_allclose(found.dual, dual, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_what_is_kept_up_to_date_is_what_it_is_defined_as(kind: str, rng) -> None:
    problem = some_problem(rng)
    found = run(problem, 1e-3, 3, kind)
    signed = problem["signs"] * found.dual
    np.testing.assert_allclose(found.coef, problem["metric"] * (signed @ problem["X"]), atol=1e-13)
    assert found.residual == pytest.approx(signed.sum(), abs=1e-13)
    assert found.moment == pytest.approx(problem["centre"] @ found.coef, abs=1e-13)
    assert sorted(found.active) == list(range(signed.size))


def test_it_shrinks_and_ends_at_the_optimality_conditions_of_all_samples(rng) -> None:
    problem = some_problem(rng, n=80)
    found = run(problem, 1e-11, 10_000)
    assert found.n_active < 80
    assert found.rows < 80 * found.sweeps
    assert found.high - found.low <= 1e-11
    y, centred = problem["signs"], problem["X"] - problem["centre"]
    scores = centred @ (problem["metric"] * ((y * found.dual) @ centred))
    slope = y * (scores + problem["base"] + problem["stiffness"] * found.residual)
    slope += problem["bends"] * found.dual - problem["goals"]
    assert slope[found.dual == 0].min(initial=0.0) >= -1e-9
    assert slope[found.dual == problem["caps"]].max(initial=0.0) <= 1e-9
    free = (found.dual > 0) & (found.dual < problem["caps"])
    np.testing.assert_allclose(slope[free], 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("equal", [False, True])
def test_curvatures_are_squared_norms_of_centred_samples(kind: str, equal: bool, rng) -> None:
    problem = some_problem(rng)
    metric = np.full(1, 1.5) if equal else problem["metric"]
    full = np.broadcast_to(metric, problem["centre"].shape)
    pull, square = (
        problem["X"] @ (full * problem["centre"]),
        problem["centre"] @ (full * problem["centre"]),
    )
    out = np.empty(len(pull))
    squares(rows_of({**problem, "metric": metric, "pull": pull, "square": square}, kind), out)
    expected = ((problem["X"] - problem["centre"]) ** 2 * full).sum(axis=1)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_a_limit_of_sweeps_and_a_budget_of_rows_end_it_after_a_sweep(rng) -> None:
    problem = some_problem(rng)
    assert run(problem, 0.0, 7).sweeps == 7
    found = run(problem, 0.0, 1000, budget=25)
    assert found.sweeps == 2
    assert 24 < found.rows <= 48


def test_the_value_is_minus_the_objective_and_the_excess_bounds_the_gap(rng) -> None:
    problem = some_problem(rng) | {"base": 0.0}
    for sweeps in (1, 3, 30):
        found = run(problem, 0.0, sweeps)
        assert found.value == pytest.approx(-objective(problem, found.dual), rel=1e-10)
    best = run(problem, 1e-12, 10_000).value
    assert best - run(problem, 0.0, 5).value <= run(problem, 0.0, 5).excess
