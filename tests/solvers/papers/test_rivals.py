"""FISTA and forward-backward steps on the smooth rivals (19), (20) of Chierchia et al. (2015)."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from proxmargin import MulticlassSVC, SquaredHingeSVC

SOLVERS = ["fista", pytest.param("forward-backward", marks=pytest.mark.slow)]
GROUPS = [0, 0, 1, 1]
C = 0.2


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    y = np.arange(36) % 3
    return rng.standard_normal((36, 4)) + np.eye(4)[y], y, 1.0 + np.arange(36) % 2


def optimum(loss: str, penalty: str) -> float:
    X, y, weights = data()
    W, b = cp.Variable((4, 3)), cp.Variable((1, 3))
    z = X @ W + np.ones((36, 1)) @ b
    own = cp.sum(cp.multiply(z, np.eye(3)[y]), axis=1, keepdims=True)
    margins = z - own @ np.ones((1, 3)) + 1.0 - np.eye(3)[y]
    if loss == "squared_hinge":
        terms = cp.sum(cp.multiply(1.0 - np.eye(3)[y], cp.square(cp.pos(margins))), axis=1)
    else:
        terms = cp.log_sum_exp(margins, axis=1)
    norms = {
        "l1": cp.sum(cp.abs(W)),
        "l2": 0.5 * cp.sum_squares(W),
        "group_linf": sum(cp.norm(W[g, k], "inf") for g in ([0, 1], [2, 3]) for k in range(3)),
    }
    program = cp.Problem(cp.Minimize(norms[penalty] + C * (weights @ terms)))
    return float(program.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("penalty", ["l1", "group_linf"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_they_find_the_certified_optimum(loss: str, penalty: str, solver: str) -> None:
    X, y, weights = data()
    groups = GROUPS if penalty.startswith("group") else None
    model = MulticlassSVC(loss=loss, penalty=penalty, groups=groups, C=C, solver=solver, tol=1e-7)
    told = model.fit(X, y, sample_weight=weights).certificate_
    best = optimum(loss, penalty)
    assert told.converged
    assert told.primal == pytest.approx(best, rel=1e-5)
    assert told.dual <= best * (1 + 1e-6)


def squared_hinges(W: np.ndarray, y: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The gradient of (19) over the samples' number, offsets in the last row of W."""
    own = np.eye(3)[y]
    z = A @ W
    slopes = 2.0 * np.maximum(1.0 + z - (own * z).sum(axis=1, keepdims=True), 0.0) * (1.0 - own)
    slopes -= own * slopes.sum(axis=1, keepdims=True)
    return A.T @ slopes / y.size


@pytest.mark.parametrize("solver", ["fista", "forward-backward"])
def test_the_steps_are_the_published_ones(solver: str) -> None:
    X, y, _ = data()
    states: list[Any] = []

    def record(report: Any) -> None:
        states.append(report.state)

    record.every = 1  # type: ignore[attr-defined]
    strength = 1.0 / (C * y.size)
    model = MulticlassSVC(
        loss="squared_hinge", penalty="l1", C=C, solver=solver, max_iter=20, callbacks=[record]
    )
    with pytest.warns(UserWarning, match="iteration limit"):
        model.fit(X, y)
    A = np.column_stack([X, np.ones(y.size)])
    L = states[0].bound
    exact = 6.0 * np.linalg.norm(A, 2) ** 2 / y.size  # 2 K |A|^2, of the mean
    assert exact * (1 - 1e-9) <= L <= 1.05 * exact
    u = before = np.zeros((5, 3))
    u[-1] = before[-1] = states[0].u[-1]
    t = 1.0
    for state in states[1:]:
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2))
        ahead = u
        if solver == "fista" and state.n_iter > 1:
            ahead = u + (t - 1.0) / following * (u - before)
            t = following
        moved = ahead - squared_hinges(ahead, y, A) / L
        moved[:4] = np.sign(moved[:4]) * np.maximum(np.abs(moved[:4]) - strength / L, 0.0)
        moved[-1] -= moved[-1].mean()
        u, before = moved, u
        np.testing.assert_allclose(state.u, u, atol=1e-12)
    assert np.count_nonzero(u[:4])


def test_the_printed_criterion_ends_them() -> None:
    X, y, _ = data()
    ends = {
        solver: MulticlassSVC(
            loss="logistic", C=C, penalty="l2", solver=solver, stopping="iterate-change", tol=1e-5
        ).fit(X, y)
        for solver in ("fista", "forward-backward")
    }
    best = MulticlassSVC(loss="logistic", C=C, penalty="l2").fit(X, y)
    for model in ends.values():
        np.testing.assert_allclose(model.coef_, best.coef_, atol=5e-3)
    assert ends["fista"].n_iter_ < ends["forward-backward"].n_iter_


def test_one_vs_all_is_21_class_by_class() -> None:
    X, y, _ = data()
    model = SquaredHingeSVC(
        alpha=0.05, l1_ratio=1.0, multi_class="ovr", solver="fista", tol=1e-7
    ).fit(X, y)
    for k in range(3):
        sign = np.where(y == k, 1.0, -1.0)
        w, b = cp.Variable(4), cp.Variable()
        losses = cp.sum_squares(cp.pos(1.0 - cp.multiply(sign, X @ w + b))) / y.size
        cp.Problem(cp.Minimize(losses + 0.05 * cp.norm1(w))).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(model.coef_[k], w.value, atol=2e-4)


def test_kinks_are_refused_in_a_sentence() -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"'fista' cannot take .* Lipschitz continuous gradient"):
        MulticlassSVC(solver="fista").fit(X, y)
