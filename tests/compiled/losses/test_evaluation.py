"""A pass over the samples that vectorises, against exact values and the loop over scalars."""

from __future__ import annotations

from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest

from proxmargin.compiled.losses.evaluation import evaluated, evaluated_logistic
from proxmargin.compiled.losses.exponentials import fast_exp, fast_log1p
from proxmargin.losses import HuberizedHinge, Logistic, SquaredHinge

UNIT = Decimal(2) ** -53


def off(value: float, exact: Decimal) -> Decimal:
    """The relative error, in units of rounding."""
    return abs(Decimal(value) / exact - 1) / UNIT


def test_exponentials_are_right_to_two_units() -> None:
    getcontext().prec = 50
    rng = np.random.default_rng(0)
    points = np.r_[
        rng.uniform(0, 2, 400), rng.uniform(0, 708, 400), 10.0 ** rng.uniform(-20, 2, 99)
    ]
    for x in [*(-points), 0.0, -708.0]:
        assert off(fast_exp(x), Decimal(float(x)).exp()) <= 2
    assert fast_exp(-1e300) == fast_exp(-709.0) == 0.0


def test_logarithms_are_right_to_three_units() -> None:
    getcontext().prec = 50
    rng = np.random.default_rng(1)
    near = np.nextafter(np.sqrt(2) - 1, [0.0, 1.0])
    for e in np.r_[rng.uniform(0, 1, 600), 10.0 ** rng.uniform(-20, 0, 300), near, 1.0]:
        assert off(fast_log1p(e), (1 + Decimal(float(e))).ln()) <= 3
    assert fast_log1p(0.0) == 0.0
    assert fast_log1p(1e-300) == 1e-300


@pytest.mark.parametrize("size", [1, 7, 64, 333])
def test_the_pass_that_vectorises_is_the_loop_over_scalars(size: int) -> None:
    rng = np.random.default_rng(size)
    scores, shift = 10.0 ** rng.uniform(-3, 2.5, size) * rng.choice([-1, 1], size), 0.3
    signs, weights = rng.choice([-1.0, 1.0], size), rng.uniform(0.0, 2.0, size)
    weights[rng.random(size) < 0.2] = 0.0
    found, exact = np.empty((2, size)), np.empty((2, size))
    sums = evaluated_logistic(scores, shift, signs, weights, *found)
    expected = evaluated(Logistic().scalars, scores, shift, signs, weights, *exact)
    np.testing.assert_allclose(found, exact, rtol=16 * float(UNIT), atol=1e-300)
    room = 2 * (size + 16) * float(UNIT) * np.array([np.abs(exact[0]).sum(), *expected[1:]])
    assert (np.abs(np.subtract(sums, expected)) <= room).all()


@pytest.mark.parametrize("loss", [SquaredHinge(), HuberizedHinge(0.3), HuberizedHinge(4.0)])
def test_the_capped_quadratic_without_branches_is_the_loop_over_scalars(loss: Any) -> None:
    rng, size = np.random.default_rng(0), 333
    scores, shift = 3.0 * rng.standard_normal(size), 0.3
    signs, weights = rng.choice([-1.0, 1.0], size), rng.uniform(0.0, 2.0, size)
    weights[rng.random(size) < 0.2] = 0.0
    found, exact = np.empty((2, size)), np.empty((2, size))
    sums = loss.scalars.evaluated(scores, shift, signs, weights, *found)
    expected = evaluated(loss.scalars, scores, shift, signs, weights, *exact)
    np.testing.assert_allclose(found, exact, rtol=4 * float(UNIT))
    np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("loss", [SquaredHinge(), HuberizedHinge(0.3), HuberizedHinge(4.0)])
def test_majorants_of_flat_pieces_are_above_the_loss(loss: Any) -> None:
    phi, points = loss.scalars, np.linspace(-9.0, 9.0, 73)
    for t in points:
        if phi.curvature(t) == 0.0 and abs(1.0 - t - 0.5 * loss.zone) > 1e-9:
            bend = phi.majorant(t)
            above = phi.value(t) - phi.descent(t) * (points - t) + 0.5 * bend * (points - t) ** 2
            assert np.all(above >= loss.value(points) - 1e-12)


def test_the_bound_of_moved_dual_coordinates_holds() -> None:
    """With b at least c and d times as far from 0 and 1 as the own coordinate a."""
    phi, rng = Logistic().scalars, np.random.default_rng(0)
    for t in np.linspace(-20, 20, 41):
        a, curvature = phi.descent_and_curvature(t)
        for b in [*rng.uniform(0.0, 1.0, 20), *(a * rng.uniform(0.9, 1.1, 20))]:
            c, d = min(b / a, 1.0), min((1.0 - b) / (1.0 - a), 1.0)
            if c > 1e-12 and d > 1e-12:
                bound = (b - a) ** 2 / (2.0 * c * d * curvature)
                assert phi.fenchel_young(t, b) <= bound * (1 + 1e-9)


def test_terms_against_shares_of_the_own_dual_coordinate_are_below_their_bound() -> None:
    phi = Logistic().scalars
    for t in np.linspace(-30, 30, 61):
        a, curvature = phi.descent_and_curvature(t)
        for share in (1e-3, 0.2, 0.5, 0.9, 0.999):
            bound = (1 - share) ** 2 * phi.shrunk_bound(a, curvature) / (2 * share)
            assert phi.fenchel_young(t, share * a) <= bound * (1 + 1e-9)
