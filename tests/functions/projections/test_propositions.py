"""Propositions 3.1 and 3.3, and Remark 3.2, of Chierchia et al. (2015), against CVXPY."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from proxmargin import MulticlassSVC
from proxmargin.functions.projections import hinge_epigraphs, simplex_rows


def margins_of(own: int, classes: int, mu: float = 1.0) -> np.ndarray:
    """r of (6): the margin of every class but the own one."""
    return mu * (np.arange(classes) != own)


@pytest.mark.parametrize("mu", [1.0, 0.3, 4.0])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_proposition_3_1_is_the_prox_of_the_hinge(classes: int, mu: float) -> None:
    rng = np.random.default_rng(classes)
    for price in (0.2, 1.0, 9.0):
        y, r = 2.0 * rng.standard_normal(classes), margins_of(1, classes, mu)
        v = cp.Variable(classes)
        cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v - y) + price * cp.max(v + r))).solve(
            solver=cp.CLARABEL
        )
        found = y - simplex_rows((y + r)[None], price)[0]
        np.testing.assert_allclose(found, v.value, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("level", [-1.0, 0.5, 30.0])
def test_proposition_3_3_is_the_projection_onto_the_epigraph(classes: int, level: float) -> None:
    rng = np.random.default_rng(classes)
    y, r = 2.0 * rng.standard_normal(classes), margins_of(0, classes)
    p, theta = cp.Variable(classes), cp.Variable()
    distance = cp.sum_squares(p - y) + cp.square(theta - level)
    cp.Problem(cp.Minimize(distance), [cp.max(p + r) <= theta]).solve(solver=cp.CLARABEL)
    rows, levels = hinge_epigraphs(y[None], np.array([level]), np.array([0]))
    np.testing.assert_allclose(rows[0], p.value, atol=1e-5)
    assert levels[0] == pytest.approx(float(theta.value), abs=1e-5)
    # (15), (16): the mean of the level and of the entries that are above it
    above = (y + r) >= levels[0]
    assert levels[0] == pytest.approx((level + (y + r)[above].sum()) / (above.sum() + 1))


def test_remark_3_2_links_coefficients_and_dual_points() -> None:
    """With half the squared norm x is minus T'y, y in the simplices, and no offsets."""
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 3
    X = rng.standard_normal((30, 5)) + np.eye(3, 5)[labels]
    model = MulticlassSVC(penalty="l2", C=0.2, fit_intercept=False, tol=1e-10).fit(X, labels)
    dual = cp.Variable((30, 3))
    own = np.eye(3)[labels]
    # T'y: minus x_k for the own class, each other one's part of the sample
    pulled = X.T @ dual - X.T @ cp.multiply(
        own, cp.sum(dual, axis=1, keepdims=True) @ np.ones((1, 3))
    )
    value = 0.5 * cp.sum_squares(pulled) - cp.sum(cp.multiply(1.0 - own, dual))
    simplices = [dual >= 0, cp.sum(dual, axis=1) == 0.2]
    least = cp.Problem(cp.Minimize(value), simplices).solve(solver=cp.CLARABEL)
    assert -least == pytest.approx(model.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(-pulled.value.T, model.coef_, atol=1e-4)
