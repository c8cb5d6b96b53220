"""Norms of groups: their prox, how groups are made, and what is refused."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.penalties import ElasticNet, GroupL2, GroupLinf, Groups

LABELS = np.array([2, 0, 2, 1, 0, 2])
OMEGA = np.array([0.5, 2.0, 1.3])
NORMS = {"l2": (GroupL2, 2), "linf": (GroupLinf, "inf")}
kinds = pytest.mark.parametrize("kind", NORMS)
points = arrays(float, (6, 3), elements=st.one_of(st.floats(-9, 9), st.integers(-3, 3).map(float)))


@kinds
@pytest.mark.parametrize("steps", [np.full((6, 1), 0.7), np.geomspace(0.05, 8.0, 6)[:, None]])
def test_the_prox_agrees_with_an_interior_point_solver(kind: str, steps, rng) -> None:
    make, norm = NORMS[kind]
    v = 2 * rng.standard_normal((6, 3))
    U = cp.Variable(v.shape)
    objective = cp.sum(cp.multiply(1 / (2 * np.repeat(steps, 3, 1)), cp.square(U - v)))
    objective += 0.8 * sum(
        OMEGA[g] * cp.norm(U[np.flatnonzero(g == LABELS), k], norm)
        for g in range(3)
        for k in range(3)
    )
    cp.Problem(cp.Minimize(objective)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    found = make(Groups.within_classes(LABELS), 0.8, OMEGA).prox(v, steps)
    np.testing.assert_allclose(found, U.value, atol=2e-6)
    assert 0 < np.count_nonzero(found) < found.size or kind == "linf"


@kinds
@given(v=points, dual=points)
def test_groups_of_features_are_groups_within_the_transpose(kind: str, v, dual) -> None:
    make, _ = NORMS[kind]
    across, within = make(Groups.features(6), 0.8), make(Groups.within_classes(np.zeros(3)), 0.8)
    np.testing.assert_array_equal(across.prox(v, 0.5), within.prox(v.T.copy(), 0.5).T)
    assert across.value(v) == pytest.approx(within.value(v.T))
    assert across.conjugate(dual) == within.conjugate(dual.T)
    assert across.critical_strength(dual) == pytest.approx(within.critical_strength(dual.T))
    dual = across.domain_scale(dual) * dual
    terms = within.fenchel_young(v.T, dual.T).sum()
    assert across.fenchel_young(v, dual).sum() == pytest.approx(terms, abs=1e-11)
    residual = within.violations(v.T, dual.T).max()
    assert across.violations(v, dual).max() == pytest.approx(residual, abs=1e-12)


@kinds
@given(v=points)
def test_groups_of_one_coefficient_are_the_l1_norm(kind: str, v) -> None:
    single, l1 = NORMS[kind][0](Groups.within_classes(np.arange(6)), 0.8), ElasticNet(0.8)
    np.testing.assert_allclose(single.prox(v, 0.5), l1.prox(v, 0.5), atol=1e-14)
    assert single.value(v) == pytest.approx(l1.value(v))
    assert single.critical_strength(v) == pytest.approx(l1.critical_strength(v))
    dual = l1.domain_scale(v) * v[::-1]
    np.testing.assert_allclose(
        single.fenchel_young(v, dual), l1.fenchel_young(v, dual), atol=1e-13 * (1 + abs(v).max())
    )
    np.testing.assert_allclose(single.violations(v, v[::-1]), l1.violations(v, v[::-1]), atol=1e-13)


@kinds
@given(v=points)
def test_the_penalty_of_some_features_is_that_of_zeros_elsewhere(kind: str, v) -> None:
    make, _ = NORMS[kind]
    index = np.array([0, 3, 5])
    for whole in (
        make(Groups.within_classes(LABELS), 0.8, OMEGA),
        make(Groups.features(6), 0.8, np.arange(1.0, 7.0)),
    ):
        part = whole.restricted(index)
        padded = np.zeros_like(v)
        padded[index] = v[index]
        assert part.value(v[index]) == pytest.approx(whole.value(padded))
        np.testing.assert_allclose(
            part.prox(v[index], 0.3), whole.prox(padded, 0.3)[index], atol=1e-14
        )


def test_the_distance_from_the_subdifferential_is_that_of_its_nearest_point(rng) -> None:
    # two largest entries of opposite sign, and one below
    penalty = GroupLinf(Groups.within_classes([0, 0, 0]), 1.0)
    coef = np.array([[2.0], [-2.0], [1.0]])
    for _ in range(20):
        v = 2 * rng.standard_normal(3)
        s = cp.Variable(2, nonneg=True)
        nearest = cp.hstack([s[0], -s[1], 0.0])
        cp.Problem(cp.Minimize(cp.sum_squares(nearest - v)), [cp.sum(s) == 1]).solve(
            solver=cp.CLARABEL
        )
        np.testing.assert_allclose(
            penalty.violations(coef, v[:, None]), np.abs(nearest.value - v), atol=1e-5
        )


def test_labels_of_any_kind_make_the_same_groups() -> None:
    named = Groups.within_classes(["b", "a", "b", "aa", "a", "b"])
    listed = Groups.of_members([[1, 4], [3], [0, 2, 5]], 6)
    np.testing.assert_array_equal(named.codes, listed.codes)
    assert (named.n_groups, named.n_features) == (3, 6)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([[0, 1], [1, 2]], "groups overlap: feature 1 is listed twice"),
        ([[0, 1, 1], [2]], "groups overlap: feature 1 is listed twice"),
        ([[0], [2]], "do not cover the features: 1 of 3 are in no group, feature 1 first"),
        ([[0, 1], [2, 3]], r"group 1 has indices outside 0..2"),
        ([[0, 1, 2], []], "group 1 must be a list of at least one feature index"),
        ([[0, 1], [2.0]], "group 1 must be a list of at least one feature index"),
    ],
)
def test_lists_that_are_no_partition_are_refused(members, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Groups.of_members(members, 3)


@pytest.mark.parametrize("labels", [[[0, 1]], [], [0.0, np.nan], 3])
def test_labels_that_are_no_labels_are_refused(labels) -> None:
    with pytest.raises(ValueError, match="groups: labels must"):
        Groups.within_classes(labels)


def test_there_is_at_least_one_feature() -> None:
    with pytest.raises(ValueError, match="n_features must be >= 1"):
        Groups.features(0)


@kinds
def test_strength_weights_and_shapes_are_checked(kind: str) -> None:
    make, _ = NORMS[kind]
    groups = Groups.within_classes(LABELS)
    for strength in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="strength must be a finite number >= 0"):
            make(groups, strength)
    with pytest.raises(ValueError, match=r"weights must be one number a group, \(3,\)"):
        make(groups, 1.0, np.ones(6))
    for weight in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights must be finite numbers > 0"):
            make(groups, 1.0, np.array([1.0, 1.0, weight]))
    with pytest.raises(ValueError, match="groups are of 6 features, the coefficients of 5"):
        make(groups).prox(np.ones((5, 3)), 1.0)
    with pytest.raises(TypeError, match="use Ridge"):
        make(groups).newton_direction(np.ones(3), np.ones(3), np.zeros(3))
