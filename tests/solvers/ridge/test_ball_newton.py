"""Newton's method in a ball: optima of an interior point, inactive balls, odd data."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import DWD, MarginClassifier
from proxmargin.data.designs import as_design
from proxmargin.functions.losses.margins.logistic import DistanceWeighted
from proxmargin.losses import HuberizedHinge, Logistic, SquaredHinge
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Ball, Pinned, Ridge
from proxmargin.solvers.interior.ball import minimised_in_ball
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradientStar
from proxmargin.solvers.papers.proximal_gradient import ProximalGradient
from proxmargin.solvers.ridge.newton import BallNewton, _minimise_in_ball
from tests.oracles.models import TIGHT
from tests.shared_data import load_instance, needs_data, reference_instances
from tests.solvers.ridge.test_ridge_newton import cancer, margin_sum, two_classes

LOSSES = {
    "distance weighted": DistanceWeighted(0.7),
    "logistic": Logistic(),
    "squared hinge": SquaredHinge(),
    "huberized hinge": HuberizedHinge(0.5),
}
every_loss = pytest.mark.parametrize("phi", LOSSES.values(), ids=LOSSES.keys())


def solved(
    X: Any,
    y: np.ndarray,
    phi: Any,
    radius: float,
    *,
    intercept: Any = Ridge(0.0),  # noqa: B008
    weights: np.ndarray | None = None,
    tol: float = 1e-10,
) -> Solution:
    problem = Problem(margin_sum(phi, y, weights), Ball(2.0, radius), as_design(X), intercept)
    return minimize(problem, BallNewton(), stop=Stop(tol=tol))


def distance_weighted_optimum(
    X: np.ndarray, y: np.ndarray, q: float, radius: float, weights: np.ndarray, *, free: bool
) -> float:
    """``min sum_i weights_i min_{s >= 0} 1/(t_i + s_i) + s_i/q^2`` in the ball, by Clarabel."""
    w, b, slack = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(y.size, nonneg=True)
    t = cp.multiply(y, X @ w + b)
    terms = cp.inv_pos(t + slack) + slack / q**2
    limits = [cp.norm(w) <= radius] + ([] if free else [b == 0])
    program = cp.Problem(cp.Minimize(weights / weights.sum() @ terms), limits)
    program.solve(solver=cp.CLARABEL, **TIGHT)
    t = y * (X @ w.value + b.value)
    worth = np.where(t >= q, 1.0 / np.maximum(t, q), (2 * q - t) / q**2)
    return float(weights / weights.sum() @ worth)


@pytest.mark.parametrize("threshold", [0.3, 2.0])
def test_breast_cancer_is_solved_like_an_interior_point_does(threshold: float) -> None:
    X, y = cancer()
    found = solved(X, y, DistanceWeighted(threshold), 1.0).certificate
    best = distance_weighted_optimum(X, y, threshold, 1.0, np.ones(y.size), free=True)
    assert found.converged
    assert found.primal == pytest.approx(best, rel=1e-7)
    assert found.dual <= best * (1 + 1e-12)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("radius", [0.1, 3.0])
@pytest.mark.parametrize("shape", [(40, 5), (12, 30), (20, 1)], ids=["narrow", "wide", "single"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_small_weighted_data_are_solved_in_every_form(free, radius, shape, kind, rng) -> None:
    X, y = two_classes(rng, *shape)
    X[rng.random(shape) < 0.4] = 0.0
    weights = rng.integers(0, 4, y.size).astype(float)
    intercept = Ridge(0.0) if free else Pinned()
    phi = DistanceWeighted(0.5)
    found = solved(kind(X), y, phi, radius, intercept=intercept, weights=weights)
    best = distance_weighted_optimum(X, y, 0.5, radius, weights, free=free)
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(best, rel=1e-8)
    assert np.linalg.norm(found.point.coef) <= radius * (1 + 1e-12)


@every_loss
@pytest.mark.parametrize("shape", [(60, 5), (12, 30)], ids=["narrow", "wide"])
@pytest.mark.parametrize("radius", [1e-6, 0.2])
def test_every_smooth_loss_is_taken(phi, shape, radius, rng) -> None:
    X, y = two_classes(rng, *shape)
    assert solved(X, y, phi, radius).certificate.converged


@every_loss
def test_a_ball_that_does_not_bind_leaves_the_free_optimum(phi, rng) -> None:
    X = rng.standard_normal((200, 3))
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    small, large = (solved(X, y, phi, radius, tol=1e-11) for radius in (50.0, 100.0))
    assert np.linalg.norm(small.point.coef) < 50.0
    assert small.certificate.converged
    assert small.certificate.primal == pytest.approx(large.certificate.primal, rel=1e-10)


@every_loss
@pytest.mark.parametrize("wide", [False, True])
def test_odd_data_end_with_a_certificate(phi, wide, rng) -> None:
    n, p = (8, 20) if wide else (20, 3)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((n, p))
    lonely = np.where(np.arange(n) == 0, 1.0, -1.0)
    constant = np.hstack([X[:, 1:], np.full((n, 1), 7.0)])
    cases = [(np.ones((n, p)), y), (X, lonely), (constant, y), (np.repeat(X[: n // 2], 2, 0), y)]
    for data, labels in cases:
        assert solved(data, labels, phi, 0.3).certificate.converged


def test_balls_of_other_norms_are_refused_where_features_are_many(rng) -> None:
    X, y = two_classes(rng, 10, BallNewton().max_curved_features + 1)
    problem = Problem(margin_sum(Logistic(), y), Ball(1.5, 1.0), as_design(X), Ridge(0.0))
    assert "p = 1.5" in str(BallNewton().objection(problem))
    assert BallNewton(max_curved_features=X.shape[1]).objection(problem) is None


def test_data_that_are_large_both_ways_are_refused() -> None:
    X, y = sp.csr_matrix((6000, 7000)), np.where(np.arange(6000) % 2 == 0, 1.0, -1.0)
    problem = Problem(margin_sum(Logistic(), y), Ball(2.0, 1.0), as_design(X), Ridge(0.0))
    assert "5000" in str(BallNewton().objection(problem))
    assert BallNewton(max_side=6000).objection(problem) is None


@needs_data("reference/instances.py", "reference/optima.json")
@pytest.mark.parametrize(
    "instance",
    [pytest.param(i, id=f"{i['data']}, {i['params']}") for i in reference_instances("dwd")],
)
def test_the_reference_optima_are_reached(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    total = float(y.size if weights is None else weights.sum())
    phi = DistanceWeighted(float(np.sqrt(total * instance["params"]["nu"])))
    found = solved(X, y, phi, 1.0, weights=weights, tol=1e-6).certificate
    assert found.converged
    room = (1e-6 + 1e-8) * instance["optimum"]
    assert abs(found.primal * total - instance["optimum"]) <= room


def test_a_loose_step_ends_on_the_sphere_next_to_the_exact_one(rng) -> None:
    roots = rng.standard_normal((8, 6))
    matrix, gradient, at = roots.T @ roots, 5.0 * rng.standard_normal(6), 0.1 * np.ones(6)
    exact, multiplier = _minimise_in_ball(matrix, gradient, at, 1.0, 0.0)
    loose, other = _minimise_in_ball(matrix, gradient, at, 1.0, 0.0, accuracy=0.3)
    assert multiplier > 0
    assert other != multiplier
    for step in (exact, loose):
        assert np.linalg.norm(at + step) == pytest.approx(1.0, rel=1e-12)

    def model(step: np.ndarray) -> float:
        return float(gradient @ step + 0.5 * step @ matrix @ step)

    assert model(exact) <= model(loose)
    assert model(loose) == pytest.approx(model(exact), rel=0.05)


@every_loss
@pytest.mark.sampled(6)
@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 20.0])
@pytest.mark.parametrize("radius", [0.01, 1.0, 1e3])
def test_other_norms_have_the_optimum_of_another_method(rng, phi, p: float, radius: float) -> None:
    X, y = two_classes(rng, 40, 6)
    y[::4] *= -1.0  # no hyperplane separates them
    problem = Problem(margin_sum(phi, y), Ball(p, radius), as_design(X), Ridge(0.0))
    solution = minimize(problem, BallNewton(), stop=Stop(tol=1e-8))
    assert solution.certificate.converged
    assert solution.certificate.n_iter <= 60
    assert float(np.linalg.norm(solution.point.coef[:, 0], p)) <= radius * (1 + 1e-12)
    others = (ProximalGradient(), FastProximalGradientStar())  # one of them is slow
    primals = [minimize(problem, s, stop=Stop(1e-6, 2000)).certificate.primal for s in others]
    assert solution.certificate.primal == pytest.approx(min(primals), rel=2e-6)


@pytest.mark.parametrize(
    ("loss", "p"), [(DistanceWeighted(1.0), 1.5), (Logistic(), 1.5), (DistanceWeighted(1.0), 3.0)]
)
@pytest.mark.parametrize(("n", "features"), [(16, 7), (5, 20)])
def test_small_problems_in_other_balls_are_certified_by_default(loss, p, n, features) -> None:
    X = np.random.default_rng(2).normal(size=(n, features))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    model = MarginClassifier(loss, Ball(p, 300.0), max_iter=4000).fit(X, y)
    assert model.certificate_.converged
    assert np.linalg.norm(model.coef_[0], p) <= 300.0 * (1 + 1e-12)


@pytest.mark.parametrize("p", [1.5, 4.0])
def test_a_quadratic_model_in_another_ball_has_the_optimum_of_another_solver(rng, p) -> None:
    root = rng.standard_normal((7, 7))
    matrix, gradient, at = root @ root.T, 3.0 * rng.standard_normal(7), np.full(7, 0.1)
    step = minimised_in_ball(matrix, gradient, at, 1.0, p, 1e-14)
    d = cp.Variable(7)
    model = gradient @ d + 0.5 * cp.sum_squares(root.T @ d)
    cp.Problem(cp.Minimize(model), [cp.norm(at + d, p) <= 1.0]).solve(solver=cp.CLARABEL)
    assert float(np.linalg.norm(at + step, p)) <= 1.0 + 1e-12
    value = gradient @ step + 0.5 * step @ matrix @ step
    assert value == pytest.approx(float(model.value), rel=1e-6)


def test_an_optimum_inside_another_ball_is_newtons(rng) -> None:
    root = rng.standard_normal((5, 5))
    matrix, gradient = root @ root.T + np.eye(5), rng.standard_normal(5)
    step = minimised_in_ball(matrix, gradient, np.zeros(5), 1e3, 1.5, 1e-14)
    np.testing.assert_allclose(step, -np.linalg.solve(matrix, gradient), rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_few_samples_in_a_ball_of_a_high_norm_take_few_steps(seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((5, 20))
    model = DWD(norm=20).fit(X, np.arange(5) % 2)
    assert model.certificate_.converged
    assert model.n_iter_ <= 20
