"""Newton steps in an orthant: the minimiser of the model, or a step along which it falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from proxmargin.compiled.solvers.hinge_newton import orthant_step

LIFTS = (0.0, 1e-14, 1e-11, 1e-8)


def model(rng, shape, lift):
    """The matrix of the model in coefficients and intercept, and what the kernel takes."""
    n, m = shape
    rows, bends = rng.standard_normal(shape) + 0.3, rng.uniform(0.1, 2.0, n)
    diagonal = rng.uniform(0.1, 0.5, m)
    whole = np.column_stack([rows, np.ones(n)])
    matrix = whole.T @ (bends[:, None] * whole) + np.diag(np.append(diagonal, max(lift, 0.0)))
    side = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    coef = side * rng.uniform(0.0, 1.0, m) * (rng.random(m) < 0.7)
    slope = rng.standard_normal(m)
    slope[coef == 0] = -np.abs(slope[coef == 0]) * side[coef == 0]
    lean = float(rng.normal()) if lift >= 0 else 0.0
    return matrix, (rows, bends, diagonal, lift), (coef, side, slope, lean)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (1, 3), (5, 1), (0, 4)], ids=str)
@pytest.mark.parametrize("lift", [-1.0, 1e-6, 0.4], ids=["no intercept", "free", "ridge"])
def test_a_step_inside_the_orthant_solves_the_system(shape, lift, rng):
    matrix, parts, (coef, side, slope, lean) = model(rng, shape, lift)
    coef = 1e6 * side
    move, turn = orthant_step(*parts, coef, side, slope, lean, 1.3, LIFTS, 5, 50)
    rest = matrix @ np.append(move, turn) + np.append(slope, lean)
    if lift < 0:
        assert turn == 0.0
        rest = rest[:-1]
    np.testing.assert_allclose(rest, 0.0, atol=1e-9)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)], ids=str)
@pytest.mark.parametrize("lift", [-1.0, 0.4], ids=["no intercept", "ridge"])
@pytest.mark.parametrize("corrections", [50, 0], ids=["all at once", "one by one"])
def test_a_step_stays_in_the_orthant_and_the_model_falls(shape, lift, corrections, rng):
    for _ in range(20):
        matrix, parts, (coef, side, slope, lean) = model(rng, shape, lift)
        move, turn = orthant_step(*parts, coef, side, slope, lean, 1.3, LIFTS, corrections, 50)
        assert ((coef + move) * side >= 0).all()
        step, slopes = np.append(move, turn), np.append(slope, lean)
        ends = matrix @ step + slopes
        assert slopes @ step < 0
        assert slopes @ step + 0.5 * step @ matrix @ step < 0
        # what moves freely is at its minimum, given what is zero
        free = np.append(coef + move != 0, lift >= 0)
        np.testing.assert_allclose(ends[free], 0.0, atol=1e-8)


def test_both_forms_of_the_system_make_the_same_step(rng):
    for lift in (-1.0, 1e-6, 0.4):
        _, parts, start = model(rng, (9, 9), lift)
        over_features = orthant_step(*parts, *start, 10.0, LIFTS, 5, 50)
        over_samples = orthant_step(*parts, *start, 0.1, LIFTS, 5, 50)
        np.testing.assert_allclose(over_features[0], over_samples[0], atol=1e-9)
        assert over_features[1] == pytest.approx(over_samples[1], abs=1e-9)


def test_the_model_is_minimised_in_one_dimension(rng):
    matrix, parts, (coef, side, slope, lean) = model(rng, (4, 1), 0.4)
    coef = side.copy()
    move, turn = orthant_step(*parts, coef, side, slope, lean, 1.3, LIFTS, 5, 50)
    found = minimize(
        lambda x: 0.5 * x @ matrix @ x + np.append(slope, lean) @ x,
        np.zeros(2),
        bounds=[(-1.0, None) if side[0] > 0 else (None, 1.0), (None, None)],
        tol=1e-14,
    )
    np.testing.assert_allclose(np.append(move, turn), found.x, atol=1e-5)


def test_no_factor_leaves_no_step():
    rows, bends, diagonal = np.array([[np.nan]]), np.ones(1), np.ones(1)
    start = np.ones(1), np.ones(1), np.ones(1), 0.0
    move, _ = orthant_step(rows, bends, diagonal, -1.0, *start, 1.3, LIFTS, 5, 50)
    assert np.isnan(move).all()
