"""What the laws of all penalties do not say about a ball."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from proxmargin.functions.traits import Trait
from proxmargin.penalties import Ball

every_ball = pytest.mark.parametrize(
    "ball", [Ball(), Ball(2.0, 0.1), Ball(1.2, 3.0), Ball(1.5, 1.0), Ball(3.0, 0.5), Ball(20.0, 2)]
)


@every_ball
def test_the_projection_agrees_with_an_interior_point_solver(ball: Ball, rng) -> None:
    point = 3 * rng.standard_normal((6, 1))
    w = cp.Variable((6, 1))
    cp.Problem(cp.Minimize(cp.sum_squares(w - point)), [cp.pnorm(w, ball.p) <= ball.radius]).solve(
        solver=cp.CLARABEL
    )
    np.testing.assert_allclose(ball.prox(point, 0.3), w.value, atol=1e-4)
    inside = 1e-3 * point * ball.radius
    np.testing.assert_array_equal(ball.prox(inside, 7.0), inside)


@every_ball
@pytest.mark.parametrize("size", [1e-200, 1e-8, 1.0, 1e8, 1e200])
def test_the_gradient_of_the_conjugate_attains_it_on_the_sphere(ball, size, rng) -> None:
    dual = size * rng.standard_normal((6, 1))
    dual[2] = 0
    coef = ball.conjugate_gradient(dual)
    assert ball.value(coef) == 0
    assert np.sum(np.abs(coef) ** ball.p) ** (1 / ball.p) == pytest.approx(ball.radius, rel=1e-14)
    assert float(np.vdot(coef, dual)) == pytest.approx(ball.conjugate(dual), rel=1e-13)
    assert ball.fenchel_young(coef, dual).sum() <= 1e-14 * ball.conjugate(dual)
    assert ball.violations(coef, dual).max() <= 1e-12 * size


@every_ball
def test_the_gradient_of_the_conjugate_is_its_central_difference(ball: Ball, rng) -> None:
    dual, h = rng.standard_normal((5, 1)), 1e-6
    found = ball.conjugate_gradient(dual)
    for j in range(5):
        step = h * (np.arange(5) == j)[:, None]
        slope = (ball.conjugate(dual + step) - ball.conjugate(dual - step)) / (2 * h)
        assert slope == pytest.approx(found[j, 0], abs=1e-6)


@every_ball
def test_at_zero_the_conjugate_and_its_gradient_are_zero(ball: Ball) -> None:
    zero = np.zeros((4, 1))
    assert ball.conjugate(zero) == 0
    assert not np.any(ball.conjugate_gradient(zero))
    assert not np.any(ball.fenchel_young(ball.radius * np.eye(4)[:, :1], zero))


def test_in_two_norm_the_fenchel_young_terms_keep_their_digits(rng) -> None:
    ball, dual = Ball(2.0, 3.0), rng.standard_normal((8, 1))
    nudge = 1e-9 * rng.standard_normal((8, 1))
    near = ball.conjugate_gradient(dual + nudge)
    sideways = nudge - dual * np.vdot(dual, nudge) / np.vdot(dual, dual)
    exact = 0.5 * 3.0 * float(np.vdot(sideways, sideways)) / np.linalg.norm(dual)
    # what rounding leaves of |coef| = radius is 1e-16, a hundred times the exact value
    assert ball.fenchel_young(near, dual).sum() == pytest.approx(exact, abs=2e-15)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 8.0])
@pytest.mark.parametrize("size", [1e-2, 1e-5, 1e-9])
def test_divergences_of_the_conjugate_keep_their_digits(p: float, size: float, rng) -> None:
    ball = Ball(p, 1.7)
    v = rng.standard_normal((6, 1)) + 2.0
    move = size * rng.standard_normal((6, 1))
    coef = ball.conjugate_gradient(v)
    # along the line the divergence is the integral of the slope's growth
    nodes, weights = np.polynomial.legendre.leggauss(20)
    growth = [
        float(np.vdot(ball.conjugate_gradient(v + 0.5 * (1 + t) * move) - coef, move))
        for t in nodes
    ]
    expected = 0.5 * float(weights @ growth)
    found = ball.conjugate_divergence(v + move, coef)
    assert found == pytest.approx(expected, rel=1e-13 / size + 1e-9)
    assert ball.conjugate_divergence(v, 0.0 * coef) == pytest.approx(ball.conjugate(v))


@every_ball
def test_the_best_multiple_is_the_sphere_or_zero(ball: Ball, rng) -> None:
    coef = rng.standard_normal((4, 1))
    multiple = ball.best_multiple(coef, -1.0)
    assert ball.value(multiple * coef) == 0
    assert ball.value(multiple * (1 + 1e-9) * coef) == np.inf
    assert ball.best_multiple(coef, 1.0) == 0
    assert ball.best_multiple(0 * coef, -1.0) == 0


@pytest.mark.parametrize("p", [1.0, 0.5, np.inf, np.nan])
def test_the_exponent_lies_between_one_and_infinity(p: float) -> None:
    with pytest.raises(ValueError, match="p must be a number in"):
        Ball(p=p)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.inf, np.nan])
def test_the_radius_is_positive(radius: float) -> None:
    with pytest.raises(ValueError, match="radius must be a finite number > 0"):
        Ball(radius=radius)


def test_a_ball_couples_all_coefficients() -> None:
    assert Trait.SEPARABLE not in Ball().traits
    assert Trait.SMOOTH_CONJUGATE in Ball().traits
    with pytest.raises(TypeError, match="one step a feature"):
        Ball().prox(np.ones((2, 1)), np.array([[1.0], [2.0]]))
    with pytest.raises(TypeError, match="use Ridge"):
        Ball().newton_direction(np.ones(1), np.ones(1), np.zeros(1))
