"""Laws of losses of one margin: derivative, conjugate, prox, and the closed forms that tie them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from proxmargin.losses import DistanceWeighted, HuberizedHinge, MarginLoss
from tests.cases import MARGIN_LOSSES, SMOOTH_LOSSES
from tests.drawn import drawn_arrays

every_loss = pytest.mark.parametrize("phi", MARGIN_LOSSES.values(), ids=MARGIN_LOSSES.keys())
every_smooth_loss = pytest.mark.parametrize("phi", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES.keys())

margins = drawn_arrays(8, -30.0, 30.0)
shares = drawn_arrays(8, 0.0, 1.0)
steps = st.floats(1e-3, 1e3)

# half width of the differences, and the distance that points keep from kinks
H = 1e-5


def away_from_kinks(phi: MarginLoss, t: np.ndarray) -> np.ndarray:
    near = np.zeros(t.shape, dtype=bool)
    for kink in phi.kinks:
        near |= np.abs(t - kink) <= 2 * H
    return t[~near]


def in_domain(phi: MarginLoss, share: np.ndarray) -> np.ndarray:
    return share * min(phi.dual_bound, 40.0)


@every_loss
@given(t=margins)
def test_descent_is_minus_the_central_difference_of_the_value(phi: MarginLoss, t) -> None:
    t = away_from_kinks(phi, t)
    slope = (phi.value(t + H) - phi.value(t - H)) / (2 * H)
    np.testing.assert_allclose(-phi.descent(t), slope, atol=1e-7, rtol=1e-7)


@every_loss
@given(t=margins)
def test_curvature_is_the_central_difference_of_the_derivative(phi: MarginLoss, t) -> None:
    t = away_from_kinks(phi, t)
    bend = -(phi.descent(t + H) - phi.descent(t - H)) / (2 * H)
    np.testing.assert_allclose(phi.curvature(t), bend, atol=1e-7, rtol=1e-5)


@every_loss
@given(t=margins, u=margins)
def test_value_lies_above_its_tangents(phi: MarginLoss, t, u) -> None:
    tangent = phi.value(t) - phi.descent(t) * (u - t)
    assert np.all(phi.value(u) >= tangent - 1e-12 * (1 + np.abs(tangent)))


@every_smooth_loss
@given(t=margins, u=margins)
def test_smoothness_bounds_the_change_of_the_derivative(phi: MarginLoss, t, u) -> None:
    change = np.abs(phi.descent(t) - phi.descent(u))
    assert np.all(change <= phi.smoothness * np.abs(t - u) * (1 + 1e-12) + 1e-15)


@every_loss
@given(t=margins)
def test_descent_stays_in_the_domain_of_the_conjugate(phi: MarginLoss, t) -> None:
    descent = phi.descent(t)
    assert np.all((descent >= 0) & (descent <= phi.dual_bound))
    assert np.all(np.isfinite(phi.conjugate(descent)))


@every_loss
@given(t=margins, share=shares)
def test_fenchel_young_is_value_plus_conjugate_minus_product(phi: MarginLoss, t, share) -> None:
    a = in_domain(phi, share)
    pieces = [phi.value(t), phi.conjugate(a), a * t]
    size = sum(np.abs(piece) for piece in pieces) + a**2 / min(phi.smoothness, 1.0)
    terms = phi.fenchel_young(t, a)
    assert np.all(terms >= 0)
    np.testing.assert_array_less(np.abs(terms - sum(pieces)), 1e-13 * (1 + size))


@every_loss
@given(t=margins)
def test_fenchel_young_vanishes_at_the_derivative(phi: MarginLoss, t) -> None:
    assert np.all(phi.fenchel_young(t, phi.descent(t)) <= 1e-15 * (1 + np.abs(t)))


@every_loss
@pytest.mark.parametrize("share", [0.0, 1e-6, 0.2, 0.5, 0.9, 1 - 1e-6, 1.0])
def test_conjugate_is_the_supremum_over_margins(phi: MarginLoss, share: float) -> None:
    a = share * min(phi.dual_bound, 5.0)
    best = -phi.conjugate_slope(np.array([a]))
    # a margin far out stands for infinity
    best = best[np.isfinite(best)]
    grid = np.concatenate([np.linspace(-60, 60, 240_001), phi.kinks, best, [1e15]])
    brute = np.max(-a * grid - phi.value(grid))
    conjugate = float(phi.conjugate(np.array(a)))
    coarse = (grid[1] - grid[0]) ** 2 * (1.0 if not np.isfinite(phi.smoothness) else phi.smoothness)
    assert brute <= conjugate + 1e-13
    assert conjugate <= brute + coarse + 1e-13


@every_loss
def test_conjugate_is_infinite_outside_its_domain(phi: MarginLoss) -> None:
    outside = [-1e-9] + ([phi.dual_bound * (1 + 1e-9)] if np.isfinite(phi.dual_bound) else [])
    assert np.all(np.isposinf(phi.conjugate(np.array(outside))))


@every_loss
@given(share=drawn_arrays(8, 1e-3, 1 - 1e-3))
def test_the_slope_of_the_conjugate_is_its_central_difference(phi: MarginLoss, share) -> None:
    a = in_domain(phi, share)
    h = 1e-6 * min(phi.dual_bound, 1.0)
    slope = (phi.conjugate(a + h) - phi.conjugate(a - h)) / (2 * h)
    np.testing.assert_allclose(phi.conjugate_slope(a), slope, rtol=1e-6, atol=1e-7)


@every_loss
@given(share=shares)
def test_minus_the_slope_of_the_conjugate_is_a_margin_that_has_the_derivative(phi, share) -> None:
    a = in_domain(phi, share)
    t = -phi.conjugate_slope(a)
    inside = np.isfinite(t)
    assert np.all(inside | (a == 0) | (a == phi.dual_bound))
    assert np.all(phi.fenchel_young(t[inside], a[inside]) <= 1e-14 * (1 + np.abs(t[inside])))


@every_loss
@given(t=margins, step=steps)
def test_prox_meets_its_optimality_condition(phi: MarginLoss, t, step: float) -> None:
    u = phi.prox(t, step)
    a = np.clip((u - t) / step, 0.0, phi.dual_bound)
    np.testing.assert_allclose(u, t + step * a, rtol=1e-12, atol=1e-12)
    assert np.all(phi.fenchel_young(u, a) <= 1e-10 * (1 + phi.value(u)))


@pytest.mark.pairwise
@every_loss
@pytest.mark.parametrize("step", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("t", [-7.3, -0.2, 0.995, 1.0, 1.4, 12.0])
def test_prox_minimises_what_defines_it(phi: MarginLoss, t: float, step: float) -> None:
    def objective(u: float) -> float:
        return float(phi.value(np.array(u))) + (u - t) ** 2 / (2 * step)

    found = minimize_scalar(
        objective, bounds=(t - 1, t + 60), method="bounded", options={"xatol": 1e-10}
    )
    u = float(phi.prox(np.array([t]), step)[0])
    assert objective(u) <= found.fun + 1e-14 * (1 + abs(found.fun))


@every_loss
@given(t=margins, u=margins, step=steps)
def test_prox_does_not_expand_distances(phi: MarginLoss, t, u, step: float) -> None:
    moved = np.abs(phi.prox(t, step) - phi.prox(u, step))
    assert np.all(moved <= np.abs(t - u) + 1e-11)


@every_loss
@given(a=margins, step=steps)
def test_conjugate_prox_minimises_what_defines_it(phi: MarginLoss, a, step: float) -> None:
    b = phi.conjugate_prox(a, step)
    inside = np.clip(b, 0.0, phi.dual_bound)
    np.testing.assert_allclose(b, inside, atol=1e-11 * (1 + step))
    # the margin that the optimality condition pairs with b
    t = (inside - a) / step
    scale = 1 + np.abs(t) + np.abs(a)
    assert np.all(phi.fenchel_young(t, inside) <= 1e-9 * scale)


@every_loss
@given(t=margins, step=steps)
def test_moreau_splits_a_point_into_two_proxes(phi: MarginLoss, t, step: float) -> None:
    # phi*(-b) as a function of b has the prox of the reflected loss: t = prox - step * conjugate
    rebuilt = phi.prox(t, step) - step * phi.conjugate_prox(-t / step, 1.0 / step)
    np.testing.assert_allclose(rebuilt, t, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.inf, np.nan, 1e-200, 1e200])
def test_a_distance_weighted_loss_needs_a_threshold_that_can_be_squared(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be a number > 0"):
        DistanceWeighted(threshold)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.inf, np.nan])
def test_a_huberized_hinge_needs_a_positive_finite_delta(delta: float) -> None:
    with pytest.raises(ValueError, match="delta must be a finite number > 0"):
        HuberizedHinge(delta)


@given(delta=st.floats(1e-6, 1e6), t=margins)
def test_every_gradient_of_a_huberized_hinge_has_a_finite_conjugate(delta: float, t) -> None:
    phi = HuberizedHinge(delta)
    assert np.all(np.isfinite(phi.conjugate(phi.descent(t))))
    assert phi.dual_bound == pytest.approx(1.0, rel=1e-15)
