"""Norms of rows that sum to zero: their prox against an interior-point solver and hard rows."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.compiled.projections.rows import balanced_linf_prox
from proxmargin.penalties import ElasticNet, GroupL2, GroupLinf, Groups, SumToZero, SumToZeroGroups

NORMS = {"l2": (GroupL2, 2), "linf": (GroupLinf, "inf")}
EXACT = {"solver": cp.CLARABEL, "tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
LABELS = np.repeat(np.arange(4), [1, 3, 5, 4])
OMEGA = np.array([0.5, 1.0, 2.0, 50.0])
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
    cp.Problem(cp.Minimize(objective), [cp.sum(U, axis=1) == 0]).solve(**EXACT)
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


@kinds
@pytest.mark.parametrize("steps", [0.7, np.geomspace(0.3, 2.0, 13)[:, None]])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_prox_of_groups_within_classes_agrees_too(kind: str, steps, classes, rng) -> None:
    make, norm = NORMS[kind]
    v, U = 2 * rng.standard_normal((13, classes)), cp.Variable((13, classes))
    v[0] += 100.0
    weights = np.broadcast_to(1 / (2 * np.asarray(steps)), v.shape)
    objective = cp.sum(cp.multiply(weights, cp.square(U - v)))
    for g, omega in enumerate(OMEGA):
        block = U[np.flatnonzero(g == LABELS)]
        objective += 0.8 * omega * cp.sum([cp.norm(block[:, k], norm) for k in range(classes)])
    cp.Problem(cp.Minimize(objective), [cp.sum(U, axis=1) == 0]).solve(**EXACT)
    penalty = SumToZeroGroups(make(Groups.within_classes(LABELS), 0.8, OMEGA))
    found = penalty.prox(v, steps)
    reached = penalty.value(found) + np.vdot(weights, (found - v) ** 2)
    assert reached <= objective.value + 1e-9 * abs(objective.value)
    np.testing.assert_allclose(found, U.value, atol=1e-4)
    assert found.any()
    assert not found[LABELS == 3].any()


@kinds
@given(data=st.data(), step=st.floats(0.01, 20.0))
def test_two_classes_have_the_norm_of_half_their_difference(kind: str, data, step: float) -> None:
    v = data.draw(arrays(float, (13, 2), elements=entries))
    inner = NORMS[kind][0](Groups.within_classes(LABELS), 0.8, OMEGA)
    half = inner.prox(0.5 * (v[:, :1] - v[:, 1:]), step)
    found = SumToZeroGroups(inner).prox(v, step)
    np.testing.assert_allclose(found, half * [1.0, -1.0], atol=1e-12 * (1 + np.abs(v).max()))


@kinds
@given(data=st.data(), step=st.floats(0.01, 20.0))
def test_groups_of_one_feature_in_each_class_are_the_l1_norm(kind: str, data, step: float) -> None:
    v, dual = (data.draw(arrays(float, (6, 4), elements=entries)) for _ in range(2))
    l1 = SumToZero(ElasticNet(0.8))
    single = SumToZeroGroups(NORMS[kind][0](Groups.within_classes(np.arange(6)), 0.8))
    size = 1e-12 * (1 + np.abs(v).max())
    np.testing.assert_allclose(single.prox(v, step), l1.prox(v, step), atol=size)
    critical = l1.critical_strength(dual)
    assert single.critical_strength(dual) == pytest.approx(critical, rel=1e-13, abs=1e-300)


@kinds
@pytest.mark.parametrize("features", [2, 7, 40])
@pytest.mark.parametrize("classes", [3, 5, 12])
def test_the_dual_norm_is_the_radius_of_the_smallest_ball(kind, features, classes, rng) -> None:
    """To rounding: what bounds it from below is a point whose rows sum to zero."""
    make, norm = NORMS[kind]
    inner = make(Groups.within_classes(np.zeros(features)))
    v = rng.standard_normal((features, classes))
    (radius,), point = inner.balanced_dual_norms(v)
    centre, to = cp.Variable(features), {2: 2, "inf": 1}[norm]
    ball = cp.max(cp.hstack([cp.norm(v[:, k] - centre, to) for k in range(classes)]))
    assert radius == pytest.approx(cp.Problem(cp.Minimize(ball)).solve(**EXACT), rel=1e-8)
    np.testing.assert_allclose(point.sum(axis=1), 0.0, atol=1e-13)
    assert inner.value(point) == pytest.approx(1.0, rel=1e-13)
    assert np.vdot(v, point) == pytest.approx(radius, rel=1e-11)
    shifted = v - inner.class_centres(v)
    assert np.linalg.norm(shifted, to, axis=0).max() == pytest.approx(radius, rel=1e-13)


@pytest.mark.sampled(2)
@kinds
@pytest.mark.parametrize("size", [0.3, 0.6, 0.9, 0.97, 1.0 - 1e-6, 1.0 - 1e-9, 1.0 + 1e-12])
def test_the_prox_is_exact_up_to_where_it_is_zero(kind: str, size: float, rng) -> None:
    """Of long groups in many classes, by the optimality conditions."""
    v = rng.standard_normal((200, 10))
    inner = NORMS[kind][0](Groups.within_classes(np.repeat([0, 1], 100)))
    inner = inner.times(size * inner.balanced_dual_norms(v)[0].min())
    penalty = SumToZeroGroups(inner)
    found = penalty.prox(v, 1.0)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-11)
    if abs(size - 1.0) > 1e-3:  # directions of what is nearly zero are rounding
        assert penalty.violations(found, v - found).max() <= 1e-11
    scaled = penalty.domain_scale(v - found) * (v - found)
    assert scaled == pytest.approx(v - found, rel=1e-13)
    assert penalty.fenchel_young(found, scaled).sum() <= 1e-12 * (1 + penalty.value(found))
    zero = [not found[part].any() for part in (slice(100), slice(100, 200))]
    assert any(zero) == (size > 1)


@kinds
def test_blocks_of_very_different_size_end(kind: str) -> None:
    v = np.array([[1e8, 1e-8, 0.0], [1e150, 0.0, -1e150], [5e-324, 0.0, 0.0], [2.0, 2.0, 2.0]])
    penalty = SumToZeroGroups(NORMS[kind][0](Groups.within_classes([0, 1, 2, 2]), 0.25))
    found = penalty.prox(v, 1.0)
    assert np.all(np.abs(found.sum(axis=1)) <= 1e-15 * np.abs(v).max(axis=1))
    assert found[:2].any(axis=1).all()
    assert not found[2:].any()
    assert np.isfinite(penalty.critical_strength(v))
