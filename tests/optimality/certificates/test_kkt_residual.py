"""The residual of the optimality conditions is what its documentation says."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin import HuberizedSVC, SparseLogisticRegression, margin_path


def two_classes(rng) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((60, 12))
    return X, np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)


def slopes(model, X, y) -> tuple[np.ndarray, float]:
    """Minus the gradient of the mean loss in the coefficients, and in the intercept."""
    margins = y * (X @ model.coef_[0] + model.intercept_[0])
    if isinstance(model, SparseLogisticRegression):
        pull = y / (1.0 + np.exp(margins))
    else:
        pull = y * np.clip((1.0 - margins) / model.delta, 0.0, 1.0)
    return X.T @ pull / y.size, float(pull.mean())


def residual(model, X, y) -> float:
    """By the formula, with the gradient of the loss as dual point."""
    v, lean = slopes(model, X, y)
    w, l1, l2 = model.coef_[0], model.alpha * model.l1_ratio, model.alpha * (1 - model.l1_ratio)
    away = np.abs(v - l2 * w - l1 * np.sign(w))
    return float(max(np.where(w == 0, np.maximum(np.abs(v) - l1, 0), away).max(), abs(lean)))


@pytest.mark.parametrize("model", [HuberizedSVC, SparseLogisticRegression])
@pytest.mark.parametrize("limit", [2, 5])
def test_it_is_the_largest_violation_of_the_optimality_conditions(model, limit, rng) -> None:
    X, y = two_classes(rng)
    fitted = model(alpha=0.02, l1_ratio=0.7, solver="fapg", max_iter=limit)
    with pytest.warns(match="not converged|did not converge|gap"):
        fitted.fit(X, y)
    expected = residual(fitted, X, y)
    assert expected > 1e-6
    assert fitted.certificate_.kkt_residual == pytest.approx(expected, rel=1e-6)


def test_paths_state_the_same_quantity(rng) -> None:
    X, y = two_classes(rng)
    path = margin_path(HuberizedSVC(l1_ratio=0.7, tol=1e-3), X, y, n_alphas=5)
    for index in range(1, 5):
        model = path.model(index)
        expected = residual(model, X, y)
        assert expected > 1e-9
        assert model.certificate_.kkt_residual == pytest.approx(expected, rel=1e-3)
