"""A loss of scores with an offset against the loss of the scores that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from proxmargin.losses import Hinge, HuberizedHinge, Shifted
from tests.cases import INTERCEPTS, SHIFTED, shifted_sum

every_loss = pytest.mark.parametrize("make", SHIFTED.values(), ids=SHIFTED.keys())
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS["binary"])
LINES = {"hinge": Hinge(), "huberized hinge": HuberizedHinge(0.5)}
every_line = pytest.mark.parametrize("phi", LINES.values(), ids=LINES.keys())


@every_loss
def test_it_is_the_loss_of_the_moved_scores(make, rng) -> None:
    loss = make(rng)
    scores = rng.standard_normal((12, 1))
    moved = scores + loss.offset
    value, gradient = loss.value_and_gradient(scores)
    assert value == loss.value(scores) == loss.unshifted.value(moved)
    np.testing.assert_array_equal(gradient, loss.unshifted.value_and_gradient(moved)[1])
    if np.isfinite(loss.row_curvatures).all():
        np.testing.assert_array_equal(loss.curvatures(scores), loss.unshifted.curvatures(moved))


@every_loss
def test_fenchel_young_is_value_plus_conjugate_minus_product(make, rng) -> None:
    loss = make(rng)
    for _ in range(20):
        scores = 3.0 * rng.standard_normal((12, 1))
        dual = 0.7 * loss.value_and_gradient(rng.standard_normal((12, 1)))[1]
        plain = loss.value(scores) + loss.conjugate(dual) - float(np.vdot(scores, dual))
        term = loss.fenchel_young(scores, dual)
        assert term >= 0
        assert term == pytest.approx(plain, rel=1e-12, abs=1e-12)


@every_loss
@every_intercept
def test_the_intercept_is_the_best_one(make, intercept: str, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["binary"][intercept]
    scores = rng.standard_normal((12, 1))

    def value(b: np.ndarray) -> float:
        return loss.value(scores + b) + penalty.value(b[None, :])

    best = loss.best_intercept(scores, penalty, np.zeros(1))
    if penalty.is_pinned:
        assert not best.any()
        return
    for start in (-2.0, 0.0, 2.0):
        assert value(best) <= minimize(value, [start], method="Nelder-Mead").fun + 1e-12


@every_loss
@every_intercept
def test_the_dual_form_is_that_of_the_conjugate(make, intercept: str, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["binary"][intercept]
    form = loss.dual_form(penalty, 1e-3)
    assert form is not None
    base = form.project(rng.standard_normal(12))
    assert form.coordinates(form.dual_point(base)) == pytest.approx(base, abs=1e-14)
    for _ in range(5):
        u = form.project(rng.standard_normal(12))
        dual = loss.balanced(form.dual_point(u)[:, None], penalty)
        assert form.value(u) == pytest.approx(loss.conjugate(dual), rel=1e-12, abs=1e-13)
        assert form.smooth_value(u) == pytest.approx(form.value(u), rel=1e-12, abs=1e-13)
        plain = form.smooth_value(u) - form.smooth_value(base)
        plain -= float(form.smooth_gradient(base) @ (u - base))
        assert form.smooth_divergence(u, base) == pytest.approx(plain, rel=1e-9, abs=1e-12)


@pytest.mark.sampled(3)
@every_loss
@every_intercept
def test_the_prox_of_the_dual_form_is_no_worse_than_its_neighbours(make, intercept, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["binary"][intercept]
    form = loss.dual_form(penalty)
    assert form is not None
    for step in (0.1, 5.0):
        u = rng.standard_normal(12)

        def value(v: np.ndarray, u: np.ndarray = u, step: float = step) -> float:
            return form.value(v) + float((v - u) @ (v - u)) / (2.0 * step)

        at = form.prox(u, step)
        for _ in range(30):
            other = form.prox(u + 0.1 * rng.standard_normal(12), step)
            assert value(at) <= value(other) + 1e-12


@every_line
def test_the_prox_of_the_conjugate_is_no_worse_than_its_neighbours(phi, rng) -> None:
    loss = shifted_sum(phi, rng)
    for step in (0.1, 5.0):
        dual = rng.standard_normal((12, 1))

        def value(q: np.ndarray, dual: np.ndarray = dual, step: float = step) -> float:
            return loss.conjugate(q) + float(np.vdot(q - dual, q - dual)) / (2.0 * step)

        at = loss.conjugate_prox(dual, step)
        assert np.isfinite(value(at))
        for _ in range(30):
            other = loss.conjugate_prox(dual + 0.1 * rng.standard_normal((12, 1)), step)
            assert value(at) <= value(other) + 1e-12
        h = 1e-7 * rng.standard_normal((12, 1))
        slope = loss.conjugate_prox_jacobian(dual, step).diagonal
        ahead = loss.conjugate_prox(dual + h, step) - at
        np.testing.assert_allclose(ahead, slope * h, atol=1e-15)


@every_line
def test_the_box_maximises_to_the_loss(phi, rng) -> None:
    loss = shifted_sum(phi, rng)
    box, scores = loss.box, 2.0 * rng.standard_normal(12)
    assert box is not None
    a = np.linspace(0.0, 1.0, 20_001)[:, None] * box.upper
    terms = a * (box.target - box.signs * scores) - 0.5 * box.curvature * a * a
    assert loss.value(scores[:, None]) == pytest.approx(float(terms.max(axis=0).sum()), abs=1e-6)


def test_the_growth_covers_the_rounding_of_the_sum(rng) -> None:
    """Scores that a large offset swallows: the loss of their sum is off by an ulp of the offset."""
    inner = shifted_sum(Hinge(), rng).unshifted
    shift = 1e15 + rng.integers(0, 100, (12, 1)) / 8.0
    loss = Shifted(inner, shift)
    scores = -1e15 + rng.random((12, 1))
    exact = (shift - 1e15) + (scores + 1e15)
    dual = np.zeros((12, 1))
    _, gradient = loss.value_and_gradient(scores)
    bound = loss.growth(scores, gradient, dual, np.full((12, 1), 0.125))
    assert abs(inner.value(exact) - loss.value(scores)) <= bound
