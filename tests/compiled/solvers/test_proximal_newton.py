"""Columns behind one set of operations, and Newton steps on them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from proxmargin.compiled.losses.margins import (
    best_shift,
    optimal_intercept_and_gradient,
    value_and_gradient,
    value_sum,
)
from proxmargin.compiled.products.columns import Compressed, pull
from proxmargin.compiled.products.columns import forward as forward_kernel
from proxmargin.compiled.solvers.proximal_newton import newton_steps, violations_and_gap
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.margins.hinge import CappedScalars
from proxmargin.losses import HuberizedHinge, Logistic, MarginSum, SquaredHinge
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import ElasticNet, Ridge

PHIS = [HuberizedHinge(0.5), HuberizedHinge(0.05), SquaredHinge(), Logistic()]
every_phi = pytest.mark.parametrize("phi", PHIS, ids=repr)


def compressed(matrix) -> Compressed:
    columns = sp.csc_matrix(matrix)
    return Compressed(matrix.shape[0], columns.data, columns.indices, columns.indptr)


def lines(matrix) -> np.ndarray:
    return np.ascontiguousarray(matrix.T)


def data(rng, n=40, p=7, shares=True):
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)
    weights = rng.uniform(0.2, 1.0, n) * (np.arange(n) % 7 != 3)
    weights /= weights.sum()
    signs = np.where(X @ rng.standard_normal(p) + rng.standard_normal(n) > 0.3, 1.0, -1.0)
    unit = np.sqrt(weights @ X**2)
    return X / unit, unit, signs, weights


def test_products_of_dense_and_compressed_columns(rng) -> None:
    Z = data(rng)[0]
    vector, coef = rng.standard_normal(40), rng.standard_normal(7)
    for columns in (lines(Z), compressed(Z)):
        pulled, scores = np.empty(7), np.empty(40)
        pull(columns, vector, pulled)
        forward_kernel(columns, coef, scores)
        np.testing.assert_allclose(pulled, Z.T @ vector, rtol=1e-12)
        np.testing.assert_allclose(scores, Z @ coef, rtol=1e-12, atol=1e-14)


@every_phi
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_best_shift_minimises(phi, l2, rng) -> None:
    _, _, signs, weights = data(rng)
    scores, at = 3.0 * rng.standard_normal(40), 0.7
    dual, settled = np.empty((2, 40)), scores.copy()
    shift = best_shift(phi.scalars, scores, signs, weights, l2, at, dual[0])
    assert (
        optimal_intercept_and_gradient(phi.scalars, settled, signs, weights, True, l2, at, dual[1])
        == shift
    )
    gradient = np.empty((40, 1))
    value_and_gradient(
        phi.scalars, (scores + shift)[:, None], signs[:, None], weights[:, None], gradient
    )
    np.testing.assert_allclose(settled, scores + shift, rtol=1e-15)
    np.testing.assert_allclose(dual[0], gradient[:, 0], rtol=1e-12)
    np.testing.assert_allclose(dual[1], gradient[:, 0], rtol=1e-12)
    assert (
        optimal_intercept_and_gradient(phi.scalars, settled, signs, weights, False, l2, at, dual[0])
        == 0.0
    )
    np.testing.assert_allclose(dual[0], gradient[:, 0], rtol=1e-12)

    def value(step):
        total = value_sum(phi.scalars, (scores + step)[:, None], signs[:, None], weights[:, None])
        return total + 0.5 * l2 * (at + step) ** 2

    found = minimize_scalar(value, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10})
    assert value(shift) <= found.fun + 1e-13


@every_phi
@pytest.mark.parametrize(("l1", "l2"), [(0.02, 0.0), (0.02, 0.05)])
@pytest.mark.parametrize("size", [1.0, 300.0], ids=["near", "far"])
def test_pricing_agrees_with_the_certificate(phi, l1, l2, size, rng) -> None:
    Z, unit, signs, weights = data(rng)
    penalty = ElasticNet(l1, l2)
    loss = MarginSum(phi, signs[:, None], weights[:, None])
    problem = Problem(loss, penalty, as_design(Z * unit), Ridge())
    coef = size * rng.standard_normal(7) * (rng.random(7) < 0.5)
    gap = certify(problem, Point(coef[:, None], np.zeros(1)))
    scores = (Z * unit) @ coef + gap.point.intercept
    dual = np.empty((40, 1))
    value_and_gradient(phi.scalars, scores[:, None], loss.signs, loss.weights, dual)
    slope, out = (Z * unit).T @ dual[:, 0], np.empty(7)
    curvature = phi.smoothness * weights @ (Z * unit) ** 2
    worst, objective, found = violations_and_gap(
        phi.scalars, scores, signs, weights, slope, coef, curvature, penalty.net(7), False, out
    )
    assert objective == pytest.approx(gap.primal, rel=1e-12)
    assert found == pytest.approx(gap.gap - gap.rounding, rel=1e-9, abs=1e-15)
    # what a prox step moves a coefficient, where it is not from one side of zero to the other
    bound = curvature + l2
    stepped = ElasticNet(1.0).prox((bound * coef - slope - l2 * coef)[:, None], l1)[:, 0]
    moved = np.abs(bound * coef - stepped)
    np.testing.assert_allclose(np.maximum(out, 0.0), moved, atol=1e-13 * size)
    same = (coef == 0) | (np.sign(stepped) == np.sign(coef))
    np.testing.assert_allclose(moved[same], gap.violations[same], atol=1e-12 * size)
    assert np.all(moved <= gap.violations + 1e-12 * size)
    assert worst == pytest.approx(out.max(), rel=1e-12)


@every_phi
@pytest.mark.parametrize("size", [1.0, 300.0], ids=["near", "far"])
def test_without_a_penalty_pricing_claims_no_more_than_the_certificate(phi, size, rng) -> None:
    """Which takes such features to their optimum, as it does the intercept."""
    Z, unit, signs, weights = data(rng)
    loss = MarginSum(phi, signs[:, None], weights[:, None])
    problem = Problem(loss, ElasticNet(0.0, 0.0), as_design(Z * unit), Ridge())
    coef = size * rng.standard_normal(7)
    scores = (Z * unit) @ coef
    dual = np.empty((40, 1))
    value_and_gradient(phi.scalars, scores[:, None], loss.signs, loss.weights, dual)
    curvature = phi.smoothness * weights @ (Z * unit) ** 2
    _, objective, found = violations_and_gap(
        phi.scalars, scores, signs, weights, (Z * unit).T @ dual[:, 0], coef, curvature,
        problem.net, False, np.empty(7),
    )  # fmt: skip
    assert objective == pytest.approx(loss.value(scores[:, None]), rel=1e-12)
    gap = certify(problem, Point(coef[:, None], np.zeros(1)))
    assert gap.primal <= objective
    assert found >= objective - gap.dual - 2.0 * gap.rounding


@every_phi
@pytest.mark.parametrize("form", [lines, compressed], ids=["dense", "compressed"])
@pytest.mark.parametrize("intercept", [(True, 0.0), (True, 0.4), (False, 0.0)], ids=repr)
@pytest.mark.parametrize("side", [0, 7], ids=["swept", "as a whole"])
def test_steps_end_at_the_optimum(phi, form, intercept, side, rng) -> None:
    Z, unit, signs, weights = data(rng)
    coef, scores = np.zeros(7), np.zeros(40)
    free, ridge = intercept
    net = ElasticNet(0.02, 0.01).net(7)
    b, _, steps, violation = newton_steps(
        form(Z), unit, phi.scalars, signs, weights, net, 0.02, free, ridge,
        coef, scores, 0.0, 1.0, 1e-11, 200, side,
    )  # fmt: skip
    assert violation <= 1e-11
    assert 0 < steps < 60
    np.testing.assert_allclose(scores, Z @ coef + b, atol=1e-12)
    dual = np.empty((40, 1))
    value_and_gradient(phi.scalars, scores[:, None], signs[:, None], weights[:, None], dual)
    true = coef / unit
    slope = (Z * unit).T @ dual[:, 0] + 0.01 * true
    live = true != 0
    np.testing.assert_allclose(slope[live], -0.02 * np.sign(true[live]), atol=1e-10)
    assert np.abs(slope[~live]).max(initial=0) <= 0.02 + 1e-10
    if free:
        assert dual.sum() + ridge * b == pytest.approx(0.0, abs=1e-12)


def test_no_step_without_curvature_or_descent(rng) -> None:
    Z, unit, signs, weights = data(rng)
    coef, scores = np.zeros(7), np.zeros(40)
    *_, steps, violation = newton_steps(
        lines(Z), unit, CappedScalars(2.0, 0.5), signs, weights, ElasticNet(1e3).net(7),
        1e3, True, 0.0, coef, scores, 0.0, 1.0, 0.0, 50, 7,
    )  # fmt: skip
    assert steps == 0
    assert violation == 0.0
    assert not coef.any()
