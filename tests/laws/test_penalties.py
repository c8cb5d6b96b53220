"""Laws of penalties: prox, conjugate, Fenchel-Young terms, optimality measure, declared traits."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from proxmargin.compiled.projections.rows import sum_to_zero_shifts
from proxmargin.functions.traits import Trait
from proxmargin.penalties import (
    Ball,
    ElasticNet,
    GroupNorm,
    Penalty,
    Pinned,
    SumToZero,
    SumToZeroGroups,
    WeightedElasticNet,
)
from tests.cases import PENALTIES, into_domain
from tests.drawn import drawn_arrays
from tests.unchanged import unchanged

every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
SPARSE = [
    "elastic net",
    "l1",
    "weighted elastic net",
    "weighted l1",
    "non-negative",
    "group l2",
    "group l2, weighted",
    "group l2 of features",
    "group linf",
    "group linf, weighted",
    "group linf of features",
    "sum-to-zero elastic net",
    "sum-to-zero l1",
    "sum-to-zero weighted elastic net",
    "sum-to-zero weighted l1",
    "sum-to-zero group l2",
    "sum-to-zero group linf",
    "sum-to-zero group l2 in classes",
    "sum-to-zero group linf in classes",
]
with_l1 = pytest.mark.parametrize("penalty", [PENALTIES[name] for name in SPARSE], ids=SPARSE)

points = drawn_arrays((4, 3), -20.0, 20.0)  # rows of 3 outputs
steps = st.floats(1e-2, 1e2)


def in_conjugate_domain(penalty: Penalty, dual: np.ndarray) -> np.ndarray:
    """The dual, scaled: the scale is exact up to ulps of the entries, not of their differences."""
    factor = penalty.domain_scale(dual)
    for _ in range(50):
        factor *= 1 - 1e-15
        if np.isfinite(penalty.conjugate(factor * dual)):
            break
    return factor * dual


@every_penalty
@given(v=points, step=steps)
def test_prox_beats_every_perturbation(penalty: Penalty, v, step: float) -> None:
    def objective(u: np.ndarray) -> float:
        return penalty.value(u) + float(np.vdot(u - v, u - v)) / (2 * step)

    u = penalty.prox(v, step)
    here = objective(u)
    rng = np.random.default_rng(0)
    for size in (1e-4, 1e-1, 3.0):
        for _ in range(5):
            other = into_domain(penalty, u + size * rng.standard_normal(u.shape))
            assert here <= objective(other) + 1e-12 * (1 + abs(here))


@every_penalty
@given(v=points, step=steps)
def test_prox_meets_its_optimality_condition(penalty: Penalty, v, step: float) -> None:
    u = penalty.prox(v, step)
    dual = (v - u) / step
    size = 1 + np.abs(v).max() / step
    np.testing.assert_allclose(into_domain(penalty, u), u, atol=1e-13 * (1 + np.abs(v).max()))
    assert penalty.violations(u, dual).max() <= 1e-13 * size
    terms = penalty.fenchel_young(u, in_conjugate_domain(penalty, dual))
    assert np.all(terms >= 0)
    if np.isfinite(penalty.conjugate(in_conjugate_domain(penalty, dual))):
        if penalty.conjugate(dual) == np.inf and penalty.domain_scale(dual) == 0.0:
            return  # the zero function: its conjugate lives at zero only, rounding leaves it
        assert terms.max() <= 1e-12 * size * (1 + np.abs(u).max())


@every_penalty
@given(v=points)
def test_moreau_splits_the_squared_norm(penalty: Penalty, v) -> None:
    # with u = prox(v): G(u) + G*(v - u) = <u, v - u>
    u = penalty.prox(v, 1.0)
    rest = in_conjugate_domain(penalty, v - u)
    np.testing.assert_allclose(rest, (v - u) * (penalty.domain_scale(v - u) > 0), atol=1e-13)
    conjugate = penalty.conjugate(rest)
    size = 1 + float(np.vdot(v, v))
    assert penalty.value(u) + conjugate == pytest.approx(float(np.vdot(u, rest)), abs=1e-13 * size)


@every_penalty
@given(v=points, w=points, step=steps)
def test_prox_does_not_expand_distances(penalty: Penalty, v, w, step: float) -> None:
    moved = np.linalg.norm(penalty.prox(v, step) - penalty.prox(w, step))
    assert moved <= np.linalg.norm(v - w) / (1 + step * penalty.l2) + 1e-12


@every_penalty
@given(coef=points, dual=points)
def test_fenchel_young_is_value_plus_conjugate_minus_product(penalty, coef, dual) -> None:
    coef, dual = into_domain(penalty, coef), in_conjugate_domain(penalty, dual)
    terms = penalty.fenchel_young(coef, dual)
    assert terms.shape == (coef.shape[0],)
    assert np.all(terms >= 0)
    plain = penalty.value(coef) + penalty.conjugate(dual) - float(np.vdot(coef, dual))
    size = 1 + np.abs(coef).max() + np.abs(dual).max()
    assert terms.sum() == pytest.approx(plain, abs=1e-12 * size**2)


DIFFERENTIABLE = {
    name: penalty
    for name, penalty in PENALTIES.items()
    if not isinstance(penalty, Ball) and name != "sum-to-zero group linf in classes"
}
with_jacobian = pytest.mark.parametrize(
    "penalty", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE.keys()
)


@with_jacobian
@pytest.mark.parametrize("step", [0.1, 1.0, 5.0])
def test_the_jacobian_of_the_prox_is_its_derivative(penalty: Penalty, step: float, rng) -> None:
    for size in (0.3, 1.0, 5.0):
        at, direction = size * rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
        jacobian, h = penalty.prox_jacobian(at, step), 1e-7 * size
        ahead, behind = (penalty.prox(at + sign * h * direction, step) for sign in (1, -1))
        np.testing.assert_allclose(
            jacobian.apply(direction), (ahead - behind) / (2 * h), atol=1e-6 / size
        )


@with_jacobian
@given(at=points, step=steps)
def test_jacobians_of_the_prox_are_symmetric_with_eigenvalues_between_0_and_1(
    penalty: Penalty, at, step: float
) -> None:
    jacobian = penalty.prox_jacobian(at, step)
    basis = np.eye(at.size).reshape(-1, *at.shape)
    matrix = np.array([jacobian.apply(unit).ravel() for unit in basis])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert eigenvalues[0] >= -1e-13
    assert eigenvalues[-1] <= 1.0 / (1.0 + step * penalty.l2) + 1e-13


def test_a_penalty_without_a_jacobian_says_so() -> None:
    with pytest.raises(TypeError, match="no derivative of the prox of Ball"):
        PENALTIES["ball"].prox_jacobian(np.ones((4, 3)), 1.0)
    with pytest.raises(TypeError, match="known with one group a feature only"):
        PENALTIES["sum-to-zero group linf in classes"].prox_jacobian(np.ones((4, 3)), 1.0)


@every_penalty
@given(dual=points)
def test_domain_scale_is_the_largest_factor_into_the_domain(penalty: Penalty, dual) -> None:
    factor = penalty.domain_scale(dual)
    assert 0 <= factor <= 1
    assert np.isfinite(penalty.conjugate(factor * (1 - 1e-12) * dual))
    if factor < 1:
        assert penalty.conjugate(max(factor * (1 + 1e-9), 1e-9) * dual) == np.inf


@every_penalty
def test_conjugate_is_the_supremum(penalty: Penalty, rng) -> None:
    penalty = penalty.restricted(np.arange(1))
    for _ in range(3):
        dual = in_conjugate_domain(penalty, rng.standard_normal((1, 3)))

        def minus(u: np.ndarray, dual: np.ndarray = dual, penalty: Penalty = penalty) -> float:
            u = into_domain(penalty, u.reshape(dual.shape))
            return penalty.value(u) - float(np.vdot(u, dual))

        starts = [np.zeros(3), penalty.prox(dual, 1.0).ravel(), 3 * rng.standard_normal(3)]
        brute = -min(
            minimize(minus, s, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).fun
            for s in starts
        )
        assert brute == pytest.approx(penalty.conjugate(dual), abs=1e-8)


@with_l1
@given(dual=points)
def test_critical_strength_is_where_zero_stops_being_the_prox(penalty: Penalty, dual) -> None:
    def at(l1: float) -> Penalty:
        if isinstance(penalty, SumToZero):
            return SumToZero(at_net(penalty.inner, l1))
        if isinstance(penalty, GroupNorm):
            return replace(penalty, strength=l1)
        if isinstance(penalty, SumToZeroGroups):
            return SumToZeroGroups(replace(penalty.inner, strength=l1))
        return at_net(penalty, l1)

    def at_net(penalty: Penalty, l1: float) -> Penalty:
        if isinstance(penalty, WeightedElasticNet):
            return replace(penalty, inner=replace(penalty.inner, l1=l1))
        return replace(penalty, l1=l1)

    critical = penalty.critical_strength(dual)
    assert not np.any(at(critical * (1 + 1e-12)).prox(dual, 1.0))
    assert critical <= 1e-6 or np.any(at(critical * (1 - 1e-6)).prox(dual, 1.0))


@every_penalty
@given(coef=points, dual=points)
def test_a_point_without_violations_is_the_prox_of_point_plus_dual(penalty, coef, dual) -> None:
    # dual in dG(coef)  <=>  coef = prox(coef + dual); both sides measured, zero together
    coef = into_domain(penalty, penalty.prox(coef, 1.0))
    violations = penalty.violations(coef, dual)
    moved = np.abs(penalty.prox(coef + dual, 1.0) - coef).max(axis=1)
    if not penalty.by_features:  # rows are coupled: only all of them together mean anything
        violations, moved = violations.max(keepdims=True), moved.max(keepdims=True)
    assert np.all(violations >= 0)
    assert np.all(moved[violations <= 1e-13] <= 1e-12 * (1 + np.abs(dual).max()))
    assert np.all(
        violations[moved <= 1e-13] <= 1e-11 * (1 + np.abs(coef).max() + np.abs(dual).max())
    )


@every_penalty
@given(v=points)
def test_declared_traits_are_true(penalty: Penalty, v) -> None:
    if not penalty.by_features:
        # norms couple the coefficients: neither law holds, nor does the trait claim it
        assert Trait.SEPARABLE not in penalty.traits
        return
    whole = penalty.prox(v, 0.7)
    one_by_one = [(penalty.restricted(np.arange(j, j + 1)), v[j : j + 1]) for j in range(len(v))]
    if Trait.SEPARABLE in penalty.traits:
        single = [[p.prox(np.array([[x]]), 0.7)[0, 0] for x in row[0]] for p, row in one_by_one]
        np.testing.assert_array_equal(whole, single)
    else:  # rows stay independent
        rows = np.vstack([p.prox(row, 0.7) for p, row in one_by_one])
        np.testing.assert_array_equal(whole, rows)


@every_penalty
@given(v=points, step=steps)
def test_a_net_is_the_penalty_feature_by_feature(penalty: Penalty, v, step: float) -> None:
    if Trait.NET not in penalty.traits:
        with pytest.raises(TypeError, match="no elastic net"):
            penalty.net(4)
        return
    net = penalty.net(4)
    l1, l2, lower, upper = (each[:, None] for each in net)
    soft = np.sign(v) * np.maximum(np.abs(v) - step * l1, 0.0) / (1.0 + step * l2)
    np.testing.assert_allclose(penalty.prox(v, step), np.clip(soft, lower, upper), atol=1e-13)
    coef = into_domain(penalty, v)
    value = float((l1 * np.abs(coef) + 0.5 * l2 * coef**2).sum())
    assert penalty.value(coef) == pytest.approx(value, rel=1e-13)
    if Trait.UNIFORM_NET in penalty.traits:
        assert [each.tolist() for each in net] == [[x] * 4 for x in (
            penalty.l1, penalty.l2, -np.inf, np.inf)]  # fmt: skip


@every_penalty
def test_a_declared_jacobian_is_known(penalty: Penalty) -> None:
    if Trait.PROX_JACOBIAN in penalty.traits:
        penalty.prox_jacobian(np.ones((4, 3)), 1.0)
    else:
        with pytest.raises(TypeError):
            penalty.prox_jacobian(np.ones((4, 3)), 1.0)


@every_penalty
def test_the_ridge_part_is_the_modulus_of_strong_convexity(penalty: Penalty, rng) -> None:
    for _ in range(20):
        u, v = (into_domain(penalty, rng.standard_normal((4, 3))) for _ in range(2))
        middle = penalty.value(0.5 * (u + v))
        bend = penalty.l2 / 8 * float(np.vdot(u - v, u - v))
        assert middle <= 0.5 * (penalty.value(u) + penalty.value(v)) - bend + 1e-12


@pytest.mark.parametrize(
    "name",
    ["nothing", "ridge", "elastic net without l1", "sum-to-zero ridge", "sum-to-zero", "pinned"],
)
def test_the_newton_direction_minimises_the_quadratic_model(name: str, rng) -> None:
    penalty = PENALTIES[name]
    for scale in (1e-3, 1.0, 1e6):
        gradient, curvature = scale * rng.standard_normal(3), rng.uniform(0.5, 2.0, 3)
        at = into_domain(penalty, rng.standard_normal((1, 3)))[0]
        direction = penalty.newton_direction(gradient, curvature, at)

        def model(d: np.ndarray, g=gradient, h=curvature, at=at) -> float:
            quadratic = float(g @ d + 0.5 * d @ (h * d))
            return quadratic + penalty.value(into_domain(penalty, (at + d)[None, :]))

        reached = (at + direction)[None, :]
        np.testing.assert_allclose(
            into_domain(penalty, reached), reached, atol=1e-14 * scale + 1e-15
        )
        for _ in range(20):
            other = into_domain(penalty, reached + scale * rng.standard_normal((1, 3)))[0] - at
            assert model(direction) <= model(other) + 1e-13 * (1 + scale**2)


def test_a_penalty_with_a_kink_refuses_to_be_an_intercepts_penalty() -> None:
    for name in ("l1", "elastic net"):
        with pytest.raises(TypeError, match="use Ridge"):
            PENALTIES[name].newton_direction(np.ones(1), np.ones(1), np.zeros(1))


@every_penalty
@given(sums=drawn_arrays(3, -20.0, 20.0))
def test_feasible_sums_have_a_finite_conjugate_and_can_be_reached(penalty: Penalty, sums) -> None:
    if (
        getattr(penalty, "l1", 0)
        or isinstance(penalty, GroupNorm | SumToZeroGroups)
        or (isinstance(penalty, SumToZero) and penalty.inner.l1)
    ):
        pytest.skip("not the penalty of an intercept")
    low, high = np.minimum(sums, 0) - np.array([0.0, 1.0, 2.0]), np.maximum(sums, 0) + 0.5
    allowed = penalty.feasible_sums(sums, low, high)
    assert np.isfinite(penalty.conjugate(-allowed[None, :]))
    assert np.all((allowed >= low) & (allowed <= high))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_an_elastic_net_needs_finite_strengths(name: str, bad: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be a finite number"):
        ElasticNet(**{"l1": 0.1, "l2": 0.1, name: bad})


def test_a_mixture_splits_the_strength() -> None:
    mixture = ElasticNet.from_mixture(0.4, 0.25)
    assert (mixture.l1, mixture.l2) == pytest.approx((0.1, 0.3))


def test_pinned_coefficients_are_zero_or_infinitely_bad() -> None:
    assert Pinned().value(np.zeros((2, 1))) == 0
    assert Pinned().value(np.ones((2, 1))) == np.inf


@given(rows=drawn_arrays((4, 5), -20.0, 20.0), threshold=st.floats(0.0, 10.0))
def test_the_shift_of_a_row_makes_its_soft_threshold_sum_to_zero(rows, threshold) -> None:
    moved = rows - sum_to_zero_shifts(rows, threshold)
    soft = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0)
    np.testing.assert_allclose(soft.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.5])
@pytest.mark.parametrize("step", [0.3, 4.0])
def test_the_sum_to_zero_prox_agrees_with_an_interior_point_solver(l2, step, rng) -> None:
    penalty = SumToZero(ElasticNet(0.4, l2))
    v = np.vstack([rng.standard_normal((6, 4)), [[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, -1.0, -3.0]]])
    W = cp.Variable(v.shape)
    objective = 0.4 * cp.sum(cp.abs(W)) + l2 / 2 * cp.sum_squares(W)
    objective += cp.sum_squares(W - v) / (2 * step)
    cp.Problem(cp.Minimize(objective), [cp.sum(W, axis=1) == 0]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    np.testing.assert_allclose(penalty.prox(v, step), W.value, atol=1e-6)


@every_penalty
def test_evaluating_a_penalty_leaves_its_arguments_unchanged(penalty: Penalty, rng) -> None:
    coef, dual = into_domain(penalty, rng.standard_normal((4, 3))), rng.standard_normal((4, 3))
    with unchanged(coef, dual):
        penalty.prox(coef, 1.0)
        penalty.value(coef)
        penalty.conjugate(dual)
        penalty.fenchel_young(coef, penalty.domain_scale(dual) * dual)
        penalty.violations(coef, dual)
        penalty.critical_strength(dual)
