"""Norms of rows that sum to zero: their prox against an interior-point solver and hard rows."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.compiled.rows import balanced_linf_prox
from proxmargin.penalties import GroupL2, GroupLinf, Groups, SumToZeroGroups

NORMS = {"l2": (GroupL2, 2), "linf": (GroupLinf, "inf")}
kinds = pytest.mark.parametrize("kind", NORMS)
entries = st.one_of(st.floats(-50, 50), st.integers(-3, 3).map(float))


@kinds
@pytest.mark.parametrize("classes", [2, 3, 4, 7])
def test_the_prox_agrees_with_an_interior_point_solver(kind: str, classes: int, rng) -> None:
    make, norm = NORMS[kind]
    v, omega = 2 * rng.standard_normal((6, classes)), np.array([0.2, 0.5, 1.0, 2.0, 4.0, 20.0])
    v[0] += 100.0
    steps = np.geomspace(0.3, 2.0, 6)[:, None]
    U = cp.Variable(v.shape)
    objective = cp.sum(cp.multiply(1 / (2 * np.repeat(steps, classes, 1)), cp.square(U - v)))
    objective += 0.8 * omega @ cp.norm(U, norm, axis=1)
    cp.Problem(cp.Minimize(objective), [cp.sum(U, axis=1) == 0]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    found = SumToZeroGroups(make(Groups.features(6), 0.8, omega)).prox(v, steps)
    np.testing.assert_allclose(found, U.value, atol=3e-6)
    assert not found[-1].any()


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 8])
@given(data=st.data(), radius=st.floats(0.0, 60.0))
def test_the_cut_rows_meet_their_optimality_conditions(classes: int, data, radius: float) -> None:
    """What is cut off has the signs of the largest entries, the sum ``radius``, and nothing of
    the others."""
    rows = data.draw(arrays(float, (5, classes), elements=entries))
    found, shifts = balanced_linf_prox(rows, np.full((5, 1), radius))
    size = 1e-12 * (1 + np.abs(rows).max())
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=size)
    cut = rows - shifts - found
    top = np.abs(found).max(axis=1, keepdims=True)
    live = top[:, 0] > 0
    assert np.all(np.abs(cut).sum(axis=1) <= radius + classes * size)
    np.testing.assert_allclose(np.abs(cut[live]).sum(axis=1), radius, atol=classes * size)
    assert np.all(np.abs(cut[live] * (np.abs(found[live]) < top[live] - size)) <= size)
    assert np.all(cut * found >= -size * (1 + np.abs(rows).max()))


def test_rows_of_very_different_size_end() -> None:
    rows = np.array([[1e8, 1e-8, 0.0, -1.0], [1e300, 0.0, 0.0, -1e300], [5e-324, 0.0, 0.0, 0.0]])
    found, _ = balanced_linf_prox(rows, np.full((3, 1), 0.25))
    assert np.all(np.abs(found.sum(axis=1)) <= 1e-15 * np.abs(rows).max(axis=1) + 1e-300)


def test_groups_within_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="one group a feature"):
        SumToZeroGroups(GroupL2(Groups.within_classes([0, 0, 1])))
