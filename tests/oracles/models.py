"""The models written down a second time: slow, obvious, and independent of the package.

Objectives in plain NumPy from the statements in ``docs``; optima from an interior-point solver.
Binary labels are -1 and +1, classes are 0 to K-1; ``W`` is (n_classes, n_features).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

__all__ = [
    "Optimum",
    "binary_objective",
    "binary_optimum",
    "joint_objective",
    "joint_optimum",
    "loss_values",
]

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


def _huberized(t: np.ndarray, delta: float) -> np.ndarray:
    quadratic = (1 - t) ** 2 / (2 * delta)
    return np.where(t > 1, 0.0, np.where(t > 1 - delta, quadratic, 1 - t - delta / 2))


_VALUES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "hinge": lambda t, delta: np.maximum(1 - t, 0),
    "huberized_hinge": _huberized,
    "squared_hinge": lambda t, delta: np.maximum(1 - t, 0) ** 2,
    "logistic": lambda t, delta: np.logaddexp(0, -t),
}


def _huberized_expression(t: Any, delta: float) -> Any:
    # the hinge smoothed by a quadratic: min over v of v^2 / (2 delta) + [1 - t - v]_+
    v = cp.Variable(t.shape)
    return cp.square(v) / (2 * delta) + cp.pos(1 - t - v)


_EXPRESSIONS: dict[str, Callable[[Any, float], Any]] = {
    "hinge": lambda t, delta: cp.pos(1 - t),
    "huberized_hinge": _huberized_expression,
    "squared_hinge": lambda t, delta: cp.square(cp.pos(1 - t)),
    "logistic": lambda t, delta: cp.logistic(-t),
}


def loss_values(loss: str, margins: np.ndarray, delta: float = 1.0) -> np.ndarray:
    """The loss of each margin."""
    return _VALUES[loss](margins, delta)


@dataclass(frozen=True)
class Optimum:
    """An optimal point and the objective reached there, evaluated in NumPy."""

    value: float
    coef: np.ndarray
    intercept: np.ndarray


def _shares(weights: np.ndarray | None, n: int) -> np.ndarray:
    weights = np.ones(n) if weights is None else np.asarray(weights, float)
    return weights / weights.sum()


def _penalty(W: np.ndarray, alpha: float, l1_ratio: float) -> float:
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    return l1 * np.abs(W).sum() + l2 / 2 * (W**2).sum()


def binary_objective(
    X: Any,
    y: np.ndarray,
    w: np.ndarray,
    b: float,
    *,
    loss: str,
    alpha: float,
    l1_ratio: float,
    delta: float = 1.0,
    intercept_ridge: float = 0.0,
    weights: np.ndarray | None = None,
) -> float:
    """Weighted mean loss of the margins, plus elastic net, plus the intercept's ridge."""
    t = y * (X @ np.ravel(w) + b)
    mean = _shares(weights, y.size) @ _VALUES[loss](t, delta)
    return float(mean + _penalty(w, alpha, l1_ratio) + intercept_ridge / 2 * b**2)


def joint_objective(
    X: Any,
    codes: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    *,
    alpha: float,
    l1_ratio: float,
    delta: float = 1.0,
    intercept_ridge: float = 0.0,
    weights: np.ndarray | None = None,
    loss: str = "huberized_hinge",
) -> float:
    """The loss of minus the scores, summed over the wrong classes. Checks the sum-to-zero."""
    np.testing.assert_allclose(W.sum(axis=0), 0, atol=1e-12 * (1 + np.abs(W).max()))
    np.testing.assert_allclose(b.sum(), 0, atol=1e-12 * (1 + np.abs(b).max()))
    values = _VALUES[loss](-(X @ W.T + b), delta)
    values[np.arange(codes.size), codes] = 0.0
    mean = _shares(weights, codes.size) @ values.sum(axis=1)
    return float(mean + _penalty(W, alpha, l1_ratio) + intercept_ridge / 2 * (b**2).sum())


def _norms(W: Any, alpha: float, l1_ratio: float) -> Any:
    l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
    return l1 * cp.sum(cp.abs(W)) + l2 / 2 * cp.sum_squares(W)


def _solve(program: cp.Problem) -> None:
    """As far as the interior point gets; the objective is evaluated in NumPy where it ends."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, **TIGHT)


def binary_optimum(X: Any, y: np.ndarray, *, fit_intercept: bool = True, **model: Any) -> Optimum:
    """The least `binary_objective`, by Clarabel."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    w, b = cp.Variable(dense.shape[1]), cp.Variable()
    t = cp.multiply(y, dense @ w + b)
    losses = _EXPRESSIONS[model["loss"]](t, model.get("delta", 1.0))
    objective = _shares(model.get("weights"), y.size) @ losses
    objective += _norms(w, model["alpha"], model["l1_ratio"])
    objective += model.get("intercept_ridge", 0.0) / 2 * cp.square(b)
    constraints = [] if fit_intercept else [b == 0]
    _solve(cp.Problem(cp.Minimize(objective), constraints))
    coef, intercept = np.asarray(w.value), float(b.value) if fit_intercept else 0.0
    reached = binary_objective(dense, y, coef, intercept, **model)
    return Optimum(reached, coef, np.array([intercept]))


def joint_optimum(
    X: Any, codes: np.ndarray, *, fit_intercept: bool = True, **model: Any
) -> Optimum:
    """The least `joint_objective`, by Clarabel."""
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, float)
    n, p = dense.shape
    classes = int(codes.max()) + 1
    W, b = cp.Variable((classes, p)), cp.Variable(classes)
    scores = dense @ W.T + np.ones((n, 1)) @ cp.reshape(b, (1, classes), order="C")
    losses = _EXPRESSIONS[model.get("loss", "huberized_hinge")](-scores, model.get("delta", 1.0))
    wrong = _shares(model.get("weights"), n)[:, None] * (np.arange(classes) != codes[:, None])
    objective = cp.sum(cp.multiply(wrong, losses)) + _norms(W, model["alpha"], model["l1_ratio"])
    objective += model.get("intercept_ridge", 0.0) / 2 * cp.sum_squares(b)
    constraints = [cp.sum(W, axis=0) == 0, cp.sum(b) == 0] + ([] if fit_intercept else [b == 0])
    _solve(cp.Problem(cp.Minimize(objective), constraints))
    coef = W.value - W.value.mean(axis=0)
    intercept = b.value - b.value.mean() if fit_intercept else np.zeros(classes)
    reached = joint_objective(dense, codes, coef, intercept, **model)
    return Optimum(reached, coef, intercept)
