"""Projections onto epigraphs of the multiclass hinge, against the problem that defines them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar

from proxmargin.functions.projections import NotFiniteError, hinge_epigraphs

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)
small = st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 1))


def margins(own: int, classes: int) -> np.ndarray:
    return (np.arange(classes) != own).astype(float)


def hinge(p: np.ndarray, own: int) -> float:
    return float((p + margins(own, p.size)).max())


@given(st.integers(1, 8), st.data(), st.sampled_from([numbers, small]))
def test_the_point_is_in_the_epigraph_and_nearest(classes: int, data, entries) -> None:
    y = data.draw(arrays(np.float64, classes, elements=entries))
    zeta = data.draw(entries)
    own = data.draw(st.integers(0, classes - 1))
    p, theta = hinge_epigraphs(y[None, :], [zeta], [own])
    scale = 1.0 + np.abs(y).max() + abs(zeta)
    assert hinge(p[0], own) <= theta[0] + 1e-12 * scale
    # (18): theta is the prox of half the sum of squares of what sticks out
    nu = y + margins(own, classes)

    def distance(level: float) -> float:
        return float((level - zeta) ** 2 + (np.maximum(nu - level, 0) ** 2).sum())

    found = minimize_scalar(
        distance, bounds=(zeta - 1, max(nu.max(), zeta) + 1), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    reached = float(((p[0] - y) ** 2).sum() + (theta[0] - zeta) ** 2)
    assert reached <= found.fun + 1e-9 * scale * (1 + np.sqrt(found.fun))
    assert reached == pytest.approx(distance(theta[0]), rel=1e-9, abs=1e-12 * scale**2)


@given(st.integers(1, 6), st.data())
def test_the_residual_is_orthogonal_and_projecting_twice_changes_nothing(classes, data) -> None:
    y = data.draw(arrays(np.float64, (4, classes), elements=small))
    zeta = data.draw(arrays(np.float64, 4, elements=small))
    codes = data.draw(arrays(np.int64, 4, elements=st.integers(0, classes - 1)))
    p, theta = hinge_epigraphs(y, zeta, codes)
    again, level = hinge_epigraphs(p, theta, codes)
    np.testing.assert_allclose(again, p, atol=1e-14)
    np.testing.assert_allclose(level, theta, atol=1e-14)
    # what is pushed down in the scores is pushed up in the level
    np.testing.assert_allclose((y - p).sum(axis=1), theta - zeta, atol=1e-12)
    assert np.all(p <= y)
    assert np.all(theta >= zeta)


def test_against_an_interior_point_solver(rng) -> None:
    y, zeta, codes = rng.standard_normal((6, 4)), rng.standard_normal(6), rng.integers(0, 4, 6)
    p, theta = hinge_epigraphs(y, zeta, codes)
    q, level = cp.Variable((6, 4)), cp.Variable(6)
    r = np.stack([margins(k, 4) for k in codes])
    program = cp.Problem(
        cp.Minimize(cp.sum_squares(q - y) + cp.sum_squares(level - zeta)),
        [cp.max(q + r, axis=1) <= level],
    )
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    np.testing.assert_allclose(p, q.value, atol=1e-6)
    np.testing.assert_allclose(theta, level.value, atol=1e-6)


def test_points_inside_stay_and_ties_are_of_no_consequence() -> None:
    y = np.array([[0.0, -1.0, -1.0], [0.0, 2.0, 2.0], [5.0, 4.0, 4.0]])
    p, theta = hinge_epigraphs(y, [0.0, 0.0, 0.0], [0, 0, 0])
    np.testing.assert_array_equal(p[0], y[0])
    assert theta[0] == 0.0
    # nu = (0, 3, 3): theta = 6 / 3
    assert theta[1] == pytest.approx(2.0)
    np.testing.assert_allclose(p[1], [0.0, 1.0, 1.0])
    # all tied: theta = 15 / 4
    assert theta[2] == pytest.approx(3.75)
    np.testing.assert_allclose(p[2], [3.75, 2.75, 2.75])


def test_entries_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(NotFiniteError, match="NaN or infinite"):
        hinge_epigraphs(np.full((1, 3), np.nan), [0.0], [0])
