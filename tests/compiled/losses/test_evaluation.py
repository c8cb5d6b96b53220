"""A pass over the samples that vectorises, against exact values and the loop over scalars."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest

from proxmargin.compiled.losses.evaluation import evaluated, evaluated_logistic
from proxmargin.compiled.losses.exponentials import fast_exp, fast_log1p
from proxmargin.losses import Logistic

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
    assert 0.0 < fast_exp(-1e300) < 1e-307


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


def test_terms_against_shares_of_the_own_dual_coordinate_are_below_their_bound() -> None:
    phi = Logistic().scalars
    for t in np.linspace(-30, 30, 61):
        a, curvature = phi.descent_and_curvature(t)
        for share in (1e-3, 0.2, 0.5, 0.9, 0.999):
            bound = (1 - share) ** 2 * phi.shrunk_bound(a, curvature) / (2 * share)
            assert phi.fenchel_young(t, share * a) <= bound * (1 + 1e-9)
